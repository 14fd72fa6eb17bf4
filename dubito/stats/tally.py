"""A game as it ended, in numbers (R31), and what a run adds up of its games.

`Outcome` is a game, kept as one packed row. `Tally` is the sums, integers, so that chunks merge exactly and in any
grouping; measures are counted in units of 1/scale. Means and intervals are made from these sums at the last moment
(`rates.py`, `ranking.py`).
"""

import json
import struct
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from dubito.errors import UsageError, one_line
from dubito.game import Results, State

if TYPE_CHECKING:
    from dubito.store.run_db import RunDb

_HEAD: Final = 3
_WIDTHS: Final = {1: "B", 2: "H", 4: "I"}


@dataclass(slots=True)
class Outcome:
    """One finished game; lists are by seat."""

    game_counts: tuple[int, ...]  # in the order of `Results.game_counts`
    capped: bool
    contender_seat: int | None
    seats: list[int]  # players, as places in `Experiment.players`
    marks: list[int]  # what each seat came to, in the game's own numbers
    counts: list[tuple[int, ...]]  # in the order of `Results.counts`

    def buckets(self, results: Results) -> list[int]:
        return [results.bucket(mark, self.capped) for mark in self.marks]

    def measured(self, results: Results, buckets: list[int] | None = None) -> list[tuple[int, ...]]:
        """Every measure of each seat; `buckets` are theirs, where they are known already."""
        if buckets is None:
            buckets = self.buckets(results)
        if (by_bucket := results.by_bucket) is not None:
            return [by_bucket[bucket] for bucket in buckets]
        return [results.measure_values(bucket, counts) for bucket, counts in zip(buckets, self.counts, strict=True)]

    def pack(self) -> bytes:
        """A width in bytes, then every number in that width, little-endian: 1 nearly always."""
        values = [
            len(self.seats),
            self.capped,
            0 if self.contender_seat is None else self.contender_seat + 1,
            *self.game_counts,
            *self.seats,
            *self.marks,
        ]
        for counts in self.counts:
            values += counts
        most = max(values)
        width = 1 if most < 1 << 8 else 2 if most < 1 << 16 else 4
        return struct.pack(f"<B{len(values)}{_WIDTHS[width]}", width, *values)


def outcome_of(game: State, seats: list[int], contender_seat: int | None, fallback_turns: list[int]) -> Outcome:
    ending = game.ending()
    counts = [(*own, turns) for own, turns in zip(ending.counts, fallback_turns, strict=True)]
    return Outcome(ending.game_counts, ending.capped, contender_seat, seats, ending.marks, counts)


def unpack_outcome(row: bytes, results: Results) -> Outcome:
    """The inverse of `pack`, for a game with these results; raises ValueError on a row that `pack` did not write."""
    letter = _WIDTHS.get(row[0] if row else 0)
    if letter is None or (len(row) - 1) % row[0]:
        raise ValueError("not a packed outcome")
    values = struct.unpack(f"<{(len(row) - 1) // row[0]}{letter}", row[1:])
    n, head, width = values[0] if values else 0, _HEAD + len(results.game_counts), len(results.counts)
    if n == 0 or len(values) != head + n * (2 + width):
        raise ValueError("not a packed outcome")
    rest = values[head + 2 * n :]
    return Outcome(
        game_counts=values[_HEAD:head],
        capped=bool(values[1]),
        contender_seat=values[2] - 1 if values[2] else None,
        seats=list(values[head : head + n]),
        marks=list(values[head + n : head + 2 * n]),
        counts=[*zip(*[iter(rest)] * width, strict=True)],
    )


def read_outcome(row: bytes, results: Results, players: int, file: Path) -> Outcome:
    """The same of a row in anybody's file; raises UsageError if it is none that a run of so many players writes."""
    try:
        found = unpack_outcome(row, results)
        found.buckets(results)
        fits = max(found.seats) < players and (found.contender_seat or 0) < len(found.seats)
    except (ValueError, LookupError, TypeError):
        fits = False
    if not fits:
        raise UsageError(f"{one_line(str(file))} is damaged: a game's row is none that a run writes")
    return found


def read_record(text: str, file: Path) -> dict[str, Any]:
    """Deal and outputs of a game with models, as a row has them; raises UsageError."""
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict) or not isinstance(record.get("outputs"), list):
        raise UsageError(f"{one_line(str(file))} is damaged: a game's record is none that a run writes")
    return record


