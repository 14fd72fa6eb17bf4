"""Cards and hands of BS, and what its players observe.

A hand is the engine's truth, a `HandView` what its bot holds as `self.cards`. Nobody is told who accused or what was
played: players infer it from the sizes.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from dubito.errors import IllegalOutput
from dubito.game import GameEvent

NUMBERS: Final = 13
COPIES: Final = 4


class Card(NamedTuple):
    """One of the 52 cards: its number, 0-12, and which of the four copies of that number it is, 0-3."""

    number: int
    copy: int


DECK: Final = tuple(Card(number, copy) for number in range(NUMBERS) for copy in range(COPIES))
_BITS: Final = {card: 1 << place for place, card in enumerate(DECK)}
_BITS_BY_ID: Final = {id(card): bit for card, bit in _BITS.items()}  # for what a bot gives back: none of its code runs


def deck_card(card: object) -> Card:
    """The deck's own card that this is, or equals; raises IllegalOutput if it is no card, whose code never runs."""
    if type(card) is Card and len(card) == 2:  # a tuple of another length can be made to look like one
        number, copy = card
        if type(number) is int and type(copy) is int and 0 <= number < NUMBERS and 0 <= copy < COPIES:
            return DECK[COPIES * number + copy]
        raise IllegalOutput(
            f"there is no such card in the deck; numbers are 0 to {NUMBERS - 1}, copies 0 to {COPIES - 1}"
        )
    raise IllegalOutput(f"a play is a list of cards of the hand, and {kind_of(card)} in it is no card")


class Hand:
    """Cards of the deck in the order drawn, and the same as bits: each card is the bit of its place in the deck."""

    __slots__ = ("bits", "cards")

    def __init__(self, cards: Iterable[Card] = ()) -> None:
        self.cards = list(cards)
        self.bits = sum([_BITS[card] for card in self.cards])

    def chosen(self, output: object) -> tuple[list[Card], int]:
        """The cards that a play puts down, each once, in its order, and the same as bits.

        Raises IllegalOutput if it is no list of cards of this hand, or empty.
        """
        if type(output) is not list and type(output) is not tuple:
            raise IllegalOutput(f"a play is a list of cards, not {kind_of(output)}")
        if not output:
            raise IllegalOutput("nothing was played; play at least one card")
        cards, bits = [], 0
        for card in output:
            bit = _BITS_BY_ID.get(id(card))
            if bit is None:
                card = deck_card(card)
                bit = _BITS[card]
            if not self.bits & bit:
                raise IllegalOutput(f"number {card.number}, copy {card.copy}, is not in the hand; play cards that are")
            if not bits & bit:
                cards.append(card)
                bits |= bit
        return cards, bits

    def add(self, cards: Sequence[Card], bits: int) -> None:
        self.cards += cards
        self.bits |= bits

    def drop(self, cards: Sequence[Card], bits: int) -> None:
        for card in cards:
            self.cards.remove(card)
        self.bits ^= bits

    def take(self, pile: "Hand") -> None:
        self.add(pile.cards, pile.bits)
        pile.cards.clear()
        pile.bits = 0

    def pop(self, place: int) -> tuple[list[Card], int]:
        """Put down the card at this place; returns it, alone in a list, and the same as bits."""
        card = self.cards.pop(place)
        bit = _BITS[card]
        self.bits ^= bit
        return [card], bit


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
        return (self._hand.bits >> COPIES * number & 15).bit_count()

    def of(self, number: int) -> list[Card]:
        if not self._hand.bits >> COPIES * number & 15:
            return []
        return [card for card in self._hand.cards if card[0] == number]

    def first(self, n: int) -> list[Card]:
        return self._hand.cards[:n]


def kind_of(value: object) -> str:
    return "None" if value is None else f"a value of type {type(value).__name__}"


@dataclass(frozen=True, slots=True)
class DealEvent(GameEvent):
    """The hands are dealt; seat 0 begins, with number 0."""

    hands: tuple[int, ...]  # sizes, by seat


@dataclass(frozen=True, slots=True)
class PlayEvent(GameEvent):
    """A seat has put cards on the pile, face down, said to be of this number."""

    seat: int
    number: int
    n_cards: int


@dataclass(frozen=True, slots=True)
class TurnEvent(GameEvent):
    """A turn is over, an accusation resolved, if there was one."""

    pile: int
    hands: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RoundEvent(GameEvent):
    """A round is over, four turns long unless somebody won."""

    round: int  # from 1
    number: int  # that would be asked next
    pile: int
    hands: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class WinEvent(GameEvent):
    """A seat has no cards left, and the game is over."""

    seat: int
