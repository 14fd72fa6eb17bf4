"""Tricks: three seats, 24 cards, follow suit if you can; the seat with the most tricks wins."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from dubito.errors import IllegalOutput
from dubito.files import CheckedModel
from dubito.game import Choice, Ending, Facts, Game, GameEvent, Measure, Node, Player, Results, TakeEvent, View

if TYPE_CHECKING:
    from games.tricks.words import TricksWords

RANKS = ("9", "10", "jack", "queen", "king", "ace")  # from the lowest
SUITS = ("clubs", "diamonds", "hearts", "spades")
CARDS = tuple(f"{rank} of {suit}" for suit in SUITS for rank in RANKS)


class TricksRules(CheckedModel):
    trump: Literal["clubs", "diamonds", "hearts", "spades", "none"] = Field(
        default="spades", description="The suit that beats all others, or none."
    )


@dataclass(frozen=True, slots=True)
class DealEvent(GameEvent):
    """Each seat is dealt eight cards. Seat 0 leads."""

    trump: str


@dataclass(frozen=True, slots=True)
class HandEvent(GameEvent):
    """A seat's cards. Bots do not need this event, because they hold the cards."""

    silent = True

    cards: tuple[str, ...]
    only: int | None


@dataclass(frozen=True, slots=True)
class PlayEvent(GameEvent):
    seat: int
    card: str


@dataclass(frozen=True, slots=True)
class TrickEvent(TakeEvent):
    """A seat wins the trick, and leads the next one."""

    into_hand: bool = False


def suit_of(card: str) -> str:
    return card.rpartition(" ")[2]


def legal_cards(hand: Sequence[str], trick: Sequence[str]) -> list[str]:
    """Return the cards of the suit that was led or, if there are none, all cards of the hand."""
    return [card for card in hand if trick and suit_of(card) == suit_of(trick[0])] or [*hand]


def winning_place(trick: Sequence[str], trump: str) -> int:
    """Return the place of the card that wins the trick."""

    def strength(card: str) -> tuple[bool, bool, int]:
        return suit_of(card) == trump, suit_of(card) == suit_of(trick[0]), CARDS.index(card)

    return trick.index(max(trick, key=strength))


class Hand:
    """A live view of a hand, for bots."""

    def __init__(self, read: Callable[[], list[str]]) -> None:
        self._read = read

    def __iter__(self) -> Iterator[str]:
        return iter([*self._read()])

    def __len__(self) -> int:
        return len(self._read())


class TricksView(View):
    """What the seat to move sees, apart from its hand."""

    node = "play"

    def __init__(self, state: "TricksState") -> None:
        self.trump, self.trick, self.taken = state.trump, tuple(state.trick), tuple(state.taken)
        self.played = tuple(state.played)  # all cards, in order
        self._legal = tuple(legal_cards(state.hands[state.seat], state.trick))

    def legal(self) -> tuple[str, ...]:
        return self._legal


class TricksState:
    """A game between two plays."""

    def __init__(self, trump: str, deck: Sequence[str]) -> None:
        self.trump, self.seat, self.turns_played = trump, 0, 0
        self.hands = [sorted(deck[seat::3], key=CARDS.index) for seat in range(3)]
        self.trick: list[str] = []
        self.played: list[str] = []
        self.taken = [0, 0, 0]  # tricks won by each seat
        hands = [HandEvent(tuple(hand), only=seat) for seat, hand in enumerate(self.hands)]
        self.start = [DealEvent(trump), *hands]

    @property
    def over(self) -> bool:
        return self.turns_played == len(CARDS)

    def view(self) -> TricksView:
        return TricksView(self)

    def cards(self, seat: int, streams: object = None) -> Hand:
        return Hand(lambda: self.hands[seat])

    def apply(self, output: Any, announce: int = 1) -> list[GameEvent]:
        if why := "the game is over" if self.over else self.view().why_illegal(output):
            raise IllegalOutput(why)
        events: list[GameEvent] = [PlayEvent(self.seat, output)]
        self.hands[self.seat].remove(output)
        self.trick.append(output)
        self.played.append(output)
        self.turns_played += 1
        self.seat = (self.seat + 1) % 3
        if len(self.trick) == 3:
            self.seat = (self.seat + winning_place(self.trick, self.trump)) % 3
            self.taken[self.seat] += 1
            events.append(TrickEvent(self.seat, tuple(self.trick)))
            self.trick = []
        return events

    def ending(self) -> Ending:
        """Return the results. A mark is 2 for the most tricks, 1 if two seats share them, and 0 otherwise."""
        most = max(self.taken)
        marks = [0 if taken < most else 2 // self.taken.count(most) for taken in self.taken]
        return Ending(False, (self.turns_played,), marks, [(taken,) for taken in self.taken])


class TricksBot(Player[Hand]):
    """The base class of bots. `self.cards` is the bot's hand."""

    def play_card(self, view: TricksView) -> str:
        """Return one of `view.legal()`."""
        raise NotImplementedError

    def play(self, view: TricksView) -> str:
        return self.play_card(view)


class TricksGame(Game[TricksRules, TricksState, GameEvent]):
    name = "tricks"
    summary = "Tricks: three seats, 24 cards, follow suit if you can"
    seats = (3, 3)
    base = TricksBot
    fallback = "Lowest"
    events = (DealEvent, HandEvent, PlayEvent, TrickEvent)
    nodes = (Node("play", "play_card", Choice(CARDS)),)
    results = Results(
        buckets=("wins", "shared", "losses"),
        endings=("win", "shared win", "loss"),
        bucket=lambda mark, capped: 2 - mark,
        measures=(Measure("won", "won", "Wins", (2, 1, 0), scale=2),),
        seat_counts=("tricks",),
        averaged=("tricks",),
        meaning="A shared win is worth half a win.",
    )

    def rules(self, **settings: Any) -> TricksRules:
        return TricksRules(**settings)

    def deal(self, rules: TricksRules, seats: int, chance: Random) -> TricksState:
        return TricksState(rules.trump, chance.sample(CARDS, len(CARDS)))

    @property
    def words(self) -> "TricksWords":
        from games.tricks.words import TricksWords

        return TricksWords(self)

    @property
    def facts(self) -> Facts:
        from games.tricks.facts import TricksFacts

        return TricksFacts()


GAME = TricksGame()
