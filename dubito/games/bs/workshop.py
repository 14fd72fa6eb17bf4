"""BS for the prompt workshop (see `dubito/workshop/recordings.py`)."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from dubito.errors import IllegalOutput
from dubito.game.record import Strict
from dubito.game.streams import DealStreams
from dubito.game.table import Entrant, Table
from dubito.games.bs.bot import BSBot
from dubito.games.bs.engine import State, deal
from dubito.games.bs.facts import random_answer, sample_game
from dubito.games.bs.game import explain_shortage
from dubito.games.bs.table import SEATS, View
from dubito.games.bs.witness import BSRules, Number, Position, Witness
from dubito.games.bs.worlds import sample_world

RIGHT: Final = "accused lies and accepted honest plays (node bs)"
_SEED: Final = 0
_GAMES: Final = 6

INSTEAD: Final[Mapping[str, tuple[str, ...]]] = {
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

_ALWAYS: Final = [("rule_text",), ("objective",), ("seat",), ("question",), ("hand",), ("pile",)]
_HANDS: Final = ("players.cards", "hands")
IMPORTANT: Final[Mapping[str, list[tuple[str, ...]]]] = {
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


class _ByChance(BSBot):
    """A player that answers at random, so that all kinds of positions occur."""

    def play(self, view: View) -> Any:
        return random_answer(view, list(self.cards), self.rng)


def sample_tables() -> Iterator[tuple[Table, BSRules]]:
    """Yield games of four random players, each with its rules."""
    rules = BSRules()
    for number in range(_GAMES):
        streams = DealStreams(_SEED, number)
        entrants = [Entrant(f"player {seat}", _ByChance) for seat in SEATS]
        yield Table(deal(rules.max_rounds, streams.deck()), entrants, streams, deal=number, number=number), rules


@dataclass(frozen=True, slots=True)
class Hidden(Strict):
    """What the engine knew when the node was asked. Cards are represented by their numbers."""

    hands: tuple[tuple[Number, ...], ...]  # by seat, each sorted
    pile: tuple[Number, ...]  # the last play last
    lie: bool | None  # whether the play in question is a lie; None at other nodes


def hidden(state: State) -> Hidden:
    hands = tuple(tuple(sorted(card.number for card in hand.cards)) for hand in state.hands)
    return Hidden(hands, tuple(card.number for card in state.pile.cards), state.lie)


def contradiction(position: Position, truth: Hidden) -> str | None:
    """Return where a position contradicts its recorded truth, or None if it does not."""
    witness = Witness(position)
    if [len(hand) for hand in truth.hands] != witness.hands:
        return "hands: their sizes do not match the turns"
    if list(truth.hands[position.seat]) != sorted(witness.hand.elements()):
        return f"hands: seat {position.seat} does not have the position's hand"
    if len(truth.pile) != witness.pile_size or Counter(witness.own_pile_cards()) - Counter(truth.pile):
        return "pile: does not match the turns"
    lie = None
    if position.node == "bs":
        lie = any(card != position.number for card in truth.pile[-position.turns[-1].n_cards :])
    return None if truth.lie is lie else "lie: does not match the cards on the pile"


def right_answer(position: Position, truth: Hidden) -> bool | None:
    return truth.lie


def check(position: Position, answer: bool | Sequence[int]) -> None:
    """Raise IllegalOutput if the list is empty or contains cards that are not held."""
    if isinstance(answer, bool):
        return
    if not answer:
        raise IllegalOutput("nothing was played; play at least one card")
    held = Witness(position).hand
    for number, wanted in Counter(answer).items():
        if wanted > held[number]:
            raise IllegalOutput(explain_shortage(number, held[number], wanted))


def world_pairs() -> Iterator[tuple[Position, Position]]:
    """Yield each position for which another world was found, with the same position in that world."""
    chance = Random(0)
    for world, position in sample_game(0):
        seat = position.position.seat
        if other := sample_world(world, seat, chance):
            yield position.position, other.view_of(seat)[0]


def describe_setting(position: Position) -> str:
    return "in a game"
