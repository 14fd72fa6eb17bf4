"""Rates with honest intervals, from integer sums.

A rate is a ratio of sums over deals; its variance is the ratio estimator's, clustered by deal (Cochran,
Sampling Techniques, 3rd ed., 6.4), since the seats of one deal are not independent; without contenders
a deal is a game. The interval is Wilson's (1927) at the effective number of seats, the p(1-p)/variance
independent ones that would vary as much, so that it never leaves [0, 1] and is never [0, 0]. Where no
variance shows (all alike), each deal counts as one.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

Z95: Final = 1.959963984540054  # the normal distribution's 97.5 % point


@dataclass(frozen=True, slots=True)
class Rate:
    """An estimate with its 95 % interval; None where there is nothing to estimate from."""

    value: float | None
    low: float = 0.0
    high: float = 1.0


def clustered_rate(deals: int, seats: int, m2: int, y: int, y2: int, ym: int, scale: int = 1) -> Rate:
    """The rate of y per seat, y counted in units of 1/scale, each seat's within [0, 1].

    `m2`, `y2` and `ym` are the sums over deals of m^2, y^2 and y*m, with m a deal's seats.
    """
    if seats == 0:
        return Rate(None)
    p = y / (scale * seats)
    spread = y2 / scale**2 - 2 * p * ym / scale + p * p * m2
    n = float(deals)
    if deals > 1 and spread > 1e-12 and 0 < p < 1:
        variance = deals / (deals - 1) * spread / seats**2
        n = p * (1 - p) / variance
    return wilson(p, n)


def wilson(p: float, n: float, z: float = Z95) -> Rate:
    """Wilson's score interval for a proportion p of n independent ones."""
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(max(0.0, p * (1 - p) / n + z * z / (4 * n * n)))
    low = 0.0 if p == 0 else max(0.0, centre - half)
    high = 1.0 if p == 1 else min(1.0, centre + half)
    return Rate(p, low, high)


def paired_difference(n: int, d: int, d2: int, scale: int = 1) -> Rate:
    """The mean of n paired differences in units of 1/scale, each within [-1, 1], with its 95 % interval.

    Normal; where all are alike, by the rule of three (no event in n trials: at most 3/n of them).
    """
    if n == 0:
        return Rate(None, -1.0, 1.0)
    mean = d / (n * scale)
    spread = d2 / scale**2 - n * mean * mean
    half = Z95 * math.sqrt(spread / (n - 1) / n) if n > 1 and spread > 1e-12 else 3 / n
    return Rate(mean, max(-1.0, mean - half), min(1.0, mean + half))


def deviation(values: Sequence[float]) -> float | None:
    """The standard deviation of these values as they are (divided by n); None below two."""
    if len(values) < 2:
        return None
    mean = sum(values) / len(values)
    return math.sqrt(sum((value - mean) ** 2 for value in values) / len(values))


def equal_share(n: int) -> dict[str, float]:
    """What every seat of a table of n gets if all are equal: one hard win, n - 3 soft wins, two losses (R10)."""
    return {
        "score": (n - 1) / (2 * n),
        "hard_wins": 1 / n,
        "soft_wins": (n - 3) / n,
        "losses": 2 / n,
        "unfinished": 0.0,
    }
