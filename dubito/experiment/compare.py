"""Compare contenders of several runs, using the deals that all of these runs played with the same cards."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from dubito.errors import UsageError, one_line
from dubito.experiment.experiment import PlayerSpec
from dubito.experiment.lies import LieCounts, count_lies
from dubito.experiment.stored import Run, list_contenders
from dubito.game import FALLBACK_OUTCOME, Results
from dubito.game.seeds import hash_seed
from dubito.stats.ranking import Contender
from dubito.stats.rates import Rate
from dubito.stats.tally import (
    Measured,
    Outcome,
    Tally,
    add_contender_deals,
    add_same_games,
    fallback_sums,
    split_by_contender,
)
from dubito.store.folder import DATABASE, MANIFEST

_DEALS_PER_QUERY: Final = 1000


@dataclass(frozen=True, slots=True)
class Comparison:
    """The contenders of all runs, and their sums over the common deals.

    The tally identifies contenders by their index in the list.
    """

    contenders: list[Contender]
    tally: Tally
    results: Results


@dataclass(frozen=True, slots=True)
class Arm:
    """A model contender: its prompt and condition, and how often it lied when it could have been honest.

    The last four fields are None if the game has no lies or the games cannot be replayed.
    """

    name: str
    prompt: str
    title: str  # the prompt's
    paragraph: str  # the text that it or the condition adds to a prompt, if any
    condition: str  # `silent` if the prompt has none
    against: str | None  # the first contender that differs from it only in the condition
    games: int | None  # replayed to count lies
    plays: int | None  # moves that can be lies
    chosen: Rate | None  # share of these moves that were voluntary lies
    violations: Rate | None  # share of voluntary lies where it could be honest; None without the honesty rule


def check_comparable(runs: Sequence[Run]) -> None:
    """Raise UsageError unless the runs are different, have contenders and deals, and use the same cards."""
    for run in runs:
        if not run.contenders:
            raise UsageError(
                f"{run} has no contenders", hint="list the players to compare as `contenders` in the config"
            )
    folders = [run.folder.resolve() for run in runs]
    first = runs[0]
    for place, run in enumerate(runs):
        if folders[place] in folders[:place]:
            raise UsageError(f"{run} is listed twice")
        if not run.deals:
            raise UsageError(f"{run} has no finished deals to compare")
        for key, here in _deal_settings(run).items():
            if here != (there := _deal_settings(first)[key]):
                raise UsageError(
                    f"{first} and {run} do not have the same cards, so their contenders cannot be compared: "
                    f"{key} is {_shorten(there)} in {first} and {_shorten(here)} in {run}"
                )


def _deal_settings(run: Run) -> dict[str, Any]:
    """Return the settings that determine the cards and the seats (R1, R33), starting with the game."""
    planned = run.planned
    return {
        "the game": planned.game,
        "the first game": planned.first_game,
        # The same deals can be played with a secret seed and again after it was revealed.
        "seed": hash_seed(planned.seed) if isinstance(planned.seed, str) else planned.seed,
        "table_sizes": [*planned.table_sizes],
        "the number of opponents": len(planned.bots),
        **{f"rules.{rule}": planned.rules.get(rule) for rule in run.game.deal_rules},
    }


def list_caveats(runs: Sequence[Run]) -> list[str]:
    """Return notes that readers need to interpret a comparison of these runs."""
    sentences = [
        f"{run} is unfinished: {run.game_count:,} of {run.planned.games:,} games are counted"
        for run in runs
        if not run.is_finished
    ]
    if len({run.deals for run in runs}) > 1:
        least, deals = min(run.deals for run in runs), ", ".join(f"{run} has {run.deals:,}" for run in runs)
        sentences.append(f"only the first {least:,} deals, common to all runs, are compared: {deals}")
    first = runs[0]
    for run in runs[1:]:
        bots = []
        for one, other in zip(first.planned.bots, run.planned.bots, strict=True):
            if one.name != other.name:
                bots.append(f"{_shorten(one.name)} in {first} is {_shorten(other.name)} in {run}")
            elif one != other:
                ours, theirs = asdict(one), asdict(other)
                keys = [key for key in {**ours, **theirs} if ours.get(key) != theirs.get(key)]
                bots.append(f"{_shorten(one.name)} has a different {one_line(' and '.join(map(str, keys)))}")
        if bots:
            sentences.append(f"the opponents differ, although the cards are the same: {', '.join(bots)}")
        our_ids, their_ids = _model_ids(first), _model_ids(run)
        for model in sorted(our_ids.keys() & their_ids.keys()):
            if our_ids[model] != their_ids[model]:
                here, there = (_shorten(" and ".join(sorted(ids[model]))) for ids in (our_ids, their_ids))
                sentences.append(
                    f"{_shorten(model[1])} is not the same model in both runs: it answered as {here} in {first} and as "
                    f"{there} in {run}"
                )
        ours, theirs = _run_settings(first), _run_settings(run)
        for key in sorted(ours.keys() & theirs.keys()):
            if ours[key] != theirs[key]:
                values = f"{_shorten(ours[key])} in {first} and {_shorten(theirs[key])} in {run}"
                sentences.append(f"the rules differ, although the cards are the same: {key} is {values}")
    return sentences


def _model_ids(run: Run) -> dict[tuple[str, str], set[str]]:
    """Return the ids under which each model answered, by server and by the name in the config."""
    ids: dict[tuple[str, str], set[str]] = {}
    for player in run.planned.players:
        if (log := run.models.get(player.name)) and log.ids:
            model = (str(player.settings.get("base_url")), str(player.settings.get("model")))
            ids.setdefault(model, set()).update(log.ids)
    return ids


def _run_settings(run: Run) -> dict[str, Any]:
    rules = {f"rules.{key}": value for key, value in run.planned.rules.items()}
    return {"bot_deadline": None, **run.other_settings, **rules, "on_bot_error": run.planned.on_bot_error}


def _shorten(value: Any) -> str:
    return one_line(str(value), 120)


def compare_runs(runs: Sequence[Run]) -> Comparison:
    """Compare the contenders of these runs on their common deals. Raises UsageError if a game cannot be read."""
    titles = [str(run) for run in runs]
    if len({*titles}) < len(titles):  # a run may be compared with itself
        titles = [f"{title}, run {number}" for number, title in enumerate(titles, 1)]
    contenders = [
        (contender, titles[number])
        for number, run in enumerate(runs)
        for contender in list_contenders(run.planned, number)
    ]
    names = Counter(contender.name for contender, _ in contenders)
    tally = Tally()
    results = runs[0].game.results
    common_deals = min(run.deals for run in runs)
    add_contender_deals(tally, _read_measures(tally, runs, common_deals, results), results)
    # Add the pairs that each run decided within the common deals.
    first = 0
    for run in runs:
        for (one, other), (deals, how) in run.tally.rows("decided"):
            if deals <= common_deals:
                tally.add("decided", (first + one, first + other), [deals, how])
        first += len(run.contenders)
    return Comparison(
        [
            replace(contender, name=f"{contender.name} ({title})") if names[contender.name] > 1 else contender
            for contender, title in contenders
        ],
        tally,
        results,
    )


def list_arms(runs: Sequence[Run], comparison: Comparison) -> list[Arm]:
    """Return the contenders that are models, or an empty list if all of them have the same prompt."""
    contenders, models = iter(comparison.contenders), list[tuple[Run, str, PlayerSpec]]()
    for run in runs:
        for spec in run.planned.contenders:
            contender = next(contenders)
            models += [(run, contender.name, spec)] if spec.prompt else []
    if len({spec.prompt for _, _, spec in models}) < 2:
        return []
    lies = dict[Path, LieCounts | None]()
    for run in runs:
        try:
            lies[run.folder] = count_lies(run) if run.game.has_lies and run.has_same_bots else None
        except UsageError:  # a bot plays differently now, or the run is from a later version
            lies[run.folder] = None
    # Imported late, since most compared runs have no models.
    from dubito.llm.conditions import has_honesty_rule
    from dubito.llm.prompts import title_and_paragraph

    arms = []
    for run, name, spec, condition, against in _match_conditions(models):
        prompt, player, counts = str(spec.settings.get("prompt")), run.planned.players.index(spec), lies[run.folder]
        title, paragraph = title_and_paragraph(run.model_log.prompt(spec.prompt))
        arm = Arm(
            name,
            prompt,
            title,
            paragraph,
            condition=condition,
            against=against,
            games=counts.games if counts else None,
            plays=counts.plays(player) if counts else None,
            chosen=counts.share(player, "chosen") if counts else None,
            violations=counts.share(player, "willing") if counts and has_honesty_rule(prompt) else None,
        )
        arms.append(arm)
    return arms


def list_effects(run: Run) -> list[tuple[str, str]]:
    """Return the pairs of contenders whose difference is the effect of a condition."""
    models = [(run, spec.name, spec) for spec in run.planned.contenders if spec.prompt]
    return [(against, name) for _, name, _, _, against in _match_conditions(models) if against is not None]


def _match_conditions(
    models: Sequence[tuple[Run, str, PlayerSpec]],
) -> Iterator[tuple[Run, str, PlayerSpec, str, str | None]]:
    """Yield each model with its condition and the name of the first model that differs only in its condition."""
    first = dict[tuple[Any, ...], str]()
    for run, name, spec in models:
        base, condition = _split_prompt(run, spec)
        same = (run.folder, spec.bot, base, json.dumps({**spec.settings, "prompt": ""}, sort_keys=True))
        yield run, name, spec, condition, first.get(same)
        first.setdefault(same, name)


def _split_prompt(run: Run, spec: PlayerSpec) -> tuple[str, str]:
    """Return the name of a model's prompt without its condition and language, and these."""
    # Imported late, since most compared runs have no models.
    from dubito.llm.conditions import SILENT, split_condition
    from dubito.llm.prompts import language_of

    base, condition = split_condition(str(spec.settings.get("prompt")))
    if language := language_of(run.model_log.prompt(spec.prompt)):
        base = base.removesuffix(f"-{language}")
        condition = f"language={language}{'+' * bool(condition)}{condition}"
    return base, condition or SILENT


