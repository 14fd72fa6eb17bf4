"""What the players of draw and defuse observe; where `only` names a seat, nobody else does."""

from dataclasses import dataclass
from typing import Literal

from dubito.game import GameEvent


@dataclass(frozen=True, slots=True)
class DealEvent(GameEvent):
    """The hands are dealt and the bomb is in the pile; seat 0 begins."""

    hands: tuple[int, ...]  # sizes, by seat
    pile: int


@dataclass(frozen=True, slots=True)
class PlayEvent(GameEvent):
    """A seat has played a card: skip, bottom, shuffle, see, or a defuse because it must."""

    seat: int
    card: str


@dataclass(frozen=True, slots=True)
class LookEvent(GameEvent):
    """What a see card showed to the seat that played it (D3)."""

    cards: tuple[str, ...]  # the top card first
    only: int | None = None


@dataclass(frozen=True, slots=True)
class DrawEvent(GameEvent):
    """A seat has drawn a card; the bomb is shown to everybody."""

    seat: int
    end: Literal["top", "bottom"]
    bomb: bool


@dataclass(frozen=True, slots=True)
class TakeEvent(GameEvent):
    """What the seat that drew has in its hand now."""

    card: str
    only: int | None = None


@dataclass(frozen=True, slots=True)
class PlaceEvent(GameEvent):
    """A seat has put the bomb back into the pile."""

    seat: int


@dataclass(frozen=True, slots=True)
class HideEvent(GameEvent):
    """Where the seat put it: 0 is the top (D2)."""

    place: int
    only: int | None = None


@dataclass(frozen=True, slots=True)
class EndEvent(GameEvent):
    """A seat has drawn the bomb without a defuse card, and the other one wins."""

    loser: int
