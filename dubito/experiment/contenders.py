"""Contenders compared: each in the contenders' seat, and every pair by differences on the same deals (R33)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from dubito.experiment.experiment import PlayerKind
from dubito.experiment.fallbacks import FallbackBounds, contender_bounds, fallback_share
from dubito.experiment.statistics import Rate, clustered_rate, deals_to_separate, paired_difference
from dubito.experiment.tally import Tally
from dubito.game import Results
from dubito.store.model_log import PlayerLog

FEW: Final = 10  # deals: of fewer nobody is told apart from anybody
_SYSTEMS: Final = 0.02  # contenders whose fallback shares differ by more are compared as systems, not as models


@dataclass(frozen=True, slots=True)
class Contender:
    """Who is compared."""

    name: str
    run: int = 0  # contenders with the same number play their deals together
    fallback_share: float = 0.0  # of its decisions
    seats: int = 1  # in which it plays each deal
    kind: PlayerKind = "hand-written"


@dataclass(frozen=True, slots=True)
class ContenderRow:
    """One contender in the contenders' seat."""

    contender: Contender
    deals: int
    rates: dict[str, Rate]  # by the keys of the game's measures, as played
    bounds: FallbackBounds


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """How much more one contender has of a measure than another, per game of the same deals."""

    rate: Rate
    more_games: int | None  # that would tell them apart; 0: they are told apart; None: no number can be named


@dataclass(frozen=True, slots=True)
class PairRow:
    """Two contenders on their common deals, the better one by the first measure first."""

    one: Contender
    other: Contender
    differences: dict[str, PairedDifference]  # by the keys of the game's headline


def contenders_of(
    names: Sequence[str],
    models: Mapping[str, PlayerLog],
    kinds: Mapping[str, PlayerKind],
    run: int = 0,
    seats: int = 1,
) -> list[Contender]:
    """The contenders of these names in the `run`th of several runs; `models` are its model players, by name.

    Their fallback shares are of all their decisions, not of those in common deals.
    """
    shares = [fallback_share(models[name].outcomes) if name in models else 0.0 for name in names]
    return [Contender(name, run, share, seats, kinds[name]) for name, share in zip(names, shares, strict=True)]


def contender_ranking(tally: Tally, contenders: Sequence[Contender], results: Results) -> list[ContenderRow]:
    """The contenders in their own seat, the best by the first measure first, then by name."""
    return [_row(tally, place, contenders[place], results) for place in _order(tally, contenders)]


def contender_pairs(tally: Tally, contenders: Sequence[Contender], results: Results) -> list[PairRow]:
    """Every pair, those of the best contender first."""
    return [_pair(tally, one, other, contenders, results) for one, other in combinations(_order(tally, contenders), 2)]


def as_systems(contenders: Sequence[Contender]) -> tuple[Contender, Contender] | None:
    """The two whose fallback shares differ most, if that is too much to speak of models; the higher share first."""
    if not contenders:
        return None
    by_share = sorted(contenders, key=lambda contender: -contender.fallback_share)
    most, least = by_share[0], by_share[-1]
    return (most, least) if most.fallback_share - least.fallback_share > _SYSTEMS else None


def _order(tally: Tally, contenders: Sequence[Contender]) -> list[int]:
    scores = {place: values[1] for (place,), values in tally.rows("contended")}
    return sorted(scores, key=lambda place: (-scores[place], contenders[place].name))


def _row(tally: Tally, place: int, contender: Contender, results: Results) -> ContenderRow:
    deals, *sums = tally.tables["contended"][place,]
    rates, m = {}, contender.seats
    for at, measure in enumerate(results.measures):
        y, y2 = sums[at], sums[len(results.measures) + at]
        rate = clustered_rate(deals, m * deals, m * m * deals, y, y2, m * y, measure.scale)
        rates[measure.key] = rate.on(measure.span)
    return ContenderRow(contender, deals, rates, contender_bounds(tally, results, place, m))


def _pair(tally: Tally, one: int, other: int, contenders: Sequence[Contender], results: Results) -> PairRow:
    n, *sums = tally.tables["pairs"][min(one, other), max(one, other)]
    sign = 1 if one < other else -1
    runs = {contenders[one].run, contenders[other].run}
    m = contenders[one].seats
    games = m * sum(contender.run in runs for contender in contenders)  # a deal, of all who play it together

    def difference(measure: str) -> PairedDifference:
        at = results.place(measure)
        d, d2 = sign * sums[at], sums[len(results.measures) + at]
        span = results.measures[at].span or (0, 1)
        rate = paired_difference(n, d, d2, m * results.measures[at].scale).times(span[1] - span[0])
        if not rate.low <= 0 <= rate.high:
            return PairedDifference(rate, max(0, FEW - n) * games)
        deals = deals_to_separate(n, d, d2)
        return PairedDifference(rate, None if deals is None else max(1, deals - n) * games)

    return PairRow(contenders[one], contenders[other], {key: difference(key) for key in results.headline})
