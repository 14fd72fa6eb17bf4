"""Estimate the calls, tokens, dollars and time of an experiment with model players: a typical value and a range.

The estimate is based on recorded runs, or on a few deals of the experiment, played for free with a built-in fake model.
If d of D deals were measured, with mean x and standard deviation s, the typical total is D x and its range is D x +- t
s sqrt(D + D^2/d), with Student's t. This range covers the variation in both future and measured deals. Quantities that
fake models cannot show (reasoning, call times, the use of the provider's cache) widen the range further.
"""

import math
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import mul
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

from dubito.errors import UsageError, one_line
from dubito.experiment import run as runner
from dubito.experiment.call_options import CallOptions
from dubito.experiment.experiment import Experiment, PlayerSpec, kind_of_player
from dubito.experiment.model_players import price_of_model
from dubito.experiment.resolved import ResolvedRun
from dubito.experiment.stored import Run, open_recorded_run
from dubito.game import PlayerKind
from dubito.llm.prices import Price, PricingOptions
from dubito.llm.protocols import find_protocol
from dubito.model_settings import ModelSettings, is_house, is_on_this_machine
from dubito.stats.rates import student_quantile
from dubito.stats.relation import MIN_DEALS
from dubito.stats.stopping import FIRST_LOOK
from dubito.store.model_log import DealTotals, ModelLog
from dubito.store.spend import Caps, dollars

# For an estimate, play as many whole deals as fit into this many games, within these bounds.
_GAMES: Final = 24
_MIN_DEALS, _MAX_DEALS = 3, 12
_FAKE_MODEL: Final[dict[str, Any]] = {"base_url": "house", "api_key_env": None, "parameters": {}, "wait": None}
# One process makes about 140 calls per second (docs/performance.md), no matter how many are in flight.
_PROCESS_SECONDS: Final = 1 / 140


class Figure(NamedTuple):
    """An estimated figure."""

    low: float
    typical: float
    high: float

    @property
    def range(self) -> tuple[float, float]:
        return self.low, self.high

    def rescale(self, factor: float) -> "Figure":
        return Figure(*(factor * value for value in self))


NOTHING: Final = Figure(0, 0, 0)
_DEFAULT_SECONDS: Final = Figure(1, 3, 10)  # seconds per call, if no run was measured
_LOCAL_SECONDS: Final = Figure(1, 10, 60)  # the same for a server on this machine
# Seconds per batch. The providers say that most end within an hour, and that all end or expire after a day.
_BATCH_SECONDS: Final = Figure(60, 3600, 24 * 3600)


def sum_figures(figures: Iterable[Figure]) -> Figure:
    """Return the sum of fully correlated figures."""
    return Figure(*map(sum, zip(*figures, strict=True)))


@dataclass(frozen=True, slots=True)
class Estimate:
    """The estimated use of one model player in the whole experiment."""

    player: str
    kind: PlayerKind
    source: str  # describes the run or the games it is based on
    calls: Figure
    tokens_in: Figure
    tokens_out: Figure
    picodollars: Figure | None  # None if the price is unknown
    seconds: Figure  # seconds per call
    batches: int  # in a row, each of which waits for the one before it; 0 if calls are sent one by one
    is_local: bool  # whether its server is on this machine


@dataclass(frozen=True, slots=True)
class _Measurement:
    source: str
    totals: Sequence[DealTotals]  # deal by deal
    seconds: Figure
    thoughts: Figure  # tokens per call that the measured replies do not include
    is_fake: bool = False  # whether the cache use comes from the built-in server, not from a provider


@dataclass(frozen=True, slots=True)
class _RecordedPlayer:
    """A model player of a recorded run."""

    name: str
    model: str
    prompt: str  # digest
    measured: _Measurement


def estimate(
    run: ResolvedRun,
    options: CallOptions,
    runs: Sequence[Path] = (),
    thoughts: int = 500,
    deals: int = _MAX_DEALS,
) -> list[Estimate]:
    """Return an estimate for each model player.

    Args:
        run: The run.
        options: The options for its calls.
        runs: Folders of recorded runs to measure instead of playing sample games.
        thoughts: The maximum number of reasoning tokens before each answer.
        deals: The maximum number of deals to play as a sample.

    Raises:
        UsageError: A run cannot be read.
    """
    recorded = [player for folder in runs for player in _read_players(folder)]
    measured = {spec.name: _find_nearest(spec, model.settings.model, recorded) for spec, model in run.models}
    rest = [name for name, basis in measured.items() if basis is None]
    sampled = _play_sample(run, options, rest, thoughts, deals) if rest else {}
    estimates = []
    for spec, model in run.models:
        basis, price = measured[spec.name] or sampled[spec.name], price_of_model(model.settings, options)
        estimates.append(_estimate(spec, basis, run.experiment, price, model.settings))
    return estimates


