"""The events of draw and defuse. If `only` is set, no other seat sees the event."""

from dataclasses import dataclass
from typing import Final, Literal

from dubito.game.events import NOBODY, GameEvent


@dataclass(frozen=True, slots=True)
class DealEvent(GameEvent):
    """The hands were dealt and the bomb is in the pile; seat 0 begins."""

    hands: tuple[int, ...]  # sizes, by seat
    pile: int


@dataclass(frozen=True, slots=True)
class HandEvent(GameEvent):
    """The hand that a seat was dealt."""

    silent = True

    cards: tuple[str, ...]
    only: int | None = None


@dataclass(frozen=True, slots=True)
class PileEvent(GameEvent):
    """The order of the pile after a shuffle, which no seat sees."""

    silent = True

    cards: tuple[str, ...]  # top card first
    only: int | None = NOBODY


@dataclass(frozen=True, slots=True)
class PlayEvent(GameEvent):
    """A seat played a skip, bottom, shuffle or see card, or a defuse card to survive."""

    seat: int
    card: str


@dataclass(frozen=True, slots=True)
class LookEvent(GameEvent):
    """What a see card showed to the seat that played it (D3)."""

    cards: tuple[str, ...]  # top card first
    only: int | None = None


@dataclass(frozen=True, slots=True)
class DrawEvent(GameEvent):
    """A seat drew a card. Everyone sees whether it is the bomb."""

    seat: int
    end: Literal["top", "bottom"]
    bomb: bool


@dataclass(frozen=True, slots=True)
class TakeEvent(GameEvent):
    """The card that a seat drew. Only that seat observes it."""

    card: str
    only: int | None = None


@dataclass(frozen=True, slots=True)
class PlaceEvent(GameEvent):
    """A seat put the bomb back into the pile."""

    seat: int


@dataclass(frozen=True, slots=True)
class HideEvent(GameEvent):
    """Where a seat put the bomb; 0 is the top (D2). Only that seat observes it."""

    place: int
    only: int | None = None


@dataclass(frozen=True, slots=True)
class EndEvent(GameEvent):
    """A seat drew the bomb without a defuse card, and the other seat wins."""

    loser: int


EVENTS: Final = (
    DealEvent,
    HandEvent,
    PileEvent,
    PlayEvent,
    LookEvent,
    DrawEvent,
    TakeEvent,
    PlaceEvent,
    HideEvent,
    EndEvent,
)