_TABLES: Final = (
    "seats",
    "beside",
    "clusters",
    "sizes",
    "contended",
    "pairs",
    "touched",
    "touched_contenders",
    "brier",
    "stated",
)
_OPTIONAL_TABLES: Final = ("seated", "begun", "decided", "differences")  # where there is something to add
ANYBODY: Final = -1  # as the other player of `seated`
BOTH: Final = 2  # as its seat

T = TypeVar("T")
SumKey = tuple[int, ...]
Measured = tuple[int, ...]  # every measure of a seat
Duel = tuple[int, int, Measured, Measured]  # who sat in seats 0 and 1, and what each came to


class Tally:
    """Sums over games, keyed by players as places in `Experiment.players` and buckets as places in the game's.

    `seats`     (player, table size, bucket) -> the game's `seat_sums`
    `beside`    (player, bucket, side, other) -> seats; side 0 is prev, 1 is next, at the deal
    `clusters`  (player,) -> deals, sum m^2, then for each measure y: sum y, sum y^2, sum y*m,
                where m and y are a player's seats and their measure in one deal
    `sizes`     (table size,) -> games, then the sum of each of the game's counts
    `contender_scores` (contender,) -> deals, then the sum of each measure, and of its square
    `pairs`     (contender, other) -> deals, then the sum of each measure's difference, and of its square

    `differences` (contender, other, difference) -> deals in which they differ so by the first headline measure

    Of tables of two, and only there (`report/run_tables.py`):

    `seated`    (player, other or ANYBODY, seat or BOTH) -> deals, sum m, sum m^2, then for each measure y: sum y,
                sum y^2, sum y*m, where m and y are the player's games so seated and their measure in one deal
    `begun`     () -> the same of what seat 0 has more than seat 1, plus the scale, so that it is no less than 0

    Of a run that stops when its contenders are told apart (`stopping.py`):

    `decided`   (contender, other) -> after how many deals, and how: 1 the one is better, -1 the other is, 0 they are
                within what was to be found, 2 it cannot be decided

    Of model players (`players.py`):

    `touched`   (player,) -> seats for which a fallback answered at least once, and their headline measures
    `touched_contenders` (contender,) -> the same in the contenders' seat
    `brier`     (player,) -> deals, its statements m of a probability, sum m^2, then with y a deal's sum of
                (stated - true)^2, in millionths squared: sum y, sum y^2, sum y*m; then nulls, impossible ones
    `stated`    (player, bin of 0.1) -> deals, m, sum m^2, then with y a deal's dishonest plays among the m:
                sum y, sum y^2, sum y*m; then the sum of what was stated, in millionths
    """

    def __init__(self) -> None:
        self.tables: dict[str, dict[SumKey, list[int]]] = {name: {} for name in _TABLES}

    def add(self, table: str, key: SumKey, values: Sequence[int]) -> None:
        rows = self.tables.setdefault(table, {})
        sums = rows.get(key)
        rows[key] = list(values) if sums is None else [a + b for a, b in zip(sums, values, strict=True)]

    def __add__(self, other: "Tally") -> "Tally":
        together = Tally()
        together.tables = {table: dict(rows) for table, rows in self.tables.items()}
        for table, rows in other.tables.items():
            for key, values in rows.items():
                together.add(table, key, values)
        return together

    def rows(self, table: str) -> Iterator[tuple[SumKey, list[int]]]:
        yield from sorted(self.tables.get(table, {}).items())

    @property
    def games(self) -> int:
        return sum(values[0] for _, values in self.rows("sizes"))

    def to_json(self) -> str:
        plain = {table: [[*key, values] for key, values in self.rows(table)] for table in self.tables}
        return json.dumps(plain, separators=(",", ":"))

    @staticmethod
    def from_json(text: str, results: Results) -> "Tally":
        """The inverse of `to_json`; raises ValueError if the text is nothing that it gives. `{}` is no games."""
        tally, plain, widths = Tally(), json.loads(text), _widths(results)
        if not isinstance(plain, dict) or (plain and not {*_TABLES} <= plain.keys() <= {*_TABLES, *_OPTIONAL_TABLES}):
            raise ValueError("it has not the tables of a tally")
        for table, rows in plain.items():
            if not isinstance(rows, list) or not all(_is_row(row, *widths[table]) for row in rows):
                raise ValueError(f"{table} is no table of whole numbers")
            tally.tables[table] = {tuple(key): values for *key, values in rows}
        return tally


