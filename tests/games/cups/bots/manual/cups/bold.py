"""Bold, a bot for Cups."""

from games.cups.game import CupsBot, CupsView


class Bold(CupsBot):
    """Calls high dice as soon as it can."""

    def act(self, view: CupsView) -> str:
        if "call" in view.legal() and sum(self.cards.dice) > 8:
            return "call"
        return "roll" if self.rng.random() < 0.5 else "stay"
