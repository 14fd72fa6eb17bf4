"""FirstLegal, which takes the legal action with the lowest number."""

from dubito.plugins.openspiel.bot import OpenSpielBot
from dubito.plugins.openspiel.state import View


class FirstLegal(OpenSpielBot):
    """Always takes the first legal action."""

    origin = "OpenSpiel"

    def chances(self, view: View) -> dict[int, float]:
        """Return the probability of each action, for `dubito policy`."""
        return {view.legal[0]: 1.0}

    def act(self, view: View) -> int:
        return view.legal[0]
