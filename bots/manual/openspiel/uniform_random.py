"""UniformRandom: any legal action, each as likely."""

from dubito.games.openspiel.bot import OpenSpielBot
from dubito.games.openspiel.state import View


class UniformRandom(OpenSpielBot):
    """Draws lots."""

    origin = "OpenSpiel"

    def act(self, view: View) -> int:
        return self.rng.choice(view.legal)
