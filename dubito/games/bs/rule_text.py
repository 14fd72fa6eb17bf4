"""The rules of BS in sentences, complete: people at the table read them, and prompts say them."""

from typing import Any, Final

from dubito.games.bs.cards import COPIES, DECK, NUMBERS
from dubito.games.bs.table import SEATS

OBJECTIVE: Final = (
    "Be the first to hold no card. The winner scores 1, everybody else 0, and a game that nobody wins is 0 for all."
)
_N: Final = len(SEATS)


def rule_sentences(rules: Any) -> list[str]:
    """The rules of a game, a paragraph each."""
    return [
        f"{_N} players sit in seats 0 to {_N - 1}. The deck has {len(DECK)} cards: the numbers 0 to {NUMBERS - 1}, "
        f"{COPIES} of each. All of it is shuffled and dealt, {NUMBERS} cards to each seat. Everybody sees only its own "
        "hand, and at any time how many cards each seat holds and how many lie on the pile.",
        f"Turns go in seat order, and seat 0 begins; {_N} turns are a round. The first turn asks for the number 0, the "
        f"next one for 1, and so on; after {NUMBERS - 1} comes 0 again, whatever happens.",
        "On its turn a seat puts at least one card of its hand face down on the pile, as many as it likes, and says "
        "that all of them are of the number asked for. If any of them is of another number, the play is a lie. Nobody "
        "may pass.",
        "After each play the three others are asked, in seat order from seat 0, whether they accuse the player of a "
        "lie. None of them hears what another one answers. All three are always asked, also when the player holds no "
        "card any more.",
        "If nobody accuses, the cards stay on the pile and nobody looks at them. If several accuse, one of them is "
        "drawn by chance, all being equally likely, and only that accusation counts.",
        "If the accused play was a lie, its player takes the whole pile into its hand, this play with it, and the "
        "accuser puts one card of its own hand, drawn by chance, on the pile, which then consists of that card alone. "
        "If the play was honest, the accuser takes the whole pile into its hand, and the pile is empty.",
        "Nobody is told who accused, nor which cards were played: only how many cards each seat holds and how many "
        "lie on the pile afterwards.",
        "After every turn, once an accusation is settled, a seat without cards has won, and the game is over. So who "
        "plays its last cards wins unless it is accused of a lie that was one, and a right accuser wins at once if the "
        "card drawn from its hand was its last.",
        f"If nobody has won after {rounds(rules.max_rounds)}, the game is over, and nobody wins.",
    ]


def rounds(n: int) -> str:
    """So many rounds, in words."""
    return f"{n:,} round{'s' * (n != 1)}"