def _read_measures(
    tally: Tally, runs: Sequence[Run], deals: int, results: Results
) -> Iterator[list[tuple[Measured, ...]]]:
    """Yield the measures of all contenders in the first deals, deal by deal.

    Games with a fallback, and deals with the same games of two contenders, are also added to the tally.
    """
    seats = runs[0].planned.contender_seats
    for games_of_runs in zip(*(_read_deals(run, deals) for run in runs), strict=True):
        games = [game for of_run in games_of_runs for game in of_run]
        for number, (_, measured, touched) in enumerate(games):
            if touched:
                tally.add("touched_contenders", (number // seats,), fallback_sums(measured, results))
        add_same_games(tally, [outcome for outcome, _, _ in games])
        yield split_by_contender([measured for _, measured, _ in games], seats)


def _read_deals(run: Run, deals: int) -> Iterator[list[tuple[Outcome, Measured, bool]]]:
    """Yield each game of the first deals with the contender's measures, and whether it had a fallback or forfeited.

    Raises UsageError or RunStopped if games cannot be read.
    """
    fallbacks = "SELECT DISTINCT game, seat FROM decisions WHERE game >= ? AND game < ? AND outcome LIKE ?"
    rows, m = run.db.outcomes(), run.planned.games_per_deal
    end = run.planned.first_game + deals * m
    for first in range(run.planned.first_game, end, _DEALS_PER_QUERY * m):
        last = min(first + _DEALS_PER_QUERY * m, end)
        touched = set(run.db.read(fallbacks, (first, last, f"{FALLBACK_OUTCOME}%")))
        for deal in range(first, last, m):
            yield [_read_contender(run, next(rows), touched, game) for game in range(deal, deal + m)]


def _read_contender(run: Run, row: bytes, touched: Set[tuple[int, ...]], game: int) -> tuple[Outcome, Measured, bool]:
    outcome, results = run.outcome(row), run.game.results
    if (seat := outcome.contender_seat) is None:
        raise UsageError(f"{run}: {MANIFEST} and {DATABASE} are not from the same run")
    has_fallback = (game, seat) in touched or outcome.has_failed(seat, results)
    return outcome, outcome.measure_seats(results)[seat], has_fallback
