"""A bot for OpenSpiel's games: change its answers.

It is known by the name of its class.
"""

from dubito.plugins.openspiel.bot import OpenSpielBot
from dubito.plugins.openspiel.state import View


class MyBot(OpenSpielBot):
    """Takes a random legal action (`dubito bots` shows this line)."""

    origin = "your name"

    def act(self, view: View) -> int:
        # view.names has the legal actions, number -> name; view.sees is the engine's string, view.tensor its numbers.
        return self.rng.choice(view.legal)
