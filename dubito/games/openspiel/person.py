"""A person at one of OpenSpiel's games: what they see, and how they answer, by the name of an action or its number."""

from dataclasses import dataclass
from typing import Any, Final

from dubito.errors import UsageError, one_line
from dubito.game import Spec
from dubito.game.words import Label
from dubito.games.openspiel.state import Game

_GIN: Final = "openspiel:gin_rummy"


@dataclass(frozen=True)
class OpenSpielPerson:
    """A person at one game."""

    spec: Spec
    ENTER = ""
    HOW = (
        "Type the name of an action, or its number in the list. `rules` tells the rules, `hand` what you see, `log` "
        "what happened; Ctrl-D leaves the table."
    )

    @property
    def BOTS(self) -> list[str]:  # noqa: N802, a constant
        """As many as there are other seats."""
        bot = "SimpleGin" if self.spec.name.startswith(_GIN) else self.spec.fallback
        return [bot] * (self.spec.seats[0] - 1)

    def sees(self, game: Game, seat: int, label: Label) -> list[str]:
        """What the seat sees, and its actions, each with its number."""
        told = (game.hand(seat) or game.sees(seat)).strip("\n").splitlines()
        return [*told, "What do you do? " + ", ".join(f"{n} {name}" for n, name in enumerate(self.choices(game), 1))]

    def choices(self, game: Game) -> list[str]:
        """The legal actions."""
        return [*game.view().names.values()]

    def read(self, line: str, game: Game, seat: int) -> str:
        """The action that was typed: its name first, since a name may be a number too."""
        word, names = line.strip().casefold(), self.choices(game)
        folded = {name.casefold(): name for name in names}
        if word in folded:
            return folded[word]
        if word.isascii() and word.isdecimal() and 1 <= int(word[:9]) <= len(names):
            return names[int(word[:9]) - 1]
        raise UsageError(
            f"'{one_line(line, 40)}' is no action here: type its name, or its number from 1 to {len(names)}"
        )

    def answered(self, answer: Any, game: Game, seat: int) -> str:
        """The action that a page has sent."""
        if isinstance(answer, str):
            return answer
        raise UsageError("this is no answer to `act`: give the name of an action")

    def cheer(self, game: Game, seat: int) -> str:
        """The end of the game, for the person."""
        return f"\n  *  Your return: {game.state.returns()[seat]:g}.  *\n" if game.over else ""


of = OpenSpielPerson  # by the game
