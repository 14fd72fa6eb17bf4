"""UsualBot, a bot of the source project isBre/Dubito. docs/bots.md has a table of its behaviour."""

from bots.base import BotBase
from dubito.game_data import TurnData

BLUFF = 0.67
SUSPICION = {1: 0.3, 2: 0.6, 3: 0.9}  # chance of a doubt, by the size of the last play


class UsualBot(BotBase):
    """Bluffs two times in three; never doubts an opening, and doubts larger plays more often."""

    origin = "isBre/Dubito"

    def bluff_first_hand(self, p: TurnData) -> bool:
        return self.rng.random() < BLUFF

    def maximize_first_hand(self, p: TurnData) -> bool:
        return True

    def should_doubt(self, p: TurnData) -> bool:
        if self.prev_player_started_turn(p):
            return False
        if p.prev.n_cards == 0:
            return True
        return self.rng.random() < SUSPICION[p.n_cards_played]

    def bluff_regular(self, p: TurnData) -> bool:
        return self.rng.random() < BLUFF

    def maximize_regular(self, p: TurnData) -> bool:
        return True
