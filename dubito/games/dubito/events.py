"""The events that the table observes. They are immutable and shared (R26)."""

from dataclasses import dataclass

from dubito.game import GameEvent


@dataclass(frozen=True, slots=True)
class GameStartEvent(GameEvent):
    """The cards were dealt. Counts are in id order."""

    player_ids: tuple[int, ...]
    initial_card_counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CardsPlayedEvent(GameEvent):
    """Cards were played face down on the board."""

    player_id: int
    declared_number: int
    n_cards: int


@dataclass(frozen=True, slots=True)
class DoubtResolvedEvent(GameEvent):
    """The last play was turned over, and a player picked up the board."""

    doubter_id: int
    target_id: int  # the player who played the last cards
    correct: bool  # whether it was a bluff, in which case the target picks up the board
    latest_cards: tuple[int, ...]  # the doubted play
    board_cards: tuple[int, ...]  # exactly the cards that the loser picks up
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


Event = GameStartEvent | CardsPlayedEvent | DoubtResolvedEvent | DiscardEvent | PlayerWonEvent
