"""AlwaysTruthful, a bot of the source project isBre/Dubito. docs/bots.md has a table of its behaviour."""

from bots.base import BotBase
from dubito.game_data import TurnData


class AlwaysTruthful(BotBase):
    """Plays honestly when it can and doubts when it cannot."""

    origin = "isBre/Dubito"

    def bluff_first_hand(self, p: TurnData) -> bool:
        return False

    def maximize_first_hand(self, p: TurnData) -> bool:
        return True

    def should_doubt(self, p: TurnData) -> bool:
        return not self.can_play_truthfully(p)

    def bluff_regular(self, p: TurnData) -> bool:
        return False

    def maximize_regular(self, p: TurnData) -> bool:
        return True
