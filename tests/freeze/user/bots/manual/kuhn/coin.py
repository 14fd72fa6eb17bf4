"""Coin, a bot for Kuhn poker."""

from games.kuhn.spec import KuhnBot, KuhnView


class Coin(KuhnBot):
    """Tosses a coin."""

    def act(self, view: KuhnView) -> str:
        """It bets on heads."""
        return "bet" if self.rng.random() < 0.5 else "pass"
