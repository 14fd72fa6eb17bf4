"""RiskCounter, a bot of the source project isBre/Dubito. docs/bots.md has a table of its behaviour."""

from bots.base import BotBase
from dubito.game_data import TurnData

HIGHEST = 0.99


class RiskCounter(BotBase):
    """Bluffs more when the next player holds few cards (openings) or the board is large (later plays)."""

    origin = "isBre/Dubito"

    def bluff_first_hand(self, p: TurnData) -> bool:
        return self.rng.random() < self._opening_risk(p)

    def maximize_first_hand(self, p: TurnData) -> bool:
        return True

    def should_doubt(self, p: TurnData) -> bool:
        if p.prev.n_cards == 0:
            return True
        return not self.can_play_truthfully(p) and self.rng.random() < 1 - self._board_risk(p)

    def bluff_regular(self, p: TurnData) -> bool:
        return self.rng.random() < self._board_risk(p)

    def maximize_regular(self, p: TurnData) -> bool:
        return True

    def _opening_risk(self, p: TurnData) -> float:
        risk = 1.0 if self.cards.all_equal() else 1 - p.next.n_cards**2 / 30
        return min(max(risk, 0.0), HIGHEST)

    def _board_risk(self, p: TurnData) -> float:
        return min(p.board_cards**2 / 40, HIGHEST)
