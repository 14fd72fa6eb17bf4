"""BS for the prompt workshop (see `dubito/workshop/recordings.py`)."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from dubito.errors import IllegalOutput
from dubito.game.log import Position
from dubito.game.streams import DealStreams
from dubito.game.table import Entrant, Table
from dubito.game.workshop import Workshop
from dubito.games.bs.engine import State, deal
from dubito.games.bs.facts import RandomPlayer
from dubito.games.bs.knowledge import BSRules, Knowledge
from dubito.games.bs.table import SEATS, explain_shortage

_SEED: Final = 0
_GAMES: Final = 6


_ALWAYS: Final = [("rule_text",), ("objective",), ("seat",), ("question",), ("hand",), ("pile",)]
_HANDS: Final = ("players.cards", "hands")


class BSWorkshop(Workshop[BSRules, State]):
    RIGHT = "accused lies and accepted honest plays (node bs)"
    INSTEAD = {
        "rules": ("rule_text",),
        "max_rounds": ("rule_text",),
        "round": ("history",),
        "node": ("question",),
        "own_moves": ("history",),
        "seats": ("rule_text",),
        "hands": ("players",),
        "own_cards": ("hand",),
        "legal": ("hand",),
        "own_in_pile": ("history",),
        "held_of_number": ("hand",),
    }
    IMPORTANT = {
        "cards": [*_ALWAYS, ("legal",), ("number", "question"), ("own_numbers",), _HANDS],
        "bs": [
            *_ALWAYS,
            ("if_true",),
            ("if_false",),
            ("number", "question"),
            ("played", "question"),
            ("mover", "question"),
            ("placed", "sure_lie"),
            ("mover_wins", *_HANDS),
            ("players.honest", "history"),
        ],
    }

    def sample_tables(self) -> Iterator[tuple[Table, BSRules]]:
        """Yield games of four random players, each with its rules."""
        rules = BSRules()
        for number in range(_GAMES):
            streams = DealStreams(_SEED, number)
            entrants = [Entrant(f"player {seat}", RandomPlayer) for seat in SEATS]
            yield Table(deal(rules.max_rounds, streams.deck()), entrants, streams, deal=number, number=number), rules

    def right_answer(self, state: State, node: str) -> bool | None:
        return state.lie

    def check(self, position: Position[BSRules], answer: bool | Sequence[int]) -> None:
        """Raise IllegalOutput if the list is empty or contains cards that are not held."""
        if isinstance(answer, bool):
            return
        if not answer:
            raise IllegalOutput("nothing was played; play at least one card")
        held = position.known(Knowledge).hand
        for number, wanted in Counter(answer).items():
            if wanted > held[number]:
                raise IllegalOutput(explain_shortage(number, held[number], wanted))

    def describe_setting(self, position: Position[BSRules]) -> str:
        return "in a game"
