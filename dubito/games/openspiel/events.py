"""What is observed of one of OpenSpiel's games: the start, and by each seat what it saw of a move."""

from dataclasses import dataclass

from dubito.game import GameEvent
from dubito.games.openspiel.sight import Entry


@dataclass(frozen=True, slots=True)
class DealEvent(GameEvent):
    """The game begins."""

    seats: int


@dataclass(frozen=True, slots=True)
class SeenEvent(GameEvent):
    """What one seat has observed since it last did."""

    entries: tuple[Entry, ...]
    only: int | None = None
