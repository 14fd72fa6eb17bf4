"""UniformRandom: any legal action, each as likely."""

from dubito.plugins.openspiel.bot import OpenSpielBot
from dubito.plugins.openspiel.state import View


class UniformRandom(OpenSpielBot):
    """Draws lots."""

    origin = "OpenSpiel"

    def chances(self, view: View) -> dict[int, float]:
        """Its whole way to play, for `dubito policy`."""
        return {action: 1 / len(view.legal) for action in view.legal}

    def act(self, view: View) -> int:
        return self.rng.choice(view.legal)
