"""FirstLegal: the legal action of the lowest number."""

from dubito.plugins.openspiel.bot import OpenSpielBot
from dubito.plugins.openspiel.state import View


class FirstLegal(OpenSpielBot):
    """Always does the first thing that it may."""

    origin = "OpenSpiel"

    def chances(self, view: View) -> dict[int, float]:
        """Its whole way to play, for `dubito policy`."""
        return {view.legal[0]: 1.0}

    def act(self, view: View) -> int:
        return view.legal[0]
