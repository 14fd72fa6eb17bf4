"""Mumbler, a bot for Outsider."""

from games.outsider.game import OutsiderBot, OutsiderView


class Mumbler(OutsiderBot):
    """Says next to nothing, and votes for anybody."""

    def hint(self, view: OutsiderView) -> str:
        """No word gives it away."""
        return self.rng.choice(["Hm, yes.", "What can I say.", "You know it when you see it."])

    def vote(self, view: OutsiderView) -> str:
        """By lot."""
        return self.rng.choice(view.others)
