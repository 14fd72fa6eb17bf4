"""RandomBoi, a bot of the source project isBre/Dubito. docs/bots.md has a table of its behaviour."""

from bots.base import BotBase
from dubito.game_data import TurnData


class RandomBoi(BotBase):
    """Plays few cards; doubts, bluffs or is honest about a third of the time each. The weakest bot."""

    origin = "isBre/Dubito"

    def bluff_first_hand(self, p: TurnData) -> bool:
        return self.rng.random() < 1 / 2

    def maximize_first_hand(self, p: TurnData) -> bool:
        return False

    def should_doubt(self, p: TurnData) -> bool:
        return self.rng.random() < (1 / 3 if self.can_play_truthfully(p) else 1 / 2)

    def bluff_regular(self, p: TurnData) -> bool:
        return self.rng.random() < 1 / 2

    def maximize_regular(self, p: TurnData) -> bool:
        return False
