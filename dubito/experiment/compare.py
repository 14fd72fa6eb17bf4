"""Contenders of several runs that were dealt the same cards, paired over the deals that all the runs keep."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from dubito.errors import UsageError, one_line
from dubito.experiment.experiment import PlayerSpec
from dubito.experiment.replay import LieCounts, count_lies
from dubito.experiment.stored import Run, list_contenders
from dubito.game import FALLBACK_OUTCOME, Results
from dubito.stats.players import add_fallback_contender
from dubito.stats.ranking import Contender
from dubito.stats.rates import Rate
from dubito.stats.tally import Measured, Tally, add_contender_deals, split_by_contender
from dubito.store.folder import DATABASE, MANIFEST
from dubito.store.model_log import ModelLog

_DEALS_PER_QUERY: Final = 1000  # deals whose fallbacks are looked up together


@dataclass(frozen=True, slots=True)
class Comparison:
    """The contenders of all runs, and their sums over the common deals; the tally's keys are places in the list."""

    contenders: list[Contender]
    tally: Tally
    results: Results


@dataclass(frozen=True, slots=True)
class Arm:
    """A contender that a model plays: by which prompt, and how often it lied where it could have been honest."""

    name: str  # the contender's
    prompt: str
    title: str  # of the prompt
    paragraph: str  # that the prompt adds to another one; empty if it does not
    games: int | None  # that were played again to count lies; None: they cannot be, or the game has none
    plays: int | None  # moves that can be lies
    chosen: Rate | None  # of these the lies by choice


def check_comparable(runs: Sequence[Run]) -> None:
    """Refuse what cannot be paired: no contenders, the same run twice, no deal kept, other cards. Raises UsageError."""
    for run in runs:
        if not run.contenders:
            raise UsageError(f"{run} has no contenders: players are compared that a config lists as `contenders`")
    folders = [run.folder.resolve() for run in runs]
    first = runs[0]
    for place, run in enumerate(runs):
        if folders[place] in folders[:place]:
            raise UsageError(f"{run} is given twice")
        if not run.deals:
            raise UsageError(f"{run} keeps no finished deal: there is nothing to compare")
        for key, here in _deal_settings(run).items():
            if here != (there := _deal_settings(first)[key]):
                raise UsageError(
                    f"{first} and {run} are not dealt the same cards, so their contenders cannot be paired: "
                    f"{key} is {_brief(there)} in {first} and {_brief(here)} in {run}"
                )


def _deal_settings(run: Run) -> dict[str, Any]:
    """What decides how the cards are dealt and who draws a seat (R1, R33); the game first."""
    planned = run.planned
    return {
        "the game": planned.game,
        "the first game": planned.first_game,
        "seed": planned.seed,
        "table_sizes": [*planned.table_sizes],
        "the number of bots in the field": len(planned.bots),
        **{f"rules.{rule}": planned.rules.get(rule) for rule in run.game.deal_rules},
    }


def list_caveats(runs: Sequence[Run]) -> list[str]:
    """What a reader must know of a comparison of these runs, a sentence each."""
    said = [
        f"{run} is unfinished: {run.kept:,} of {run.planned.games:,} games are kept"
        for run in runs
        if not run.is_finished
    ]
    if len({run.deals for run in runs}) > 1:
        kept = ", ".join(f"{run} keeps {run.deals:,}" for run in runs)
        said.append(f"only the first {_common_deals(runs):,} deals are compared, which all runs keep: {kept}")
    first = runs[0]
    for run in runs[1:]:
        pairs = zip(first.planned.bots, run.planned.bots, strict=True)
        if bots := ", ".join(_describe_other_bot(one, other, first, run) for one, other in pairs if one != other):
            said.append(f"the fields differ, so the same cards were played in other company: {bots}")
        said += _describe_other_ids(first, run)
        ours, theirs = _run_settings(first), _run_settings(run)
        for key in sorted(ours.keys() & theirs.keys()):
            if ours[key] != theirs[key]:
                values = f"{_brief(ours[key])} in {first} and {_brief(theirs[key])} in {run}"
                said.append(f"the same cards were played under other rules: {key} is {values}")
    return said


def _describe_other_ids(first: Run, run: Run) -> Iterator[str]:
    """A sentence for each model that was asked by the same name in both, and says that it is another."""
    ours, theirs = _model_ids(first), _model_ids(run)
    for asked in sorted(ours.keys() & theirs.keys()):
        if ours[asked] != theirs[asked]:
            one, other = (_brief(" and ".join(sorted(ids[asked]))) for ids in (ours, theirs))
            yield f"{_brief(asked[1])} is not the same model: it answered as {one} in {first} and as {other} in {run}"


def _model_ids(run: Run) -> dict[tuple[str, str], set[str]]:
    """By server and name of a model: as whom it answered, as far as the run has kept that."""
    found: dict[tuple[str, str], set[str]] = {}
    for player in run.planned.players:
        if (log := run.models.get(player.name)) and log.ids:
            asked = (str(player.settings.get("base_url")), str(player.settings.get("model")))
            found.setdefault(asked, set()).update(log.ids)
    return found


def _run_settings(run: Run) -> dict[str, Any]:
    rules = {f"rules.{key}": value for key, value in run.planned.rules.items()}
    return {"bot_deadline": None, **run.more, **rules, "on_bot_error": run.planned.on_bot_error}


