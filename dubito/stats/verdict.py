"""Decide which of two players is better, or whether fallbacks leave this open.

A game in which a fallback answered for a player counts as played. If the fallback made more than `FALLBACK_LIMIT` of
either player's decisions, a winner is named only if it also leads in the worst case, in which it loses all of its games
with a fallback and the other player wins all of its own. The worst and best case bound the difference in the games that
were played. They are not confidence limits.
"""

from dataclasses import dataclass
from typing import Final, Literal

from dubito.game import Results
from dubito.stats.rates import Rate

FALLBACK_LIMIT: Final = 0.02  # share of a player's decisions; a share equal to this does not exceed it
_ROUNDING: Final = 1e-9

RateLimits = tuple[float, float]  # a player's rate in the worst and in the best case


@dataclass(frozen=True, slots=True)
class ComparedPair:
    """Two players compared by a measure. All tables, sentences and `--json` objects report this verdict."""

    difference: Rate  # the first player's rate minus the second's, as played
    is_significant: bool  # as played
    worst: float  # the same difference in the worst case for the first player
    best: float
    fallback_shares: tuple[float, float] = (0.0, 0.0)  # shares of each player's decisions

    @property
    def has_fallbacks(self) -> bool:
        return max(self.fallback_shares) > FALLBACK_LIMIT

    @property
    def limits_overlap(self) -> bool:
        leads_in_worst_case = self.worst > _ROUNDING or self.best < -_ROUNDING
        return self.has_fallbacks and not leads_in_worst_case

    @property
    def is_open(self) -> bool:
        return self.is_significant and self.limits_overlap

    @property
    def winner(self) -> Literal[0, 1] | None:
        if not self.is_significant or self.is_open or not self.difference.value:
            return None
        return 0 if self.difference.value > 0 else 1


def reach_verdict(
    difference: Rate, is_significant: bool, limits: tuple[RateLimits, RateLimits], fallback_shares: tuple[float, float]
) -> ComparedPair:
    (lowest, highest), (other_lowest, other_highest) = limits
    return ComparedPair(difference, is_significant, lowest - other_highest, highest - other_lowest, fallback_shares)


def describe_limits(results: Results) -> str:
    """Describe how the worst and best case count games with a fallback, such as losses or hard wins."""
    first = results.measures[0]
    if first.span:
        return f"the lowest or the highest {first.name}"
    return f"losses or {results.buckets[0].replace('_', ' ')}"
