"""The relation of a run's players: for every pair the better player, or why neither is named.

Sentences, tables, charts and `--json` objects only word this relation. A pair is *identical* if both players had the
same numbers in every game of all deals. It is *withheld* if it has too few deals, or if fallbacks leave the winner
open.

A game in which a fallback answered for a player, or which the player forfeited, counts as played. If these are more
than `FALLBACK_LIMIT` of either player's games, a winner is named only if it also leads in the worst case, in which it
loses all of these games and the other player wins all such games. The worst and best case bound the difference in the
games that were played. They are not confidence limits.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Literal

from dubito.game import FORFEITS, Measure, Results
from dubito.stats.players import FallbackBounds
from dubito.stats.rates import Rate
from dubito.stats.stopping import PairVerdict

MIN_DEALS: Final = 10  # with fewer, no difference is significant
PRELIMINARY: Final = 100  # with fewer deals, a comparison is preliminary; 100 show 11 points of Score with 80 % power
FALLBACK_LIMIT: Final = 0.02  # share of a player's games; a share equal to this does not exceed it
_ROUNDING: Final = 1e-9

PairOutcome = Literal["better", "worse", "no significant difference", "identical", "withheld"]
WithheldReason = Literal["too few deals", "fallbacks"]


@dataclass(frozen=True, slots=True)
class ComparedPair:
    """Two players compared by a measure, per game."""

    difference: Rate  # the first player's rate minus the second's, as played
    is_significant: bool = False  # as played
    worst: float = 0.0  # the same difference in the worst case for the first player
    best: float = 0.0
    fallback_shares: tuple[float, float] = (0.0, 0.0)  # shares of each player's games
    deals: int = MIN_DEALS
    is_same: bool = False  # whether both had the same numbers in every game
    more_games: int | None = None  # estimated until there is a winner; 0: there is one; None: unknown
    interval: Literal["fixed", "anytime"] = "fixed"  # valid for a fixed number of deals, or at any time
    stop_test: PairVerdict | None = None  # of the test that stops the run; None: another measure, or not yet
    within: float | None = None  # the difference that this test detects

    @property
    def has_fallbacks(self) -> bool:
        return max(self.fallback_shares) > FALLBACK_LIMIT

    @property
    def limits_overlap(self) -> bool:
        leads_in_worst_case = self.worst > _ROUNDING or self.best < -_ROUNDING
        return self.has_fallbacks and not leads_in_worst_case

    @property
    def withheld(self) -> WithheldReason | None:
        if self.difference.value is None or self.deals < MIN_DEALS:
            return "too few deals"
        return "fallbacks" if self.is_significant and self.limits_overlap else None

    @property
    def outcome(self) -> PairOutcome:
        """The first player's relation to the second."""
        if self.withheld:
            return "withheld"
        if self.is_same:
            return "identical"
        if not self.is_significant or not self.difference.value:
            return "no significant difference"
        return "better" if self.difference.value > 0 else "worse"

    @property
    def is_open(self) -> bool:
        return self.withheld == "fallbacks"

    @property
    def lead(self) -> float:
        return self.difference.value or 0.0

    def __neg__(self) -> "ComparedPair":
        """Return the pair with its players swapped."""
        one, other = self.fallback_shares
        return replace(
            self, difference=-self.difference, worst=-self.best, best=-self.worst, fallback_shares=(other, one)
        )


_NOT_COMPARED: Final = ComparedPair(Rate(None), deals=0)


@dataclass(frozen=True)
class Relation:
    """The compared players, best point estimate first, and the relation of every pair."""

    names: Sequence[str]
    pairs: Mapping[tuple[int, int], ComparedPair]  # by index, in one of the two directions
    measure: Measure
    deals: int = MIN_DEALS
    paired: bool = False  # whether the differences are from the same deals
    within: float | None = None  # points of the run's stop rule; if set, intervals are anytime intervals
    fragility: int | None = None  # the fewest deals without which the first would no longer lead alone
    limits: str = ""  # describes how the worst and best case count games with a fallback
    failures: str = "fallbacks"  # what these games can have had

    @property
    def is_preliminary(self) -> bool:
        return self.paired and self.within is None and self.deals < PRELIMINARY

    def pair(self, one: int, other: int) -> ComparedPair:
        """Return the first player's comparison with the second."""
        if (one, other) in self.pairs:
            return self.pairs[one, other]
        return -self.pairs[other, one] if (other, one) in self.pairs else _NOT_COMPARED

    def wins(self, one: int, other: int) -> bool:
        return self.pair(one, other).outcome == "better"

    @cached_property
    def ranks(self) -> list[int]:
        places = range(len(self.names))
        return [1 + sum(self.wins(other, place) for other in places) for place in places]

    def rank(self, name: str) -> int | None:
        return dict(zip(self.names, self.ranks, strict=True)).get(name)

    @property
    def unbeaten(self) -> list[int]:
        return [place for place, rank in enumerate(self.ranks) if rank == 1]

    @property
    def more_games(self) -> int | None:
        """The estimated number of games until the first player beats all others. 0: it does; None: unknown."""
        needed = [self.pair(0, other).more_games for other in range(1, len(self.names)) if not self.wins(0, other)]
        return None if None in needed else max(filter(None, needed), default=0)

    def only(self, one: str, other: str) -> "Relation":
        """Return the relation of two of the players."""
        pair = self.pair(self.names.index(one), self.names.index(other))
        return replace(self, names=[one, other], pairs={(0, 1): pair}, fragility=None)


@dataclass(frozen=True, slots=True)
class Rung:
    """A player's place on a ladder of bots. Only significant wins count."""

    beats: str | None  # the strongest bot that the player beats
    loses_to: str | None  # the weakest bot that beats the player


def find_rung(relation: Relation, name: str, ladder: Collection[str]) -> Rung:
    """Return a player's rung among these bots of the relation. The player itself is left out."""
    place = relation.names.index(name)
    bots = [other for other, bot in enumerate(relation.names) if bot in ladder and other != place]
    beaten = (relation.names[other] for other in bots if relation.wins(place, other))
    better = (relation.names[other] for other in reversed(bots) if relation.wins(other, place))
    return Rung(next(beaten, None), next(better, None))


def limit_difference(
    one: FallbackBounds, other: FallbackBounds, key: str
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the difference in the worst and the best case, and both shares of games with a fallback."""
    (lowest, highest), (other_lowest, other_highest) = one.rates[key], other.rates[key]
    return (lowest - other_highest, highest - other_lowest), (one.share, other.share)


def describe_limits(results: Results) -> str:
    """Describe how the worst and best case count games with a fallback, such as losses or hard wins."""
    first = results.measures[0]
    if first.span:
        return f"the lowest or the highest {first.name}"
    return f"losses or {results.buckets[0].replace('_', ' ')}"


def name_failures(results: Results) -> str:
    return "fallbacks or forfeits" if FORFEITS in results.counts else "fallbacks"
