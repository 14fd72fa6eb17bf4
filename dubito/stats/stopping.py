"""A sequential test that decides when a run can stop, and an interval that is valid at any time.

Every pair of contenders has a two-sided test: two of Wald's sequential probability ratio tests (Sobel, Wald, 1949),
which test no difference against an advantage of `within` for either contender. With n deals, S the sum of their
differences, Q the sum of the squares, s2 = (Q - S S / n) / (n - 1) and d the difference to detect, the log-likelihood
ratio of one side is

    L = d (+-2 S - n d) / (2 s2)

for normal differences. If most deals have no difference, this formula fails for players that are almost the same: it
accepted "no difference" in 48 to 71 of 100 runs in which there was one. The ratio is then the exact one from fishtest's
notes (Van den Bergh, "The generalized maximum likelihood ratio for the expectation value of a distribution"): of the
most likely distributions over the observed differences, with mean d and with mean 0.

Two contenders are significantly different once a side is above U = ln((1 - b) / (a / 2)), and within d of each other
once both are below W = ln(b / (1 - a / 2)), with b = 0.3 and a = 0.05, divided by the number of pairs (Bonferroni). The
test looks at the first 30 deals and then after every 10, in deal order, so that the result does not depend on how the
deals were scheduled. It gives up after three times n0 = (2.8 s / d)^2 deals; n0 deals detect d in 80 of 100 runs of
fixed length.

The interval is the asymptotic confidence sequence of Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas ("Time-uniform
central limit theory and asymptotic confidence sequences", 2024), tightest at n0 deals. In runs stopped by this test,
the usual interval contained the true difference in 91.0 % of cases, this one in 99.8 %.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Final, Literal

from dubito.game import Measure
from dubito.stats.rates import ERROR, Rate, rule_of_three, variance_of

FIRST_LOOK: Final = 30  # deals
LOOK_INTERVAL: Final = 10
_MISS_RATE: Final = 0.3  # b: how often a difference of `within` is missed
_POWER_80: Final = 2.8  # a fixed length detects a difference of this many standard errors in 80 of 100 runs
_MAX_DEALS_FACTOR: Final = 3  # times n0
_PSEUDO_DEALS: Final = 1e-3  # added for each of the largest differences, as in fishtest
_MAX_STEPS: Final = 60
_TOLERANCE: Final = 1e-12

PairVerdict = Literal["different", "within", "undecided"]


def split_at_looks(deals: range) -> Iterator[range]:
    """Split deals into ranges that end where the test looks. The last range can be shorter."""
    first = deals.start
    while first < deals.stop:
        end = max(FIRST_LOOK, (first // LOOK_INTERVAL + 1) * LOOK_INTERVAL)
        yield range(first, min(end, deals.stop))
        first = end


@dataclass(slots=True)
class PairTest:
    """The test of two contenders, deal by deal. Differences can have any unit."""

    within: float  # the difference to detect
    most: float  # the largest difference of one deal
    pairs: int = 1  # number of pairs that share the error
    deals: int = 0
    seen: Counter[int] = field(default_factory=Counter)  # deals by difference
    verdict: PairVerdict | None = None
    sides: tuple[float, float] = (0.0, 0.0)  # L at the last look, for either of the two being better

    def add(self, difference: int) -> None:
        """Add a deal, and look at the result after every `LOOK_INTERVAL` deals. A decided test no longer changes."""
        if self.verdict is not None:
            return
        self.deals += 1
        self.seen[difference] += 1
        if self.deals < FIRST_LOOK or self.deals % LOOK_INTERVAL:
            return
        self.sides = log_likelihoods(self.seen, self.within, self.most)
        above, below = self.bounds
        if max(self.sides) > above:
            self.verdict = "different"
        elif max(self.sides) < below:
            self.verdict = "within"
        elif 0 < _MAX_DEALS_FACTOR * deals_to_show(self.spread, self.within) <= self.deals:
            self.verdict = "undecided"

    @property
    def bounds(self) -> tuple[float, float]:
        wrong = ERROR / (2 * self.pairs)
        return math.log((1 - _MISS_RATE) / wrong), math.log(_MISS_RATE / (1 - wrong))

    @property
    def spread(self) -> float:
        return variance_of(self.deals, *_sums(self.seen))

    @property
    def sign(self) -> int:
        total = _sums(self.seen)[0]
        return (total > 0) - (total < 0)

    @property
    def goal(self) -> PairVerdict:
        return "different" if max(self.sides) > 0 else "within"

    @property
    def way(self) -> float:
        """How close the test came to the nearer bound at the last look, from 0 to 1."""
        if self.verdict is not None or self.deals < FIRST_LOOK:
            return float(self.verdict is not None)
        above, below = self.bounds
        side = max(self.sides)
        return min(1.0, side / above if side > 0 else side / below)


def log_likelihoods(seen: Mapping[int, int], within: float, most: float) -> tuple[float, float]:
    """Return the log-likelihood ratios of both sides: an advantage of `within` against no difference."""
    n = sum(seen.values())
    if 2 * seen.get(0, 0) > n:
        negated = {-difference: count for difference, count in seen.items()}
        return _exact_log_likelihood(seen, within, most), _exact_log_likelihood(negated, within, most)
    total, squares = _sums(seen)
    spread = variance_of(n, total, squares)
    if not spread:  # all differences are equal and not 0
        return (math.inf, -math.inf) if total > 0 else (-math.inf, math.inf)
    more, less = (within * (2 * side - n * within) / (2 * spread) for side in (total, -total))
    return more, less


def _exact_log_likelihood(seen: Mapping[int, int], within: float, most: float) -> float:
    """Return the log-likelihood ratio of the means `within` and 0, each with its most likely distribution."""
    counts: dict[float, float] = {-most: _PSEUDO_DEALS, most: _PSEUDO_DEALS}
    counts |= {float(difference): float(count) for difference, count in seen.items() if count}
    tilts = [(mean, _find_tilt(counts, mean)) for mean in (0.0, within)]
    at_zero, at_within = (
        sum(count * math.log1p(tilt * (value - mean)) for value, count in counts.items()) for mean, tilt in tilts
    )
    return at_zero - at_within


def _find_tilt(counts: Mapping[float, float], mean: float) -> float:
    """Return the x for which the weights count / (1 + x (value - mean)), the most likely ones, have this mean.

    Between the ends, the function falls from plus to minus infinity. Newton's method finds its root, with bisection if
    a step would leave the interval.
    """
    offsets = [(value - mean, count) for value, count in counts.items()]
    low, high, x = -1 / max(offsets)[0], -1 / min(offsets)[0], 0.0
    for _ in range(_MAX_STEPS):
        excess = slope = 0.0
        for offset, count in offsets:
            part = offset / (1 + x * offset)
            excess += count * part
            slope += count * part * part
        low, high = (x, high) if excess > 0 else (low, x)
        step = x + excess / slope
        if abs(step - x) <= _TOLERANCE * (high - low):
            break
        x = step if low < step < high else (low + high) / 2
    return x


def _sums(seen: Mapping[int, int]) -> tuple[int, int]:
    items = seen.items()
    return sum(value * count for value, count in items), sum(value * value * count for value, count in items)


def deals_to_show(spread: float, within: float) -> float:
    return _POWER_80**2 * spread / within**2


def anytime_difference(n: int, d: int, d2: int, within: float, scale: int = 1, error: float = ERROR) -> Rate:
    """Return a paired difference whose interval is valid even if it decided the number of deals.

    `within` is in units of d. If all differences are the same, the rule of three is also valid at any time, since 1 /
    (1 - p)^n is a martingale until the first event.
    """
    if n == 0:
        return Rate(None, -1.0, 1.0)
    spread = variance_of(n, d, d2)
    half = rule_of_three(n, error) * scale
    if spread:
        boundary = -2 * math.log(ERROR)
        rho = (boundary + math.log(boundary) + 1) / deals_to_show(spread, within)
        scaled = n * rho + 1
        half = math.sqrt(spread * 2 * scaled / (n * n * rho) * math.log(math.sqrt(scaled) / error))
    mean, half = d / (n * scale), half / scale
    return Rate(mean, max(-1.0, mean - half), min(1.0, mean + half))


_VERDICT_CODES: Final[Mapping[PairVerdict, int]] = {"different": 1, "within": 0, "undecided": 2}  # codes in a tally


class StopTest:
    """The tests of all pairs of contenders, by index."""

    def __init__(self, contenders: int, within: float, most: float) -> None:
        places = [*combinations(range(contenders), 2)]
        self.pairs = {pair: PairTest(within, most, len(places)) for pair in places}

    def add(self, deal: Sequence[int]) -> None:
        for (one, other), test in self.pairs.items():
            test.add(deal[one] - deal[other])

    @property
    def decided(self) -> bool:
        return all(test.verdict for test in self.pairs.values())

    def rows(self) -> dict[tuple[int, int], list[int]]:
        """Return the decided pairs in a tally's form."""
        return {
            pair: [test.deals, test.sign if test.verdict == "different" else _VERDICT_CODES[test.verdict]]
            for pair, test in self.pairs.items()
            if test.verdict
        }


def decode_verdict(row: Sequence[int] | None, sign: int) -> PairVerdict | None:
    """Return the verdict in a tally's row. `sign` is the sign of the current difference.

    If the contender that was better at the decision no longer is, the pair is undecided.
    """
    if row is None:
        return None
    _, code = row
    if code in (1, -1):
        return "different" if code == sign else "undecided"
    return "within" if code == 0 else "undecided"


def scale_difference(within: float, measure: Measure, seats: int = 1) -> float:
    """Convert `within` to the unit in which a deal's differences are summed over the contender's seats.

    `within` is in percentage points, or in the measure's own units if it has a span.
    """
    least, most = measure.span or (0.0, 100.0)
    return within / (most - least) * measure.scale * seats
