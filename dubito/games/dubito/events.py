"""The events that the table observes. They are immutable and shared (R26)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NoReturn, get_args

from dubito.game import GameEvent


def _refuse(self: "CardList", *_: object, **__: object) -> NoReturn:
    raise TypeError("this list cannot be changed, because all players share it; change a copy: list(cards)")


class CardList(list[int]):
    """A list of cards that cannot be changed. Adding to it or slicing it returns a plain list (R26)."""

    __slots__ = ()
    append = extend = insert = remove = pop = clear = sort = reverse = _refuse
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def __reduce__(self) -> tuple[type["CardList"], tuple[list[int]]]:
        return CardList, ([*self],)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: Callable[[object], Any]) -> Any:
        from pydantic_core import core_schema  # imported late, because playing needs no pydantic

        return core_schema.no_info_after_validator_function(cls, handler(list[int]))


@dataclass(frozen=True, slots=True)
class GameStartEvent(GameEvent):
    """The cards were dealt. Counts are in id order."""

    player_ids: CardList
    initial_card_counts: CardList


@dataclass(frozen=True, slots=True)
class HandDealtEvent(GameEvent):
    """The hand that a seat was dealt, sorted."""

    silent = True

    cards: tuple[int, ...]
    only: int | None = None


@dataclass(frozen=True, slots=True)
class CardsPlayedEvent(GameEvent):
    """Cards were played face down on the board."""

    player_id: int
    declared_number: int
    n_cards: int


@dataclass(frozen=True, slots=True)
class OwnCardsEvent(GameEvent):
    """The cards of the last play, which only its player knows."""

    silent = True

    cards: tuple[int, ...]
    lie: bool  # whether it is a bluff
    only: int | None = None


@dataclass(frozen=True, slots=True)
class DoubtResolvedEvent(GameEvent):
    """The last play was turned over, and a player picked up the board."""

    doubter_id: int
    target_id: int  # the player who played the last cards
    correct: bool  # whether it was a bluff, in which case the target picks up the board
    latest_cards: CardList  # the doubted play
    board_cards: CardList  # exactly the cards that the loser picks up
    declared_number: int
    jokers_discarded: int  # jokers from the doubted play that left the game (R6)

    @property
    def loser_id(self) -> int:
        return self.target_id if self.correct else self.doubter_id


@dataclass(frozen=True, slots=True)
class DiscardEvent(GameEvent):
    """A player discarded all cards of one number (R8)."""

    player_id: int
    card_number: int
    n_cards: int = 4  # fewer in a variant


@dataclass(frozen=True, slots=True)
class PlayerWonEvent(GameEvent):
    """A player is out of cards and leaves the game. Position 1 is the hard win."""

    player_id: int
    position: int

    @property
    def leaves(self) -> int:  # type: ignore[override]
        return self.player_id


Event = GameStartEvent | CardsPlayedEvent | DoubtResolvedEvent | DiscardEvent | PlayerWonEvent  # what bots observe
EVENTS: Final = (*get_args(Event), HandDealtEvent, OwnCardsEvent)
