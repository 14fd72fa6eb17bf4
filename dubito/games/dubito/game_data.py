"""The words of the game: what a bot sees, what it answers, what the table observes.

Field names are those of the source blueprint; `PlayerData.id`, `TurnData.can_doubt` and
`TurnData.last_player_id` are added (R4, R20). Turn data is a plain value made afresh for each turn,
so a bot that changes it harms only itself; events are immutable and shared (R26).
"""

from dataclasses import dataclass
from typing import Final

from dubito.game import GameEvent

JOKER: Final = 0
NUMBERS: Final = tuple(range(1, 14))
COPIES: Final = 4  # of each number; four in one hand are a set and leave the game (R8)
MOST: Final = 3  # cards in one play (R3)


@dataclass(slots=True)
class PlayerData:
    """What the table knows of one player. Counters exclude the current turn (R20)."""

    id: int  # its seat, 0 to n-1
    n_cards: int
    turns: int  # a doubt and its free turn are two
    not_first_turns: int  # turns on a board that was not empty
    doubts: int
    honest_times: int  # doubts of its own plays that found them honest (R23)
    dishonest_times: int  # doubts of its own plays that found a bluff (R23)


@dataclass(slots=True)
class TurnData:
    """What the seat to move sees at the start of its turn (R20-R22)."""

    board_cards: int
    playing_cards: tuple[int, ...]  # numbers not yet discarded as a set, ascending, no joker
    current_number: int  # 0 on an empty board
    n_cards_played: int  # size of the last play, whoever placed it; 0 on an empty board
    streak: int  # plays on the board since the last doubt (R21)
    n_players: int  # still seated, a pending winner included (R9)
    my_n_cards: int
    me: PlayerData
    prev: PlayerData  # the nearest seat before that is still in the game
    next: PlayerData  # the nearest seat after that is still in the game
    can_doubt: bool  # R4
    last_player_id: int | None  # who placed the last cards; None on an empty board


@dataclass(slots=True)
class TurnOutput:
    """One turn's decision: a doubt, or one to three cards and, when opening, a number."""

    doubt: bool
    number: int | None = None
    cards: list[int] | tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class GameStartEvent(GameEvent):
    """The deal is done; counts are in the order of the ids."""

    player_ids: tuple[int, ...]
    initial_card_counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CardsPlayedEvent(GameEvent):
    """Cards went face down on the board; which ones stays hidden."""

    player_id: int
    declared_number: int
    n_cards: int


@dataclass(frozen=True, slots=True)
class DoubtResolvedEvent(GameEvent):
    """The last play was turned over, and somebody picked up the board."""

    doubter_id: int
    target_id: int  # who placed the last cards
    correct: bool  # True: it was a bluff, and the target picks up
    latest_cards: tuple[int, ...]  # the doubted play
    board_cards: tuple[int, ...]  # exactly what the loser picks up
    declared_number: int
    jokers_discarded: int  # jokers of the doubted play that left the game (R6)

    @property
    def loser_id(self) -> int:
        """Who picked up the board."""
        return self.target_id if self.correct else self.doubter_id


@dataclass(frozen=True, slots=True)
class DiscardEvent(GameEvent):
    """Four cards of one number left the game from one hand (R8)."""

    player_id: int
    card_number: int


@dataclass(frozen=True, slots=True)
class PlayerWonEvent(GameEvent):
    """A player is out of cards and leaves; position 1 is the hard win."""

    player_id: int
    position: int

    @property
    def leaves(self) -> int:  # type: ignore[override]
        """Who has won observes its win, then no more."""
        return self.player_id


Event = GameStartEvent | CardsPlayedEvent | DoubtResolvedEvent | DiscardEvent | PlayerWonEvent
