"""What a run adds up: integer sums, so that chunks merge exactly and in any grouping.

`Score` is counted in halves: a hard win 2, a soft win 1. Means and intervals are made from these sums
at the last moment (`statistics.py`, `results.py`).
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, Literal

from dubito.errors import UsageError, one_line
from dubito.experiment.outcome import COUNTS, RESULTS, Outcome
from dubito.games.dubito.core_game import Result
from dubito.store.run_db import RunDb

MEASURES: Final = ("score", *RESULTS)  # what is rated
SCALES: Final = (2, *(1 for _ in RESULTS))  # how many of a sum are 1: score is counted in halves
SEAT_SUMS: Final = ("games", *COUNTS, "position")  # position: 2 (n - place), tied losers 1 (R31)
_WIDTHS: Final = {  # of each table: whole numbers in a key, and in its values
    "seats": (3, len(SEAT_SUMS)),
    "beside": (4, 1),
    "clusters": (1, 2 + 3 * len(MEASURES)),
    "sizes": (1, 3),
    "contended": (1, 1 + 2 * len(MEASURES)),
    "pairs": (2, 1 + 2 * len(MEASURES)),
    "touched": (1, 3),
    "touched_contenders": (1, 3),
    "brier": (1, 8),
    "stated": (2, 7),
}
HALVES: Final = {Result.HARD_WIN: 2, Result.SOFT_WIN: 1, Result.LOSS: 0, Result.UNFINISHED: 0}

SumKey = tuple[int, ...]


class Tally:
    """Sums over games, keyed by players as places in `Experiment.players` and results as places in RESULTS.

    `seats`     (player, table size, result) -> SEAT_SUMS
    `beside`    (player, result, side, other) -> seats; side 0 is prev, 1 is next, at the deal
    `clusters`  (player,) -> deals, sum m^2, then for each measure y: sum y, sum y^2, sum y*m,
                where m and y are a player's seats and their measure in one deal
    `sizes`     (table size,) -> games, turns, free turns
    `contended` (contender,) -> deals, then the sum of each measure, and of its square
    `pairs`     (contender, other) -> deals, then the sum of each measure's difference, and of its square

    Of model players (`fallbacks.py`, `calibration.py`):

    `touched`   (player,) -> seats for which a fallback answered at least once, and their Score and hard wins
    `touched_contenders` (contender,) -> the same in the contenders' seat
    `brier`     (player,) -> deals, its statements m of a probability, sum m^2, then with y a deal's sum of
                (stated - true)^2, in millionths squared: sum y, sum y^2, sum y*m; then nulls, impossible ones
    `stated`    (player, bin of 0.1) -> deals, m, sum m^2, then with y a deal's dishonest plays among the m:
                sum y, sum y^2, sum y*m; then the sum of what was stated, in millionths
    """

    def __init__(self) -> None:
        self.tables: dict[str, dict[SumKey, list[int]]] = {name: {} for name in _WIDTHS}

    def add(self, table: str, key: SumKey, values: Sequence[int]) -> None:
        """Add a vector to the sums of a key."""
        sums = self.tables[table].get(key)
        self.tables[table][key] = list(values) if sums is None else [a + b for a, b in zip(sums, values, strict=True)]

    def __add__(self, other: "Tally") -> "Tally":
        """The sums of both."""
        together = Tally()
        together.tables = {table: dict(rows) for table, rows in self.tables.items()}
        for table, rows in other.tables.items():
            for key, values in rows.items():
                together.add(table, key, values)
        return together

    def rows(self, table: str) -> Iterator[tuple[SumKey, list[int]]]:
        """The keys of a table, ascending, with their sums."""
        yield from sorted(self.tables[table].items())

    @property
    def games(self) -> int:
        """How many games were added."""
        return sum(values[0] for _, values in self.rows("sizes"))

    def to_json(self) -> str:
        """The sums as canonical text."""
        plain = {table: [[*key, values] for key, values in self.rows(table)] for table in self.tables}
        return json.dumps(plain, separators=(",", ":"))

    @staticmethod
    def from_json(text: str) -> "Tally":
        """The inverse of `to_json`; raises ValueError if the text is nothing that it gives. `{}` is no games."""
        tally, plain = Tally(), json.loads(text)
        if not isinstance(plain, dict) or (plain and plain.keys() != tally.tables.keys()):
            raise ValueError("it has not the tables of a tally")
        for table, rows in plain.items():
            if not isinstance(rows, list) or not all(_is_row(row, *_WIDTHS[table]) for row in rows):
                raise ValueError(f"{table} is no table of whole numbers")
            tally.tables[table] = {tuple(key): values for *key, values in rows}
        return tally


def _is_row(row: Any, keys: int, values: int) -> bool:
    """Whether it is a key of so many whole numbers, and so many values."""
    if not isinstance(row, list) or len(row) != keys + 1 or not isinstance(row[-1], list) or len(row[-1]) != values:
        return False
    return all(type(number) is int for number in (*row[:-1], *row[-1]))


def kept_tally(db: RunDb, chunks: Literal["all", "complete"] = "all") -> Tally:
    """The sums that a run keeps, over all of its games or those of complete chunks; raises UsageError if damaged."""
    try:
        tally = Tally.from_json(db.sums(chunks))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{db.path} is damaged: its sums cannot be read ({one_line(str(error), 80)})") from None
    if chunks == "all" and tally.games != db.games():
        raise UsageError(f"{db.path} is damaged: its sums are of {tally.games:,} games, and {db.games():,} are kept")
    return tally


def tally_of(deals: Iterable[Sequence[Outcome]]) -> Tally:
    """The sums of whole deals, each the outcomes of its games.

    Collects first and adds once a key: Python's own loops would cost more than the games' statistics may.
    """
    seat_rows: defaultdict[SumKey, list[tuple[int, ...]]] = defaultdict(list)
    beside: Counter[SumKey] = Counter()
    clusters: Counter[tuple[int, SumKey]] = Counter()
    sizes: defaultdict[SumKey, list[tuple[int, ...]]] = defaultdict(list)
    contended: list[list[int]] = []
    tally = Tally()
    for outcomes in deals:
        in_deal: dict[int, list[int]] = {}
        for outcome in outcomes:
            seats, n = outcome.seats, len(outcome.seats)
            sizes[(n,)].append((1, outcome.turns, outcome.free_turns))
            for seat, player in enumerate(seats):
                result = outcome.result(seat)
                seat_rows[player, n, result].append((1, *outcome.counts[seat], _position(outcome, seat)))
                beside[player, result, seats[seat - 1], seats[seat + 1 - n]] += 1
                in_deal.setdefault(player, [0] * len(RESULTS))[result] += 1
        for player, counts in in_deal.items():
            clusters[player, tuple(counts)] += 1
        contended.append([game.result(game.contender_seat) for game in outcomes if game.contender_seat is not None])
    for table, collected in (("seats", seat_rows), ("sizes", sizes)):
        for key, rows in collected.items():
            tally.add(table, key, [sum(column) for column in zip(*rows, strict=True)])
    for (player, result, before, after), count in beside.items():
        tally.add("beside", (player, result, 0, before), [count])
        tally.add("beside", (player, result, 1, after), [count])
    for (player, results), count in clusters.items():
        tally.add("clusters", (player,), [count * value for value in _cluster(results)])
    add_contended(tally, contended)
    return tally


def _position(outcome: Outcome, seat: int) -> int:
    place = outcome.places[seat]
    if place:
        return 2 * (len(outcome.places) - place)
    return 0 if outcome.capped else 1


def _measures(results: Sequence[int]) -> list[int]:
    """Each measure of seats that had these results."""
    score = sum(HALVES[result] * count for result, count in zip(RESULTS, results, strict=True))
    return [score, *results]


def _cluster(results: Sequence[int]) -> list[int]:
    m = sum(results)
    sums = [1, m * m]
    for y in _measures(results):
        sums += (y, y * y, y * m)
    return sums


def add_contended(tally: Tally, deals: Iterable[Sequence[int]]) -> None:
    """Add deals, each the results of all contenders: each one's measures, and every pair's differences.

    Counts first, since there are few results; deals may come one by one from a run of any length.
    """
    alone: Counter[tuple[int, int]] = Counter()
    together: Counter[tuple[int, int, int, int]] = Counter()
    for results in deals:
        for one, ours in enumerate(results):
            alone[one, ours] += 1
            for other in range(one + 1, len(results)):
                together[one, other, ours, results[other]] += 1
    for (contender, result), count in alone.items():
        tally.add("contended", (contender,), _with_squares(measures_of(result), count))
    for (one, other, ours, theirs), count in together.items():
        differences = [a - b for a, b in zip(measures_of(ours), measures_of(theirs), strict=True)]
        tally.add("pairs", (one, other), _with_squares(differences, count))


def measures_of(result: int) -> list[int]:
    """Each measure of one seat with this result, a place in RESULTS."""
    return _measures([int(result == other) for other in range(len(RESULTS))])


def _with_squares(values: Sequence[int], count: int) -> list[int]:
    return [count * value for value in (1, *values, *(value * value for value in values))]
