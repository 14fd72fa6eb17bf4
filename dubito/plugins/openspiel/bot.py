"""The base class of bots for OpenSpiel's games: a bot chooses among the legal actions."""

from collections.abc import Mapping
from operator import index
from typing import Any, SupportsIndex

from dubito.errors import IllegalOutput
from dubito.game import Player
from dubito.plugins.openspiel.state import SeatView, View


class OpenSpielBot(Player):
    """The base class of bots for OpenSpiel's games. Each game has a new instance.

    `self.id` is the seat, `self.cards` what the seat sees at any time, and `self.rng` the only randomness to use.
    """

    cards: SeatView

    @classmethod
    def cannot_play(cls, engine: Any) -> str | None:
        """Return why the bot cannot play this game, as words after its name; None, the default, if it can."""
        return None

    @classmethod
    def describe(cls, engine: Any, settings: Mapping[str, Any]) -> str | None:
        """Return what a run reports about the bot in addition to its results; nothing by default."""
        return None

    def act(self, view: View) -> int | str:
        """Return the number or the name of a legal action; `view.names` has both."""
        raise IllegalOutput(f"act of {type(self).__name__} is not written yet")

    def play(self, view: View) -> Any:
        """Act, and return the action's name."""
        action: Any = self.act(view)
        if isinstance(action, SupportsIndex) and not isinstance(action, bool):
            return view.names.get(index(action), action)
        return action
