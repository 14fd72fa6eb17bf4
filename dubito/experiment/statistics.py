"""Rates with honest intervals, from integer sums.

A rate is a ratio of sums over deals; its variance is the ratio estimator's, clustered by deal (Cochran,
Sampling Techniques, 3rd ed., 6.4), since the seats of one deal are not independent; without contenders
a deal is a game. The interval is Wilson's (1927) at the effective number of seats, the p(1-p)/variance
independent ones that would vary as much, so that it never leaves [0, 1] and is never [0, 0]; since that
variance is estimated from the deals, it reaches as far as Student's t does on so few. Where no variance
shows (all alike), each deal counts as one.

How many independent seats a seat is worth (the design effect of Kish, Survey Sampling, 1965, 8.2, upside
down) follows from how games are dealt and played, not from how many there are: so a sample of a run's
deals is enough to say how wide the interval of a rate over all of them is.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

Z95: Final = 1.959963984540054  # the normal distribution's 97.5 % point
_SEEN: Final = Z95 + 0.8416212335729143  # and its 80 % point: 2.8


@dataclass(frozen=True, slots=True)
class Rate:
    """An estimate with its 95 % interval; None where there is nothing to estimate from."""

    value: float | None
    low: float = 0.0
    high: float = 1.0

    def on(self, span: tuple[float, float] | None) -> "Rate":
        """A rate where its 0 and 1 stand for these ends; None: as it is."""
        return self if span is None else self.times(span[1] - span[0], span[0])

    def times(self, width: float, least: float = 0.0) -> "Rate":
        """So many times as much, and that more."""
        value = None if self.value is None else least + width * self.value
        return Rate(value, least + width * self.low, least + width * self.high)


class Sums(NamedTuple):
    """Sums over deals, where m is a deal's seats and y what was counted over them, in units of 1/scale."""

    deals: int
    m: int
    m2: int  # of m^2
    y: int
    y2: int  # of y^2
    ym: int  # of y*m


def clustered_rate(deals: int, seats: int, m2: int, y: int, y2: int, ym: int, scale: int = 1) -> Rate:
    """The rate of y per seat, y counted in units of 1/scale, each seat's within [0, 1].

    `m2`, `y2` and `ym` are the sums over deals of m^2, y^2 and y*m, with m a deal's seats.
    """
    return sampled_rate(y, seats, Sums(deals, seats, m2, y, y2, ym), scale)


def sampled_rate(y: int, seats: int, sample: Sums, scale: int = 1) -> Rate:
    """The rate of y per seat over a whole run, with an interval as wide as a sample of its deals lets it be.

    The sample is all of the run, or deals of it that were not chosen by how they went. Where it holds no such
    seat, nothing is known of the width, and the interval is [0, 1].
    """
    if seats == 0:
        return Rate(None)
    p = y / (scale * seats)
    if sample.m == 0:
        return Rate(p)
    independent, reach = _independent(sample, scale)
    return wilson(p, independent * (seats / sample.m), reach)


def _independent(sums: Sums, scale: int) -> tuple[float, float]:
    """How many independent seats would vary as much, and how many standard errors an interval reaches."""
    p, spread = sums.y / (scale * sums.m), residual(sums)
    if sums.deals > 1 and spread and 0 < p < 1:
        variance = sums.deals / (sums.deals - 1) * spread / (scale * sums.m**2) ** 2
        return p * (1 - p) / variance, student(sums.deals - 1)
    return float(sums.deals), Z95


def residual(sums: Sums) -> int:
    """The sum over deals of (y - m p)^2, times the squared number of seats: whole, and 0 only if all are alike."""
    return sums.y2 * sums.m**2 - 2 * sums.y * sums.ym * sums.m + sums.y * sums.y * sums.m2


def wilson(p: float, n: float, z: float = Z95) -> Rate:
    """Wilson's score interval for a proportion p of n independent ones."""
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(max(0.0, p * (1 - p) / n + z * z / (4 * n * n)))
    low = 0.0 if p == 0 else max(0.0, centre - half)
    high = 1.0 if p == 1 else min(1.0, centre + half)
    return Rate(p, low, high)


def student(df: int) -> float:
    """The 97.5 % point of Student's t: how far a 95 % interval reaches on `df` degrees of freedom.

    Cornish and Fisher's expansion (Abramowitz and Stegun, 26.7.5), within 0.004; exact values below 3, where it is not.
    """
    if df < 3:
        return (12.706204736432095, 4.302652729911275)[df - 1]
    x, n = Z95, float(df)
    terms = (
        (x**3 + x) / 4,
        (5 * x**5 + 16 * x**3 + 3 * x) / 96,
        (3 * x**7 + 19 * x**5 + 17 * x**3 - 15 * x) / 384,
        (79 * x**9 + 776 * x**7 + 1482 * x**5 - 1920 * x**3 - 945 * x) / 92160,
    )
    return x + sum(term / n**power for power, term in enumerate(terms, 1))


def paired_difference(n: int, d: int, d2: int, scale: int = 1) -> Rate:
    """The mean of n paired differences in units of 1/scale, each within [-1, 1], with its 95 % interval.

    Student's; where all are alike, by the rule of three (no event in n trials: at most 3/n of them).
    """
    if n == 0:
        return Rate(None, -1.0, 1.0)
    mean, variance = d / (n * scale), _variance(n, d, d2) / scale**2
    half = student(n - 1) * math.sqrt(variance / n) if variance else 3 / n
    return Rate(mean, max(-1.0, mean - half), min(1.0, mean + half))


def deals_to_separate(n: int, d: int, d2: int) -> int | None:
    """How many paired differences it takes to tell two apart that differ as these n do: (2.8 / mean)^2 variance.

    At 5 % two-sided, seen in 80 of 100 such comparisons (1.96 + 0.84 = 2.8), whatever the unit of d. None
    if the mean or the variance is 0: then the n say nothing of how many it takes.
    """
    variance = _variance(n, d, d2)
    return math.ceil((_SEEN * n / d) ** 2 * variance) if d and variance else None


def _variance(n: int, d: int, d2: int) -> float:
    """The variance of n integers with these sums; exactly 0.0 if all are alike, or where there is no telling."""
    return (n * d2 - d * d) / (n * (n - 1)) if n > 1 else 0.0


def deviation(values: Sequence[float]) -> float | None:
    """The standard deviation of these values as they are (divided by n); None below two."""
    if len(values) < 2:
        return None
    mean = sum(values) / len(values)
    return math.sqrt(sum((value - mean) ** 2 for value in values) / len(values))
