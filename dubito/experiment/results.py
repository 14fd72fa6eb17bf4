"""`all_games.yaml`: what a run counts, bot by bot (R30, R31)."""

from collections.abc import Sequence
from typing import Any

from dubito.experiment.statistics import Rate
from dubito.experiment.tally import Tally
from dubito.game import Measure, Results, Spec


def all_games(tally: Tally, names: Sequence[str], game: Spec) -> dict[str, Any]:
    """Bot name -> bucket -> fields, and -> `by_table_size` -> size -> fields; players in their given order."""
    return {name: _player(tally, player, names, game) for player, name in enumerate(names)}


def seat_sums(
    tally: Tally, results: Results, player: int, size: int | None = None, bucket: str | None = None
) -> dict[str, int]:
    """The game's `seat_sums` by name, over the seats of a player at one or all table sizes, in one or any bucket."""
    sums = [0] * len(results.seat_sums)
    for n in table_sizes(tally) if size is None else [size]:
        for place, other in enumerate(results.buckets):
            values = tally.tables["seats"].get((player, n, place)) if bucket in (None, other) else None
            if values is not None:
                sums = [a + b for a, b in zip(sums, values, strict=True)]
    return dict(zip(results.seat_sums, sums, strict=True))


def sum_of(tally: Tally, results: Results, measure: Measure, player: int, size: int | None) -> int:
    """A measure, summed over the same seats, however they ended."""
    if measure.count:
        return seat_sums(tally, results, player, size)[measure.count]
    return sum(
        value * seat_sums(tally, results, player, size, other)["games"]
        for other, value in zip(results.buckets, measure.values, strict=True)
        if value
    )


def table_sizes(tally: Tally) -> list[int]:
    """The sizes that were played, ascending."""
    return [size for (size,), _ in tally.rows("sizes")]


def relative_position(
    tally: Tally, results: Results, player: int, size: int | None = None, bucket: str | None = None
) -> float | None:
    """The mean of (n - place) / (n - 1) over finished seats; None over nothing (R31)."""
    total, seats = 0.0, 0
    for n in table_sizes(tally):
        if size in (None, n):
            for other in results.buckets:
                if other != results.unfinished and bucket in (None, other):
                    sums = seat_sums(tally, results, player, n, other)
                    total += sums["position"] / (2 * (n - 1))
                    seats += sums["games"]
    return total / seats if seats else None


def _player(tally: Tally, player: int, names: Sequence[str], game: Spec) -> dict[str, Any]:
    results = game.results
    buckets: dict[str, Any] = {"total": _bucket(tally, player, None, names, game)}
    for bucket in results.buckets:
        buckets[str(bucket)] = _bucket(tally, player, bucket, names, game)
    buckets["by_table_size"] = {size: _by_size(tally, results, player, size) for size in table_sizes(tally)}
    return buckets


def _bucket(tally: Tally, player: int, bucket: str | None, names: Sequence[str], game: Spec) -> dict[str, Any]:
    results = game.results
    sums = seat_sums(tally, results, player, bucket=bucket)
    games = sums["games"]
    whole: dict[str, Any] = {"games": games}
    whole |= {f"avg_{count}": sums[count] / games if games else None for count in results.averaged}
    for measure in results.measures:
        if measure.count:
            mean = Rate(sums[measure.count] / (measure.scale * games)) if games else Rate(None)
            whole[f"avg_{measure.key}"] = mean.on(measure.span).value
    whole |= {count: sums[count] for count in results.counted}
    if results.standing:
        whole["relative_position"] = relative_position(tally, results, player, bucket=bucket)
    if game.has_neighbours:
        for side, name in enumerate(("prev", "next")):
            whole[name] = dict(zip(names, beside(tally, results, player, side, len(names), bucket), strict=True))
    return whole


def beside(
    tally: Tally, results: Results, player: int, side: int, players: int, bucket: str | None = None
) -> list[int]:
    """How often each of the players sat before (side 0) or after (side 1) this one at the deal."""
    table = tally.tables["beside"]
    places = [place for place, other in enumerate(results.buckets) if bucket in (None, other)]
    return [sum(table.get((player, place, side, other), (0,))[0] for place in places) for other in range(players)]


def measured_beside(
    tally: Tally, results: Results, measure: Measure, player: int, side: int, players: int
) -> list[tuple[float | None, int]]:
    """A measure with each of the players at that side, and of how many seats; None over nothing."""
    seats, won = beside(tally, results, player, side, players), [0] * players
    for bucket, value in zip(results.buckets, measure.values, strict=True):
        if value:
            counts = beside(tally, results, player, side, players, bucket)
            won = [y + value * count for y, count in zip(won, counts, strict=True)]
    return [(y / (measure.scale * sat) if sat else None, sat) for y, sat in zip(won, seats, strict=True)]


def _by_size(tally: Tally, results: Results, player: int, size: int) -> dict[str, Any]:
    whole: dict[str, Any] = {
        "games": seat_sums(tally, results, player, size)["games"],
        **{str(bucket): seat_sums(tally, results, player, size, bucket)["games"] for bucket in results.buckets},
    }
    if results.standing:
        whole["relative_position"] = relative_position(tally, results, player, size)
    return whole
