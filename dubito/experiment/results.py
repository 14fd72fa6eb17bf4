"""`all_games.yaml`: what a run counts, bot by bot (R30, R31)."""

from collections.abc import Sequence
from typing import Any, Final

from dubito.experiment.outcome import RESULTS
from dubito.experiment.tally import SEAT_SUMS, Tally
from dubito.games.dubito.core_game import Result

_SUMMED: Final = (
    "bluffs",
    "bluff_caught",
    "doubts",
    "successful_doubts",
    "cards_played",
    "play_turns",
    "not_first_turns",
)


def all_games(tally: Tally, names: Sequence[str]) -> dict[str, Any]:
    """Bot name -> bucket -> fields, and -> `by_table_size` -> size -> fields; players in their given order."""
    return {name: _player(tally, player, names) for player, name in enumerate(names)}


def seat_sums(tally: Tally, player: int, size: int | None = None, result: Result | None = None) -> dict[str, int]:
    """SEAT_SUMS by name, over the seats of a player at one or all table sizes, with one or any result."""
    sums = [0] * len(SEAT_SUMS)
    for n in table_sizes(tally) if size is None else [size]:
        for place, other in enumerate(RESULTS):
            values = tally.tables["seats"].get((player, n, place))
            if values is not None and result in (None, other):
                sums = [a + b for a, b in zip(sums, values, strict=True)]
    return dict(zip(SEAT_SUMS, sums, strict=True))


def table_sizes(tally: Tally) -> list[int]:
    """The sizes that were played, ascending."""
    return [size for (size,), _ in tally.rows("sizes")]


def relative_position(tally: Tally, player: int, size: int | None = None, result: Result | None = None) -> float | None:
    """The mean of (n - place) / (n - 1) over finished seats; None over nothing (R31)."""
    total, seats = 0.0, 0
    for n in table_sizes(tally):
        if size in (None, n):
            for other in RESULTS:
                if other is not Result.UNFINISHED and result in (None, other):
                    sums = seat_sums(tally, player, n, other)
                    total += sums["position"] / (2 * (n - 1))
                    seats += sums["games"]
    return total / seats if seats else None


def _player(tally: Tally, player: int, names: Sequence[str]) -> dict[str, Any]:
    buckets: dict[str, Any] = {"total": _bucket(tally, player, None, names)}
    for result in RESULTS:
        buckets[result.value] = _bucket(tally, player, result, names)
    buckets["by_table_size"] = {size: _by_size(tally, player, size) for size in table_sizes(tally)}
    return buckets


def _bucket(tally: Tally, player: int, result: Result | None, names: Sequence[str]) -> dict[str, Any]:
    sums = seat_sums(tally, player, result=result)
    games = sums["games"]
    return {
        "games": games,
        "avg_cards": sums["cards"] / games if games else None,
        **{name: sums[name] for name in _SUMMED},
        "relative_position": relative_position(tally, player, result=result),
        "prev": dict(zip(names, beside(tally, player, 0, len(names), result), strict=True)),
        "next": dict(zip(names, beside(tally, player, 1, len(names), result), strict=True)),
    }


def beside(tally: Tally, player: int, side: int, players: int, result: Result | None = None) -> list[int]:
    """How often each of the players sat before (side 0) or after (side 1) this one at the deal."""
    table = tally.tables["beside"]
    places = [place for place, other in enumerate(RESULTS) if result in (None, other)]
    return [sum(table.get((player, place, side, other), (0,))[0] for place in places) for other in range(players)]


def _by_size(tally: Tally, player: int, size: int) -> dict[str, Any]:
    return {
        "games": seat_sums(tally, player, size)["games"],
        **{result.value: seat_sums(tally, player, size, result)["games"] for result in RESULTS},
        "relative_position": relative_position(tally, player, size),
    }
