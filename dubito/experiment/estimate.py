"""What an experiment with model players will take: calls, tokens, dollars and time, each as a range.

Measured on a few deals of the experiment itself, played free of cost with the house's best model in every model
player's place, or read from runs that are there. A total over D deals, of which d were measured with mean x and
deviation s, lies within D x +- 1.96 s sqrt(D + D^2/d): the chance of the deals to come, and of those measured.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from dubito.errors import UsageError, one_line
from dubito.experiment import run as runner
from dubito.experiment.experiment import Experiment, PlayerSpec, kind_of_player
from dubito.experiment.resolve import CallOptions, model_settings, model_specs, price_of_model
from dubito.experiment.stored import Run, opened_run
from dubito.experiment.workers import new_stop
from dubito.game import PlayerKind
from dubito.game.find import Registry
from dubito.llm.prices import Price, PricingOptions
from dubito.stats.rates import Z95
from dubito.store.model_log import DealTotals, ModelLog

DEALS: Final = 20  # that are played for an estimate
_FAKE_MODEL: Final[dict[str, Any]] = {"base_url": "house", "api_key_env": None, "parameters": {}, "wait": None}
_DEFAULT_SECONDS: Final = (1.0, 10.0)  # of a call, where no run tells

Range = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Estimate:
    """What one model player will take in the whole experiment."""

    player: str
    kind: PlayerKind
    source: str  # what it was measured on
    calls: Range
    tokens_in: Range
    tokens_out: Range
    picodollars: Range | None  # None: no price is known
    seconds: Range  # of one call


@dataclass(frozen=True, slots=True)
class _Measurement:
    source: str
    totals: Sequence[DealTotals]  # deal by deal
    seconds: Range
    thoughts: Range  # tokens a call that the measured replies do not hold


@dataclass(frozen=True, slots=True)
class _RecordedPlayer:
    """A model player of a recorded run."""

    name: str
    model: str
    prompt: str  # digest
    measured: _Measurement


def estimate(
    experiment: Experiment, registry: Registry, options: CallOptions, runs: Sequence[Path], thoughts: int
) -> list[Estimate]:
    """One for each model player; `thoughts` is how many tokens a model may think before each answer.

    Raises UsageError if one of the runs cannot be read.
    """
    specs = model_specs(experiment, registry)
    known = [recorded for run in runs for recorded in _read_players(run)]
    learned = {spec.name: _find_nearest(spec, model_settings(spec, registry).model, known) for spec in specs}
    rest = [spec for spec in specs if learned[spec.name] is None]
    played = _play_sample(experiment, registry, options, rest, thoughts) if rest else {}
    found = []
    for spec in specs:
        measured = learned[spec.name] or played[spec.name]
        settings = model_settings(spec, registry)
        found.append(_estimate(spec, measured, experiment, price_of_model(settings, options), settings.wait))
    return found


def _find_nearest(spec: PlayerSpec, model: str, known: Sequence[_RecordedPlayer]) -> _Measurement | None:
    """The record of this very player, else of its model and prompt, else of its model; None if there is none."""

    def distance(recorded: _RecordedPlayer) -> int:
        return 2 * (recorded.prompt != spec.prompt) + (recorded.name != spec.name)

    nearest = min((recorded for recorded in known if recorded.model == model), key=distance, default=None)
    if nearest is None:
        return None
    if distance(nearest) == 0:
        return nearest.measured
    prompt = ", who has another prompt" if nearest.prompt != spec.prompt else ""
    source = f"{nearest.measured.source}: {one_line(nearest.name)}{prompt}"
    return replace(nearest.measured, source=source)


def _play_sample(
    experiment: Experiment, registry: Registry, options: CallOptions, specs: Sequence[PlayerSpec], thoughts: int
) -> dict[str, _Measurement]:
    """A few deals with the house in every model's place, in a folder of their own."""
    from dubito.house.core import models_of  # late: most commands need no house

    stand_in = {**_FAKE_MODEL, "model": models_of(registry.game)[-1]}

    def free(spec: PlayerSpec) -> PlayerSpec:
        return replace(spec, settings={**spec.settings, **stand_in}) if spec.prompt else spec

    games = min(DEALS, experiment.deals) * experiment.games_per_deal
    sample = replace(
        experiment,
        games=games,
        bots=tuple(map(free, experiment.bots)),
        contenders=tuple(map(free, experiment.contenders)),
    )
    with TemporaryDirectory(prefix="dubito-") as scratch:
        folder = Path(scratch) / "run"
        calls = CallOptions(options.in_flight, Path(scratch) / "cache", False, preflight=False)
        run = runner.play(sample, folder, runner.RunOptions(registry, 1, calls, new_stop(1)))
        if run.failure is not None:
            raise run.failure
        with opened_run(folder) as played:
            log, source = ModelLog(played.db), f"{games} free games with the house"
            took = {spec.name: _totals_by_deal(log, spec.name, played) for spec in specs}
            return {
                name: _Measurement(source, totals, _DEFAULT_SECONDS, (0, thoughts)) for name, totals in took.items()
            }


