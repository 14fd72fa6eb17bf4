"""What a run's stored sums do not hold, added up from its games, deal by deal: only for runs of a moderate length.

Each rate is a ratio of two counts, m and y, of which the sums are kept that `clustered_rate` takes.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from dubito.experiment.outcome import COUNTS, Outcome, unpack
from dubito.experiment.statistics import Rate, clustered_rate
from dubito.experiment.tally import MEASURES, SCALES, measures_of
from dubito.report.source import Source

SCANNED: Final = 20_000  # games; a longer run is shown by its sums alone

STYLE: Final = {  # of which counts a habit is the ratio, and how many of the first there can be to one of the second
    "bluff": ("bluffs", "play_turns", 1),
    "caught": ("bluff_caught", "bluffs", 1),
    "doubt": ("doubts", "not_first_turns", 1),
    "accuracy": ("successful_doubts", "doubts", 1),
    "cards": ("cards_played", "play_turns", 3),
}
_STYLE_PLACES: Final = [(name, COUNTS.index(y), COUNTS.index(m)) for name, (y, m, _) in STYLE.items()]
_RATED: Final = [measures_of(result) for result in range(4)]
_SCALE_OF: Final = dict(zip(map(str, MEASURES), SCALES, strict=True))

Key = tuple[str | int, ...]


class Scan:
    """Sums over deals: of each key the deals, m, m^2, y, y^2 and y*m."""

    def __init__(self, deals: Iterable[list[Outcome]]) -> None:
        self._sums: defaultdict[Key, list[int]] = defaultdict(lambda: [0] * 6)
        for outcomes in deals:
            for key, (m, y) in _counted(outcomes).items():
                if m:
                    sums = self._sums[key]
                    sums[0] += 1
                    sums[1] += m
                    sums[2] += m * m
                    sums[3] += y
                    sums[4] += y * y
                    sums[5] += y * m

    def style(self, player: int, habit: str) -> Rate:
        """A habit of STYLE, cards per play in cards."""
        most = STYLE[habit][2]
        rate = self._rate(("style", player, habit), most)
        return rate if rate.value is None else Rate(rate.value * most, rate.low * most, rate.high * most)

    def sized(self, player: int, size: int, measure: str) -> Rate:
        """A measure of a player at tables of a size."""
        return self._rate(("size", player, size, measure), _SCALE_OF[measure])

    def seated(self, player: int, size: int, seat: int, measure: str) -> Rate:
        """The same in one seat; the first one opens."""
        return self._rate(("seat", player, size, seat, measure), _SCALE_OF[measure])

    def seats(self, player: int, size: int, seat: int) -> int:
        """How often a player sat there."""
        return self._sums.get(("seat", player, size, seat, "score"), [0, 0])[1]

    def beside(self, player: int, side: int, other: int, measure: str) -> Rate:
        """The same with this player before (side 0) or after (side 1) him at the deal."""
        return self._rate(("beside", player, side, other, measure), _SCALE_OF[measure])

    def _rate(self, key: Key, scale: int) -> Rate:
        deals, m, m2, y, y2, ym = self._sums.get(key, [0] * 6)
        return clustered_rate(deals, m, m2, y, y2, ym, scale)


def scan(source: Source) -> Scan | None:
    """The sums of a run; None if it is too long."""
    if source.tally.games > SCANNED:
        return None
    return Scan(_deals(source))


def _deals(source: Source) -> Iterator[list[Outcome]]:
    outcomes = map(unpack, source.db.outcomes())
    while deal := list(islice(outcomes, source.games_per_deal)):
        yield deal


def _counted(outcomes: Iterable[Outcome]) -> dict[Key, list[int]]:
    """What one deal adds: of each key m and y."""
    counted: defaultdict[Key, list[int]] = defaultdict(lambda: [0, 0])

    def add(key: Key, m: int, y: int) -> None:
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
