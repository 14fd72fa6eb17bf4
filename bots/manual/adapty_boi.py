"""AdaptyBoi, a bot of the source project isBre/Dubito; its behaviour is the table of docs/bots.md."""

from bots.base import BotBase
from dubito.game_data import TurnData, TurnOutput


class AdaptyBoi(BotBase):
    """Adapts to its neighbours: bluffs when next seldom doubts, doubts when prev was seldom honest."""

    origin = "isBre/Dubito"

    def __init__(self, id: int) -> None:
        super().__init__(id)
        self.honesty = 0.5  # of prev, among its doubted plays
        self.doubting = 0.5  # of next, per turn on which it could

    def play(self, p: TurnData) -> TurnOutput:
        """Bring both estimates up to date; a neighbour without data leaves them as they are."""
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
