"""What trying prompts on positions of BS takes (`dubito.workshop.craft.Craft`)."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from dubito.errors import IllegalOutput
from dubito.games.bs.bot import BSBot
from dubito.games.bs.cards import NUMBERS
from dubito.games.bs.notebook import Position
from dubito.games.bs.sample import by_chance, pairs
from dubito.games.bs.spec import BSRules, short_of
from dubito.games.bs.state import Game, deal
from dubito.games.bs.table import SEATS
from dubito.games.bs.table import Table as View
from dubito.games.bs.witness import Witness
from dubito.handlers import Entrant, Table
from dubito.streams import DealStreams

SEED: Final = 0
JUDGED: Final = "bs"
RIGHT: Final = "an accusation of what is a lie, and of nothing else"
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
    """Answers so that all kinds of things happen."""

    def play(self, view: View) -> Any:
        return by_chance(view, list(self.cards), self.rng)


def sample_tables() -> Iterator[Table]:
    """Games of four such players."""
    for number in range(_GAMES):
        streams = DealStreams(SEED, number)
        game = deal(BSRules().max_rounds, streams.deck())
        entrants = [Entrant(f"player {seat}", _ByChance) for seat in SEATS]
        yield Table(game, entrants, streams, deal=number, number=number)


def rules_of(game: Game) -> BSRules:
    """What of them may be varied."""
    return BSRules(max_rounds=game.max_rounds)


def truth(game: Game) -> tuple[list[list[int]], list[int], bool | None]:
    """All hands and the pile, by numbers, and whether the play in question is a lie; None if none is."""
    hands = [[card.number for card in hand.cards] for hand in game.hands]
    return hands, [card.number for card in game.pile.cards], game.lie


def contradiction(
    position: Position, hands: Sequence[Sequence[int]], board: Sequence[int], dishonest: bool | None
) -> str | None:
    """What of a truth in a file cannot be true of this position."""
    witness = Witness(position)
    if max(chain(board, *hands)) >= NUMBERS:
        return f"hands and board: numbers are 0 to {NUMBERS - 1}"
    if [len(hand) for hand in hands] != witness.hands:
        return "hands: their sizes are not those that the turns leave"
    if list(hands[position.seat]) != sorted(witness.hand.elements()):
        return f"hands: that of seat {position.seat} is not the position's hand"
    if len(board) != witness.pile_size or Counter(witness.own_in_pile()) - Counter(board):
        return "board: it is not the pile that the turns leave"
    lie = None
    if position.node == "bs":
        lie = any(card != position.number for card in board[-position.turns[-1].n_cards :])
    return None if dishonest is lie else "dishonest: the cards of the board say otherwise"


def in_words(position: Position) -> str:
    """All are alike."""
    return f"a game of {len(SEATS)}"


def turn_of(position: Position, decision: int) -> int:
    """A model's every answer is a move."""
    return decision + 1


def check(position: Position, answer: bool | Sequence[int]) -> None:
    """Raise IllegalOutput for no card, or one that is not held so often."""
    if isinstance(answer, bool):
        return
    if not answer:
        raise IllegalOutput("nothing was played; play at least one card")
    held = Witness(position).hand
    for number, wanted in Counter(answer).items():
        if wanted > held[number]:
            raise IllegalOutput(short_of(number, held[number], wanted))


def second_worlds() -> Iterator[tuple[Position, Position]]:
    """Positions, each beside one that its seat cannot tell from it."""
    yield from pairs(0)
