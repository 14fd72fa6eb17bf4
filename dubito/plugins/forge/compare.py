"""One table: a model as a player, as a programmer, and as a player whom its own bot advises, on the same deals."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from dubito.experiment.experiment import PROGRAM_BOT, PlayerSpec
from dubito.experiment.run import RunResult
from dubito.experiment.stored import Run, open_recorded_run
from dubito.hooks import exploitabilities
from dubito.llm.prompts import prompt_names
from dubito.plugins.forge.forge import Forged, Order, Round, digest_files, gain, keep_result, own_rate, seed_of
from dubito.plugins.forge.play import REFERENCE, Bench, describe_program
from dubito.stats.rates import Rate

_PROMPTS: Final = ("plain", "plan")
_MODEL_BOT: Final = "LLMBot"


@dataclass(frozen=True, slots=True)
class Contestant:
    """A row of the table. What a call costs is None for a bot."""

    name: str
    rate: Rate
    gain: Rate | None  # over the reference, on the same deals; None for the reference
    calls: int | None = None
    tokens: int | None = None
    usd: int | None = None  # picodollars; None if the price is unknown, too
    seconds: float | None = None  # a decision


@dataclass(frozen=True, slots=True)
class Growth:
    """A round's gains over the reference: in training, on held-out deals, and in games unlike those of the training."""

    round: Round
    gains: Mapping[str, Rate]  # by the name of the games; the training first
    nash_conv: float | None  # in a small variant of the game, if it has one


@dataclass(frozen=True, slots=True)
class Comparison:
    """The table, best first, and the growth of each round's bot."""

    deals: int
    run: Path
    rows: Sequence[Contestant]
    growth: Sequence[Growth]


def compare(order: Order, bench: Bench, forged: Forged, deals: int) -> Comparison:
    """Play the same deals with the model, its bots and the hand-written bots. The forge's budget applies to all."""
    playable = [one for one in forged.rounds if one.training is not None]
    digest = digest_files(playable, "compare", deals)
    left = replace(bench.calls, caps=bench.calls.caps.subtract(forged.spent))
    folder = forged.folder / f"compared-{digest[:8]}"
    players = [*_list_models(order, bench, forged), *(describe_program(one.name, one.settings) for one in playable)]
    players += [{"bot": name} for name in (*bench.opponents, *bench.unusual) if name != bench.reference]
    result = replace(bench, calls=left).run(folder, players, seed_of(digest), deals, {})
    with open_recorded_run(result.folder) as run:
        rows = [_contestant(run, result, contender.name) for contender in result.contenders]
    rows.sort(key=lambda row: -(row.rate.value or 0.0))
    return Comparison(deals, folder, rows, _measure_growth(bench, forged, playable, deals))


def _list_models(order: Order, bench: Bench, forged: Forged) -> Iterator[dict[str, Any]]:
    """Yield the entries of the model: by each prompt, and with each adviser."""
    settings = order.settings.model_dump(exclude={"prompt", "fallback"}, exclude_none=True)
    known = prompt_names(bench.registry.working_directory, bench.game)
    first, *others = [prompt for prompt in _PROMPTS if prompt in known]
    for prompt in (first, *others):
        yield {"bot": _MODEL_BOT, **settings, "name": f"{order.model}, {prompt}", "prompt": prompt}
    advisers: list[tuple[str, object]] = [(name, name) for name in bench.unusual]
    if best := forged.chosen:
        advisers.insert(0, (f"its {best.name}", {key: best.settings[key] for key in ("process", "deadline")}))
    for name, adviser in advisers:
        entry = {"bot": _MODEL_BOT, **settings, "name": f"{order.model}, advised by {name}", "prompt": first}
        yield {**entry, "adviser": adviser}


def _contestant(run: Run, result: RunResult, name: str) -> Contestant:
    rate, own = own_rate(result, name), None if name == REFERENCE else gain(result, name)
    if (log := result.models.get(name)) is None:
        return Contestant(name, rate, own)
    mean = run.model_log.mean_seconds(name)
    seconds = mean * log.calls / log.decisions if mean is not None and log.decisions else None
    tokens = log.tokens["input"] + log.tokens["output"]
    return Contestant(name, rate, own, log.calls, tokens, log.picodollars, seconds)


def _measure_growth(bench: Bench, forged: Forged, playable: Sequence[Round], deals: int) -> list[Growth]:
    """Play the bots of all rounds against other opponents, and at the largest table."""
    digest = digest_files(playable, "growth", deals)
    bots = [describe_program(one.name, one.settings) for one in playable]
    played = {
        name: bench.run(forged.folder / f"growth-{digest[:8]}-{place}", bots, seed_of(digest), deals, more)
        for place, (name, more) in enumerate(_list_other_games(bench).items())
    }
    file, growth = forged.folder / f"nash-conv-{digest[:8]}.json", []
    values = keep_result(file, lambda: _measure_exploitability(bench, playable))
    for one, nash_conv in zip(playable, values, strict=True):
        score = forged.scores_by_round[one.number]
        gains = {"training": score.training_gain, "on held-out deals": score.held_out_gain}
        gains |= {name: gain(result, one.name) for name, result in played.items()}
        growth.append(Growth(one, gains, nash_conv))
    return growth


def _measure_exploitability(bench: Bench, playable: Sequence[Round]) -> list[float | None]:
    """Return the nash_conv of each round's bot in a small variant of the game, or None if that is unknown."""
    players = [PlayerSpec(one.name, PROGRAM_BOT, one.settings) for one in playable]
    return exploitabilities(players, bench.registry, bench.calls.permits) or [None] * len(players)


def _list_other_games(bench: Bench) -> dict[str, dict[str, Any]]:
    """Return the settings of games unlike the training's, by name."""
    least, most = bench.game.seat_range(bench.game.rules())
    others = bench.unusual or [bench.reference]
    games: dict[str, dict[str, Any]] = {f"against {', '.join(others)}": {"bots": others}}
    return games | ({f"with {most} players": {"table_sizes": [most]}} if most > least else {})
