"""Dubito for the prompt workshop (see `dubito/workshop/recordings.py`)."""

from collections.abc import Iterator, Mapping
from random import Random
from typing import Final, get_args

from dubito.game.log import Position, SeatLog
from dubito.game.table import Table
from dubito.game.workshop import ForkStart, Workshop
from dubito.games.dubito.engine import MAX_PLAYERS, MIN_PLAYERS, State, WinRule, last_play_is_dishonest
from dubito.games.dubito.facts import sample_table
from dubito.games.dubito.knowledge import Knowledge
from dubito.games.dubito.rules import DubitoRules
from dubito.games.dubito.worlds import change_hand, sample_world, start_of

_ALWAYS: Final = [
    ("rule_text", "rules"),
    ("objective",),
    ("seat",),
    ("question",),
    ("if_true",),
    ("if_false",),
    ("hand",),
]
_AFTER: Final = [  # about the player who may doubt the play
    ("next_cards", "players.cards"),
    ("next_doubt_rate", "players.doubt_rate", "players.doubts", "history"),
]


class DubitoWorkshop(Workshop[DubitoRules, State]):
    # Facts that a prompt may omit if it uses one of these instead.
    INSTEAD = {
        "rules": ("rule_text",),
        "rule_text": ("rules",),  # a prompt may describe these in its own words
        "win_rule": ("rule_text",),
        # A prompt may describe the questions and the facts in its own words.
        **dict.fromkeys(("walk", "node_texts", "meanings"), ("turn", "rules")),
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
    # Unusual moments of the game that bots rarely encounter.
    MOMENTS = {
        "duel": lambda p: p.n_players == 2,
        "free turn": lambda p: p.board_cards == 0,
        "last card": lambda p: p.my_n_cards == 1,
        "no doubt allowed": lambda p: p.board_cards > 0 and not p.can_doubt,
    }
    CHECKED_RULES: tuple[Mapping[str, object], ...] = ({}, {"duel": True})  # the rules under which bots are checked
    # The important facts at each node. A prompt needs one from each group. `players.x` is a field of each player.
    IMPORTANT = {
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
    SETTABLE = {"hand": "hand=2,2,7,0 (0 is a joker)"}
    RIGHT = "doubted bluffs and accepted honest plays (node C)"

    def sample_start(self, rules: DubitoRules, log: SeatLog, chance: Random) -> ForkStart:
        return start_of(sample_world(rules.engine_rules, log, chance))

    def change_start(self, start: ForkStart, seat: int, key: str, value: str) -> ForkStart:
        return change_hand(start, seat, value)

    def sample_tables(self) -> Iterator[tuple[Table, DubitoRules]]:
        """Yield a table for every size and win rule, before its first turn, with its rules."""
        for win_rule in get_args(WinRule):
            for deal, size in enumerate(range(MIN_PLAYERS, MAX_PLAYERS + 1)):
                rules = DubitoRules(win_rule=win_rule)
                yield sample_table(rules.engine_rules, size, deal), rules

    def describe_setting(self, position: Position) -> str:
        known = position.known(Knowledge)
        return f"in a game of {len(known.players)}, {known.rules.win_rule}"

    def own_turn(self, position: Position) -> int:
        known = position.known(Knowledge)
        return known.players[known.seat].turns + 1

    def right_answer(self, state: State, node: str) -> bool | None:
        return last_play_is_dishonest(state.board, state.n_cards_played, state.number) if node == "C" else None
