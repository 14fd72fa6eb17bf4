"""Cards and hands of BS: the engine's truth of a hand, and the read-only view that a bot holds as `self.cards`."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from dubito.errors import IllegalOutput

NUMBERS: Final = 13
COPIES: Final = 4


class Card(NamedTuple):
    """One of the 52 cards: its number, 0-12, and which of the four copies of that number it is, 0-3."""

    number: int
    copy: int


DECK: Final = tuple(Card(number, copy) for number in range(NUMBERS) for copy in range(COPIES))


def place_in_deck(card: object) -> int | None:
    """Where in `DECK` this card is, 0-51; None if it is no card. Runs no code of whatever it is instead."""
    if type(card) is not Card or len(card) != 2:  # a tuple of another length can be made to look like one
        return None
    number, copy = card
    if type(number) is int and type(copy) is int and 0 <= number < NUMBERS and 0 <= copy < COPIES:
        return COPIES * number + copy
    return None


class Hand:
    """Cards in the order drawn, and the same as bits: a card is the bit of its place in the deck."""

    __slots__ = ("bits", "cards")

    def __init__(self, cards: Sequence[Card] = ()) -> None:
        self.cards = list(cards)
        self.bits = 0
        for number, copy in cards:
            self.bits |= 1 << COPIES * number + copy

    def count(self, number: int) -> int:
        """How many cards of that number it holds."""
        return (self.bits >> COPIES * number & 15).bit_count()

    def of(self, number: int) -> list[Card]:
        """The cards of that number, in the order drawn."""
        if not self.bits >> COPIES * number & 15:
            return []
        return [card for card in self.cards if card[0] == number]

    def take(self, other: "Hand") -> None:
        """Append all cards of another hand, which is empty then."""
        self.cards += other.cards
        self.bits |= other.bits
        other.cards.clear()
        other.bits = 0

    def pop(self, place: int) -> "Hand":
        """Take out the card at this place."""
        card = Hand([self.cards.pop(place)])
        self.bits ^= card.bits
        return card

    def part(self, output: object) -> "Hand":
        """The cards that a play puts down, each once, in its order; still in this hand as well.

        Raises IllegalOutput if it is no list of cards of this hand, or empty.
        """
        if type(output) is not list and type(output) is not tuple:
            raise IllegalOutput(f"a play is a list of cards, not {_kind(output)}")
        if not output:
            raise IllegalOutput("nothing was played; play at least one card")
        part = Hand()
        for card in output:
            place = place_in_deck(card)
            if place is None:
                raise IllegalOutput(f"a play is a list of cards of the hand, and {_kind(card)} in it is no card")
            bit = 1 << place
            if not self.bits & bit:
                number, copy = divmod(place, COPIES)
                raise IllegalOutput(
                    f"the card of number {number}, copy {copy}, is not in the hand; play cards that are"
                )
            if not part.bits & bit:
                part.bits |= bit
                part.cards.append(DECK[place])
        return part

    def drop(self, part: "Hand") -> None:
        """Put down cards that are held."""
        for card in part.cards:
            self.cards.remove(card)
        self.bits ^= part.bits


class HandView:
    """What a bot may ask of its own hand, at any time: the cards it holds now, in the order drawn."""

    __slots__ = ("_hand",)

    def __init__(self, hand: Hand) -> None:
        self._hand = hand

    def __len__(self) -> int:
        return len(self._hand.cards)

    def __iter__(self) -> Iterator[Card]:
        return iter(self._hand.cards)

    def __getitem__(self, place: int) -> Card:
        return self._hand.cards[place]

    def __repr__(self) -> str:
        return f"HandView({[card.number for card in self._hand.cards]})"

    def count(self, number: int) -> int:
        """How many cards of that number are held."""
        return self._hand.count(number)

    def of(self, number: int) -> list[Card]:
        """The cards of that number, in the order drawn."""
        return self._hand.of(number)

    def first(self, n: int) -> list[Card]:
        """The first cards of the hand: n, or all if there are fewer."""
        return self._hand.cards[:n]


def _kind(value: object) -> str:
    """The value's type in words: its own text could be anything."""
    return "None" if value is None else f"a value of type {type(value).__name__}"
