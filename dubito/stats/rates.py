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

How far a rate varies between groups, as with who sits beside: how much of what is seen is chance, with an interval.

K groups have true rates p_k with mean p and standard deviation t; of each, r_k is seen over s_k seats. With
Q = sum (r_k - mean r)^2 = K D^2, D the deviation as it is seen, and v_k the variance of r_k,

    E Q   = K t^2 + (1 - 1/K) sum v_k
    Var Q = 2 ((1 - 2/K) sum v_k^2 + (sum v_k)^2 / K^2) + 4 sum (p_k - p)^2 v_k

(the moments of a quadratic form in independent normals). In the mean over groups p_k (1 - p_k) is p (1 - p) - t^2, so
v_k is taken as that times `effect` / s_k (Kish's design effect, where seats are not independent), and at most once,
as no rate varies more: no r_k enters it, and a group without a win does not look certain. In the last term, where it
matters in which groups the variance lies, it is that of the rates as they are seen. Then (Q / E Q)^(1/3) is nearly
normal with mean 1 - h and variance h = Var Q / (9 (E Q)^2): Wilson and Hilferty's cube root, for a noncentral
chi-squared Abdel-Aty's (Abramowitz and Stegun, 26.4.28). The interval holds each t under which the Q that was seen is
not among the 2.5 % least or the 2.5 % greatest; it begins at 0 where chance alone explains Q. Of runs of 300 and of
1,000 games between the eleven bots 94 to 100 in 100 intervals held what 200,000 games say.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final, NamedTuple

Z95: Final = 1.959963984540054  # the normal distribution's 97.5 % point
_Z80: Final = 0.8416212335729143  # its 80 % point: together 2.8
ERROR: Final = 0.05  # of a 95 % interval


@dataclass(frozen=True, slots=True)
class Rate:
    """An estimate with its 95 % interval; None where there is nothing to estimate from."""

    value: float | None
    low: float = 0.0
    high: float = 1.0

    def on(self, span: tuple[float, float] | None) -> "Rate":
        return self if span is None else self.times(span[1] - span[0], span[0])

    def times(self, width: float, least: float = 0.0) -> "Rate":
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
    independent, reach = _effective_seats(sample, scale)
    return wilson(p, independent * (seats / sample.m), reach)


def _effective_seats(sums: Sums, scale: int) -> tuple[float, float]:
    """How many independent seats would vary as much, and how many standard errors an interval reaches."""
    p, spread = sums.y / (scale * sums.m), residual(sums)
    if sums.deals > 1 and spread and 0 < p < 1:
        variance = sums.deals / (sums.deals - 1) * spread / (scale * sums.m**2) ** 2
        return p * (1 - p) / variance, student_quantile(sums.deals - 1)
    return float(sums.deals), Z95


def residual(sums: Sums) -> int:
    return sums.y2 * sums.m**2 - 2 * sums.y * sums.ym * sums.m + sums.y * sums.y * sums.m2


def wilson(p: float, n: float, z: float = Z95) -> Rate:
    """Wilson's score interval for a proportion p of n independent ones."""
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(max(0.0, p * (1 - p) / n + z * z / (4 * n * n)))
    low = 0.0 if p == 0 else max(0.0, centre - half)
    high = 1.0 if p == 1 else min(1.0, centre + half)
    return Rate(p, low, high)


def normal_quantile(error: float) -> float:
    return Z95 if error == ERROR else NormalDist().inv_cdf(1 - error / 2)


def student_quantile(df: int, error: float = ERROR) -> float:
    """The 97.5 % point of Student's t, or another: how far an interval reaches on `df` degrees of freedom.

    Cornish and Fisher's expansion (Abramowitz and Stegun, 26.7.5), within 0.004 of the 97.5 % points; exact values
    below 3, where it is not.
    """
    if df < 3:
        a = 1 - error
        exact = math.tan(math.pi * a / 2) if df == 1 else a * math.sqrt(2 / (1 - a * a))
        return (12.706204736432095, 4.302652729911275)[df - 1] if error == ERROR else exact
    x, n = normal_quantile(error), float(df)
    terms = (
        (x**3 + x) / 4,
        (5 * x**5 + 16 * x**3 + 3 * x) / 96,
        (3 * x**7 + 19 * x**5 + 17 * x**3 - 15 * x) / 384,
        (79 * x**9 + 776 * x**7 + 1482 * x**5 - 1920 * x**3 - 945 * x) / 92160,
    )
    return x + sum(term / n**power for power, term in enumerate(terms, 1))


def paired_difference(n: int, d: int, d2: int, scale: int = 1, error: float = ERROR) -> Rate:
    """The mean of n paired differences in units of 1/scale, each within [-1, 1], with its 95 % interval, or another.

    Student's; where all are alike, by the rule of three (no event in n trials: at most 3/n of them).
    """
    if n == 0:
        return Rate(None, -1.0, 1.0)
    mean, variance = d / (n * scale), variance_of(n, d, d2) / scale**2
    half = student_quantile(n - 1, error) * math.sqrt(variance / n) if variance else rule_of_three(n, error)
    return Rate(mean, max(-1.0, mean - half), min(1.0, mean + half))


def rule_of_three(n: int, error: float = ERROR) -> float:
    return 3 / n * (math.log(error) / math.log(ERROR))


def deals_to_significance(n: int, d: int, d2: int, error: float = ERROR) -> int | None:
    """How many paired differences it takes to tell two apart that differ as these n do: (2.8 / mean)^2 variance.

    At 5 % two-sided, seen in 80 of 100 such comparisons (1.96 + 0.84 = 2.8), whatever the unit of d. None
    if the mean or the variance is 0: then the n say nothing of how many it takes.
    """
    variance, reach = variance_of(n, d, d2), normal_quantile(error) + _Z80
    return math.ceil((reach * n / d) ** 2 * variance) if d and variance else None


def variance_of(n: int, d: int, d2: int) -> float:
    return (n * d2 - d * d) / (n * (n - 1)) if n > 1 else 0.0


def deviation(values: Sequence[float]) -> float | None:
    """The standard deviation of these values as they are (divided by n); None below two."""
    if len(values) < 2:
        return None
    mean = sum(values) / len(values)
    return math.sqrt(sum((value - mean) ** 2 for value in values) / len(values))


_MAX_HALVINGS: Final = 40  # of a range within [0, 1/2]


@dataclass(frozen=True, slots=True)
class Variation:
    """How far rates vary between groups, as standard deviations in shares."""

    seen: float | None  # of the rates as they are; None below two groups
    chance: float | None  # what would be seen, root mean square, were all groups alike
    beyond: Rate  # what is left without chance; from 0 if it may all be chance


def variation(good: Sequence[int], seats: Sequence[int], effect: float = 1.0) -> Variation:
    """How the rates good / seats vary; groups without seats are left out.

    The mean rate is taken from two more seats of either kind (Agresti and Coull, 1998), so that it is never 0 or 1.
    """
    groups = [(won, sat) for won, sat in zip(good, seats, strict=True) if sat]
    seen = deviation([won / sat for won, sat in groups])
    if seen is None:
        return Variation(None, None, Rate(None))
    p = (sum(won for won, _ in groups) + 2) / (sum(sat for _, sat in groups) + 4)
    shares = [min(1.0, effect / sat) for _, sat in groups]
    form = _VariationModel(p * (1 - p), shares, _outlier_variance(groups, shares))
    q, by_chance = len(groups) * seen**2, form.moments(0.0)[0]
    # Less than chance makes is no proof that nothing varies: the upper end is never below that of what it makes.
    beyond = Rate(form.at(q, 0.0), form.at(q, Z95), form.at(max(q, by_chance), -Z95))
    return Variation(seen, math.sqrt(by_chance / len(groups)), beyond)


@dataclass(frozen=True, slots=True)
class _VariationModel:
    """The distribution of Q, given t."""

    pq: float  # p (1 - p): the most that t^2 can be
    shares: Sequence[float]  # of p_k (1 - p_k), that v_k is
    outlying: float  # the v_k of groups that are far off

    def moments(self, t: float) -> tuple[float, float]:
        k, v = len(self.shares), [share * (self.pq - t * t) for share in self.shares]
        alone = (1 - 2 / k) * sum(one * one for one in v) + sum(v) ** 2 / k**2
        return k * t * t + (1 - 1 / k) * sum(v), 2 * alone + 4 * t * t * k * self.outlying

    def at(self, q: float, z: float) -> float:
        """The t under which this q lies z standard deviations up; 0 if it lies lower than that even at 0."""
        low, high = 0.0, math.sqrt(self.pq)
        if self._place(q, low) <= z:
            return 0.0
        for _ in range(_MAX_HALVINGS):
            t = (low + high) / 2
            low, high = (t, high) if self._place(q, t) > z else (low, t)
        return (low + high) / 2

    def _place(self, q: float, t: float) -> float:
        mean, variance = self.moments(t)
        h = variance / (9 * mean**2)
        return (math.cbrt(q / mean) - 1 + h) / math.sqrt(h)


def _outlier_variance(groups: Sequence[tuple[int, int]], shares: Sequence[float]) -> float:
    """The mean v_k of rates as they are seen, the groups weighted by (r_k - mean r)^2; half a win more of each kind."""
    rates = [(won + 0.5) / (sat + 1) for won, sat in groups]
    mean = sum(rates) / len(rates)
    v = [share * rate * (1 - rate) for share, rate in zip(shares, rates, strict=True)]
    weights = [(rate - mean) ** 2 for rate in rates]
    if not sum(weights):
        return sum(v) / len(v)
    return sum(weight * one for weight, one in zip(weights, v, strict=True)) / sum(weights)


def independent_difference(one: Rate, other: Rate) -> Rate:
    """The difference of two independent estimates out of their intervals: Zou and Donner (2008), MOVER."""
    if one.value is None or other.value is None:
        return Rate(None, -1.0, 1.0)
    difference = one.value - other.value
    down = math.hypot(one.value - one.low, other.high - other.value)
    up = math.hypot(one.high - one.value, other.value - other.low)
    return Rate(difference, difference - down, difference + up)


def design_effect(groups: Iterable[Sums]) -> float:
    """How much more the groups' rates vary than if their seats were independent, over all groups; never below 1.

    Both variances with Bessel's correction, by deals and by seats; y in whole ones.
    """
    clustered = independent = 0.0
    for sums in groups:
        if sums.deals > 1:
            clustered += sums.deals / (sums.deals - 1) * residual(sums) / sums.m**2
            independent += sums.y * (sums.m - sums.y) / (sums.m - 1)
    return max(1.0, clustered / independent) if independent else 1.0
