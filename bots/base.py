"""BotBase, the base class of bots that answer the five nodes A-E."""

from dubito.game.native import mypyc_attr
from dubito.games.dubito.bot import FiveNodes


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class BotBase(FiveNodes):
    """Subclass this and answer nodes A, C and D; the base class does the rest of the turn.

    B and E return True (as many cards as possible) unless you override them. Each node receives the turn
    data and must return True or False. docs/writing-a-bot.md describes when each node is asked and what
    its answers do.
    """
