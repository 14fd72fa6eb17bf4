"""JustPutCards, a bot of the source project isBre/Dubito; its behaviour is the table of docs/bots.md."""

from bots.base import BotBase
from dubito.game_data import TurnData


class JustPutCards(BotBase):
    """Puts down three random cards, always, whatever was said."""

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
