"""Highest, a bot for Stacks."""

from games.stacks.game import StacksBot, View


class Highest(StacksBot):
    """Plays its highest card."""

    def lay(self, view: View) -> list[int]:
        return [max(self.cards.held)]
