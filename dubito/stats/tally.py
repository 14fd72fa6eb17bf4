"""The outcome of a game in numbers (R31), and the sums of a run.

An `Outcome` is a game, stored as one packed row. A `Tally` contains integer sums, so that chunks merge exactly in any
grouping. Measures are counted in units of 1/scale. Means and intervals are computed from these sums when needed
(`rates.py`, `ranking.py`).
"""

import json
import struct
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import combinations, islice, repeat
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
    """A finished game. Lists are by seat."""

    game_counts: tuple[int, ...]  # in the order of `Results.game_counts`
    capped: bool
    contender_seat: int | None
    seats: list[int]  # players, as indexes into `Experiment.players`
    marks: list[int]  # the result of each seat, in the game's own numbers
    counts: list[tuple[int, ...]]  # in the order of `Results.counts`

    def buckets(self, results: Results) -> list[int]:
        return [results.bucket(mark, self.capped) for mark in self.marks]

    def measure_seats(self, results: Results, buckets: list[int] | None = None) -> list[tuple[int, ...]]:
        """Return every measure of each seat. Pass `buckets` if already known."""
        if buckets is None:
            buckets = self.buckets(results)
        if (by_bucket := results.values_by_bucket) is not None:
            return [by_bucket[bucket] for bucket in buckets]
        return [results.measure_values(bucket, counts) for bucket, counts in zip(buckets, self.counts, strict=True)]

    def has_failed(self, seat: int, results: Results) -> bool:
        """Return whether a bot's fallback played for this seat, or the seat forfeited."""
        own, (turns, forfeits) = self.counts[seat], results.failure_counts
        return own[turns] > 0 or own[forfeits] > 0

    def pack(self) -> bytes:
        """Pack the width in bytes (nearly always 1) and then every number in that width, little-endian."""
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
        largest = max(values)
        width = 1 if largest < 1 << 8 else 2 if largest < 1 << 16 else 4
        return struct.pack(f"<B{len(values)}{_WIDTHS[width]}", width, *values)


def build_outcome(game: State, seats: list[int], contender_seat: int | None, fallback_turns: list[int]) -> Outcome:
    ending = game.ending()
    counts = [(*own, turns) for own, turns in zip(ending.counts, fallback_turns, strict=True)]
    return Outcome(ending.game_counts, ending.capped, contender_seat, seats, ending.marks, counts)


def unpack_outcome(row: bytes, results: Results) -> Outcome:
    """Invert `pack` for a game with these results. Raises ValueError for a row not written by `pack`."""
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
    """Unpack a row of an untrusted file.

    Raises UsageError if the row cannot come from a run with this many players.
    """
    try:
        outcome = unpack_outcome(row, results)
        outcome.buckets(results)
        is_valid = max(outcome.seats) < players and (outcome.contender_seat or 0) < len(outcome.seats)
    except (ValueError, LookupError, TypeError):
        is_valid = False
    if not is_valid:
        raise UsageError(f"{one_line(str(file))} is damaged: the row of a game is invalid")
    return outcome


def read_record(text: str, file: Path) -> dict[str, Any]:
    """Parse the record of a game with models: its deal and outputs. Raises UsageError."""
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict) or not isinstance(record.get("outputs"), list):
        raise UsageError(f"{one_line(str(file))} is damaged: the record of a game is invalid")
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
_OPTIONAL_TABLES: Final = ("differences", "seated", "begun", "decided", "same")
ANYBODY: Final = -1  # stands for the other player in `seated`
BOTH: Final = 2  # stands for the seat in `seated`

T = TypeVar("T")
SumKey = tuple[int, ...]
Measured = tuple[int, ...]  # every measure of a seat
Duel = tuple[int, int, Measured, Measured]  # the players in seats 0 and 1, and the measures of each


