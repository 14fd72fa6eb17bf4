"""How far a rate varies between groups, as with who sits beside: how much of what is seen is chance, with an interval.

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
from typing import Final

from dubito.experiment.statistics import Z95, Rate, Sums, deviation, residual

_HALVINGS: Final = 40  # of a range within [0, 1/2]


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
    form = _Form(p * (1 - p), shares, _outlying(groups, shares))
    q, by_chance = len(groups) * seen**2, form.moments(0.0)[0]
    # Less than chance makes is no proof that nothing varies: the upper end is never below that of what it makes.
    beyond = Rate(form.at(q, 0.0), form.at(q, Z95), form.at(max(q, by_chance), -Z95))
    return Variation(seen, math.sqrt(by_chance / len(groups)), beyond)


@dataclass(frozen=True, slots=True)
class _Form:
    """The distribution of Q, given t."""

    pq: float  # p (1 - p): the most that t^2 can be
    shares: Sequence[float]  # of p_k (1 - p_k), that v_k is
    outlying: float  # the v_k of groups that are far off

    def moments(self, t: float) -> tuple[float, float]:
        """The mean and the variance of Q."""
        k, v = len(self.shares), [share * (self.pq - t * t) for share in self.shares]
        alone = (1 - 2 / k) * sum(one * one for one in v) + sum(v) ** 2 / k**2
        return k * t * t + (1 - 1 / k) * sum(v), 2 * alone + 4 * t * t * k * self.outlying

    def at(self, q: float, z: float) -> float:
        """The t under which this q lies z standard deviations up; 0 if it lies lower than that even at 0."""
        low, high = 0.0, math.sqrt(self.pq)
        if self._place(q, low) <= z:
            return 0.0
        for _ in range(_HALVINGS):
            t = (low + high) / 2
            low, high = (t, high) if self._place(q, t) > z else (low, t)
        return (low + high) / 2

    def _place(self, q: float, t: float) -> float:
        mean, variance = self.moments(t)
        h = variance / (9 * mean**2)
        return (math.cbrt(q / mean) - 1 + h) / math.sqrt(h)


def _outlying(groups: Sequence[tuple[int, int]], shares: Sequence[float]) -> float:
    """The mean v_k of rates as they are seen, the groups weighted by (r_k - mean r)^2; half a win more of each kind."""
    rates = [(won + 0.5) / (sat + 1) for won, sat in groups]
    mean = sum(rates) / len(rates)
    v = [share * rate * (1 - rate) for share, rate in zip(shares, rates, strict=True)]
    weights = [(rate - mean) ** 2 for rate in rates]
    if not sum(weights):
        return sum(v) / len(v)
    return sum(weight * one for weight, one in zip(weights, v, strict=True)) / sum(weights)


def apart(one: Rate, other: Rate) -> Rate:
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