def _widths(results: Results) -> dict[str, tuple[int, int]]:
    """Of each table: how many whole numbers are in a key, and in its values."""
    measures, touched = len(results.measures), 1 + len(results.headline)
    return {
        "seats": (3, len(results.seat_sums)),
        "beside": (4, 1),
        "clusters": (1, 2 + 3 * measures),
        "sizes": (1, 1 + len(results.game_counts)),
        "contended": (1, 1 + 2 * measures),
        "pairs": (2, 1 + 2 * measures),
        "touched": (1, touched),
        "touched_contenders": (1, touched),
        "brier": (1, 8),
        "stated": (2, 7),
        "seated": (3, 3 + 3 * measures),
        "begun": (0, 3 + 3 * measures),
        "decided": (2, 2),
        "differences": (3, 1),
    }


def _is_row(row: Any, keys: int, values: int) -> bool:
    if not isinstance(row, list) or len(row) != keys + 1 or not isinstance(row[-1], list) or len(row[-1]) != values:
        return False
    return all(type(number) is int for number in (*row[:-1], *row[-1]))


def load_tally(db: "RunDb", results: Results, chunks: Literal["all", "complete"] = "all") -> Tally:
    """Return the stored sums of a run, over all of its games or those of complete chunks.

    Raises UsageError if they are damaged: no page or table may show a number that nobody wrote.
    """
    tally = read_tally(db, results, chunks)
    if db.has_changed_sums():
        raise UsageError(f"{db.path} is damaged: its sums were changed after they were written")
    return tally


def read_tally(db: "RunDb", results: Results, chunks: Literal["all", "complete"] = "all") -> Tally:
    """Return the stored sums of a run, whoever wrote them; raises UsageError if they cannot be read."""
    try:
        tally = Tally.from_json(db.sums_json(chunks), results)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{db.path} is damaged: its sums cannot be read ({one_line(str(error), 80)})") from None
    if chunks == "all" and tally.games != db.game_count():
        raise UsageError(
            f"{db.path} is damaged: its sums are of {tally.games:,} games, and {db.game_count():,} are kept"
        )
    return tally


def tally_of(deals: Iterable[Sequence[Outcome]], results: Results) -> Tally:
    """The sums of whole deals, each the outcomes of its games; added once a key, as adding each row costs too much."""
    seat_rows: defaultdict[SumKey, list[tuple[int, ...]]] = defaultdict(list)
    beside: defaultdict[SumKey, int] = defaultdict(int)  # a Counter meets a new key in Python, this in C
    clusters: defaultdict[tuple[int, int, Measured], int] = defaultdict(int)
    sizes: defaultdict[SumKey, list[tuple[int, ...]]] = defaultdict(list)
    duels: Counter[tuple[Duel, ...]] = Counter()
    contended: list[list[tuple[Measured, ...]]] = []
    tally = Tally()
    for outcomes in deals:
        in_deal: defaultdict[int, list[Measured]] = defaultdict(list)
        whole: list[list[Measured]] = []
        for outcome in outcomes:
            seats, n, buckets = outcome.seats, len(outcome.seats), outcome.buckets(results)
            measured, counts = outcome.measured(results, buckets), _counts_with_standing(outcome, results)
            whole.append(measured)
            sizes[(n,)].append(outcome.game_counts)
            for seat, (player, bucket) in enumerate(zip(seats, buckets, strict=True)):
                seat_rows[player, n, bucket].append(counts[seat])
                beside[player, bucket, 0, seats[seat - 1]] += 1
                beside[player, bucket, 1, seats[seat + 1 - n]] += 1
                in_deal[player].append(measured[seat])
        for player, own in in_deal.items():
            clusters[player, len(own), own[0] if len(own) == 1 else _column_sums(own)] += 1
        if len(outcomes[0].seats) == 2:
            duels[tuple(map(_duel, outcomes, whole))] += 1
        if outcomes[0].contender_seat is not None:
            contended.append(_group_by_contender(outcomes, whole))
    for table, collected in (("seats", seat_rows), ("sizes", sizes)):
        for key, rows in collected.items():
            tally.add(table, key, [len(rows), *_column_sums(rows)])
    for key, count in beside.items():
        tally.add("beside", key, [count])
    for (player, m, ys), count in clusters.items():
        tally.add("clusters", (player,), [count * value for value in (1, m * m, *_products(m, ys))])
    add_contender_deals(tally, contended, results)
    _add_duels(tally, duels, results)
    return tally


