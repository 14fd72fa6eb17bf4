"""How a game is told: in colour on a terminal, a plain line a record elsewhere."""

import sys
from collections.abc import Sequence

from dubito.cli.output import say


class Voice:
    """Says the lines of a game as they are."""

    def __call__(self, line: str = "") -> None:
        """Say a line."""
        say(line)

    def thinks(self, name: str) -> None:
        """Say that this player may take its time, until there is something else to say, or it was `heard`."""

    def heard(self) -> None:
        """Nobody thinks any more."""


def voice_for(names: Sequence[str]) -> Voice:
    """How a game among players that are called so is told here."""
    if not sys.stdout.isatty():
        return Voice()
    from dubito.cli.terminal import TerminalVoice  # late: what draws is loaded where there is a terminal

    return TerminalVoice(names)
