"""What a run's stored sums do not hold, added up from its first games, deal by deal.

Each rate is a ratio of two counts, m and y. What they come to over the whole run is in its sums, except by seat; how
wide the interval of the rate is follows from the sums over deals that `sampled_rate` takes, which are those of the
first games. A deal does not know its number, so the first ones are a fair sample; in a run of no more games they
are all of it.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from dubito.experiment.outcome import Outcome, unpack
from dubito.experiment.results import seat_sums, sum_of
from dubito.experiment.statistics import Rate, Sums, sampled_rate
from dubito.experiment.stored import StoredRun
from dubito.experiment.tally import Tally
from dubito.experiment.variation import Variation, design_effect, variation
from dubito.game import Results

SCANNED: Final = 20_000  # games: so many are read in seconds, and are enough to know a width by

_NOTHING: Final = Sums(0, 0, 0, 0, 0, 0)

RateKey = tuple[str | int, ...]


class Scan:
    """Rates of a run with their intervals: of each key the deals, m, m^2, y, y^2 and y*m over its first deals."""

    def __init__(self, tally: Tally, deals: Iterable[Sequence[Outcome]], results: Results) -> None:
        """`tally` are the sums of the whole run."""
        self.results = results
        self.games = 0  # that were added up
        self._tally = tally
        sums: defaultdict[RateKey, list[int]] = defaultdict(lambda: [0] * 6)
        for outcomes in deals:
            self.games += len(outcomes)
            for key, (m, y) in _counted(outcomes, results).items():
                if m:
                    own = sums[key]
                    own[0] += 1
                    own[1] += m
                    own[2] += m * m
                    own[3] += y
                    own[4] += y * y
                    own[5] += y * m
        self._sums = {key: Sums(*own) for key, own in sums.items()}

    @property
    def widths(self) -> list[str]:
        """What a reader must know of the intervals; nothing if every game was added up."""
        if self.games == self._tally.games:
            return []
        return [
            f"Rates are those of all {self._tally.games:,} games. How wide their intervals are is known from the first "
            f"{self.games:,}: as wide as if all games varied as these do."
        ]

    @property
    def missing(self) -> list[str]:
        """What a reader must know of the seats, which a run's sums do not hold."""
        if self.games == self._tally.games:
            return []
        return [f"Of the first {self.games:,} of {self._tally.games:,} games: a run's sums do not hold the seats."]

    def style(self, player: int, habit: str) -> Rate:
        """A habit of the game over all seats of a player, what is no share in its own unit."""
        (one,) = (one for one in self.results.habits if one.key == habit)
        whole, most = seat_sums(self._tally, self.results, player), one.most
        rate = sampled_rate(whole[one.count], whole[one.of], self._sample("style", player, habit), most)
        return rate if rate.value is None else Rate(rate.value * most, rate.low * most, rate.high * most)

    def sized(self, player: int, size: int, measure: str) -> Rate:
        """A measure of a player at tables of a size."""
        rated, sample = self.results.measure(measure), self._sample("size", player, size, measure)
        seats = seat_sums(self._tally, self.results, player, size)["games"]
        won = sum_of(self._tally, self.results, rated, player, size)
        return sampled_rate(won, seats, sample, rated.scale).on(rated.span)

    def seated(self, player: int, size: int, seat: int, measure: str) -> Rate:
        """The same in one seat, over the first games; the first seat opens."""
        sums, rated = self._sample("seat", player, size, seat, measure), self.results.measure(measure)
        return sampled_rate(sums.y, sums.m, sums, rated.scale).on(rated.span)

    def seats(self, player: int, size: int, seat: int) -> int:
        """How often a player sat there, in the first games."""
        return self._sample("seat", player, size, seat, self.results.headline[0]).m

    def beside(self, player: int, side: int, other: int, measure: str) -> Rate:
        """A measure of a player with this one before (side 0) or after (side 1) it at the deal."""
        sample, rated = self._sample("beside", player, side, other, measure), self.results.measure(measure)
        seats = self._beside(player, side, other)
        y = sum(count * value for count, value in zip(seats, rated.values, strict=True))
        return sampled_rate(y, sum(seats), sample, rated.scale)

    def variation(self, player: int, side: int, players: int) -> Variation:
        """How a player's last headline rate varies over who sits at that side, of so many players."""
        seats = [self._beside(player, side, other) for other in range(players)]
        key = self.results.headline[-1]
        values = self.results.measure(key).values
        effect = design_effect(self._sample("beside", player, side, other, key) for other in range(players))
        won = [sum(value * count for value, count in zip(values, buckets, strict=True)) for buckets in seats]
        return variation(won, [sum(buckets) for buckets in seats], effect)

    def _beside(self, player: int, side: int, other: int) -> list[int]:
        """How many of these seats had each result, in the whole run."""
        rows = self._tally.tables["beside"]
        return [rows.get((player, place, side, other), (0,))[0] for place in range(len(self.results.buckets))]

    def _sample(self, *key: str | int) -> Sums:
        return self._sums.get(key, _NOTHING)


def scan(source: StoredRun, most: int = SCANNED) -> Scan:
    """The rates of a run, their widths from at most so many of its games, in whole deals."""
    return Scan(source.tally, islice(_deals(source), most // source.games_per_deal), source.game.results)


def _deals(source: StoredRun) -> Iterator[list[Outcome]]:
    results = source.game.results
    outcomes = (unpack(row, results) for row in source.db.outcomes())
    while deal := list(islice(outcomes, source.games_per_deal)):
        yield deal


def _counted(outcomes: Iterable[Outcome], results: Results) -> dict[RateKey, list[int]]:
    """What one deal adds: of each key m and y."""
    counted: defaultdict[RateKey, list[int]] = defaultdict(lambda: [0, 0])

    def add(key: RateKey, m: int, y: int) -> None:
        both = counted[key]
        both[0] += m
        both[1] += y

    habits = [(one.key, results.counts.index(one.count), results.counts.index(one.of)) for one in results.habits]
    keys, headline = [measure.key for measure in results.measures], [*map(results.place, results.headline)]
    for outcome in outcomes:
        seats, n = outcome.seats, len(outcome.seats)
        for seat, (player, rated) in enumerate(zip(seats, outcome.measured(results), strict=True)):
            counts = outcome.counts[seat]
            for habit, y, m in habits:
                add(("style", player, habit), counts[m], counts[y])
            for key, value in zip(keys, rated, strict=True):
                add(("size", player, n, key), 1, value)
            for place in headline:
                key, value = keys[place], rated[place]
                add(("seat", player, n, seat, key), 1, value)
                add(("beside", player, 0, seats[seat - 1], key), 1, value)
                add(("beside", player, 1, seats[seat + 1 - n], key), 1, value)
    return counted
