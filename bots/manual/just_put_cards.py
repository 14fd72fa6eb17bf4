"""JustPutCards, a bot of the source project isBre/Dubito. docs/bots.md has a table of its behaviour."""

from bots.base import BotBase
from dubito.game_data import TurnData


class JustPutCards(BotBase):
    """Always plays three random cards, whatever was claimed."""

    origin = "isBre/Dubito"

    def bluff_first_hand(self, p: TurnData) -> bool:
        return True

    def maximize_first_hand(self, p: TurnData) -> bool:
        return True

    def should_doubt(self, p: TurnData) -> bool:
        return False

    def bluff_regular(self, p: TurnData) -> bool:
        return True

    def maximize_regular(self, p: TurnData) -> bool:
        return True
