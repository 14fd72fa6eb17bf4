"""Careful, a bot for Kuhn poker."""

from games.kuhn.game import KuhnBot, KuhnView


class Careful(KuhnBot):
    """Bets the king, calls with the queen every other time, folds the jack."""

    def act(self, view: KuhnView) -> str:
        if self.cards == "king":
            return "bet"
        called = self.cards == "queen" and view.acts[-1:] == ("bet",) and self.rng.random() < 0.5
        return "bet" if called else "pass"