@dataclass(eq=False)
class Tally:
    """Sums over games. Players are indexes into `Experiment.players`, buckets are indexes into the game's buckets.

    `seats`     (player, table size, bucket) -> the game's `seat_sums`
    `beside`    (player, bucket, side, other) -> seats; side 0 is prev, 1 is next, when the game is dealt
    `clusters`  (player,) -> deals, sum m^2, then for each measure y: sum y, sum y^2, sum y*m,
                where m and y are a player's seats and their measure in one deal
    `sizes`     (table size,) -> games, then the sum of each of the game's counts
    `contender_scores` (contender,) -> deals, then the sum of each measure, and of its square
    `pairs`     (contender, other) -> deals, then the sum of each measure's difference, then of its square

    `differences` (contender, other, difference) -> deals with this difference in the first headline measure

    `same`      (contender, other) -> deals in which both had the same numbers in every game

    `touched`   (player,) -> seats for which a fallback answered at least once, or that forfeited, and their headline
                measures
    `touched_contenders` (contender,) -> the same in the contenders' seat

    Only for tables of two (`report/run_tables.py`):

    `seated`    (player, other or ANYBODY, seat or BOTH) -> deals, sum m, sum m^2, then for each measure y: sum y,
                sum y^2, sum y*m, where m and y are the player's games so seated and their measure in one deal
    `begun`     () -> the same for seat 0 minus seat 1, plus the scale, so that it is not negative

    Only for a run with a stop rule (`stopping.py`):

    `decided`   (contender, other) -> deals until the decision, and its code: 1 the one is better, -1 the other is,
                0 the difference is less than `within`, 2 it is undecided

    Only for model players (`players.py`):

    `brier`     (player,) -> deals, m statements of a probability, sum m^2, then with y a deal's sum of
                (stated - true)^2, in millionths squared: sum y, sum y^2, sum y*m; then nulls and impossible values
    `stated`    (player, bin of 0.1) -> deals, m, sum m^2, then with y a deal's dishonest plays among the m:
                sum y, sum y^2, sum y*m; then the sum of the stated probabilities, in millionths
    """

    tables: dict[str, dict[SumKey, list[int]]] = field(default_factory=lambda: {name: {} for name in _TABLES})

    def add(self, table: str, key: SumKey, values: Sequence[int]) -> None:
        rows = self.tables.setdefault(table, {})
        sums = rows.get(key)
        rows[key] = list(values) if sums is None else [a + b for a, b in zip(sums, values, strict=True)]

    def __add__(self, other: "Tally") -> "Tally":
        total = Tally()
        total.tables = {table: dict(rows) for table, rows in self.tables.items()}
        for table, rows in other.tables.items():
            for key, values in rows.items():
                total.add(table, key, values)
        return total

    def rows(self, table: str) -> Iterator[tuple[SumKey, list[int]]]:
        yield from sorted(self.tables.get(table, {}).items())

    @property
    def games(self) -> int:
        return sum(values[0] for _, values in self.rows("sizes"))

    def to_json(self) -> str:
        # A fixed order, since sums of the same games are compared as text.
        tables = [table for table in (*_TABLES, *_OPTIONAL_TABLES) if table in self.tables]
        plain = {table: [[*key, values] for key, values in self.rows(table)] for table in tables}
        return json.dumps(plain, separators=(",", ":"))

    @staticmethod
    def from_json(text: str, results: Results) -> "Tally":
        """Invert `to_json`. `{}` is an empty tally. Raises ValueError if the text is invalid."""
        tally, plain, widths = Tally(), json.loads(text), _widths(results)
        if not isinstance(plain, dict) or (plain and not {*_TABLES} <= plain.keys() <= {*_TABLES, *_OPTIONAL_TABLES}):
            raise ValueError("the tables of a tally are missing or unknown")
        for table, rows in plain.items():
            if not isinstance(rows, list) or not all(_is_row(row, *widths[table]) for row in rows):
                raise ValueError(f"{table} is not a table of whole numbers")
            tally.tables[table] = {tuple(key): values for *key, values in rows}
        return tally


def _widths(results: Results) -> dict[str, tuple[int, int]]:
    """Return the lengths of each table's keys and values."""
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
        "same": (2, 1),
    }


def _is_row(row: Any, keys: int, values: int) -> bool:
    if not isinstance(row, list) or len(row) != keys + 1 or not isinstance(row[-1], list) or len(row[-1]) != values:
        return False
    return all(type(number) is int for number in (*row[:-1], *row[-1]))


def load_tally(db: "RunDb", results: Results, chunks: Literal["all", "complete"] = "all") -> Tally:
    """Return a run's stored sums, over all games or over complete chunks.

    Raises UsageError if the sums are damaged or were changed later, so that no table shows them.
    """
    tally = read_tally(db, results, chunks)
    if db.has_changed_sums():
        raise UsageError(f"{db.path} is damaged: its sums were changed after they were written")
    return tally


def read_tally(db: "RunDb", results: Results, chunks: Literal["all", "complete"] = "all") -> Tally:
    """Return a run's stored sums, even if they were changed. Raises UsageError if they cannot be read."""
    try:
        tally = Tally.from_json(db.sums_json(chunks), results)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{db.path} is damaged: its sums cannot be read ({one_line(str(error), 80)})") from None
    if chunks == "all" and tally.games != db.game_count():
        raise UsageError(f"{db.path} is damaged: its sums cover {tally.games:,} games, but it has {db.game_count():,}")
    return tally


_NO_SEATS: Final = repeat(frozenset[int]())


