"""What the prompt workshop takes from Dubito (`dubito/workshop/parts.py`)."""

from dubito.games.dubito.coverage import IMPORTANT, INSTEAD
from dubito.games.dubito.game_data import GameStartEvent
from dubito.games.dubito.knowledge import Position
from dubito.games.dubito.questions import Questions
from dubito.games.dubito.sample import sample_tables
from dubito.games.dubito.truth import RIGHT, Hidden, contradiction, hidden, right
from dubito.games.dubito.worlds import world_pairs

__all__ = [
    "IMPORTANT",
    "INSTEAD",
    "RIGHT",
    "Hidden",
    "Questions",
    "contradiction",
    "hidden",
    "own_turn",
    "right",
    "sample_tables",
    "where",
    "world_pairs",
]


def where(position: Position) -> str:
    """Which game it is of."""
    start = position.events[0]
    assert isinstance(start, GameStartEvent)
    return f"in a game of {len(start.player_ids)}, {position.rules.win_rule}"


def own_turn(position: Position) -> int:
    """Which of its seat's turns it is, from 1."""
    return position.turn.me.turns + 1
