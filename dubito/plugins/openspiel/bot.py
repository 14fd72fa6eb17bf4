"""The base class of bots for OpenSpiel's games. A bot chooses one of the legal actions."""

from collections.abc import Mapping
from operator import index
from typing import SupportsIndex

from dubito.errors import IllegalOutput
from dubito.game import Player
from dubito.plugins.openspiel.engine_types import Engine
from dubito.plugins.openspiel.state import SeatView, View


class OpenSpielBot(Player):
    """The base class of bots for OpenSpiel's games. Each game uses a new instance.

    `self.id` is the seat, `self.cards` what the seat currently sees, and `self.rng` the only source of randomness to
    use.
    """

    cards: SeatView

    @classmethod
    def cannot_play(cls, engine: Engine) -> str | None:
        """Return why the bot cannot play this game, as a phrase to follow its name, or None (the default)."""
        return None

    @classmethod
    def describe(cls, engine: Engine, settings: Mapping[str, object]) -> str | None:
        """Return what a run reports about the bot in addition to its results. Empty by default."""
        return None

    def act(self, view: View) -> int | str:
        """Return the number or the name of a legal action. `view.names` contains both."""
        raise IllegalOutput(f"{type(self).__name__} does not implement act")

    def play(self, view: View) -> object:
        """Choose an action and return its name."""
        action: object = self.act(view)
        if isinstance(action, SupportsIndex) and not isinstance(action, bool):
            return view.names.get(index(action), action)
        return action
