"""Measures of how well a player detects lies: d', the criterion, AUROC and calibration, with intervals.

A hit is a lie that the player calls a lie, and a false alarm an honest play that it calls one. With z the quantile of
the normal distribution, H the hit rate and F the false alarm rate, d' = z(H) - z(F), and the criterion is
c = -(z(H) + z(F)) / 2 (Macmillan and Creelman, Detection Theory, 2nd ed., 2005, chapters 1 and 2). Both rates have the
log-linear correction, (hits + 0.5) / (lies + 1), so that z is finite (Hautus, 1995).

Variances are clustered by deal: each deal contributes its influence on the estimate, to first order, and the variance
is I / (I - 1) times the sum of the squared influences of I deals (for AUROC: Obuchowski, 1997). Intervals use Student's
t with I - 1 degrees of freedom; for AUROC, the interval is computed on the logit scale.

The expected calibration error (ECE) is the mean distance between the stated probability and the share of lies in ten
bins of equal width, weighted by the number of statements (Naeini, Cooper and Hauskrecht, 2015). It is never 0 for a
finite sample, not even for a calibrated player, so its interval inverts its distribution: it contains each t such that
the observed ECE is plausible if the true distance is t in each bin. With s_b the standard error in bin b, the distance
observed in a bin is then a folded normal variable (Leone, Nelson and Nottingham, 1961). The interval starts at 0 if
chance alone can explain the ECE.

The logarithmic loss (Good, 1952) and the divergence (Kullback and Leibler, 1951) use beliefs of at least 0.001 and at
most 0.999.
"""

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final, NamedTuple

from dubito.stats.players import PROBABILITY_UNIT, cluster_sums, probability_bin
from dubito.stats.rates import Z95, Rate, Sums, clustered_rate, residual, student_quantile, wilson

_NORMAL: Final = NormalDist()
_MIN_DEALS: Final = 10  # with fewer deals in a bin, its statements count as independent
_MAX_HALVINGS: Final = 40
LEAST_BELIEF: Final = 0.001  # lower probabilities count as this one, so that a wrong certainty has a finite loss


class Signals(NamedTuple):
    """What a player was asked about in a deal, and how it answered."""

    lies: int
    hits: int  # lies that it called lies
    honest: int
    alarms: int  # honest plays that it called lies


class Belief(NamedTuple):
    """A stated probability that something is true, such as that a play is a lie, and the truth."""

    deal: int
    stated: float
    is_true: bool


@dataclass(frozen=True, slots=True)
class Detection:
    sensitivity: Rate  # d'
    criterion: Rate


def detection(deals: Mapping[Signals, int]) -> Detection:
    """Return d' and the criterion, given how many deals have the same signals. Both are None without both kinds."""
    lies, hits, honest, alarms = (sum(count * deal[place] for deal, count in deals.items()) for place in range(4))
    if not lies or not honest:
        return Detection(Rate(None), Rate(None))
    h, f = (hits + 0.5) / (lies + 1), (alarms + 0.5) / (honest + 1)
    zh, zf = _NORMAL.inv_cdf(h), _NORMAL.inv_cdf(f)
    by_hits, by_alarms = 1 / (lies * _NORMAL.pdf(zh)), 1 / (honest * _NORMAL.pdf(zf))
    n = sum(count for deal, count in deals.items() if deal.lies or deal.honest)
    t = Z95
    if n < 2 or hits in (0, lies) or alarms in (0, honest):
        # The variance of independent answers (Gourevitch and Galanter, 1967), since deals show none.
        variances = (lies * h * (1 - h) * by_hits**2 + honest * f * (1 - f) * by_alarms**2,) * 2
    else:
        influences = [
            ((deal.hits - h * deal.lies) * by_hits, (deal.alarms - f * deal.honest) * by_alarms, count)
            for deal, count in deals.items()
        ]
        variances = (
            n / (n - 1) * sum(count * (one - other) ** 2 for one, other, count in influences),
            n / (n - 1) * sum(count * (one + other) ** 2 for one, other, count in influences),
        )
        t = student_quantile(n - 1)
    return Detection(
        _symmetric(zh - zf, t * math.sqrt(variances[0])), _symmetric(-(zh + zf) / 2, t * math.sqrt(variances[1]) / 2)
    )


def _symmetric(value: float, half: float) -> Rate:
    return Rate(value, value - half, value + half)


def curve_of(sensitivity: float) -> list[tuple[float, float]]:
    """Return rates of false alarms and of hits for which d' has this value, for criteria from 3 to -3."""
    criteria = (3 - place / 4 for place in range(25))
    return [(_NORMAL.cdf(-sensitivity / 2 - c), _NORMAL.cdf(sensitivity / 2 - c)) for c in criteria]


