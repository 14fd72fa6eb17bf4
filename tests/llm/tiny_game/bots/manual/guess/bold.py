"""Bold, a bot for the guessing game."""

from typing import Any

from dubito.game import Player


class Bold(Player):
    """Plays the last legal move, and all of its cards."""

    origin = "the tests"

    def play(self, view: Any) -> Any:
        return self.cards if view.node == "stake" else view.legal[-1]
