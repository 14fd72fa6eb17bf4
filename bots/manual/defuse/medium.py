"""Medium, the third bot of the notebook."""

from collections.abc import Generator

from dubito.games.defuse.bot import DefuseBot
from dubito.games.defuse.engine import View


class Medium(DefuseBot):
    """Draws while it holds a defuse card, then looks before it draws and dodges the bomb."""

    origin = "the notebook"

    def __init__(self, id: int) -> None:
        super().__init__(id)
        self.defused = 0  # defuse cards played so far, by both

    def turn(self, view: View) -> Generator[str, tuple[str, ...], str]:
        cards, played = self.cards, view.discard.count("defuse")
        if played > self.defused:  # the other player has placed the bomb
            self.defused = played
            if "shuffle" in cards:
                yield "shuffle"
        if "defuse" in cards:
            return "draw"
        if view.pile == 1:
            return "skip" if "skip" in cards else "draw"
        while "see" in cards:
            top = yield "see"
            if top[0] != "bomb":
                return "draw"
            if "bottom" in cards:
                return "bottom"
            if "skip" in cards:
                return "skip"
            if "shuffle" in cards:
                yield "shuffle"
        return (yield from self.blindly())

    def blindly(self) -> Generator[str, tuple[str, ...], str]:
        """Finish a turn without a defuse card and without a see card."""
        if "shuffle" in self.cards:
            yield "shuffle"
            return "draw"
        if "skip" in self.cards:
            return "skip"
        return "bottom" if "bottom" in self.cards and self.rng.random() > 0.5 else "draw"

    def defuse(self, view: View) -> int:
        self.defused += 1
        if "defuse" in self.cards:
            return 0 if self.rng.random() < 0.75 else self.rng.randint(0, view.pile)
        return view.pile if self.rng.random() < 0.5 else self.rng.randint(0, view.pile)
