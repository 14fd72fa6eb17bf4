"""A person at draw and defuse: what they see, and how they answer, as in the notebook."""

from typing import Any, Final

from dubito.errors import UsageError, one_line
from dubito.game.words import Label
from dubito.games.defuse.cards import ACTS, HELD, in_words
from dubito.games.defuse.state import Game
from dubito.games.defuse.told import count

BOTS: Final = ("Medium",)
HARD: Final = ("Sapper",)
ENTER: Final = "draw"  # what an empty line means
HOW: Final = (
    "On your turn press Enter to draw, or type `h` to play a shuffle card, `s` see, `k` skip, `b` bottom; the whole "
    "words do as well. Where you have defused the bomb, type its place in the pile: 0 is the top. `rules` tells the "
    "rules, `hand` what you see, `log` what happened; Ctrl-D leaves the table."
)
_LETTERS: Final = {"d": "draw", "h": "shuffle", "s": "see", "k": "skip", "b": "bottom"}


def sees(game: Game, seat: int, label: Label) -> list[str]:
    """The pile, the own hand, the other's size, what was played, what a see card has shown, and the question."""
    hand = [card for card in HELD for _ in range(game.hands[seat][card])]
    played = ", ".join(reversed(game.discard)) or "nothing"
    lines = [
        f"In the pile: {count(len(game.pile))}. {label(1 - seat)} holds {count(sum(game.hands[1 - seat].values()))}.",
        f"Played so far, the last one first: {played}.",
        f"Your hand: {in_words(hand)}.",
    ]
    if game.node == "place":
        last = len(game.pile)
        return [*lines, f"Where do you put the bomb? 0 is the top of the pile, {last} the bottom."]
    if game.seen:
        lines.append(f"You have seen, from the top: {', '.join(game.seen)}.")
    return [*lines, "Draw a card, or play a shuffle, see, skip or bottom card?"]


def keys(game: Game) -> str:
    """The letters for what a turn may be."""
    return "Enter draws; h shuffle, s see, k skip, b bottom" if game.node == "turn" else ""


def read(line: str, game: Game, seat: int) -> str | int:
    """The act or the place that was typed."""
    word = line.casefold().strip()
    if game.node == "place":
        if not (word.isascii() and word.isdecimal() and len(word) < 10):
            raise UsageError(f"'{one_line(line, 20)}' is no place: type a number from 0 to {len(game.pile)}")
        return int(word)
    act = _LETTERS.get(word, word)
    if act not in ACTS:
        raise UsageError(f"'{one_line(line, 20)}' is no act: press Enter to draw, or type h, s, k or b")
    return act


def cheer(game: Game, seat: int) -> str:
    """The end of the game, for the person."""
    if game.winner is None:
        return ""
    return "\n  *  You win!  *\n" if game.winner == seat else "\n  *  You have lost.  *\n"


def answered(answer: Any, game: Game, seat: int) -> str | int:
    """The act or the place that a page has sent."""
    if game.node == "place" and type(answer) is int:
        return answer
    if game.node == "turn" and isinstance(answer, str) and answer in ACTS:
        return answer
    raise UsageError(f"this is no answer to `{game.node}`")
