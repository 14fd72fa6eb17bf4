"""Lowest, a bot for Stacks."""

from games.stacks.game import StacksBot, View


class Lowest(StacksBot):
    """Plays its lowest card."""

    def lay(self, view: View) -> list[int]:
        return [min(self.cards.held)]
