"""Echo, a bot for Outsider."""

from games.outsider.game import OutsiderBot, OutsiderView


class Echo(OutsiderBot):
    """Says what it heard last, and suspects whoever said it."""

    def hint(self, view: OutsiderView) -> str:
        """The first to speak has nothing to repeat."""
        return view.said[-1] if view.said else "After you."

    def vote(self, view: OutsiderView) -> str:
        """The seat before its own, which it may have repeated."""
        return view.others[self.id - 1]
