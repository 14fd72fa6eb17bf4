"""What a prompt should tell of Dubito, and which facts another one makes up for."""

from collections.abc import Mapping
from typing import Final

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
