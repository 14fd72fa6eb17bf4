"""MrNoDoubt, a bot of the source project isBre/Dubito; its behaviour is the table of docs/bots.md."""

from bots.base import BotBase
from dubito.game_data import TurnData


class MrNoDoubt(BotBase):
    """Never doubts: plays the truth when it can, bluffs three cards when it cannot."""

    origin = "isBre/Dubito"

    def bluff_first_hand(self, p: TurnData) -> bool:
        return False

    def maximize_first_hand(self, p: TurnData) -> bool:
        return True

    def should_doubt(self, p: TurnData) -> bool:
        return False

    def bluff_regular(self, p: TurnData) -> bool:
        return False

    def maximize_regular(self, p: TurnData) -> bool:
        return True
