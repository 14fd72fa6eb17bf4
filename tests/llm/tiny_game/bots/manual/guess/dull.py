"""Dull, a bot for the guessing game."""

from typing import Any

from dubito.game import Player


class Dull(Player):
    """Plays the first legal move, and the first of its cards."""

    origin = "the tests"

    def play(self, view: Any) -> Any:
        return (self.cards[0],) if view.node == "stake" else view.legal[0]
