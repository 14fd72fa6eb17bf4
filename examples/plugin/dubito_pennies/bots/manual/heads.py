"""The simplest bot."""

from typing import Any

from dubito.game import Player


class Heads(Player):
    """Always chooses heads."""

    def play(self, view: Any) -> str:
        return "heads"
