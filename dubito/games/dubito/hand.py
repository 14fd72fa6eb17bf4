"""A hand: the engine's truth, and the read-only view that a bot holds as `self.cards`."""

from collections import Counter
from collections.abc import Iterator, Sequence

from dubito.game.streams import Loose, SeatStreams, mypyc_attr
from dubito.games.dubito.game_data import COPIES, JOKER, MOST, NUMBERS


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class Hand:
    """Cards, and how many of each value 0-13; both lists stay the same objects for the whole game."""

    __slots__ = ("cards", "counts", "has_set")

    def __init__(self, cards: Sequence[int]) -> None:
        self.cards: list[int] = []
        self.counts = [0] * (len(NUMBERS) + 1)
        self.has_set = False  # four of a number; only a hand that grows can come to hold them (R8)
        self.add(cards)

    def add(self, cards: Sequence[int]) -> None:
        """Take cards up."""
        counts = self.counts
        self.cards += cards
        for card in cards:
            held = counts[card] + 1
            counts[card] = held
            if held == COPIES:
                self.has_set = True

    def remove(self, cards: list[int]) -> None:
        """Put down cards that are held."""
        counts = self.counts
        for card in cards:
            self.cards.remove(card)
            counts[card] -= 1

    def discard_sets(self) -> list[int]:
        """Drop every four of a number (R8) and return those numbers, ascending."""
        if not self.has_set:
            return []
        self.has_set = False
        counts = self.counts
        sets = [number for number in NUMBERS if counts[number] == COPIES]
        self.cards[:] = [card for card in self.cards if card == JOKER or counts[card] < COPIES]
        for number in sets:
            counts[number] = 0
        return sets


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class HandView:
    """What a bot may ask of its own hand. Every `pick_` builds a list and leaves the hand alone."""

    __slots__ = ("_cards", "_counts", "_streams")

    def __init__(self, hand: "Hand | HandView", streams: SeatStreams) -> None:
        """A view of a hand; of another view, it sees the same hand and draws from these streams."""
        if isinstance(hand, Hand):
            self._cards, self._counts = hand.cards, hand.counts
        else:
            self._cards, self._counts = hand._cards, hand._counts
        self._streams = streams

    def __len__(self) -> int:
        return len(self._cards)

    def __iter__(self) -> Iterator[int]:
        return iter(tuple(self._cards))

    def __repr__(self) -> str:
        return f"HandView({sorted(self._cards)})"

    def count(self, number: Loose[int]) -> int:
        """How many cards of that value are held; jokers are value 0."""
        return self._counts[number] if 0 <= number <= 13 else 0

    def count_all(self) -> "Counter[int]":
        """Value -> how many are held, only of values that are."""
        return Counter(self._cards)

    def has(self, number: Loose[int]) -> bool:
        """Whether at least one card of that value is held."""
        return 0 <= number <= 13 and self._counts[number] > 0

    def all_equal(self) -> bool:
        """Whether every card has the same value."""
        return len(set(self._cards)) <= 1

    def most_common(self) -> int:
        """The most common number; ties go to the lowest; 0 only for a hand of jokers (R25)."""
        counts, most, common = self._counts, 0, JOKER
        for number in range(1, len(counts)):
            if counts[number] > most:
                most, common = counts[number], number
        return common

    def pick_most(self) -> list[int]:
        """All cards (at most three) of the most common value."""
        return self.pick(self.most_common(), MOST)

    def pick_all(self, number: Loose[int]) -> list[int]:
        """All cards (at most three) of that value."""
        return self.pick(number, MOST)

    def pick(self, number: Loose[int], k: Loose[int]) -> list[int]:
        """k cards of that value, at most what is held."""
        held = self._counts[number] if 0 <= number <= 13 else 0
        return [number] * (k if k < held else held)

    def pick_random(self, n: Loose[int]) -> list[int]:
        """n random cards, at most what is held, drawn from the framework's stream."""
        pool = self._cards[:]
        left = len(pool)
        if n >= left:
            return pool
        draw = self._streams.framework.random
        picked = []
        for size in range(left, left - n, -1):
            picked.append(pool.pop(int(draw() * size)))  # noqa: PERF401, a comprehension costs a call more
        return picked
