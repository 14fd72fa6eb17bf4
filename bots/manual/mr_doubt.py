"""MrDoubt, a bot of the source project isBre/Dubito; its behaviour is the table of docs/bots.md."""

from bots.base import BotBase
from dubito.game_data import TurnData


class MrDoubt(BotBase):
    """Doubts whenever it may; opens honestly or with a bluff, as a coin falls."""

    origin = "isBre/Dubito"

    def bluff_first_hand(self, p: TurnData) -> bool:
        return self.rng.random() < 1 / 2

    def maximize_first_hand(self, p: TurnData) -> bool:
        return True

    def should_doubt(self, p: TurnData) -> bool:
        return True

    def bluff_regular(self, p: TurnData) -> bool:
        return True  # reached only when it may not doubt (R4)

    def maximize_regular(self, p: TurnData) -> bool:
        return True
