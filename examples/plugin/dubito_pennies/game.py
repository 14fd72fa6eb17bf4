"""Matching pennies: each of two seats chooses a side. If the sides are the same, seat 0 wins."""

from dataclasses import dataclass
from random import Random
from typing import Any

from dubito.errors import IllegalOutput
from dubito.files import NoRules
from dubito.game import Choice, Ending, Game, GameEvent, Node, Results

SIDES = ("heads", "tails")


@dataclass(frozen=True)
class Start(GameEvent):
    """The game begins. The sides stay hidden until the end."""


@dataclass(frozen=True)
class View:
    """What the seat to move sees."""

    node: str = "side"

    def legal(self) -> tuple[str, ...]:
        return SIDES

    def why_illegal(self, output: Any) -> str | None:
        return None if isinstance(output, str) and output in SIDES else "choose heads or tails"


class State:
    """A game between two moves."""

    start = (Start(),)

    def __init__(self) -> None:
        self.sides: list[str] = []
        self.seat = self.turns_played = 0
        self.over = False

    def view(self) -> View:
        return View()

    def cards(self, seat: int, streams: Any) -> None:
        return None

    def apply(self, output: Any, announce: int = 1) -> list[GameEvent]:
        if self.over or (why := View().why_illegal(output)):
            raise IllegalOutput("the game is over" if self.over else str(why))
        self.sides.append(output)
        self.seat = self.turns_played = len(self.sides)
        self.over = len(self.sides) == 2
        return []

    def ending(self) -> Ending:
        winner = int(self.sides[0] != self.sides[1])
        return Ending(
            False, (2,), [int(seat == winner) for seat in (0, 1)], [(int(side == "heads"),) for side in self.sides]
        )


class PenniesGame(Game[NoRules, State, GameEvent]):
    name = "pennies"
    summary = "Matching pennies: if both sides are the same, seat 0 wins"
    seats = (2, 2)
    lineup = "ordered_pairs"
    fallback = "Heads"
    nodes = (Node("side", "play", Choice(SIDES)),)
    results = Results(seat_counts=("heads",))
    base_path = "dubito.game.Player"

    def deal(self, rules: NoRules, seats: int, chance: Random) -> State:
        return State()

    def deal_to_json(self, state: State) -> dict[str, Any]:
        return {}


GAME = PenniesGame()
