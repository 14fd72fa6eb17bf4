"""The words of the game: what a bot sees, what it answers, what the table observes.

Field names are those of the source blueprint; `PlayerData.id`, `TurnData.can_doubt` and
`TurnData.last_player_id` are added (R4, R20). Turn data is a plain value made afresh for each turn,
so a bot that changes it harms only itself. Its fields' types are quoted because pydantic reads them,
and the compiler keeps only those as they are written.
"""

from dataclasses import dataclass, fields
from typing import Any, Final, cast

from dubito.game.streams import Loose, mypyc_attr
from dubito.games.dubito.events import CardsPlayedEvent as CardsPlayedEvent
from dubito.games.dubito.events import DiscardEvent as DiscardEvent
from dubito.games.dubito.events import DoubtResolvedEvent as DoubtResolvedEvent
from dubito.games.dubito.events import Event as Event
from dubito.games.dubito.events import GameStartEvent as GameStartEvent
from dubito.games.dubito.events import PlayerWonEvent as PlayerWonEvent

JOKER: Final = 0
NUMBERS: Final = tuple(range(1, 14))
COPIES: Final = 4  # of each number; four in one hand are a set and leave the game (R8)
MOST: Final = 3  # cards in one play (R3)


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
@dataclass(slots=True)
class PlayerData:
    """What the table knows of one player. Counters exclude the current turn (R20)."""

    id: "Loose[int]"  # its seat, 0 to n-1
    n_cards: "Loose[int]"
    turns: "Loose[int]"  # a doubt and its free turn are two
    not_first_turns: "Loose[int]"  # turns on a board that was not empty
    doubts: "Loose[int]"
    honest_times: "Loose[int]"  # doubts of its own plays that found them honest (R23)
    dishonest_times: "Loose[int]"  # doubts of its own plays that found a bluff (R23)

    def __init__(
        self,
        id: Loose[int],
        n_cards: Loose[int],
        turns: Loose[int],
        not_first_turns: Loose[int],
        doubts: Loose[int],
        honest_times: Loose[int],
        dishonest_times: Loose[int],
    ) -> None:
        self.id = id
        self.n_cards = n_cards
        self.turns = turns
        self.not_first_turns = not_first_turns
        self.doubts = doubts
        self.honest_times = honest_times
        self.dishonest_times = dishonest_times


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
@dataclass(slots=True)
class TurnData:
    """What the seat to move sees at the start of its turn (R20-R22)."""

    board_cards: "Loose[int]"
    playing_cards: "Loose[tuple[int, ...]]"  # numbers not yet discarded as a set, ascending, no joker
    current_number: "Loose[int]"  # 0 on an empty board
    n_cards_played: "Loose[int]"  # size of the last play, whoever placed it; 0 on an empty board
    streak: "Loose[int]"  # plays on the board since the last doubt (R21)
    n_players: "Loose[int]"  # still seated, a pending winner included (R9)
    my_n_cards: "Loose[int]"
    me: "Loose[PlayerData]"
    prev: "Loose[PlayerData]"  # the nearest seat before that is still in the game
    next: "Loose[PlayerData]"  # the nearest seat after that is still in the game
    can_doubt: "Loose[bool]"  # R4
    last_player_id: "Loose[int | None]"  # who placed the last cards; None on an empty board

    def __init__(
        self,
        board_cards: Loose[int],
        playing_cards: Loose[tuple[int, ...]],
        current_number: Loose[int],
        n_cards_played: Loose[int],
        streak: Loose[int],
        n_players: Loose[int],
        my_n_cards: Loose[int],
        me: Loose[PlayerData],
        prev: Loose[PlayerData],
        next: Loose[PlayerData],
        can_doubt: Loose[bool],
        last_player_id: Loose[int | None],
    ) -> None:
        self.board_cards = board_cards
        self.playing_cards = playing_cards
        self.current_number = current_number
        self.n_cards_played = n_cards_played
        self.streak = streak
        self.n_players = n_players
        self.my_n_cards = my_n_cards
        self.me = me
        self.prev = prev
        self.next = next
        self.can_doubt = can_doubt
        self.last_player_id = last_player_id


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
@dataclass(slots=True)
class TurnOutput:
    """One turn's decision: a doubt, or one to three cards and, when opening, a number."""

    doubt: "Loose[bool]"
    number: "Loose[int | None]" = None
    cards: "Loose[list[int] | tuple[int, ...] | None]" = None

    def __init__(
        self,
        doubt: Loose[bool],
        number: Loose[int | None] = None,
        cards: Loose[list[int] | tuple[int, ...] | None] = None,
    ) -> None:
        self.doubt = doubt
        self.number = number
        self.cards = cards


for _words in (PlayerData, TurnData, TurnOutput):  # compiled, they have none, and pydantic wants to see them
    cast(Any, _words).__slots__ = tuple(field.name for field in fields(_words))
