"""Timid, a bot for Cups."""

from games.cups.game import CupsBot, CupsView


class Timid(CupsBot):
    """Rerolls low dice, and calls late."""

    def act(self, view: CupsView) -> str:
        if sum(self.cards.dice) < 7:
            return "roll"
        return "call" if view.turns > 2 * view.seats else "stay"
