"""Stacks: lay a card face down, and draw another unseen. The highest stack wins after three rounds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

from dubito.errors import IllegalOutput
from dubito.game import Cards, Ending, Facts, Game, GameEvent, HousePolicy, Measure, Node, Player, Results

if TYPE_CHECKING:
    from games.stacks.words import StacksWords

ROUNDS = 3


@dataclass(frozen=True, slots=True)
class DealEvent(GameEvent):
    """Each seat holds three cards."""

    seats: int


@dataclass(frozen=True, slots=True)
class HandEvent(GameEvent):
    """The cards that a seat was dealt."""

    silent = True

    cards: tuple[int, ...]
    only: int | None


@dataclass(frozen=True, slots=True)
class OwnCardEvent(GameEvent):
    """The card that a seat laid, which only it knows."""

    silent = True

    card: int
    only: int | None


@dataclass(frozen=True, slots=True)
class LaidEvent(GameEvent):
    """A seat laid a card face down."""

    seat: int


@dataclass(frozen=True, slots=True)
class DrawnEvent(GameEvent):
    """The card that a seat drew, which only it observes."""

    card: int
    only: int | None


class Hand:
    """A seat's current cards."""

    def __init__(self, look: Callable[[], list[int]]) -> None:
        self._look = look

    @property
    def held(self) -> tuple[int, ...]:
        return tuple(self._look())


class View:
    """What the seat to move sees besides its hand."""

    node = "lay"

    def __init__(self, state: "State") -> None:
        self._state = state
        self.heights = tuple(map(len, state.stacks))

    def why_illegal(self, output: object) -> str | None:
        if type(output) is not list or len(output) != 1 or type(output[0]) is not int:
            return "lay a list of one card"
        return None if output[0] in self._state.hands[self._state.seat] else "that card is not in the hand"


class State:
    """A game between two turns."""

    def __init__(self, deck: Sequence[int], seats: int) -> None:
        self.deck = list(deck)
        self.hands = [[self.deck.pop() for _ in range(3)] for _ in range(seats)]
        self.stacks: list[list[int]] = [[] for _ in range(seats)]
        hands = [HandEvent(tuple(hand), seat) for seat, hand in enumerate(self.hands)]
        self.start, self.dealt = [DealEvent(seats), *hands], tuple(deck)
        self.turns_played = 0

    @property
    def seat(self) -> int:
        return self.turns_played % len(self.hands)

    @property
    def over(self) -> bool:
        return self.turns_played == ROUNDS * len(self.hands)

    def view(self) -> View:
        return View(self)

    def cards(self, seat: int, streams: object) -> Hand:
        return Hand(lambda: self.hands[seat])

    def apply(self, output: Any, announce: bool = True) -> list[GameEvent]:
        if self.over:
            raise IllegalOutput("the game is over")
        if why := self.view().why_illegal(output):
            raise IllegalOutput(why)
        seat, drawn = self.seat, self.deck.pop()
        self.hands[seat].remove(output[0])
        self.stacks[seat].append(output[0])
        self.hands[seat].append(drawn)
        self.turns_played += 1
        return [LaidEvent(seat), OwnCardEvent(output[0], seat), DrawnEvent(drawn, seat)] if announce else []

    def copy_of(self, output: list[int]) -> list[int]:
        return list(output)

    def ending(self) -> Ending:
        heights = [sum(stack) for stack in self.stacks]
        marks = [int(height == max(heights)) for height in heights]
        return Ending(False, (self.turns_played,), marks, [(height,) for height in heights])


class StacksBot(Player):
    """The base class of bots."""

    def lay(self, view: View) -> list[int]:
        raise NotImplementedError

    def play(self, view: View) -> list[int]:
        return self.lay(view)


class Rules(BaseModel):
    """This game has no variants."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class StacksGame(Game[Rules, State, GameEvent]):
    name = "stacks"
    summary = "Stacks: the highest of the stacks that nobody sees"
    seats = (2, 3)
    base = StacksBot
    fallback = "Lowest"
    events = (DealEvent, HandEvent, LaidEvent, OwnCardEvent, DrawnEvent)
    nodes = (Node("lay", "lay", Cards((1, 2, 3, 4, 5, 6))),)
    results = Results(
        buckets=("wins", "losses"),
        endings=("win", "loss"),
        bucket=lambda mark, capped: 1 - mark,
        measures=(Measure("won", "won", "Wins", (1, 0)),),
        headline=("won",),
        equal_share=lambda seats: {"won": 1 / seats},
        seat_counts=("height",),
    )

    def rules(self, **settings: Any) -> Rules:
        return Rules(**settings)

    def deal(self, rules: Rules, seats: int, chance: Random) -> State:
        deck = [1, 2, 3, 4, 5, 6] * 4
        chance.shuffle(deck)
        return State(deck, seats)

    def deal_to_json(self, state: State) -> dict[str, Any]:
        return {"deck": list(state.dealt)}

    @property
    def words(self) -> "StacksWords":
        from games.stacks.words import StacksWords

        return StacksWords(self)

    @property
    def facts(self) -> Facts:
        from games.stacks.facts import StacksFacts

        return StacksFacts()

    @property
    def fakes(self) -> Mapping[str, HousePolicy]:
        from games.stacks.fake_models import MODELS

        return MODELS


GAME = StacksGame()