def _describe_other_bot(one: PlayerSpec, other: PlayerSpec, first: Run, run: Run) -> str:
    ours, theirs = asdict(one), asdict(other)
    if one.name != other.name:
        return f"{_brief(one.name)} in {first} is {_brief(other.name)} in {run}"
    keys = [key for key in {**ours, **theirs} if ours.get(key) != theirs.get(key)]
    return f"{_brief(one.name)} has another {one_line(' and '.join(map(str, keys)))}"


def _brief(value: Any) -> str:
    return one_line(str(value), 120)


def _common_deals(runs: Sequence[Run]) -> int:
    return min(run.deals for run in runs)


def compare_runs(runs: Sequence[Run]) -> Comparison:
    """The contenders of these runs on their common deals; raises UsageError where a game cannot be read."""
    contenders = [
        (contender, run)
        for number, run in enumerate(runs)
        for contender in list_contenders(run.planned, run.models, number)
    ]
    names = Counter(contender.name for contender, _ in contenders)
    tally = Tally()
    results = runs[0].game.results
    add_contender_deals(tally, _read_measures(tally, runs, results), results)
    _add_decided_pairs(tally, runs)
    return Comparison(
        [
            replace(contender, name=f"{contender.name} ({run.folder})") if names[contender.name] > 1 else contender
            for contender, run in contenders
        ],
        tally,
        results,
    )


def _add_decided_pairs(tally: Tally, runs: Sequence[Run]) -> None:
    """Add which pairs of one run were decided within the common deals."""
    first = 0
    for run in runs:
        for (one, other), (deals, how) in run.tally.rows("decided"):
            if deals <= _common_deals(runs):
                tally.add("decided", (first + one, first + other), [deals, how])
        first += len(run.contenders)


def list_arms(runs: Sequence[Run], comparison: Comparison) -> list[Arm]:
    """The contenders that models play, if not all by one prompt."""
    contenders, found = iter(comparison.contenders), list[tuple[Run, str, PlayerSpec]]()
    for run in runs:
        for spec in run.planned.contenders:
            contender = next(contenders)
            found += [(run, contender.name, spec)] if spec.prompt else []
    if len({spec.prompt for _, _, spec in found}) < 2:
        return []
    lies = {run.folder: _count_lies(run) for run in runs}
    return [_build_arm(run, name, spec, lies[run.folder]) for run, name, spec in found]


def _count_lies(run: Run) -> LieCounts | None:
    try:
        return count_lies(run) if run.game.lie and run.has_bots else None
    except UsageError:  # a bot would now play otherwise, or the run is of a later version
        return None


def _build_arm(run: Run, name: str, spec: PlayerSpec, lies: LieCounts | None) -> Arm:
    from dubito.llm.prompts import title_and_paragraph  # late: most runs that are compared have no models

    said, player = title_and_paragraph(ModelLog(run.db).prompt(spec.prompt)), run.planned.players.index(spec)
    told = (lies.games, lies.plays(player), lies.share(player, "chosen")) if lies else (None, None, None)
    return Arm(name, str(spec.settings.get("prompt")), *said, *told)


def _read_measures(tally: Tally, runs: Sequence[Run], results: Results) -> Iterator[list[tuple[Measured, ...]]]:
    """What all contenders came to in their seats, deal by deal; games that a fallback touched are added."""
    deals = _common_deals(runs)
    for games_of_runs in zip(*(_read_deals(run, deals) for run in runs), strict=True):
        games = [game for of_run in games_of_runs for game in of_run]
        seats = runs[0].planned.contender_seats
        for number, (measured, touched) in enumerate(games):
            if touched:
                add_fallback_contender(tally, number // seats, measured, results)
        yield split_by_contender([measured for measured, _ in games], seats)


def _read_deals(run: Run, deals: int) -> Iterator[list[tuple[Measured, bool]]]:
    """Of each of the first deals, for each game of a contender: what it came to, and whether a fallback answered for
    it. Raises UsageError or RunStopped where games cannot be read."""
    rows, m = run.db.outcomes(), run.planned.games_per_deal
    end = run.planned.first_game + deals * m
    for first in range(run.planned.first_game, end, _DEALS_PER_QUERY * m):
        last = min(first + _DEALS_PER_QUERY * m, end)
        touched = _read_fallback_seats(run, first, last)
        for deal in range(first, last, m):
            games = [(game, *_unpack_contender(run, next(rows))) for game in range(deal, deal + m)]
            yield [(measured, (game, seat) in touched) for game, seat, measured in games]


def _unpack_contender(run: Run, row: bytes) -> tuple[int, Measured]:
    """The contenders' seat, and what it came to, in a packed game."""
    results = run.game.results
    outcome = run.outcome(row)
    if outcome.contender_seat is None:
        raise UsageError(f"{run}: {MANIFEST} and {DATABASE} do not belong together")
    return outcome.contender_seat, outcome.measured(results)[outcome.contender_seat]


def _read_fallback_seats(run: Run, first: int, last: int) -> set[tuple[int, ...]]:
    query = "SELECT DISTINCT game, seat FROM decisions WHERE game >= ? AND game < ? AND outcome LIKE ?"
    return set(run.db.read(query, (first, last, f"{FALLBACK_OUTCOME}%")))
