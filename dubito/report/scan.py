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

from dubito.experiment.outcome import COUNTS, RESULTS, Outcome, unpack
from dubito.experiment.results import seat_sums
from dubito.experiment.statistics import Rate, Sums, sampled_rate
from dubito.experiment.stored import StoredRun
from dubito.experiment.tally import MEASURES, SCALES, Tally, measures_of
from dubito.experiment.variation import Variation, design_effect, variation
from dubito.games.dubito.core_game import Result

SCANNED: Final = 20_000  # games: so many are read in seconds, and are enough to know a width by

STYLE: Final = {  # of which counts a habit is the ratio, and how many of the first there can be to one of the second
    "bluff": ("bluffs", "play_turns", 1),
    "caught": ("bluff_caught", "bluffs", 1),
    "doubt": ("doubts", "not_first_turns", 1),
    "accuracy": ("successful_doubts", "doubts", 1),
    "cards": ("cards_played", "play_turns", 3),
}
_STYLE_PLACES: Final = [(name, COUNTS.index(y), COUNTS.index(m)) for name, (y, m, _) in STYLE.items()]
_RATED: Final = [measures_of(result) for result in range(len(RESULTS))]
_SCALE_OF: Final = dict(zip(map(str, MEASURES), SCALES, strict=True))
_PLACE_OF: Final = {measure: place for place, measure in enumerate(_SCALE_OF)}
_HARD: Final = RESULTS.index(Result.HARD_WIN)
_NOTHING: Final = Sums(0, 0, 0, 0, 0, 0)

RateKey = tuple[str | int, ...]


class Scan:
    """Rates of a run with their intervals: of each key the deals, m, m^2, y, y^2 and y*m over its first deals."""

    def __init__(self, tally: Tally, deals: Iterable[Sequence[Outcome]]) -> None:
        """`tally` are the sums of the whole run."""
        self.games = 0  # that were added up
        self._tally = tally
        sums: defaultdict[RateKey, list[int]] = defaultdict(lambda: [0] * 6)
        for outcomes in deals:
            self.games += len(outcomes)
            for key, (m, y) in _counted(outcomes).items():
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
        """A habit of STYLE over all seats of a player, cards per play in cards."""
        count, of, most = STYLE[habit]
        whole = seat_sums(self._tally, player)
        rate = sampled_rate(whole[count], whole[of], self._sample("style", player, habit), most)
        return rate if rate.value is None else Rate(rate.value * most, rate.low * most, rate.high * most)

    def sized(self, player: int, size: int, measure: str) -> Rate:
        """A measure of a player at tables of a size."""
        rows = self._tally.tables["seats"]
        seats = [rows.get((player, size, place), (0,))[0] for place in range(len(RESULTS))]
        return _rate(seats, measure, self._sample("size", player, size, measure))

    def seated(self, player: int, size: int, seat: int, measure: str) -> Rate:
        """The same in one seat, over the first games; the first seat opens."""
        sums = self._sample("seat", player, size, seat, measure)
        return sampled_rate(sums.y, sums.m, sums, _SCALE_OF[measure])

    def seats(self, player: int, size: int, seat: int) -> int:
        """How often a player sat there, in the first games."""
        return self._sample("seat", player, size, seat, "score").m

    def beside(self, player: int, side: int, other: int, measure: str) -> Rate:
        """A measure of a player with this one before (side 0) or after (side 1) it at the deal."""
        return _rate(self._beside(player, side, other), measure, self._sample("beside", player, side, other, measure))

    def variation(self, player: int, side: int, players: int) -> Variation:
        """How a player's rate of hard wins varies over who sits at that side, of so many players."""
        seats = [self._beside(player, side, other) for other in range(players)]
        effect = design_effect(self._sample("beside", player, side, other, "hard_wins") for other in range(players))
        return variation([results[_HARD] for results in seats], [sum(results) for results in seats], effect)

    def _beside(self, player: int, side: int, other: int) -> list[int]:
        """How many of these seats had each result, in the whole run."""
        rows = self._tally.tables["beside"]
        return [rows.get((player, place, side, other), (0,))[0] for place in range(len(RESULTS))]

    def _sample(self, *key: str | int) -> Sums:
        return self._sums.get(key, _NOTHING)


def scan(source: StoredRun, most: int = SCANNED) -> Scan:
    """The rates of a run, their widths from at most so many of its games, in whole deals."""
    return Scan(source.tally, islice(_deals(source), most // source.games_per_deal))


def _deals(source: StoredRun) -> Iterator[list[Outcome]]:
    outcomes = map(unpack, source.db.outcomes())
    while deal := list(islice(outcomes, source.games_per_deal)):
        yield deal


def _rate(seats: Sequence[int], measure: str, sample: Sums) -> Rate:
    """A measure of seats of which so many had each result."""
    y = sum(count * rated[_PLACE_OF[measure]] for count, rated in zip(seats, _RATED, strict=True))
    return sampled_rate(y, sum(seats), sample, _SCALE_OF[measure])


def _counted(outcomes: Iterable[Outcome]) -> dict[RateKey, list[int]]:
    """What one deal adds: of each key m and y."""
    counted: defaultdict[RateKey, list[int]] = defaultdict(lambda: [0, 0])

    def add(key: RateKey, m: int, y: int) -> None:
        both = counted[key]
        both[0] += m
        both[1] += y

    for outcome in outcomes:
        seats, n = outcome.seats, len(outcome.seats)
        for seat, player in enumerate(seats):
            counts, rated = outcome.counts[seat], _RATED[outcome.result(seat)]
            for habit, y, m in _STYLE_PLACES:
                add(("style", player, habit), counts[m], counts[y])
            for measure, value in zip(_SCALE_OF, rated, strict=True):
                add(("size", player, n, measure), 1, value)
            for measure, value in (("score", rated[0]), ("hard_wins", rated[1])):
                add(("seat", player, n, seat, measure), 1, value)
                add(("beside", player, 0, seats[seat - 1], measure), 1, value)
                add(("beside", player, 1, seats[seat + 1 - n], measure), 1, value)
    return counted
