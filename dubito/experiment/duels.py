"""Games of two: who wins against whom in which seat, and what it is worth to go first."""

from dataclasses import dataclass

from dubito.experiment.statistics import Rate, clustered_rate
from dubito.experiment.tally import ANYBODY, BOTH, Tally
from dubito.game import Measure, Results


@dataclass(frozen=True, slots=True)
class Duels:
    """One measure of a run's games of two."""

    tally: Tally
    results: Results
    measure: Measure

    def games(self, player: int, other: int = ANYBODY, seat: int = BOTH) -> int:
        """How many games a player has had so seated."""
        row = self.tally.tables.get("seated", {}).get((player, other, seat))
        return row[1] if row else 0

    def rate(self, player: int, other: int = ANYBODY, seat: int = BOTH) -> Rate:
        """The measure of a player against another one, as first (seat 0) or second."""
        row = self.tally.tables.get("seated", {}).get((player, other, seat))
        return self._rate(row, self.measure.scale).on(self.measure.span)

    def advantage(self) -> Rate:
        """How much more of the measure, a game, the first seat gets than the second."""
        least, most = self.measure.span or (0, 1)
        rate = self._rate(self.tally.tables.get("begun", {}).get(()), 2 * self.measure.scale)
        return rate.on((least - most, most - least))

    def _rate(self, row: list[int] | None, scale: int) -> Rate:
        if row is None:
            return Rate(None)
        place = 3 + 3 * self.results.place(self.measure.key)
        deals, m, m2 = row[:3]
        y, y2, ym = row[place : place + 3]
        return clustered_rate(deals, m, m2, y, y2, ym, scale)
