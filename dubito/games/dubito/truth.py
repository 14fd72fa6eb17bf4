"""The truth behind a position, which its seat cannot see."""

from dataclasses import dataclass
from typing import ClassVar, Final

from dubito.games.dubito.core_game import Game
from dubito.games.dubito.game_data import GameStartEvent
from dubito.games.dubito.knowledge import Position
from dubito.games.dubito.record import Card
from dubito.games.dubito.rules import last_play_is_dishonest

RIGHT: Final = "at C, a doubt of what is dishonest, and of nothing else"


@dataclass(frozen=True, slots=True)
class Hidden:
    """What the engine knew when the node was asked."""

    __pydantic_config__: ClassVar[dict[str, object]] = {"extra": "forbid", "strict": True}

    hands: tuple[tuple[Card, ...], ...]  # by seat, each sorted
    board: tuple[Card, ...]  # the last play last
    dishonest: bool | None  # whether the last play is; None on an empty board


def hidden(game: Game) -> Hidden:
    """What the engine knows now."""
    hands, board = tuple(tuple(sorted(hand.cards)) for hand in game.hands), tuple(game.board)
    return Hidden(hands, board, last_play_is_dishonest(board, game.n_cards_played, game.number))


def contradiction(position: Position, truth: Hidden) -> str | None:
    """Where a position and what is said to be its truth disagree; None if they do not."""
    turn, seat = position.turn, position.seat
    start = position.events[0]
    assert isinstance(start, GameStartEvent)  # from_json has seen to it
    if len(truth.hands) != len(start.player_ids):
        return "hands: there are more or fewer than players"
    if truth.hands[seat] != tuple(sorted(position.hand)):
        return f"hands: that of seat {seat} is not the position's hand"
    if len(truth.board) != turn.board_cards:
        return "board: it has another number of cards than the position's"
    if truth.dishonest is not last_play_is_dishonest(truth.board, turn.n_cards_played, turn.current_number):
        return "dishonest: the cards of the board say otherwise"
    return None


def right(position: Position, truth: Hidden) -> bool | None:
    """The answer that the truth makes right: at C, a doubt if the last play is dishonest; None elsewhere."""
    return truth.dishonest if position.node == "C" else None
