"""The outcome of one game, in numbers: what a run stores of it, one packed row (R31)."""

import json
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dubito.errors import UsageError, one_line
from dubito.game import Results, State

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
        """What the game was for each seat, as places in the game's buckets."""
        return [results.bucket(mark, self.capped) for mark in self.marks]

    def measured(self, results: Results, buckets: list[int] | None = None) -> list[tuple[int, ...]]:
        """Every measure of each seat; `buckets` are theirs, where they are known already."""
        if buckets is None:
            buckets = self.buckets(results)
        if (by_bucket := results.by_bucket) is not None:
            return [by_bucket[bucket] for bucket in buckets]
        return [results.measured(bucket, counts) for bucket, counts in zip(buckets, self.counts, strict=True)]

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
    """The outcome of a finished game between these players."""
    ending = game.ending()
    counts = [(*own, turns) for own, turns in zip(ending.counts, fallback_turns, strict=True)]
    return Outcome(ending.game_counts, ending.capped, contender_seat, seats, ending.marks, counts)


def unpack(row: bytes, results: Results) -> Outcome:
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


def outcome_in(row: bytes, results: Results, players: int, file: Path) -> Outcome:
    """The same of a row in anybody's file; raises UsageError if it is none that a run of so many players writes."""
    try:
        found = unpack(row, results)
        found.buckets(results)
        fits = max(found.seats) < players and (found.contender_seat or 0) < len(found.seats)
    except (ValueError, LookupError, TypeError):
        fits = False
    if not fits:
        raise UsageError(f"{one_line(str(file))} is damaged: a game's row is none that a run writes")
    return found


def record_in(text: str, file: Path) -> dict[str, Any]:
    """Deal and outputs of a game with models, as a row has them; raises UsageError."""
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict) or not isinstance(record.get("outputs"), list):
        raise UsageError(f"{one_line(str(file))} is damaged: a game's record is none that a run writes")
    return record
