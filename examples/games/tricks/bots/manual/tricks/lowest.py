"""Lowest, a bot for Tricks."""

from games.tricks.game import CARDS, TricksBot, TricksView


class Lowest(TricksBot):
    """Plays its first legal card in the order of suits, then ranks."""

    def play_card(self, view: TricksView) -> str:
        return min(view.legal(), key=CARDS.index)
