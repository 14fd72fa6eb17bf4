"""A fair coin."""

from typing import Any

from dubito.game import Player


class Coin(Player):
    """Tosses a coin."""

    def play(self, view: Any) -> str:
        return "heads" if self.rng.random() < 0.5 else "tails"
