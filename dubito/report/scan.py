"""Rates with intervals for figures that a run's stored sums do not cover.

Each rate is a ratio of two counts, y and m. Their totals over the whole run are stored, except those by seat. The width
of an interval requires sums over deals (see `sampled_rate`), which this module computes from the first games. The cards
do not depend on a deal's number, so the first deals are a representative sample. In a small run, they are the whole
run.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, count, islice, repeat
from operator import add, mul
from typing import Final

from dubito.experiment.stored import Run
from dubito.game import Results
from dubito.stats.ranking import seat_sums, sum_measure
from dubito.stats.rates import Rate, Sums, Variation, design_effect, sampled_rate, variation
from dubito.stats.tally import Measured, Outcome, Tally

# Number of games to read. This takes a third of a second and is enough to estimate a width.
SCANNED_GAMES: Final = 10_000

_NO_SUMS: Final = Sums(0, 0, 0, 0, 0, 0)

RateKey = tuple[str | int, ...]
# seats of a deal with the same key, as indexes of their measurements, of which few are distinct
Together = tuple[int, ...]
Seated = tuple[list[list[int]], list[Together]]  # the players in a deal's games, and each seat's measurements
KeysOf = Callable[[list[int]], Iterable[RateKey]]

_SIDES: Final = ("previous", "next")
_KINDS: Final[dict[str, KeysOf]] = {  # the keys of a game's seats, by kind
    "size": lambda seats: zip(seats, repeat(len(seats))),
    "seat": lambda seats: zip(seats, repeat(len(seats)), count()),
    "previous": lambda seats: zip(seats, seats[-1:] + seats[:-1], strict=True),
    "next": lambda seats: zip(seats, seats[1:] + seats[:1], strict=True),
}


class Scan:
    """Rates of a run with intervals, computed from sums over its first deals.

    For each key: the number of deals, m, m^2, y, y^2 and y*m.
    """

    def __init__(self, tally: Tally, deals: Iterable[Sequence[Outcome]], results: Results) -> None:
        """Sum over the deals. `tally` contains the sums over the whole run."""
        self.results = results
        self.games = 0  # number of games that were read
        self._tally = tally
        seated: list[Seated] = []
        counted: defaultdict[int, list[Sequence[int]]] = defaultdict(list)  # counts in each deal, by player
        ways: dict[Measured, Together] = {}
        for outcomes in deals:
            self.games += len(outcomes)
            measured = chain.from_iterable(outcome.measure_seats(results) for outcome in outcomes)
            own = [ways.setdefault(seat, (len(ways),)) for seat in measured]
            seated.append(([outcome.seats for outcome in outcomes], own))
            for player, counts in _sum_counts(outcomes).items():
                counted[player].append(counts)
        seen = {kind: Counter(_group_by_key(seated, keys)) for kind, keys in _KINDS.items()}
        self._sums = _sums_of_seats(seen, [*ways], results) | _sums_of_habits(counted, results)

    @property
    def widths(self) -> list[str]:
        """Notes about the widths of intervals. Empty if all games were read."""
        if self.games == self._tally.games:
            return []
        return [
            f"Rates cover all {self._tally.games:,} games, but the widths of their intervals are estimated from the "
            f"first {self.games:,} games."
        ]

    @property
    def coverage_notes(self) -> list[str]:
        """Notes about rates by seat, which are not stored. Empty if all games were read."""
        if self.games == self._tally.games:
            return []
        return [
            f"Covers only the first {self.games:,} of {self._tally.games:,} games, since runs store no rates by seat."
        ]

    def style(self, player: int, habit: str) -> Rate:
        """Return a player's rate for a habit over all seats, in the habit's own unit if it is not a share."""
        (one,) = (one for one in self.results.habits if one.key == habit)
        whole, most = seat_sums(self._tally, self.results, player), one.most
        rate = sampled_rate(whole[one.count], whole[one.of], self._sample("style", player, habit), most)
        return rate if most == 1 else rate.rescale(most)

    def measure_at_size(self, player: int, size: int, measure: str) -> Rate:
        """Return a player's measure at tables of one size."""
        rated, sample = self.results.measure(measure), self._sample("size", player, size, measure)
        seats = seat_sums(self._tally, self.results, player, size)["games"]
        won = sum_measure(self._tally, self.results, rated, player, size)
        return sampled_rate(won, seats, sample, rated.scale).on_span(rated.span)

    def measure_in_seat(self, player: int, size: int, seat: int, measure: str) -> Rate:
        sums, rated = self._sample("seat", player, size, seat, measure), self.results.measure(measure)
        return sampled_rate(sums.y, sums.m, sums, rated.scale).on_span(rated.span)

    def seats(self, player: int, size: int, seat: int) -> int:
        return self._sample("seat", player, size, seat, self.results.headline[0]).m

    def measure_beside(self, player: int, side: int, other: int, measure: str) -> Rate:
        """Return a measure of a player next to a given neighbour.

        Side 0 is the player seated before it at the deal, and side 1 the player after it.
        """
        sample, rated = self._sample(_SIDES[side], player, other, measure), self.results.measure(measure)
        seats = self._sum_beside(player, side, other)
        y = sum(count * value for count, value in zip(seats, rated.values, strict=True))
        return sampled_rate(y, sum(seats), sample, rated.scale)

    def variation(self, player: int, side: int, players: int) -> Variation:
        """Return how much a player's last headline rate varies with the neighbour on one side."""
        seats = [self._sum_beside(player, side, other) for other in range(players)]
        key = self.results.headline[-1]
        rated = self.results.measure(key)
        effect = design_effect(self._sample(_SIDES[side], player, other, key) for other in range(players))
        won = [
            sum(value * count for value, count in zip(rated.values, buckets, strict=True)) / rated.scale
            for buckets in seats
        ]
        return variation(won, [sum(buckets) for buckets in seats], effect)

    def _sum_beside(self, player: int, side: int, other: int) -> list[int]:
        rows = self._tally.tables["beside"]
        return [rows.get((player, place, side, other), (0,))[0] for place in range(len(self.results.buckets))]

    def _sample(self, *key: str | int) -> Sums:
        return self._sums.get(key, _NO_SUMS)


