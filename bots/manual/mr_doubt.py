"""MrDoubt, a bot of the source project isBre/Dubito. docs/bots.md has a table of its behaviour."""

from bots.base import BotBase
from dubito.game_data import TurnData


class MrDoubt(BotBase):
    """Doubts whenever it may; flips a coin between opening honestly and with a bluff."""

    origin = "isBre/Dubito"

    def bluff_first_hand(self, p: TurnData) -> bool:
        return self.rng.random() < 1 / 2

    def maximize_first_hand(self, p: TurnData) -> bool:
        return True

    def should_doubt(self, p: TurnData) -> bool:
        return True

    def bluff_regular(self, p: TurnData) -> bool:
        return True  # asked only if it may not doubt (R4)

    def maximize_regular(self, p: TurnData) -> bool:
        return True
