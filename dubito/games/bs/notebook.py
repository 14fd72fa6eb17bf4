"""What one seat of BS has seen, played and answered so far, turn by turn: all that a position is made of."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Final

from pydantic import BaseModel, Field

from dubito.game import GameEvent
from dubito.games.bs.cards import NUMBERS, Card
from dubito.games.bs.events import DealEvent, PlayEvent, TurnEvent
from dubito.games.bs.rules_config import BSRules
from dubito.games.bs.table import SEATS, NodeName, Table

Number = Annotated[int, Field(ge=0, lt=NUMBERS)]
STRICT: Final[dict[str, object]] = {"extra": "forbid", "strict": True}


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn as a seat saw it; the place of a turn says whose it is, and for which number."""

    __pydantic_config__: ClassVar[dict[str, object]] = STRICT

    n_cards: Annotated[int, Field(ge=1)]  # put down
    cards: tuple[Number, ...] = ()  # the same of an own play, ascending; empty: another seat's
    answer: bool | None = None  # the own one to another seat's play; None: not yet, or somebody answered in its place
    pile: int | None = None  # its size after the turn; None: the turn is not over
    hands: tuple[int, ...] = ()  # their sizes after the turn
    taken: tuple[Number, ...] = ()  # what the seat took up with the pile, in the order in which it was put down
    lost: Number | None = None  # the card drawn from the seat's hand

    @property
    def is_over(self) -> bool:
        """Whether accusations are settled."""
        return self.pile is not None


@dataclass(frozen=True, slots=True)
class Position:
    """All that one seat has when one node is asked."""

    rules: BSRules
    seat: int
    node: NodeName
    dealt: tuple[int, ...]  # the seat's first hand, ascending
    turns: tuple[Turn, ...]  # the last one is not over at `bs`

    @property
    def number(self) -> int:
        """The number asked for on the turn that is not over."""
        return (len(self.turns) - (self.node == "bs")) % NUMBERS

    @property
    def mover(self) -> int:
        """Whose turn it is."""
        return (len(self.turns) - (self.node == "bs")) % len(SEATS)


class Notebook:
    """Kept for one seat in one game, by its player or by somebody who watches.

    What was played, taken and lost it reads off the hand, so that it does not matter who played for the seat.
    """

    def __init__(self, seat: int, rules: BSRules | BaseModel) -> None:
        """For the seat of a game by these rules."""
        self._seat = seat
        self._rules = rules if isinstance(rules, BSRules) else BSRules(**rules.model_dump())
        self._dealt: tuple[int, ...] = ()
        self._turns: list[Turn] = []
        self._held: list[Card] = []  # when something was last observed

    def observe(self, event: GameEvent, cards: Iterable[Card]) -> None:
        """The seat observed this; `cards` is what it holds now, in the order drawn."""
        before, self._held = self._held, list(cards)
        match event:
            case DealEvent():
                self._dealt = _numbers(self._held)
            case PlayEvent():
                gone = set(before) - set(self._held)
                self._turns.append(Turn(event.n_cards, _numbers(gone) if event.seat == self._seat else ()))
            case TurnEvent():
                grown = len(self._held) - len(before)
                lost = next(iter(set(before) - set(self._held)), None)
                self._turns[-1] = replace(
                    self._turns[-1],
                    pile=event.pile,
                    hands=event.hands,
                    taken=tuple(card.number for card in self._held[-grown:]) if grown > 0 else (),
                    lost=lost.number if lost else None,
                )

    def answered(self, node: str, answer: object) -> None:
        """The seat has answered this question."""
        if node == "bs":
            self._turns[-1] = replace(self._turns[-1], answer=bool(answer))

    def position(self, node: NodeName, view: Table, cards: Iterable[Card]) -> Position:
        """The question that the seat is asked now."""
        return Position(self._rules, self._seat, node, self._dealt, tuple(self._turns))


def _numbers(cards: Iterable[Card]) -> tuple[int, ...]:
    return tuple(sorted(card.number for card in cards))
