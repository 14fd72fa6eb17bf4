"""Cups: dice under cups are rerolled in secret until a seat calls or the turns run out. The highest sum wins."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field

from dubito.errors import IllegalOutput
from dubito.game import Choice, Ending, Game, GameEvent, Measure, Node, Player, Results, View

if TYPE_CHECKING:
    from games.cups.words import CupsWords

ACTS = ("roll", "stay", "call")


@dataclass(frozen=True, slots=True)
class DealEvent(GameEvent):
    """Each seat has two dice under its cup."""

    seats: int


@dataclass(frozen=True, slots=True)
class TurnEvent(GameEvent):
    """A seat may have rerolled its dice; the others do not know."""

    seat: int


@dataclass(frozen=True, slots=True)
class RolledEvent(GameEvent):
    """A seat's new dice, which only it observes."""

    dice: tuple[int, ...]
    only: int | None


@dataclass(frozen=True, slots=True)
class CallEvent(GameEvent):
    """A seat has called; all dice are revealed, by seat."""

    seat: int
    dice: tuple[tuple[int, ...], ...]


class CupsView(View):
    """What the seat to move sees besides its dice."""

    node = "act"

    def __init__(self, state: "State") -> None:
        self.turns, self.seats = state.turns_played, len(state.dice)
        self.order = list(range(self.seats))

    def legal(self) -> Sequence[str]:
        """A call ends the game, and is legal once every seat has moved."""
        return ACTS if self.turns >= self.seats else ACTS[:2]


class State:
    """A game between two turns."""

    def __init__(self, seats: int, max_turns: int, chance: Random) -> None:
        self.dice = [self._roll(chance) for _ in range(seats)]
        self.dealt = [*self.dice]
        self.rolls = [0] * seats
        self.start = [DealEvent(seats)]
        self.max_turns, self.turns_played = max_turns, 0
        self.caller: int | None = None
        self._chance = chance

    def _roll(self, chance: Random) -> tuple[int, ...]:
        return tuple(chance.choices(range(1, 7), k=2))

    @property
    def seat(self) -> int:
        return self.turns_played % len(self.dice)

    @property
    def over(self) -> bool:
        return self.caller is not None or self.turns_played >= self.max_turns

    def view(self) -> CupsView:
        return CupsView(self)

    def cards(self, seat: int, streams: object) -> "Dice":
        return Dice(self, seat)

    def apply(self, output: Any, announce: bool = True) -> list[GameEvent]:
        if self.over:
            raise IllegalOutput("the game is over")
        if why := self.view().why_illegal(output):
            raise IllegalOutput(why)
        seat = self.seat
        self.turns_played += 1
        if output == "call":
            self.caller = seat
            return [CallEvent(seat, tuple(self.dice))]
        if output == "stay":
            return [TurnEvent(seat)]
        self.dice[seat] = self._roll(self._chance)
        self.rolls[seat] += 1
        return [TurnEvent(seat), RolledEvent(self.dice[seat], seat)]

    def ending(self) -> Ending:
        sums = [sum(dice) for dice in self.dice]
        called = self.caller is not None
        marks = [int(called and each == max(sums)) for each in sums]
        return Ending(not called, (self.turns_played,), marks, [(rolls,) for rolls in self.rolls])


class Dice:
    """A seat's current dice."""

    def __init__(self, state: State, seat: int) -> None:
        self._state, self._seat = state, seat

    @property
    def dice(self) -> tuple[int, ...]:
        return self._state.dice[self._seat]


class CupsBot(Player):
    """The base class of bots."""

    def act(self, view: CupsView) -> str:
        raise NotImplementedError

    def play(self, view: CupsView) -> str:
        return self.act(view)


class Rules(BaseModel):
    """When a game ends if nobody calls."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    max_turns: int = Field(default=12, ge=1)


class CupsGame(Game[Rules, State, GameEvent]):
    name = "cups"
    summary = "Cups: the highest dice under a cup"
    seats = (2, 3)
    base = CupsBot
    fallback = "Timid"
    nodes = (Node("act", "act", Choice(ACTS)),)
    results = Results(
        buckets=("wins", "losses", "open"),
        endings=("win", "loss", "nobody called"),
        bucket=lambda mark, capped: 2 if capped else 1 - mark,
        measures=(Measure("won", "won", "Wins", (1, 0, 0)),),
        headline=("won",),
        equal_share=lambda seats: {},
        seat_counts=("rolls",),
        unfinished="open",
    )

    def rules(self, **settings: Any) -> Rules:
        return Rules(**settings)

    def deal(self, rules: Rules, seats: int, chance: Random) -> State:
        return State(seats, rules.max_turns, chance)

    def deal_to_json(self, state: State) -> dict[str, Any]:
        return {"dice": [list(dice) for dice in state.dealt]}

    @property
    def words(self) -> "CupsWords":
        from games.cups.words import CupsWords

        return CupsWords(self)


GAME = CupsGame()
