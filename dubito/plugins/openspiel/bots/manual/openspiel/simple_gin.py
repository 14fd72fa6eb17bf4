"""SimpleGin, OpenSpiel's rule-based bot for gin rummy."""

from typing import Any

from dubito.plugins.openspiel.bot import OpenSpielBot
from dubito.plugins.openspiel.engine import pyspiel
from dubito.plugins.openspiel.state import View


class SimpleGin(OpenSpielBot):
    """Draws what lowers its deadwood, discards what adds most to it, and knocks as soon as it may."""

    origin = "OpenSpiel"

    _bot: Any = None

    @classmethod
    def cannot_play(cls, engine: Any) -> str | None:
        return None if engine.get_type().short_name == "gin_rummy" else "plays openspiel:gin_rummy only"

    def act(self, view: View) -> int:
        if self._bot is None:
            self._bot = pyspiel().make_simple_gin_rummy_bot(view.parameters, self.id)
        return view.asked_of(self._bot)
