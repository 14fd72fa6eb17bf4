"""What a game counts and how it is rated: a definition, not the results of a run (experiment/results.py)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

FALLBACK_TURNS: Final = "fallback_turns"  # the last count of every seat: turns played for a bot that failed
FORFEITS: Final = "forfeits"  # a seat count of games that can be forfeited: whether this seat did


@dataclass(frozen=True, slots=True)
class Ending:
    """A finished game in whole numbers from 0, as `Results` names them; lists are by seat."""

    capped: bool  # over because of a cap, not of the rules
    game_counts: tuple[int, ...]
    marks: list[int]  # what a seat came to: a place, a win, a return
    counts: list[tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Measure:
    """What is rated: a whole number a seat, from 0 to `scale`, that follows from its bucket or is one of its counts."""

    key: str
    title: str  # of its column
    name: str  # in headings: Hard wins
    values: tuple[int, ...] = ()  # by bucket; none where it is a count
    scale: int = 1  # how many are a whole one
    count: str = ""  # of the seat's counts, the one that it is
    span: tuple[float, float] | None = None  # what 0 and `scale` stand for; None: shares of games, told in percent

    @property
    def titled(self) -> str:
        """The title with its unit."""
        return self.title if self.span else f"{self.title} %"

    @property
    def named(self) -> str:
        """The name with its unit."""
        return self.name if self.span else f"{self.name}, %"


@dataclass(frozen=True, slots=True)
class Habit:
    """A way to play, as a ratio of two of a seat's counts."""

    key: str
    title: str  # of its column
    name: str  # in charts: bluffs
    count: str
    of: str
    most: int = 1  # how many of the first there can be to one of the second; above 1 it is no share, but a number


@dataclass(frozen=True)
class Results:
    """What a game counts, and what of it is rated."""

    buckets: tuple[str, ...]  # what a game can be for a seat, in the plural: hard_wins, losses
    endings: tuple[str, ...]  # the same in words for one seat: hard win, loss
    bucket: Callable[[int, bool], int]  # of a mark, in a game that was capped or not: its place in `buckets`
    measures: tuple[Measure, ...]  # the first one ranks
    headline: tuple[str, ...]  # of the measures: what pairs, seats and bounds are told of; neighbours, of the last
    equal_share: Callable[[int], Mapping[str, float]]  # at so many seats: each measure if all are alike, where known
    game_counts: tuple[str, ...]  # the first one is the turns
    seat_counts: tuple[str, ...]
    scoreboard: tuple[str, ...] = ()  # of the buckets: those whose counts stand before the games in the ranking
    averaged: tuple[str, ...] = ()  # of the seat's counts: published as means
    habits: tuple[Habit, ...] = ()
    standing: Callable[[int, int, bool], int] | None = None  # of a mark, at so many seats, capped: 0 to 2 (seats - 1)
    unfinished: str | None = None  # the bucket of games that have no standing
    ended: Callable[[int, bool], str] | None = None  # of a mark, capped: how a seat ended; None: as `endings` has it
    turns_in_words: Callable[[Sequence[float]], str] = lambda means: f"{means[0]:.1f}"  # of the game's counts a game
    lies: str = ""  # of the habits, in a game with lies: the share of moves that are (Spec.lie)
    lies_in_words: str = ""  # what is a lie by choice, and what is a forced one
    lie_nodes: tuple[str, ...] = ()  # where a yes means to lie
    charted: tuple[str, ...] = ()  # the habits that are drawn, shares all of them; neighbours are ordered by the first
    rate: str = "win rate"  # what the last headline measure is called where neighbours are
    meaning: str = ""  # of the first measure, in a sentence for people
    neighbours: str = ""  # what sits behind the variation with neighbours, in words
    habits_in_words: str = ""  # what a reader must know of the habits
    stated: str = ""  # of what models state the probability, in words

    def ended_in_words(self, mark: int, capped: bool) -> str:
        """How the game ended for a seat."""
        return self.ended(mark, capped) if self.ended else self.endings[self.bucket(mark, capped)]

    @cached_property
    def counts(self) -> tuple[str, ...]:
        """What is kept of every seat: the game's counts, and the turns that were played for a bot that failed."""
        return (*self.seat_counts, FALLBACK_TURNS)

    @cached_property
    def counted(self) -> tuple[str, ...]:
        """Of the game's own: those that are published as they are, neither as means nor as a measure."""
        others = {*self.averaged, *(measure.count for measure in self.measures)}
        return tuple(count for count in self.seat_counts if count not in others)

    @cached_property
    def seat_sums(self) -> tuple[str, ...]:
        """What a run sums over a player's seats."""
        return ("games", *self.counts, *(("position",) if self.standing else ()))

    @cached_property
    def by_bucket(self) -> tuple[tuple[int, ...], ...] | None:
        """By bucket: every measure; None where one does not follow from it."""
        if any(measure.count for measure in self.measures):
            return None
        return tuple(zip(*(measure.values for measure in self.measures), strict=True))

    def measured(self, bucket: int, counts: Sequence[int]) -> tuple[int, ...]:
        """Every measure of a seat, by its bucket and its counts."""
        if self.by_bucket is not None:
            return self.by_bucket[bucket]
        return tuple(
            counts[self.counts.index(measure.count)] if measure.count else measure.values[bucket]
            for measure in self.measures
        )

    def measure(self, key: str) -> Measure:
        """The measure of that key."""
        return self.measures[self.place(key)]

    def habit(self, key: str) -> Habit:
        """The habit of that key."""
        return next(habit for habit in self.habits if habit.key == key)

    def place(self, key: str) -> int:
        """Where a measure stands among all."""
        return [measure.key for measure in self.measures].index(key)
