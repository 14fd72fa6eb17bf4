"""UniformRandom, which takes every legal action with the same probability."""

from dubito.plugins.openspiel.bot import OpenSpielBot
from dubito.plugins.openspiel.state import View


class UniformRandom(OpenSpielBot):
    """Takes a random legal action."""

    origin = "OpenSpiel"

    def chances(self, view: View) -> dict[int, float]:
        """Return the probability of each action, for `dubito policy`."""
        return {action: 1 / len(view.legal) for action in view.legal}

    def act(self, view: View) -> int:
        return self.rng.choice(view.legal)
