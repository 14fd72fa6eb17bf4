"""BotBase: a strategy is its answers at the five nodes A-E."""

from dubito.game.native import mypyc_attr
from dubito.games.dubito.bot import FiveNodes


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class BotBase(FiveNodes):
    """Subclass this and answer the nodes A, C and D; everything else of a turn is done for you.

    B and E answer True, as many cards as possible, unless you write them too. Each node gets the turn
    data and returns exactly True or False; docs/writing-a-bot.md says when it is asked and what the
    answer does.
    """
