"""BotBase: a strategy is its answers at the five nodes A-E."""

from dubito.player import FiveNodes


class BotBase(FiveNodes):
    """Subclass this and answer the five nodes; everything else of a turn is done for you.

    Each node gets the turn data and returns exactly True or False; docs/writing-a-bot.md says when it
    is asked and what the answer does.
    """
