"""Simple, the first bot of the notebook."""

from dubito.games.defuse.bot import DefuseBot
from dubito.games.defuse.engine import View


class Simple(DefuseBot):
    """Draws, whatever happens; puts the bomb anywhere."""

    origin = "the notebook"

    def turn(self, view: View) -> str:
        return "draw"

    def defuse(self, view: View) -> int:
        return self.rng.randint(0, view.pile)