def _counts_with_standing(outcome: Outcome, results: Results) -> list[tuple[int, ...]]:
    """What is counted of each seat, and its standing where the game has one."""
    if (standing := results.standing) is None:
        return outcome.counts
    rows, n = [], len(outcome.seats)
    for own, mark in zip(outcome.counts, outcome.marks, strict=True):
        own += (standing(mark, n, outcome.capped),)  # compiled, unpacking would cost three times as much
        rows.append(own)
    return rows


def _column_sums(rows: Iterable[Sequence[int]]) -> tuple[int, ...]:
    return tuple(map(sum, zip(*rows, strict=True)))


def _duel(outcome: Outcome, measured: Sequence[Measured]) -> Duel:
    return outcome.seats[0], outcome.seats[1], measured[0], measured[1]


def _add_duels(tally: Tally, deals: Mapping[tuple[Duel, ...], int], results: Results) -> None:
    """Add deals between two, each its games; so many were alike."""
    nothing = [0] * (1 + len(results.measures))
    for games, count in deals.items():
        own: defaultdict[tuple[str, SumKey], list[int]] = defaultdict(lambda: nothing)
        for *seats, one, two in games:
            measured = one, two
            for seat, player in enumerate(seats):
                for other in (seats[1 - seat], ANYBODY):
                    for where in (seat, BOTH):
                        key = "seated", (player, other, where)
                        own[key] = [a + b for a, b in zip(own[key], (1, *measured[seat]), strict=True)]
            more = [a - b + m.scale for a, b, m in zip(*measured, results.measures, strict=True)]
            own["begun", ()] = [a + b for a, b in zip(own["begun", ()], (1, *more), strict=True)]
        for (table, sums_of), (m, *measures) in own.items():
            tally.add(table, sums_of, [count * value for value in (1, m, m * m, *_products(m, measures))])


def _products(m: int, ys: Sequence[int]) -> list[int]:
    return [value for y in ys for value in (y, y * y, y * m)]


def _group_by_contender(
    outcomes: Sequence[Outcome], measured: Sequence[Sequence[Measured]]
) -> list[tuple[Measured, ...]]:
    seats = [outcome.contender_seat for outcome in outcomes]
    own = [by_seat[seat] for by_seat, seat in zip(measured, seats, strict=True) if seat is not None]
    return split_by_contender(own, len({*seats}))


def contender_scores(outcomes: Sequence[Outcome], results: Results) -> list[int]:
    place = results.place(results.headline[0])
    seated = _group_by_contender(outcomes, [outcome.measured(results) for outcome in outcomes])
    return [sum(measured[place] for measured in own) for own in seated]


def split_by_contender(games: Sequence[T], seats: int) -> list[tuple[T, ...]]:
    return [tuple(games[first : first + seats]) for first in range(0, len(games), seats)]


def add_contender_deals(tally: Tally, deals: Iterable[Sequence[tuple[Measured, ...]]], results: Results) -> None:
    """Add deals, each what all contenders came to in their seats: each one's measures, and every pair's differences.

    Counts first, since few are different; deals may come one by one from a run of any length.
    """
    alone: Counter[tuple[int, Measured]] = Counter()
    together: Counter[tuple[int, int, Measured]] = Counter()
    first = results.place(results.headline[0])
    for deal in deals:
        sums = [_column_sums(seated) for seated in deal]
        for one, ours in enumerate(sums):
            alone[one, ours] += 1
            for other in range(one + 1, len(sums)):
                together[one, other, tuple(a - b for a, b in zip(ours, sums[other], strict=True))] += 1
    for (contender, own), count in alone.items():
        tally.add("contended", (contender,), _with_squares(own, count))
    for (one, other, differences), count in together.items():
        tally.add("pairs", (one, other), _with_squares(differences, count))
        tally.add("differences", (one, other, differences[first]), [count])


def _with_squares(values: Sequence[int], count: int) -> list[int]:
    return [count * value for value in (1, *values, *(value * value for value in values))]