def _find_nearest(spec: PlayerSpec, model: str, players: Sequence[_RecordedPlayer]) -> _Measurement | None:
    """Return the measurement of the same player, or of its model and prompt, or of its model, or None."""

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
    run: ResolvedRun,
    options: CallOptions,
    names: Sequence[str],
    thoughts: int,
    most: int,
) -> dict[str, _Measurement]:
    """Play a few deals in a temporary folder, replacing every model with a fake one."""
    from dubito.house.core import model_names  # imported late, since most commands need no built-in server

    experiment, fake_model = run.experiment, {**_FAKE_MODEL, "model": model_names(run.game)[-1]}

    def fake(spec: PlayerSpec) -> PlayerSpec:
        return replace(spec, settings={**spec.settings, **fake_model}) if spec.prompt else spec

    deals = max(_MIN_DEALS, min(most, _GAMES // experiment.games_per_deal))
    games = min(deals, experiment.deals) * experiment.games_per_deal
    sample = replace(
        experiment,
        games=games,
        bots=tuple(map(fake, experiment.bots)),
        contenders=tuple(map(fake, experiment.contenders)),
    )
    with TemporaryDirectory(prefix="dubito-") as scratch:
        folder = Path(scratch) / "run"
        calls = CallOptions(options.in_flight, Path(scratch) / "cache", False, preflight=False, permits=options.permits)
        free_run = ResolvedRun.load(sample, run.registry)
        result = runner.play(free_run, folder, runner.RunOptions(1, calls, threading.Event()))
        if result.failure is not None:
            raise result.failure
        with open_recorded_run(folder) as played:
            log, source = ModelLog(played.db), f"{games} free games with fake models"
            totals_of = {name: _totals_by_deal(log, name, played) for name in names}
            return {
                name: _Measurement(source, totals, _DEFAULT_SECONDS, Figure(0, thoughts / 2, thoughts), is_fake=True)
                for name, totals in totals_of.items()
            }


def _read_players(folder: Path) -> list[_RecordedPlayer]:
    """Return the model players of a run that called their model."""
    players = []
    with open_recorded_run(folder) as run:
        log = run.model_log
        for player in [*run.planned.bots, *run.planned.contenders]:
            model = player.settings.get("model")
            seconds = log.mean_seconds(player.name) if model else None
            if seconds is not None and run.deals:
                totals = _totals_by_deal(log, player.name, run)
                measured = _Measurement(f"run {run}", totals, Figure(seconds, seconds, seconds), NOTHING)
                players.append(_RecordedPlayer(player.name, str(model), player.prompt, measured))
    if not players:
        raise UsageError(f"{folder} has no finished games with calls to a model, so it cannot be used for an estimate")
    return players


def _totals_by_deal(log: ModelLog, player: str, run: Run) -> list[DealTotals]:
    """Return a player's totals for every deal of a run, including deals without a question to it."""
    totals, first = (
        log.totals_by_deal(player, run.planned.games_per_deal),
        run.planned.deal_of(run.planned.first_game),
    )
    return [totals.get(deal, DealTotals()) for deal in range(first, first + run.deals)]


def _estimate(
    spec: PlayerSpec, measured: _Measurement, experiment: Experiment, price: Price | None, settings: ModelSettings
) -> Estimate:
    def total(value: Callable[[DealTotals], float]) -> Figure:
        return _estimate_total([value(total) for total in measured.totals], experiment.deals)

    calls, tokens_in = total(lambda t: t.attempts), total(lambda t: t.input)
    thoughts = measured.thoughts if find_protocol(settings.api).writes_text else NOTHING
    by_thoughts = [total(lambda t, n=n: t.output + n * t.attempts) for n in thoughts]  # type: ignore[misc]
    tokens_out = Figure(by_thoughts[0].low, by_thoughts[1].typical, by_thoughts[2].high)
    money = None
    if price is not None:
        by_thoughts = [total(partial(_cost, price, n)) for n in thoughts]
        high = by_thoughts[2].high
        if measured.is_fake:
            # The provider may cache nothing.
            high = total(lambda t: t.input * max(price.input, price.cache_write)).high + tokens_out.high * price.output
        factor = float(price.terms.highest_factor(PricingOptions(batch=settings.wait is not None)))
        money = Figure(by_thoughts[0].low, by_thoughts[1].typical, high).rescale(factor)
    server = settings.base_url or ""
    is_local = is_on_this_machine(server) and not is_house(server)
    seconds = _LOCAL_SECONDS if is_local and measured.is_fake else measured.seconds
    batches = max((total.attempts for total in measured.totals), default=0) if settings.wait else 0
    return Estimate(
        player=spec.name,
        kind=kind_of_player(spec),
        source=measured.source,
        calls=calls,
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        picodollars=money,
        seconds=seconds,
        batches=batches,
        is_local=is_local,
    )


def _cost(price: Price, thoughts: float, totals: DealTotals) -> float:
    """Return the picodollars for a deal if each attempt uses this many extra reasoning tokens."""
    written = totals.cached * price.cached_input + totals.cache_write * price.cache_write
    uncached = max(0, totals.input - totals.cached - totals.cache_write) * price.input
    return written + uncached + (totals.output + thoughts * totals.attempts) * price.output


def _estimate_total(values: Sequence[float], deals: int) -> Figure:
    """Return the total over this many deals, with its 95 % range."""
    n = len(values)
    mean = sum(values) / n
    variance = sum((value - mean) ** 2 for value in values) / (n - 1) if n > 1 else mean**2
    half = student_quantile(max(1, n - 1)) * math.sqrt(variance * (deals + deals**2 / n))
    return Figure(max(0.0, deals * mean - half), deals * mean, deals * mean + half)


def estimate_duration(estimates: Sequence[Estimate], in_flight: int) -> Figure:
    """Return how many seconds all calls take.

    The limit is the time of replies, the speed of one process, a server on this machine, which answers calls one after
    another, or the longest row of batches.
    """
    remote, local = ([each for each in estimates if each.is_local is here] for here in (False, True))
    replies = _reply_seconds([each for each in remote if not each.batches]).rescale(1 / in_flight)
    process = sum_figures(each.calls for each in estimates).rescale(_PROCESS_SECONDS)
    batches = _BATCH_SECONDS.rescale(max((each.batches for each in estimates), default=0))
    return Figure(*map(max, replies, process, _reply_seconds(local), batches))


def _describe_amount(name: str, value: float) -> str:
    return dollars(round(value)) if name == "usd" else f"{value:,.0f} {name}"


def _reply_seconds(estimates: Iterable[Estimate]) -> Figure:
    return sum_figures([NOTHING, *(Figure(*map(mul, each.calls, each.seconds)) for each in estimates)])


def describe_reach(estimates: Sequence[Estimate], experiment: Experiment, caps: Caps) -> str | None:
    """Return how many deals the budget buys, and whether they are enough for a result, or None without a budget."""
    use = {
        "calls": sum(each.calls.typical for each in estimates),
        "tokens": sum(each.tokens_in.typical + each.tokens_out.typical for each in estimates),
        "usd": sum(each.picodollars.typical for each in estimates if each.picodollars),
    }
    limits = {name: caps.limits[name] for name in use if name in caps.limits and use[name]}
    if not limits:
        return None
    name = min(limits, key=lambda each: limits[each] / use[each])
    deals, needed = int(limits[name] / use[name] * experiment.deals), MIN_DEALS
    what = "a comparison needs"
    if experiment.stop is not None:
        needed, what = FIRST_LOOK, "the first test of `stop` is after"
    budget = _describe_amount(name, limits[name])
    if deals >= experiment.deals:
        return f"The budget of {budget} probably covers all {experiment.deals:,} deals."
    games = f"{deals * experiment.games_per_deal:,} games"
    text = f"The budget of {budget} buys about {deals:,} of {experiment.deals:,} deals ({games})"
    if deals >= min(needed, experiment.deals):
        return f"{text}."
    enough = _describe_amount(name, use[name] / experiment.deals * needed)
    return f"{text}. That cannot reach a result: {what} {needed} deals, which use about {enough}."


def useful_in_flight(estimates: Sequence[Estimate]) -> int:
    """Return how many calls in flight keep one process busy, given the typical duration of a call."""
    calls = sum(each.calls.typical for each in estimates)
    seconds = sum(each.calls.typical * each.seconds.typical for each in estimates)
    return max(1, round(seconds / max(1.0, calls) / _PROCESS_SECONDS))
