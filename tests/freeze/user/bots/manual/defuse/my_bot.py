"""A bot of draw and defuse to start from: copy this file to bots/manual/defuse/my_bot.py, then change what it does.

File and class have one name (my_bot.py, MyBot); files that start with _ are no bots. Everything is explained in
docs/defuse.md.
"""

from collections.abc import Generator

from dubito.games.defuse.bot import DefuseBot
from dubito.games.defuse.state import View


class MyBot(DefuseBot):
    """One sentence for `dubito bots`: looks where it has no defuse card, and skips the bomb."""

    origin = "your name"

    def __init__(self, id: int, depth: int = 0) -> None:
        super().__init__(id)
        self.depth = depth  # a setting: another value can be given in a config

    def turn(self, view: View) -> Generator[str, tuple[str, ...], str]:
        """Your turn: yield "see" or "shuffle", as often as you hold them, then return "draw", "skip" or "bottom"."""
        if "defuse" not in self.cards and "see" in self.cards:
            top = yield "see"  # up to three cards, the top one first
            if top[0] == "bomb" and "skip" in self.cards:
                return "skip"
        return "draw"

    def defuse(self, view: View) -> int:
        """The bomb is yours to hide: 0 is the top of the pile, view.pile the bottom."""
        return min(self.depth, view.pile)

    # Also there: self.cards (count, in, len, iterate it), view.pile, view.other (cards of the other player),
    # view.discard, view.seen, self.id (the seat), self.rng.random() (never the module random).
