"""FirstLegal: the legal action of the lowest number."""

from dubito.games.openspiel.bot import OpenSpielBot
from dubito.games.openspiel.state import View


class FirstLegal(OpenSpielBot):
    """Always does the first thing that it may."""

    origin = "OpenSpiel"

    def act(self, view: View) -> int:
        return view.legal[0]
