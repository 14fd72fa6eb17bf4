"""Mumbler, a bot for Outsider."""

from games.outsider.game import OutsiderBot, OutsiderView


class Mumbler(OutsiderBot):
    """Says almost nothing, and votes at random."""

    def hint(self, view: OutsiderView) -> str:
        return self.rng.choice(["Hm, yes.", "What can I say.", "You know it when you see it."])

    def vote(self, view: OutsiderView) -> str:
        return self.rng.choice(view.others)
