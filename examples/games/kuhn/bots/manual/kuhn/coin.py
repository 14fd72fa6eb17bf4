"""Coin, a bot for Kuhn poker."""

from games.kuhn.game import KuhnBot, KuhnView


class Coin(KuhnBot):
    """Tosses a coin."""

    def act(self, view: KuhnView) -> str:
        return "bet" if self.rng.random() < 0.5 else "pass"
