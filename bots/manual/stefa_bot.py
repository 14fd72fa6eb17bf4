"""StefaBot, a bot of the source project isBre/Dubito. docs/bots.md has a table of its behaviour."""

from bots.base import BotBase
from dubito.game_data import TurnData


class StefaBot(BotBase):
    """Doubts openings and plays of three cards; otherwise flips a coin between honest and bluff."""

    origin = "isBre/Dubito"

    def bluff_first_hand(self, p: TurnData) -> bool:
        return self.rng.random() < 1 / 2

    def maximize_first_hand(self, p: TurnData) -> bool:
        return True

    def should_doubt(self, p: TurnData) -> bool:
        return self.prev_player_started_turn(p) or p.n_cards_played == 3

    def bluff_regular(self, p: TurnData) -> bool:
        return self.rng.random() < 1 / 2

    def maximize_regular(self, p: TurnData) -> bool:
        return True
