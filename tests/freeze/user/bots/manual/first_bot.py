from bots.base import BotBase
from dubito.game_data import TurnData


class FirstBot(BotBase):
    """Honest when it can be; doubts claims that cannot be true."""

    def bluff_first_hand(self, p: TurnData) -> bool:
        return False

    def should_doubt(self, p: TurnData) -> bool:
        return p.n_cards_played + self.cards.count(p.current_number) > 4

    def bluff_regular(self, p: TurnData) -> bool:
        return False
