"""The outcome of one game, in numbers: what a run stores of it, one packed row (R31)."""

import struct
from dataclasses import dataclass
from typing import Final

from dubito.games.dubito.core_game import Game, Result

COUNTS: Final = (
    "cards",  # held at the end
    "bluffs",
    "bluff_caught",
    "doubts",
    "successful_doubts",
    "cards_played",
    "play_turns",
    "not_first_turns",
    "fallback_turns",  # turns that the fallback played after a bot error (R13)
)

RESULTS: Final = tuple(Result)

_HARD_WIN, _SOFT_WIN, _LOSS, _UNFINISHED = range(len(RESULTS))
_HEAD: Final = 5
_WIDTHS: Final = {1: "B", 2: "H", 4: "I"}


@dataclass(slots=True)
class Outcome:
    """One finished game; lists are by seat."""

    turns: int  # free ones not counted (R32)
    free_turns: int
    capped: bool  # R12
    contender_seat: int | None
    seats: list[int]  # players, as places in `Experiment.players`
    places: list[int]  # 0 for who did not win
    counts: list[tuple[int, ...]]  # in the order of COUNTS

    def result(self, seat: int) -> int:
        """What the game was for this seat, as a place in RESULTS."""
        place = self.places[seat]
        if place:
            return _HARD_WIN if place == 1 else _SOFT_WIN
        return _UNFINISHED if self.capped else _LOSS

    def pack(self) -> bytes:
        """A width in bytes, then every number in that width, little-endian: 1 nearly always."""
        values = [
            len(self.seats),
            self.capped,
            0 if self.contender_seat is None else self.contender_seat + 1,
            self.turns,
            self.free_turns,
            *self.seats,
            *self.places,
        ]
        for counts in self.counts:
            values += counts
        most = max(values)
        width = 1 if most < 1 << 8 else 2 if most < 1 << 16 else 4
        return struct.pack(f"<B{len(values)}{_WIDTHS[width]}", width, *values)


def outcome_of(game: Game, seats: list[int], contender_seat: int | None, fallback_turns: list[int]) -> Outcome:
    """The outcome of a finished game between these players."""
    counts: list[tuple[int, ...]] = []
    for seat, own in enumerate(game.counts):
        public = game.player_data(seat)
        counts.append(
            (
                public.n_cards,
                own.bluffs,
                public.dishonest_times,
                public.doubts,
                own.successful_doubts,
                own.cards_played,
                own.play_turns,
                public.not_first_turns,
                fallback_turns[seat],
            )
        )
    places = [place or 0 for place in game.places]
    return Outcome(game.turns, game.free_turns, game.capped, contender_seat, seats, places, counts)


def unpack(row: bytes) -> Outcome:
    """The inverse of `pack`; raises ValueError on a row that `pack` cannot have written."""
    letter = _WIDTHS.get(row[0] if row else 0)
    if letter is None or (len(row) - 1) % row[0]:
        raise ValueError("not a packed outcome")
    values = struct.unpack(f"<{(len(row) - 1) // row[0]}{letter}", row[1:])
    n = values[0] if values else 0
    if n == 0 or len(values) != _HEAD + n * (2 + len(COUNTS)):
        raise ValueError("not a packed outcome")
    rest = values[_HEAD + 2 * n :]
    return Outcome(
        turns=values[3],
        free_turns=values[4],
        capped=bool(values[1]),
        contender_seat=values[2] - 1 if values[2] else None,
        seats=list(values[_HEAD : _HEAD + n]),
        places=list(values[_HEAD + n : _HEAD + 2 * n]),
        counts=[tuple(rest[seat * len(COUNTS) : (seat + 1) * len(COUNTS)]) for seat in range(n)],
    )
