"""SusBoi, a bot of the source project isBre/Dubito. docs/bots.md has a table of its behaviour."""

from bots.base import BotBase
from dubito.game_data import TurnData

SUSPICION = {1: 0.3, 2: 0.6, 3: 0.9}  # chance of a doubt, by the size of the last play


class SusBoi(BotBase):
    """Always honest; doubts large plays more often, and always doubts if it would have to bluff."""

    origin = "isBre/Dubito"

    def bluff_first_hand(self, p: TurnData) -> bool:
        return False

    def maximize_first_hand(self, p: TurnData) -> bool:
        return True

    def should_doubt(self, p: TurnData) -> bool:
        suspicious = self.rng.random() < SUSPICION[p.n_cards_played]
        return suspicious or not self.can_play_truthfully(p)

    def bluff_regular(self, p: TurnData) -> bool:
        return False

    def maximize_regular(self, p: TurnData) -> bool:
        return True