def area_under_curve(beliefs: Sequence[Belief]) -> Rate:
    """Return the probability that a random lie was rated higher than a random honest play; ties count half."""
    lies = sorted(one.stated for one in beliefs if one.is_true)
    honest = sorted(one.stated for one in beliefs if not one.is_true)
    if not lies or not honest:
        return Rate(None)
    placed = [(one, _share_below(honest, one.stated)) for one in beliefs if one.is_true]
    area = sum(share for _, share in placed) / len(lies)
    influences = defaultdict[int, float](float)
    for one, share in placed:
        influences[one.deal] += (share - area) / len(lies)
    for one in beliefs:
        if not one.is_true:
            influences[one.deal] += (1 - _share_below(lies, one.stated) - area) / len(honest)
    n = len(influences)
    spread = sum(one * one for one in influences.values())
    if n < 2 or not 0 < area < 1 or not spread:
        return wilson(area, min(len(lies), len(honest)))
    half = student_quantile(n - 1) * math.sqrt(n / (n - 1) * spread) / (area * (1 - area))
    centre = math.log(area / (1 - area))
    low, high = (1 / (1 + math.exp(-end)) for end in (centre - half, centre + half))
    return Rate(area, low, high)


def _share_below(ordered: Sequence[float], value: float) -> float:
    return (bisect_left(ordered, value) + bisect_right(ordered, value)) / (2 * len(ordered))


def mean_by_deal(sums: Sums, scale: int = 1) -> Rate:
    """Return the mean of values that are in units of 1/scale and may be negative, with Student's interval."""
    if sums.deals < 2:
        return Rate(None)
    variance = sums.deals / (sums.deals - 1) * residual(sums) / (scale * sums.m**2) ** 2
    return _symmetric(sums.y / (scale * sums.m), student_quantile(sums.deals - 1) * math.sqrt(variance))


def log_loss(belief: float, is_true: bool) -> float:
    """Return -log of the probability given to the truth, in nats."""
    return -math.log(_limit(belief if is_true else 1 - belief))


def divergence(reference: float, belief: float) -> float:
    """Return the Kullback-Leibler divergence from the reference to the belief, in nats."""
    p, q = _limit(reference), _limit(belief)
    return p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))


def _limit(belief: float) -> float:
    return min(max(belief, LEAST_BELIEF), 1 - LEAST_BELIEF)


def brier_score(beliefs: Iterable[Belief]) -> Rate:
    """Return the mean of (stated - truth)^2, summed in whole millionths as in `players.add_statements`."""
    squares = defaultdict[int, list[int]](list)
    for one in beliefs:
        squares[one.deal].append((round(one.stated * PROBABILITY_UNIT) - PROBABILITY_UNIT * one.is_true) ** 2)
    sums = [cluster_sums(len(own), sum(own)) for own in squares.values()]
    deals, m, m2, y, y2, ym = (sum(column) for column in zip(*sums, strict=True))
    return clustered_rate(deals, m, m2, y, y2, ym, PROBABILITY_UNIT**2)


def calibration_error(beliefs: Sequence[Belief]) -> Rate:
    """Return the ECE with its interval."""
    if not beliefs:
        return Rate(None)
    by_bin = defaultdict[int, list[Belief]](list)
    for one in beliefs:
        by_bin[probability_bin(one.stated)].append(one)
    bins = [_CalibrationBin.of(own, len(beliefs)) for own in by_bin.values()]
    error = sum(each.weight * each.distance for each in bins)
    by_chance, _ = _moments(bins, 0.0)
    # An error below the chance level does not rule out a true one, so the upper end uses at least that level.
    return Rate(error, _solve(bins, error, Z95), max(error, _solve(bins, max(error, by_chance), -Z95)))


class _CalibrationBin(NamedTuple):
    weight: float  # share of the statements
    distance: float  # between the mean statement and the share of lies
    deviation: float  # standard error of the distance

    @classmethod
    def of(cls, own: Sequence[Belief], statements: int) -> "_CalibrationBin":
        gaps, n = defaultdict[int, list[float]](list), len(own)
        for one in own:
            gaps[one.deal].append(one.is_true - one.stated)
        mean, deals = sum(sum(gap) for gap in gaps.values()) / n, len(gaps)
        if deals < _MIN_DEALS:
            share = (sum(one.is_true for one in own) + 1) / (n + 2)
            variance = share * (1 - share) / n
        else:
            variance = deals / (deals - 1) * sum((sum(gap) - mean * len(gap)) ** 2 for gap in gaps.values()) / n**2
        return cls(n / statements, abs(mean), math.sqrt(variance))


def _moments(bins: Sequence[_CalibrationBin], t: float) -> tuple[float, float]:
    """Return the mean and the standard deviation of the ECE if the true distance is t in each bin."""
    mean = variance = 0.0
    for weight, _, s in bins:
        folded = t
        if s:
            folded = s * math.sqrt(2 / math.pi) * math.exp(-t * t / (2 * s * s)) + t * math.erf(t / (s * math.sqrt(2)))
        mean += weight * folded
        variance += weight**2 * max(0.0, t * t + s * s - folded * folded)
    return mean, math.sqrt(variance)


def _solve(bins: Sequence[_CalibrationBin], error: float, z: float) -> float:
    """Return the t for which the error is z standard deviations above the mean, or 0 if it is lower even for t = 0."""
    low, high = 0.0, 1.0
    for _ in range(_MAX_HALVINGS):
        t = (low + high) / 2
        mean, deviation = _moments(bins, t)
        low, high = (t, high) if mean + z * deviation < error else (low, t)
    return low
