"""A turn consists of four moves: a hint, a stake of cards, a number, and whether the seat is sure of it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from pydantic import BaseModel, ConfigDict

from dubito.errors import IllegalOutput
from dubito.game import Bool, Cards, Choice, Ending, GameEvent, Node, Whole
from dubito.game.events import ANNOUNCED
from dubito.game.streams import SeatStreams

HINTS: Final = ("high", "low", "none")
CARDS: Final = (1, 2, 3, 5)
NODES: Final = (
    Node("hint", "hint", Choice(HINTS)),
    Node("stake", "stake", Cards(CARDS)),
    Node("number", "number", Whole()),
    Node("sure", "sure", Bool()),
)
MOST: Final = 9  # the highest number


class Rules(BaseModel):
    """The rules, which set the length of a game."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    turns: int = 4


@dataclass(frozen=True, slots=True)
class Begun(GameEvent):
    """The cards were dealt."""


@dataclass(frozen=True, slots=True)
class HandDealt(GameEvent):
    """The cards of a seat."""

    silent = True

    cards: tuple[int, ...]
    only: int | None = None


@dataclass(frozen=True, slots=True)
class Moved(GameEvent):
    """A public move. For cards, only their number is public."""

    seat: int
    node: str
    seen: Any


@dataclass(frozen=True, slots=True)
class Seen:
    """What the seat to move sees."""

    node: str
    held: tuple[int, ...]
    said_none: bool

    @property
    def legal(self) -> Sequence[Any]:
        hints = HINTS[:2] if self.said_none else HINTS
        return {"hint": hints, "stake": self.held, "number": range(1, MOST + 1), "sure": (True, False)}[self.node]

    def why_illegal(self, output: Any) -> str | None:
        """Reject cards that are not held, too few cards, numbers out of range, and used hints."""
        if self.node == "stake":
            if not output:
                return "no card is staked."
            missing = Counter(output) - Counter(self.held)
            return f"the card {next(iter(missing))} is not in your hand that often." if missing else None
        return None if output in self.legal else f"{output!r} is not legal now."


class State:
    """The state of one game."""

    def __init__(self, rules: Rules, seats: int, chance: Random) -> None:
        self.hands = [tuple(sorted(chance.choices(CARDS, k=4))) for _ in range(seats)]
        self.moves: list[Any] = []
        self._turns = rules.turns
        self._said_none = set[int]()

    @property
    def turns_played(self) -> int:
        return len(self.moves) // len(NODES)

    @property
    def seat(self) -> int:
        return self.turns_played % len(self.hands)

    @property
    def over(self) -> bool:
        return self.turns_played == self._turns

    @property
    def start(self) -> list[GameEvent]:
        return [Begun(), *(HandDealt(hand, only=seat) for seat, hand in enumerate(self.hands))]

    def view(self) -> Seen:
        return Seen(NODES[len(self.moves) % len(NODES)].name, self.hands[self.seat], self.seat in self._said_none)

    def cards(self, seat: int, streams: SeatStreams) -> tuple[int, ...]:
        return self.hands[seat]

    def apply(self, output: Any, announce: int = ANNOUNCED) -> Sequence[GameEvent]:
        view = self.view()
        if why := view.why_illegal(output):
            raise IllegalOutput(why)
        seat = self.seat
        self.moves.append(output)
        if output == "none":
            self._said_none.add(seat)
        return [Moved(seat, view.node, len(output) if view.node == "stake" else output)]

    def copy_of(self, output: Any) -> Any:
        return list(output) if isinstance(output, list) else output

    def ending(self) -> Ending:
        """Let the higher stake win; with equal stakes, seat 0 wins."""
        per_seat = len(self.hands) * len(NODES)
        staked = [sum(map(len, self.moves[seat * len(NODES) + 1 :: per_seat])) for seat in range(len(self.hands))]
        winner = staked.index(max(staked))
        marks = [int(seat == winner) for seat in range(len(staked))]
        return Ending(False, (self.turns_played,), marks, [(each,) for each in staked])
