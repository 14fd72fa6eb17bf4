"""What trying prompts on positions of Dubito takes (`dubito.workshop.craft.Craft`)."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from dubito.games.dubito.core_game import Game
from dubito.games.dubito.facts import Position
from dubito.games.dubito.game_data import JOKER, NUMBERS, GameStartEvent
from dubito.games.dubito.rules import Rules, last_play_is_dishonest
from dubito.games.dubito.sample import SEED, sample_tables
from dubito.games.dubito.watch import Watch
from dubito.games.dubito.worlds import pairs

__all__ = ["IMPORTANT", "INSTEAD", "JUDGED", "RIGHT", "SEED", "Watch", "sample_tables"]

JUDGED: Final = "C"
RIGHT: Final = "a doubt of what is dishonest, and of nothing else"

# Facts that are not missed where another one says the same.
INSTEAD: Final[Mapping[str, tuple[str, ...]]] = {
    "rules": ("rule_text",),
    "win_rule": ("rule_text",),
    "node_name": ("node", "question"),
    "node": ("question",),
    "answers": ("question",),
    "can_doubt": ("node", "question"),
    "own_plays": ("history",),
    "own_moves": ("history",),
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


def rules_of(game: Game) -> Rules:
    """The engine's own."""
    return game.rules


def truth(game: Game) -> tuple[list[Sequence[int]], Sequence[int], bool | None]:
    """All hands, the board, and whether the last play is dishonest; None on an empty board."""
    board = tuple(game.board)
    return [hand.cards for hand in game.hands], board, last_play_is_dishonest(board, game.n_cards_played, game.number)


def contradiction(
    position: Position, hands: Sequence[Sequence[int]], board: Sequence[int], dishonest: bool | None
) -> str | None:
    """What of a truth in a file cannot be true of this position."""
    turn, seat, start = position.turn, position.seat, position.events[0]
    assert isinstance(start, GameStartEvent)  # from_json has seen to it
    if len(hands) != len(start.player_ids):
        return "hands: there are more or fewer than players"
    if not all(JOKER <= card <= NUMBERS[-1] for card in (*board, *chain(*hands))):
        return f"hands and board: a card is not between {JOKER} and {NUMBERS[-1]}"
    if hands[seat] != tuple(sorted(position.hand)):
        return f"hands: that of seat {seat} is not the position's hand"
    if len(board) != turn.board_cards:
        return "board: it has another number of cards than the position's"
    if dishonest is not last_play_is_dishonest(board, turn.n_cards_played, turn.current_number):
        return "dishonest: the cards of the board say otherwise"
    return None


def in_words(position: Position) -> str:
    """Which game it is of: its players, its rules."""
    start = position.events[0]
    assert isinstance(start, GameStartEvent)
    return f"a game of {len(start.player_ids)}, {position.rules.win_rule}"


def turn_of(position: Position, decision: int) -> int:
    """The turn of its seat, from 1."""
    return position.turn.me.turns + 1


def check(position: Position, answer: Any) -> None:
    """Any yes or no can be played."""


def second_worlds() -> Iterator[tuple[Position, Position]]:
    """Positions, each beside one that its seat cannot tell from it."""
    for rules, size in ((Rules(), 3), (Rules(win_rule="contested"), 5)):
        yield from pairs(rules, size, deal=size)
