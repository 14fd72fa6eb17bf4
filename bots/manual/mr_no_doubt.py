"""MrNoDoubt, a bot of the source project isBre/Dubito. docs/bots.md has a table of its behaviour."""

from bots.base import BotBase
from dubito.game_data import TurnData


class MrNoDoubt(BotBase):
    """Never doubts; plays honestly when it can and bluffs with three cards when it cannot."""

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
