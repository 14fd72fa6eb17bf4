"""What one seat of draw and defuse has seen so far, act by act: all that a position is made of."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

from dubito.game import GameEvent
from dubito.games.defuse.cards import HELD
from dubito.games.defuse.events import DealEvent, DrawEvent, HideEvent, LookEvent, PlaceEvent, PlayEvent, TakeEvent
from dubito.games.defuse.state import NodeName

ActName = Literal["draw", "skip", "bottom", "shuffle", "see", "place"]


@dataclass(frozen=True, slots=True)
class Act:
    """One act as a seat saw it."""

    seat: int  # whose it was
    act: ActName
    card: str | None = None  # drawn: the bomb, or an own card; None: the other's, or nothing was drawn
    cards: tuple[str, ...] = ()  # what an own see card showed, the top first
    place: int | None = None  # where the seat itself put the bomb


@dataclass(frozen=True, slots=True)
class Position:
    """All that one seat has when one node is asked."""

    seat: int
    node: NodeName
    dealt: tuple[str, ...]  # the seat's first hand
    acts: tuple[Act, ...]  # of both seats


class Notebook:
    """Kept for one seat in one game, by its player or by somebody who watches."""

    def __init__(self, seat: int, rules: Any) -> None:
        self._seat = seat
        self._dealt: tuple[str, ...] = ()
        self._acts: list[Act] = []

    def observe(self, event: GameEvent, cards: Iterable[str]) -> None:
        """The seat observed this; `cards` is what it holds now."""
        acts = self._acts
        match event:
            case DealEvent():
                self._dealt = tuple(sorted(cards, key=HELD.index))
            case PlayEvent(seat, "skip" | "shuffle" | "see" as card):
                acts.append(Act(seat, card))
            case LookEvent(seen):
                acts[-1] = replace(acts[-1], cards=seen)
            case DrawEvent():
                act: ActName = "draw" if event.end == "top" else "bottom"
                acts.append(Act(event.seat, act, "bomb" if event.bomb else None))
            case TakeEvent(card):
                acts[-1] = replace(acts[-1], card=card)
            case PlaceEvent(seat):
                acts.append(Act(seat, "place"))
            case HideEvent(place):
                acts[-1] = replace(acts[-1], place=place)

    def answered(self, node: str, answer: object) -> None:
        """All that an answer does is observed."""

    def position(self, node: NodeName, view: object, cards: Iterable[str]) -> Position:
        """The question that the seat is asked now."""
        return Position(self._seat, node, self._dealt, tuple(self._acts))