def sum_deals(deals: Iterable[Sequence[Outcome]], results: Results, failed: Iterator[Set[int]] = _NO_SEATS) -> Tally:
    """Sum whole deals, each a list of outcomes.

    `failed` yields, for each game, the seats for which a model's fallback answered. Rows are collected first, since
    adding them one at a time is too slow.
    """
    seat_rows: defaultdict[SumKey, list[tuple[int, ...]]] = defaultdict(list)
    beside: defaultdict[SumKey, int] = defaultdict(int)  # faster than a Counter for new keys
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
            measured, counts = outcome.measure_seats(results, buckets), _counts_with_standing(outcome, results)
            whole.append(measured)
            sizes[(n,)].append(outcome.game_counts)
            for seat, (player, bucket) in enumerate(zip(seats, buckets, strict=True)):
                seat_rows[player, n, bucket].append(counts[seat])
                beside[player, bucket, 0, seats[seat - 1]] += 1
                beside[player, bucket, 1, seats[seat + 1 - n]] += 1
                in_deal[player].append(measured[seat])
        _add_deal(tally, outcomes, whole, islice(failed, len(outcomes)), results)
        for player, own in in_deal.items():
            clusters[player, len(own), own[0] if len(own) == 1 else _column_sums(own)] += 1
        if len(outcomes[0].seats) == 2:
            games = zip(outcomes, whole, strict=True)
            duels[tuple((game.seats[0], game.seats[1], own[0], own[1]) for game, own in games)] += 1
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
    """Return each seat's counts, with its standing if the game has standings."""
    if (standing := results.standing) is None:
        return outcome.counts
    rows, n = [], len(outcome.seats)
    for own, mark in zip(outcome.counts, outcome.marks, strict=True):
        own += (standing(mark, n, outcome.capped),)  # unpacking is three times slower in compiled code
        rows.append(own)
    return rows


def _add_deal(
    tally: Tally,
    outcomes: Sequence[Outcome],
    measured: Sequence[Sequence[Measured]],
    failed: Iterable[Set[int]],
    results: Results,
) -> None:
    """Add a deal's seats with a fallback or forfeit, and its pairs of contenders with the same games.

    `failed` contains the seats of each game for which a model's fallback answered.
    """
    add_same_games(tally, outcomes)
    for number, (outcome, of_models) in enumerate(zip(outcomes, failed, strict=True)):
        for seat, player in enumerate(outcome.seats):
            if seat in of_models or outcome.has_failed(seat, results):
                sums = fallback_sums(measured[number][seat], results)
                tally.add("touched", (player,), sums)
                if seat == outcome.contender_seat:
                    tally.add("touched_contenders", (number // _seats_of_contender(outcomes),), sums)


def fallback_sums(measured: Sequence[int], results: Results) -> list[int]:
    """Return what a seat with a fallback or forfeit adds to a tally."""
    return [1, *(measured[results.place(key)] for key in results.headline)]


def _column_sums(rows: Iterable[Sequence[int]]) -> tuple[int, ...]:
    return tuple(map(sum, zip(*rows, strict=True)))


def _add_duels(tally: Tally, deals: Mapping[tuple[Duel, ...], int], results: Results) -> None:
    """Add deals with two seats, given the number of times each combination of games occurred."""
    nothing = [0] * (1 + len(results.measures))
    for games, count in deals.items():
        own: defaultdict[tuple[str, SumKey], list[int]] = defaultdict(lambda: nothing)
        for *seats, one, two in games:
            measured = one, two
            for seat, player in enumerate(seats):
                for other in (seats[1 - seat], ANYBODY):
                    for position in (seat, BOTH):
                        key = "seated", (player, other, position)
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
    return split_by_contender(own, _seats_of_contender(outcomes))


def _seats_of_contender(outcomes: Sequence[Outcome]) -> int:
    """Return how many games of a deal each contender plays, each in another seat."""
    return len({outcome.contender_seat for outcome in outcomes})


def contender_scores(outcomes: Sequence[Outcome], results: Results) -> list[int]:
    """Return each contender's sum of the first headline measure over the games of one deal."""
    place = results.place(results.headline[0])
    seated = _group_by_contender(outcomes, [outcome.measure_seats(results) for outcome in outcomes])
    return [sum(measured[place] for measured in own) for own in seated]


def split_by_contender(games: Sequence[T], seats: int) -> list[tuple[T, ...]]:
    return [tuple(games[first : first + seats]) for first in range(0, len(games), seats)]


def add_same_games(tally: Tally, outcomes: Sequence[Outcome]) -> None:
    """Add the pairs of contenders with the same numbers in all of a deal's games."""
    numbers = [(game.capped, game.game_counts, game.marks, game.counts) for game in outcomes]  # without the players
    deal = split_by_contender(numbers, _seats_of_contender(outcomes))
    for one, other in combinations(range(len(deal)), 2):
        if deal[one] == deal[other]:
            tally.add("same", (one, other), [1])


def add_contender_deals(tally: Tally, deals: Iterable[Sequence[tuple[Measured, ...]]], results: Results) -> None:
    """Add deals, each with the measures of all contenders, and the differences of every pair.

    Equal values are counted first, since few values are distinct. Deals can come from a generator.
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
