"""Estimate the calls, tokens, dollars and time of an experiment with model players, each as a range.

The basis is a few deals of the experiment itself, played for free with a fake model of the house instead of every
model, or recorded runs. If d of D deals were measured, with mean x and deviation s, the range of the total is
D x +- 1.96 s sqrt(D + D^2/d): the variation of the deals to come and of the measured deals.
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

DEALS: Final = 20  # to play for an estimate
_FAKE_MODEL: Final[dict[str, Any]] = {"base_url": "house", "api_key_env": None, "parameters": {}, "wait": None}
_DEFAULT_SECONDS: Final = (1.0, 10.0)  # of a call, if no run was measured

Range = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Estimate:
    """The estimated use of one model player in the whole experiment."""

    player: str
    kind: PlayerKind
    source: str  # describes the run or the games it is based on
    calls: Range
    tokens_in: Range
    tokens_out: Range
    picodollars: Range | None  # None: the price is unknown
    seconds: Range  # of one call


@dataclass(frozen=True, slots=True)
class _Measurement:
    source: str
    totals: Sequence[DealTotals]  # deal by deal
    seconds: Range
    thoughts: Range  # tokens per call that the measured replies do not include


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
    """Return an estimate for each model player.

    Args:
        experiment: The experiment.
        registry: Its game and bots.
        options: The options of its calls.
        runs: Folders of recorded runs to measure instead of playing sample games.
        thoughts: The maximum number of reasoning tokens before each answer.

    Raises:
        UsageError: A run cannot be read.
    """
    specs = model_specs(experiment, registry)
    recorded = [player for run in runs for player in _read_players(run)]
    measured = {spec.name: _find_nearest(spec, model_settings(spec, registry).model, recorded) for spec in specs}
    rest = [spec for spec in specs if measured[spec.name] is None]
    sampled = _play_sample(experiment, registry, options, rest, thoughts) if rest else {}
    estimates = []
    for spec in specs:
        basis = measured[spec.name] or sampled[spec.name]
        settings = model_settings(spec, registry)
        estimates.append(_estimate(spec, basis, experiment, price_of_model(settings, options), settings.wait))
    return estimates


def _find_nearest(spec: PlayerSpec, model: str, players: Sequence[_RecordedPlayer]) -> _Measurement | None:
    """Return the measurement of the same player, else of its model and prompt, else of its model, or None."""

    def distance(recorded: _RecordedPlayer) -> int:
        return 2 * (recorded.prompt != spec.prompt) + (recorded.name != spec.name)

    nearest = min((recorded for recorded in players if recorded.model == model), key=distance, default=None)
    if nearest is None:
        return None
    if distance(nearest) == 0:
        return nearest.measured
    prompt = ", which has a different prompt" if nearest.prompt != spec.prompt else ""
    source = f"{nearest.measured.source}: {one_line(nearest.name)}{prompt}"
    return replace(nearest.measured, source=source)


def _play_sample(
    experiment: Experiment, registry: Registry, options: CallOptions, specs: Sequence[PlayerSpec], thoughts: int
) -> dict[str, _Measurement]:
    """Play a few deals in a temporary folder with a fake model instead of every model."""
    from dubito.house.core import models_of  # late: most commands need no house

    fake_model = {**_FAKE_MODEL, "model": models_of(registry.game)[-1]}

    def fake(spec: PlayerSpec) -> PlayerSpec:
        return replace(spec, settings={**spec.settings, **fake_model}) if spec.prompt else spec

    games = min(DEALS, experiment.deals) * experiment.games_per_deal
    sample = replace(
        experiment,
        games=games,
        bots=tuple(map(fake, experiment.bots)),
        contenders=tuple(map(fake, experiment.contenders)),
    )
    with TemporaryDirectory(prefix="dubito-") as scratch:
        folder = Path(scratch) / "run"
        calls = CallOptions(options.in_flight, Path(scratch) / "cache", False, preflight=False)
        run = runner.play(sample, folder, runner.RunOptions(registry, 1, calls, new_stop(1)))
        if run.failure is not None:
            raise run.failure
        with opened_run(folder) as played:
            log, source = ModelLog(played.db), f"{games} free games with fake models"
            totals_of = {spec.name: _totals_by_deal(log, spec.name, played) for spec in specs}
            return {
                name: _Measurement(source, totals, _DEFAULT_SECONDS, (0, thoughts))
                for name, totals in totals_of.items()
            }


def _read_players(folder: Path) -> list[_RecordedPlayer]:
    """Return the model players of a run that called their model."""
    players = []
    with opened_run(folder) as run:
        log = ModelLog(run.db)
        for player in [*run.planned.bots, *run.planned.contenders]:
            model = player.settings.get("model")
            seconds = log.mean_seconds(player.name) if model else None
            if seconds is not None and run.deals:
                totals = _totals_by_deal(log, player.name, run)
                measured = _Measurement(f"run {run}", totals, (seconds, seconds), (0, 0))
                players.append(_RecordedPlayer(player.name, str(model), player.prompt, measured))
    if not players:
        raise UsageError(f"{folder} has no finished game with calls to a model, so it cannot be used for an estimate")
    return players


def _totals_by_deal(log: ModelLog, player: str, run: Run) -> list[DealTotals]:
    """Return a player's totals in every deal of a run, including deals in which it was not asked."""
    totals, first = (
        log.totals_by_deal(player, run.planned.games_per_deal),
        run.planned.first_game // run.planned.games_per_deal,
    )
    return [totals.get(deal, DealTotals()) for deal in range(first, first + run.deals)]


def _estimate(
    spec: PlayerSpec, measured: _Measurement, experiment: Experiment, price: Price | None, wait: str | None
) -> Estimate:
    def total(value: Callable[[DealTotals], float]) -> Range:
        return _total_range([value(total) for total in measured.totals], experiment.deals)

    calls = total(lambda t: t.attempts)
    # Decision models write no text.
    low, high = (0, 0) if spec.settings.get("api") == "decisions" else measured.thoughts
    out = (
        total(lambda t: t.output + low * t.attempts)[0],
        total(lambda t: t.output + high * t.attempts)[1],
    )
    into = total(lambda t: t.input)
    money = None
    if price is not None:
        cheap = total(lambda t: (t.input - t.cached) * price.input + t.cached * price.cached_input)[0]
        dear = total(lambda t: t.input * max(price.input, price.cache_write))[1]
        times = float(price.terms.highest_factor(PricingOptions(batch=wait is not None)))
        money = (times * (cheap + out[0] * price.output), times * (dear + out[1] * price.output))
    return Estimate(spec.name, kind_of_player(spec), measured.source, calls, into, out, money, measured.seconds)


def _total_range(values: Sequence[float], deals: int) -> Range:
    """Return the 95 % range of the total over this many deals."""
    n = len(values)
    mean = sum(values) / n
    variance = sum((value - mean) ** 2 for value in values) / (n - 1) if n > 1 else mean**2
    half = Z95 * math.sqrt(variance * (deals + deals**2 / n))
    return max(0.0, deals * mean - half), deals * mean + half


def estimate_duration(estimates: Sequence[Estimate], in_flight: int) -> Range:
    """Return the seconds that all calls take."""
    low, high = (sum(each.calls[end] * each.seconds[end] for each in estimates) / in_flight for end in (0, 1))
    return low, high
