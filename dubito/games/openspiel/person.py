"""A person at one of OpenSpiel's games: what they see, and how they answer, by the name of an action or its number."""

from typing import Any, Final

from dubito.errors import UsageError, one_line
from dubito.games.openspiel.state import Game
from dubito.telling import Label

BOTS: Final = ("Solved", "SimpleGin", "UniformRandom")
HOW: Final = (
    "Type the name of an action, or its number in the list. `rules` tells the rules, `hand` what you see, `log` what "
    "happened; Ctrl-D leaves the table."
)


def sees(game: Game, seat: int, label: Label) -> list[str]:
    """What the seat sees, and its actions, each with its number."""
    told = (game.hand(seat) or game.sees(seat)).strip("\n").splitlines()
    names = [*game.view().names.values()] if game.seat == seat and not game.over else []
    return [*told, "What do you do? " + ", ".join(f"{n} {name}" for n, name in enumerate(names, start=1))]


def read(line: str, game: Game, seat: int) -> str:
    """The action that was typed: its name first, since a name may be a number too."""
    word, names = line.strip().casefold(), [*game.view().names.values()]
    folded = {name.casefold(): name for name in names}
    if word in folded:
        return folded[word]
    if word.isascii() and word.isdecimal() and 1 <= int(word[:9]) <= len(names):
        return names[int(word[:9]) - 1]
    raise UsageError(f"'{one_line(line, 40)}' is no action here: type its name, or its number from 1 to {len(names)}")


def choices(game: Game) -> list[str]:
    """The legal actions."""
    return [*game.view().names.values()]


def answered(answer: Any, game: Game, seat: int) -> str:
    """The action that a page has sent."""
    if isinstance(answer, str):
        return answer
    raise UsageError("this is no answer to `act`: give the name of an action")


def cheer(game: Game, seat: int) -> str:
    """The end of the game, for the person."""
    return f"\n  *  Your return: {game.state.returns()[seat]:g}.  *\n" if game.over else ""
