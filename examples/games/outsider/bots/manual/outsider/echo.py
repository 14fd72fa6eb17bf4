"""Echo, a bot for Outsider."""

from games.outsider.game import OutsiderBot, View


class Echo(OutsiderBot):
    """Says what it heard last, and suspects whoever said it."""

    def hint(self, view: View) -> str:
        """The first to speak has nothing to repeat."""
        return view.said[-1] if view.said else "After you."

    def vote(self, view: View) -> str:
        """The seat before its own, which it may have repeated."""
        return view.others[self.id - 1]
