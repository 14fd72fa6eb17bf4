"""BS's cards, hands and events.

The engine uses `Hand`; bots get a `HandView` of their hand as `self.cards`. The events that bots observe do not show
who accused or what was played: players infer it from the sizes of hands and pile. The silent events of a log say it,
and contain the cards that each seat sees.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from dubito.errors import IllegalOutput
from dubito.game import GameEvent

NUMBERS: Final = 13
COPIES: Final = 4


class Card(NamedTuple):
    """One of the 52 cards: its number, 0-12, and its copy, 0-3."""

    number: int
    copy: int


DECK: Final = tuple(Card(number, copy) for number in range(NUMBERS) for copy in range(COPIES))
_BITS: Final = {card: 1 << place for place, card in enumerate(DECK)}
# Recognises cards in a bot's output without running its code.
_BITS_BY_ID: Final = {id(card): bit for card, bit in _BITS.items()}


def deck_card(card: object) -> Card:
    """Return the card from the deck that equals this value. Raises IllegalOutput without running the value's code."""
    if type(card) is Card and len(card) == 2:  # a `Card` can be built with another length
        number, copy = card
        if type(number) is int and type(copy) is int and 0 <= number < NUMBERS and 0 <= copy < COPIES:
            return DECK[COPIES * number + copy]
        raise IllegalOutput(f"the deck has no such card; numbers are 0 to {NUMBERS - 1}, copies 0 to {COPIES - 1}")
    raise IllegalOutput(f"a play must be a list of cards from the hand, but it contains {type_in_words(card)}")


class Hand:
    """Cards in the order drawn, and as a bit set indexed by position in the deck."""

    __slots__ = ("bits", "cards")

    def __init__(self, cards: Iterable[Card] = ()) -> None:
        self.cards = list(cards)
        self.bits = sum([_BITS[card] for card in self.cards])

    def chosen(self, output: object) -> tuple[list[Card], int]:
        """Return the cards of a play, in order and without duplicates, both as a list and as bits.

        Raises IllegalOutput unless the play is a non-empty list of cards from this hand.
        """
        if type(output) is not list and type(output) is not tuple:
            raise IllegalOutput(f"a play must be a list of cards, not {type_in_words(output)}")
        if not output:
            raise IllegalOutput("nothing was played; play at least one card")
        cards, bits = [], 0
        for card in output:
            bit = _BITS_BY_ID.get(id(card))
            if bit is None:
                card = deck_card(card)
                bit = _BITS[card]
            if not self.bits & bit:
                raise IllegalOutput(f"number {card.number}, copy {card.copy}, is not in the hand; play cards from it")
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
        """Remove the card at this index and return it as a list and as bits."""
        card = self.cards.pop(place)
        bit = _BITS[card]
        self.bits ^= bit
        return [card], bit


class HandView:
    """A bot's live view of its hand, in the order drawn."""

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


def type_in_words(value: object) -> str:
    return "None" if value is None else f"a value of type {type(value).__name__}"


@dataclass(frozen=True, slots=True)
class DealEvent(GameEvent):
    """The hands were dealt. Seat 0 begins with the number 0."""

    hands: tuple[int, ...]  # sizes, by seat


@dataclass(frozen=True, slots=True)
class HandEvent(GameEvent):
    """The hand that a seat was dealt."""

    silent = True

    cards: tuple[Card, ...]
    only: int | None = None


@dataclass(frozen=True, slots=True)
class PlayEvent(GameEvent):
    """A seat played cards face down, claimed to be of this number."""

    seat: int
    number: int
    n_cards: int


@dataclass(frozen=True, slots=True)
class CardsEvent(GameEvent):
    """The cards of the last play, which only its player knows."""

    silent = True

    cards: tuple[Card, ...]
    lie: bool
    only: int | None = None


@dataclass(frozen=True, slots=True)
class AcceptEvent(GameEvent):
    """No seat accused."""

    silent = True

    mover: int


@dataclass(frozen=True, slots=True)
class AccuseEvent(GameEvent):
    """The accusation that counted. If the play was a lie, its player picks up the pile, otherwise the accuser."""

    silent = True

    seat: int  # the accuser
    mover: int
    lie: bool
    pile: int  # cards that are picked up

    @property
    def taker(self) -> int:
        return self.mover if self.lie else self.seat


@dataclass(frozen=True, slots=True)
class TakeEvent(GameEvent):
    """The pile that a seat picked up, from the bottom."""

    silent = True

    cards: tuple[Card, ...]
    only: int | None = None


@dataclass(frozen=True, slots=True)
class LoseEvent(GameEvent):
    """The card that a right accuser lost to the new pile."""

    silent = True

    card: Card
    only: int | None = None


@dataclass(frozen=True, slots=True)
class TurnEvent(GameEvent):
    """A turn ended, after any accusation was resolved."""

    pile: int
    hands: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RoundEvent(GameEvent):
    """A round ended, after four turns or a win."""

    round: int  # counted from 1
    number: int  # the number that the next turn asks for
    pile: int
    hands: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class WinEvent(GameEvent):
    """A seat ran out of cards, and the game is over."""

    seat: int


EVENTS: Final = (
    DealEvent,
    HandEvent,
    PlayEvent,
    CardsEvent,
    AcceptEvent,
    AccuseEvent,
    TakeEvent,
    LoseEvent,
    TurnEvent,
    RoundEvent,
    WinEvent,
)
