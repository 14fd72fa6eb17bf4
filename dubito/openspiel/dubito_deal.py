"""How likely each card is to be dealt next at Dubito, where a deal in which somebody holds a set is thrown away (R2).

The deals that are kept are equally likely. So a card is as likely as the share of them that begin with the cards
dealt so far and this one. They are counted by inclusion and exclusion over who could still come to hold which set.
"""

from collections import Counter
from functools import cache, lru_cache
from itertools import product
from math import comb, factorial, perm, prod
from typing import Final

from dubito.games.dubito.cards import COPIES, JOKER, NUMBERS

SHARED: Final = -1  # of a number: two seats hold some of it, so nobody will hold the set

_SETS: Final = 64  # more than there are cards

Terms = dict[int, int]  # signed ways, by `_SETS` times the sets of numbers not dealt yet, plus the cards of all sets
Seat = tuple[int, tuple[int, ...]]  # cards it still gets; how many sets it lacks 1, 2 and 3 cards of


class Deal:
    """A deal card by card round the table, from the first seat."""

    def __init__(self, players: int, jokers: int) -> None:
        size = len(NUMBERS) * COPIES + jokers
        self.cards: list[int] = []  # dealt so far, in order
        self.left = Counter(dict.fromkeys(NUMBERS, COPIES) | {JOKER: jokers})
        self._holders: dict[int, int] = {}  # of a number that was dealt: the only seat that has some, or SHARED
        self._slots = [len(range(seat, size, players)) for seat in range(players)]  # cards that each still gets

    @property
    def seat(self) -> int:
        """Who gets the next card."""
        return len(self.cards) % len(self._slots)

    def give(self, card: int) -> None:
        """Deal this card next."""
        seat = self.seat
        self._holders[card] = seat if self._holders.get(card, seat) == seat and card != JOKER else SHARED
        self._slots[seat] -= 1
        self.left[card] -= 1
        self.cards.append(card)

    def outcomes(self) -> list[tuple[int, float]]:
        """Each card that may come next, with its probability, ascending."""
        kept: dict[tuple[bool, int | None, int], int] = {}  # cards of which as much is known are alike
        ways = {}
        for card, n in sorted(self.left.items()):
            alike = (card == JOKER, self._holders.get(card), n)
            if n and alike not in kept:
                kept[alike] = self._kept_with(card)
            ways[card] = n and n * kept[alike]
        total = sum(ways.values())
        return [(card, n / total) for card, n in ways.items() if n]

    def _kept_with(self, card: int) -> int:
        """In how many orders the rest may be dealt after this card."""
        seat, holders = self.seat, self._holders
        given = seat if holders.get(card, seat) == seat and card != JOKER else SHARED
        if given == seat and self.left[card] == 1:
            return 0  # its set
        lacking = [[0, 0, 0] for _ in self._slots]
        for number, holder in {**holders, card: given}.items():
            if holder != SHARED:
                lacking[holder][self.left[number] - 1 - (number == card)] += 1
        undealt = len(NUMBERS) - len({*holders, card} - {JOKER})
        seats = [(n - (place == seat), tuple(lacking[place])) for place, n in enumerate(self._slots)]
        return _kept(undealt, tuple(sorted(seats)))


@lru_cache(maxsize=2**15)
def _kept(undealt: int, seats: tuple[Seat, ...]) -> int:
    """The orders of the rest of the deck in which nobody comes to hold a set; `undealt` numbers are all in there."""
    left = sum(slots for slots, _ in seats)
    terms: Terms = {0: 1}
    for seat in seats:
        joined: Terms = {}
        for key, ways in terms.items():
            for more, factor in _with_sets(undealt, *seat).items():
                joined[key + more] = joined.get(key + more, 0) + ways * factor
        terms = joined
    return sum(perm(undealt, key // _SETS) * factorial(left - key % _SETS) * ways for key, ways in terms.items())


@cache
def _with_sets(undealt: int, slots: int, lacking: tuple[int, ...]) -> Terms:
    """The ways to complete some sets of one seat, with a minus where their number is odd.

    Of those of undealt numbers, only by how many they are: `_kept` says which.
    """
    terms: Terms = Counter()
    for sets in range(min(undealt, slots // COPIES) + 1):
        for chosen in product(*(range(n + 1) for n in lacking)):
            cards = COPIES * sets + sum(lack * n for lack, n in enumerate(chosen, 1))
            if cards <= slots:
                ways = prod(map(comb, lacking, chosen)) * perm(slots, cards) // factorial(sets)
                terms[_SETS * sets + cards] += ways * (-1) ** (sets + sum(chosen))
    return terms
