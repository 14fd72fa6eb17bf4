"""Bounds of rates with fallbacks, and the calibration of stated probabilities.

Games with fallbacks or forfeits count as played and are never dropped. The bounds show the worst case, in which every
affected seat has the lowest value of the measure, and the best case, in which it has the highest.

Calibration compares the probabilities that models state with the truth. The score is Brier's (1950), the mean of
(stated probability - truth)^2: 0 is perfect, lower is better. The reference score r (1 - r) results from always stating
the base rate r. Intervals are clustered by deal, as for all rates.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from dubito.game import FALLBACK_OUTCOME, Results
from dubito.stats.rates import Rate, clustered_rate
from dubito.stats.tally import Tally


@dataclass(frozen=True, slots=True)
class FallbackBounds:
    """The worst and best case of the headline measures per seat."""

    touched: int  # seats for which a fallback answered at least once, or that forfeited
    seats: int
    rates: dict[str, tuple[float, float]]  # by headline key

    @property
    def share(self) -> float:
        return self.touched / self.seats if self.seats else 0.0


def fallback_share(outcomes: Mapping[str, int]) -> float:
    """Return the share of decisions that a fallback answered."""
    fallbacks = sum(count for outcome, count in outcomes.items() if outcome.startswith(FALLBACK_OUTCOME))
    return fallbacks / sum(outcomes.values()) if fallbacks else 0.0


def contender_bounds(tally: Tally, results: Results, contender: int, seats: int = 1) -> FallbackBounds:
    deals, *measured = tally.tables["contended"][contender,]
    return fallback_bounds(tally.tables["touched_contenders"].get((contender,)), results, seats * deals, measured)


def fallback_bounds(
    sums: Sequence[int] | None, results: Results, seats: int, measured: Sequence[int]
) -> FallbackBounds:
    """Return the bounds over `seats`, given a row of `touched` or `touched_contenders`, if any, and all measures."""
    if not seats:
        return FallbackBounds(0, 0, {key: results.measure(key).span or (0.0, 1.0) for key in results.headline})
    touched, *theirs = sums or (0, *(0 for _ in results.headline))
    rates = {}
    for key, their in zip(results.headline, theirs, strict=True):
        place = results.place(key)
        least, scale = measured[place] - their, results.measures[place].scale
        ends = Rate(0.0, least / (scale * seats), (least + scale * touched) / (scale * seats))
        ends = ends.on_span(results.measures[place].span)
        rates[key] = (ends.low, ends.high)
    return FallbackBounds(touched, seats, rates)


PROBABILITY_UNIT: Final = 10**6  # probabilities are summed in whole millionths, so that sums merge exactly
_BINS: Final = 10


@dataclass(frozen=True, slots=True)
class Statement:
    """A probability stated at a decision, and the truth, which was unknown to the player."""

    seat: int
    stated: float | None  # None: null, or an impossible value
    impossible: bool
    dishonest: bool  # whether the last play was


def is_mistake(is_lie: bool, called: bool, stated: float | None) -> bool:
    """Return whether a response was a mistake.

    It was if the seat called an honest play a lie, or accepted a lie that it had itself rated as likely.
    """
    return not is_lie if called else is_lie and stated is not None and stated > 0.5


@dataclass(frozen=True, slots=True)
class Bin:
    """The statements in [low, low + 0.1). The last bin includes 1."""

    low: float
    statements: int
    mean: float  # of the stated probabilities
    dishonest: Rate  # share of dishonest plays


@dataclass(frozen=True, slots=True)
class Calibration:
    """How well a player's stated probabilities agree with the truth."""

    name: str
    statements: int  # with a probability
    nulls: int
    impossible: int
    brier: Rate
    base_rate: float | None  # share of dishonest plays among the statements
    base_brier: float | None  # the Brier score of always stating the base rate
    bins: list[Bin]  # ascending, without empty ones


def add_statements(tally: Tally, statements: Iterable[tuple[int, Statement]]) -> None:
    """Add a deal's statements, each with its player."""
    by_player = defaultdict(list)
    for player, statement in statements:
        by_player[player].append(statement)
    for player, own in by_player.items():
        squares = 0
        bins: defaultdict[int, list[tuple[int, bool]]] = defaultdict(list)
        for statement in own:
            if statement.stated is not None:
                p = round(statement.stated * PROBABILITY_UNIT)
                squares += (p - PROBABILITY_UNIT * statement.dishonest) ** 2
                bins[probability_bin(statement.stated)].append((p, statement.dishonest))
        impossible = sum(statement.impossible for statement in own)
        m = sum(map(len, bins.values()))
        tally.add("brier", (player,), [*cluster_sums(m, squares), len(own) - m - impossible, impossible])
        for number, stated in bins.items():
            within = cluster_sums(len(stated), sum(dishonest for _, dishonest in stated))
            tally.add("stated", (player, number), [*within, sum(p for p, _ in stated)])


def probability_bin(stated: float) -> int:
    """Return the number of the bin of a probability, from 0 to 9."""
    return min(round(stated * PROBABILITY_UNIT) * _BINS // PROBABILITY_UNIT, _BINS - 1)


def cluster_sums(m: int, y: int) -> list[int]:
    """Return a deal's contribution to `Sums`."""
    return [int(m > 0), m, m * m, y, y * y, y * m]


def calibrations(tally: Tally, names: Sequence[str]) -> list[Calibration]:
    rated = []
    for (player,), sums in tally.rows("brier"):
        deals, statements, m2, y, y2, ym, nulls, impossible = sums
        brier = clustered_rate(deals, statements, m2, y, y2, ym, PROBABILITY_UNIT**2)
        bins, dishonest = [], 0
        for (who, number), values in tally.rows("stated"):
            if who == player:
                *bin_sums, stated = values
                _, m, _, lies, _, _ = bin_sums
                dishonest += lies
                share = clustered_rate(*bin_sums)
                bins.append(Bin(number / _BINS, m, stated / (m * PROBABILITY_UNIT), share))
        base = dishonest / statements if statements else None
        base_brier = None if base is None else base * (1 - base)
        rated.append(Calibration(names[player], statements, nulls, impossible, brier, base, base_brier, bins))
    return rated
