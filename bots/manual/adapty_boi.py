"""AdaptyBoi, a bot of the source project isBre/Dubito. docs/bots.md has a table of its behaviour."""

from bots.base import BotBase
from dubito.game_data import TurnData, TurnOutput


class AdaptyBoi(BotBase):
    """Bluffs when the next player seldom doubts, and doubts when the previous player is seldom honest."""

    origin = "isBre/Dubito"

    def __init__(self, id: int) -> None:
        super().__init__(id)
        self.honesty = 0.5  # share of prev's doubted plays that were honest
        self.doubting = 0.5  # share of turns on which next doubted, when it could

    def play(self, p: TurnData) -> TurnOutput:
        """Update both estimates, as far as there is data, and play."""
        doubted = p.prev.honest_times + p.prev.dishonest_times
        if doubted:
            self.honesty = self._clipped(p.prev.honest_times / doubted)
        if p.next.not_first_turns:
            self.doubting = self._clipped(p.next.doubts / p.next.not_first_turns)
        return super().play(p)

    def bluff_first_hand(self, p: TurnData) -> bool:
        return self.rng.random() < 1 - self.doubting

    def maximize_first_hand(self, p: TurnData) -> bool:
        return True

    def should_doubt(self, p: TurnData) -> bool:
        if self.rng.random() < 1 - self.honesty:
            return True
        forced = self.rng.random() < self.doubting and not self.can_play_truthfully(p)
        return forced and self.honesty <= self.doubting

    def bluff_regular(self, p: TurnData) -> bool:
        return self.rng.random() < 1 - self.doubting

    def maximize_regular(self, p: TurnData) -> bool:
        return True

    def _clipped(self, rate: float) -> float:
        return min(max(rate, self.uncertainty_value), 1 - self.uncertainty_value)
