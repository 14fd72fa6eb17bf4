"""What the prompt workshop takes from Dubito (`dubito/workshop/parts.py`)."""

from collections.abc import Mapping
from typing import Final

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

# Facts that are not missed where another one says the same.
INSTEAD: Final[Mapping[str, tuple[str, ...]]] = {
    "rules": ("rule_text",),
    "win_rule": ("rule_text",),
    "node_name": ("node", "question"),
    "node": ("question",),
    "answers": ("question",),
    "can_doubt": ("node", "question"),
    "own_plays": ("history",),
    "seats_in_game": ("players",),
    "places": ("history",),
    "numbers_in_play": ("sets_gone",),
    "sets_gone": ("numbers_in_play", "history"),
    "prev_honest_share": ("prev_bluff_rate",),
    "next_honest_share": ("next_bluff_rate",),
    "table_honest_share": ("table_bluff_rate",),
    "own_cards": ("hand",),
}

_ALWAYS: Final = [("rule_text",), ("objective",), ("seat",), ("question",), ("if_true",), ("if_false",), ("hand",)]
_AFTER: Final = [  # who may doubt what is put down
    ("next_cards", "players.cards"),
    ("next_doubt_rate", "players.doubt_rate", "players.doubts", "history"),
]
# What matters at each node: one of each group has to be told, `players.x` being a field of each player's.
IMPORTANT: Final[Mapping[str, list[tuple[str, ...]]]] = {
    "A": [*_ALWAYS, *_AFTER],
    "B": [*_ALWAYS, *_AFTER],
    "C": [
        *_ALWAYS,
        ("number", "question"),
        ("last_play", "question"),
        ("last_player", "question"),
        ("board_cards", "if_true"),
        ("held_of_number", "hand"),
        ("number_elsewhere", "sure_bluff", "players.surely_holds", "players.known_cards", "history"),
        ("prev_cards", "prev_about_to_win", "players.cards"),
        ("prev_bluff_rate", "prev_honest_share", "players.bluff_rate", "players.honest_plays", "history"),
    ],
    "D": [
        *_ALWAYS,
        ("number", "question"),
        ("held_of_number", "question", "hand"),
        ("board_cards", "history"),
        *_AFTER,
    ],
    "E": [*_ALWAYS, ("number", "question"), ("board_cards", "history"), *_AFTER],
}


def where(position: Position) -> str:
    """Which game it is of."""
    start = position.events[0]
    assert isinstance(start, GameStartEvent)
    return f"in a game of {len(start.player_ids)}, {position.rules.win_rule}"


def own_turn(position: Position) -> int:
    """Which of its seat's turns it is, from 1."""
    return position.turn.me.turns + 1
