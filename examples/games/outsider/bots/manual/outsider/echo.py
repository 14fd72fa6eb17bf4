"""Echo, a bot for Outsider."""

from games.outsider.game import OutsiderBot, OutsiderView


class Echo(OutsiderBot):
    """Repeats the last sentence, and suspects the seat before its own."""

    def hint(self, view: OutsiderView) -> str:
        return view.said[-1] if view.said else "After you."

    def vote(self, view: OutsiderView) -> str:
        return view.others[self.id - 1]
