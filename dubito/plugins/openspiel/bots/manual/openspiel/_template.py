"""A starting point for OpenSpiel's games: copy it to bots/manual/openspiel/my_bot.py and change it.

The class is named after its file (my_bot.py, MyBot). Files that start with _ are ignored.
"""

from dubito.plugins.openspiel.bot import OpenSpielBot
from dubito.plugins.openspiel.state import View


class MyBot(OpenSpielBot):
    """Takes a random legal action (`dubito bots` shows this line)."""

    origin = "your name"

    def act(self, view: View) -> int:
        # view.names has the legal actions, number -> name; view.sees is the engine's string, view.tensor its numbers.
        return self.rng.choice(view.legal)
