"""What a bot of OpenSpiel's games is: one that chooses among the legal actions."""

from collections.abc import Mapping
from operator import index
from typing import Any, SupportsIndex

from dubito.errors import IllegalOutput
from dubito.game import Player
from dubito.plugins.openspiel.state import SeatView, View


class OpenSpielBot(Player):
    """The base of every bot of OpenSpiel's games; a new instance plays each game.

    `self.id` is the seat, `self.cards` what it sees at any time, `self.rng` the only randomness to use.
    """

    cards: SeatView

    @classmethod
    def cannot_play(cls, engine: Any) -> str | None:
        """Why it cannot play this game of OpenSpiel's, after "it"; None, as by default, if it can."""
        return None

    @classmethod
    def said(cls, engine: Any, settings: Mapping[str, Any]) -> str | None:
        """What a run says of it beside its results; nothing by default."""
        return None

    def act(self, view: View) -> int | str:
        """Your move: the number or the name of a legal action, both in `view.names`."""
        raise IllegalOutput(f"act of {type(self).__name__} is not written yet")

    def play(self, view: View) -> Any:
        """Act, and say it by name."""
        action: Any = self.act(view)
        if isinstance(action, SupportsIndex) and not isinstance(action, bool):
            return view.names.get(index(action), action)
        return action
