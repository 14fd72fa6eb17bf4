"""Scared, the second bot of the notebook."""

from collections.abc import Generator

from dubito.games.defuse.bot import DefuseBot
from dubito.games.defuse.engine import View


class Scared(DefuseBot):
    """Draws until a bomb is defused or seen, then dodges with every card it has; puts the bomb on top."""

    origin = "the notebook"

    def __init__(self, id: int) -> None:
        super().__init__(id)
        self.scared = False
        self.defused = 0  # defuse cards played so far, by both

    def turn(self, view: View) -> Generator[str, tuple[str, ...], str]:
        cards, played = self.cards, view.discard.count("defuse")
        if played > self.defused:  # the other player may have put the bomb on top
            self.defused = played
            self.scared = True
        if not self.scared:
            if "defuse" in cards:
                return "draw"
            if "see" in cards:
                top = yield "see"
                if "bomb" in top:
                    self.scared = True
                if top[0] != "bomb":
                    return "draw"
        if "shuffle" in cards:
            yield "shuffle"
            self.scared = False
            return "draw"
        if "skip" in cards:
            return "skip"
        return "bottom" if "bottom" in cards else "draw"

    def defuse(self, view: View) -> int:
        self.scared = True
        self.defused += 1
        return 0