def _read_players(folder: Path) -> list[_RecordedPlayer]:
    found = []
    with opened_run(folder) as run:
        log = ModelLog(run.db)
        for player in [*run.planned.bots, *run.planned.contenders]:
            model = player.settings.get("model")
            seconds = log.mean_seconds(player.name) if model else None
            if seconds is not None and run.deals:
                took = _totals_by_deal(log, player.name, run)
                measured = _Measurement(f"run {run}", took, (seconds, seconds), (0, 0))
                found.append(_RecordedPlayer(player.name, str(model), player.prompt, measured))
    if not found:
        raise UsageError(f"{folder} has no finished game with a model that was called: nothing to estimate from")
    return found


def _totals_by_deal(log: ModelLog, player: str, run: Run) -> list[DealTotals]:
    """What every deal of a run took, those in which the player was not asked too."""
    totals, first = (
        log.totals_by_deal(player, run.planned.games_per_deal),
        run.planned.first_game // run.planned.games_per_deal,
    )
    return [totals.get(deal, DealTotals()) for deal in range(first, first + run.deals)]


def _estimate(
    spec: PlayerSpec, measured: _Measurement, experiment: Experiment, price: Price | None, wait: str | None
) -> Estimate:
    def of(value: Callable[[DealTotals], float]) -> Range:
        return _total_range([value(total) for total in measured.totals], experiment.deals)

    calls = of(lambda total: total.attempts)
    low, high = (0, 0) if spec.settings.get("api") == "decisions" else measured.thoughts  # it writes nothing
    out = (
        of(lambda total: total.output + low * total.attempts)[0],
        of(lambda total: total.output + high * total.attempts)[1],
    )
    into = of(lambda total: total.input)
    money = None
    if price is not None:
        cheap = of(lambda t: (t.input - t.cached) * price.input + t.cached * price.cached_input)[0]
        dear = of(lambda t: t.input * max(price.input, price.cache_write))[1]
        times = float(price.terms.highest_factor(PricingOptions(batch=wait is not None)))
        money = (times * (cheap + out[0] * price.output), times * (dear + out[1] * price.output))
    return Estimate(spec.name, kind_of_player(spec), measured.source, calls, into, out, money, measured.seconds)


def _total_range(values: Sequence[float], deals: int) -> Range:
    """Where the total over that many deals will lie."""
    n = len(values)
    mean = sum(values) / n
    variance = sum((value - mean) ** 2 for value in values) / (n - 1) if n > 1 else mean**2
    half = Z95 * math.sqrt(variance * (deals + deals**2 / n))
    return max(0.0, deals * mean - half), deals * mean + half


def estimate_duration(estimates: Sequence[Estimate], in_flight: int) -> Range:
    low, high = (sum(one.calls[end] * one.seconds[end] for one in estimates) / in_flight for end in (0, 1))
    return low, high
