"""What the players of BS observe. Nobody is told who accused or what was played: players infer it from the sizes."""

from dataclasses import dataclass

from dubito.game import GameEvent


@dataclass(frozen=True, slots=True)
class DealEvent(GameEvent):
    """The hands are dealt; seat 0 begins, with number 0."""

    hands: tuple[int, ...]  # sizes, by seat


@dataclass(frozen=True, slots=True)
class PlayEvent(GameEvent):
    """A seat has put cards on the pile, face down, said to be of this number."""

    seat: int
    number: int
    n_cards: int


@dataclass(frozen=True, slots=True)
class TurnEvent(GameEvent):
    """A turn is over, an accusation resolved, if there was one."""

    pile: int
    hands: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RoundEvent(GameEvent):
    """A round is over, four turns long unless somebody won."""

    round: int  # from 1
    number: int  # that would be asked next
    pile: int
    hands: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class WinEvent(GameEvent):
    """A seat has no cards left, and the game is over."""

    seat: int