def scan(source: Run, most: int = SCANNED_GAMES) -> Scan:
    return Scan(source.tally, islice(_deals(source), most // source.planned.games_per_deal), source.game.results)


def _deals(source: Run) -> Iterator[list[Outcome]]:
    games, outcomes = source.planned.games_per_deal, map(source.outcome, source.db.outcomes())
    while deal := list(islice(outcomes, games)):
        yield deal


def _group_by_key(seated: Iterable[Seated], keys_of: KeysOf) -> Iterator[tuple[RateKey, Together]]:
    """Yield, for each deal and key, the measurements of all seats with this key."""
    for games, ways in seated:
        keys = [*chain.from_iterable(map(keys_of, games))]
        values = dict(zip(keys, ways, strict=True))
        if len(values) < len(keys):
            values = {}
            for key, way in zip(keys, ways, strict=True):
                values[key] = values[key] + way if key in values else way
        yield from values.items()


def _sum_counts(outcomes: Iterable[Outcome]) -> dict[int, Sequence[int]]:
    counted: dict[int, Sequence[int]] = {}
    for outcome in outcomes:
        for player, counts in zip(outcome.seats, outcome.counts, strict=True):
            counted[player] = [*map(add, counted[player], counts)] if player in counted else counts
    return counted


def _sums_of_seats(
    seen: Mapping[str, Mapping[tuple[RateKey, Together], int]], measures: Sequence[Measured], results: Results
) -> dict[RateKey, Sums]:
    """Sum each measure by size, seat and neighbour.

    `seen` counts the deals that had the same measurements for a key.
    """
    places = [(place, measure.key) for place, measure in enumerate(results.measures)]
    headline = [(place, key) for place, key in places if key in results.headline]
    sums: defaultdict[RateKey, list[int]] = defaultdict(lambda: [0] * 6)
    for kind, counts in seen.items():
        for (key, together), deals in counts.items():
            m = len(together)
            for place, measure in places if kind == "size" else headline:
                own, y = sums[kind, *key, measure], sum(measures[one][place] for one in together)
                for at, value in enumerate((1, m, m * m, y, y * y, y * m)):
                    own[at] += deals * value
    return {key: Sums(*own) for key, own in sums.items()}


def _sums_of_habits(counted: Mapping[int, Sequence[Sequence[int]]], results: Results) -> dict[RateKey, Sums]:
    sums: dict[RateKey, Sums] = {}
    for player, deals in counted.items():
        columns = dict(zip(results.counts, zip(*deals, strict=True), strict=True))
        for habit in results.habits:
            m, y = columns[habit.of], columns[habit.count]
            products = (sum(map(mul, one, other)) for one, other in ((m, m), (y, y), (y, m)))
            m2, y2, ym = products
            sums["style", player, habit.key] = Sums(len(m) - m.count(0), sum(m), m2, sum(y), y2, ym)
    return sums
