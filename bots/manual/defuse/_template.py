"""A bot for draw and defuse: change its answers.

It is known by the name of its class. docs/defuse.md explains the game.
"""

from collections.abc import Generator

from dubito.games.defuse.bot import DefuseBot
from dubito.games.defuse.engine import View


class MyBot(DefuseBot):
    """Looks if it has no defuse card, and skips the bomb (`dubito bots` shows this line)."""

    origin = "your name"

    def __init__(self, id: int, depth: int = 0) -> None:
        super().__init__(id)
        self.depth = depth  # a setting, which a config can change

    def turn(self, view: View) -> Generator[str, tuple[str, ...], str]:
        """Yield "see" or "shuffle" as often as you like, then return "draw", "skip" or "bottom"."""
        if "defuse" not in self.cards and "see" in self.cards:
            top = yield "see"  # up to three cards, the top one first
            if top[0] == "bomb" and "skip" in self.cards:
                return "skip"
        return "draw"

    def defuse(self, view: View) -> int:
        """Return where to put the bomb: 0 is the top of the pile, view.pile the bottom."""
        return min(self.depth, view.pile)

    # Also available: self.cards (count, in, len, iterate it), view.pile, view.other (cards of the other player),
    # view.discard, view.seen, self.id (the seat), self.rng.random() (never the module random).
