"""A bot of OpenSpiel's games to start from: copy it to bots/manual/openspiel/my_bot.py, then change what it does.

File and class have one name (my_bot.py, MyBot); files that start with _ are no bots.
"""

from dubito.plugins.openspiel.bot import OpenSpielBot
from dubito.plugins.openspiel.state import View


class MyBot(OpenSpielBot):
    """One sentence for `dubito bots`: any legal action."""

    origin = "your name"

    def act(self, view: View) -> int:
        # view.names has the legal actions, number -> name; view.sees is the engine's string, view.tensor its numbers.
        return self.rng.choice(view.legal)
