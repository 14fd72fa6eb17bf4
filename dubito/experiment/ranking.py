"""The ranking of a run: every rate with its interval, beside what an equal share would be."""

from collections.abc import Sequence
from dataclasses import dataclass

from dubito.experiment.fallbacks import FallbackBounds, player_bounds
from dubito.experiment.results import measured_beside, seat_sums, sum_of, table_sizes
from dubito.experiment.statistics import Rate, clustered_rate, deviation
from dubito.experiment.tally import Tally
from dubito.game import FALLBACK_TURNS, FORFEITS, Results


@dataclass(frozen=True, slots=True)
class RankingRow:
    """One player of a run."""

    name: str
    games: int  # seats it played, one bot seated twice counting twice
    buckets: dict[str, int]  # how many of these fell into each of the game's buckets
    rates: dict[str, Rate]  # by the keys of the game's measures
    equal_share: dict[str, float]  # what all alike would get at the tables it sat at, where the game says it
    deviation_by_next: float | None  # of its last headline rate over the identities of the next player
    deviation_by_prev: float | None
    fallback_turns: int  # after bot errors
    forfeits: int  # games that it ended by a bot error
    bounds: FallbackBounds  # of a model player: had every game with a fallback gone otherwise


@dataclass(frozen=True, slots=True)
class SizeRow:
    """One player at tables of one size."""

    name: str
    size: int
    games: int
    rates: dict[str, float | None]
    equal_share: dict[str, float]


def ranking(tally: Tally, names: Sequence[str], results: Results) -> list[RankingRow]:
    """All players, the best by the first measure first, then by name."""
    first = results.measures[0].key
    rows = [_row(tally, player, names, results) for player in range(len(names))]
    return sorted(rows, key=lambda row: (not row.games, -(row.rates[first].value or 0.0), row.name))


def _row(tally: Tally, player: int, names: Sequence[str], results: Results) -> RankingRow:
    sums = seat_sums(tally, results, player)
    games = sums["games"]
    deals, m2, *measured = tally.tables["clusters"].get((player,), [0] * (2 + 3 * len(results.measures)))
    rates = {}
    for place, measure in enumerate(results.measures):
        y, y2, ym = measured[3 * place : 3 * place + 3]
        rates[measure.key] = clustered_rate(deals, games, m2, y, y2, ym, measure.scale).on(measure.span)
    buckets = {bucket: seat_sums(tally, results, player, bucket=bucket)["games"] for bucket in results.buckets}
    share: dict[str, float] = {}
    for size in table_sizes(tally):
        seats = seat_sums(tally, results, player, size)["games"]
        for key, value in results.equal_share(size).items():
            share[key] = share.get(key, 0.0) + (value * seats / games if games else 0.0)
    by_next, by_prev = (_neighbours(tally, results, player, side, len(names)) for side in (1, 0))
    bounds = player_bounds(tally, results, player, games, measured[::3])
    return RankingRow(
        name=names[player],
        games=games,
        buckets=buckets,
        rates=rates,
        equal_share=share,
        deviation_by_next=by_next,
        deviation_by_prev=by_prev,
        fallback_turns=sums[FALLBACK_TURNS],
        forfeits=sums.get(FORFEITS, 0),
        bounds=bounds,
    )


def _neighbours(tally: Tally, results: Results, player: int, side: int, players: int) -> float | None:
    """How the last headline rate depends on who sits at that side: its deviation over that neighbour's identities."""
    measure = results.measure(results.headline[-1])
    if measure.count:
        return None
    rates = measured_beside(tally, results, measure, player, side, players)
    return deviation([rate for rate, _ in rates if rate is not None])


def by_table_size(tally: Tally, names: Sequence[str], results: Results) -> list[SizeRow]:
    """All players at each size that was played."""
    first, rows = results.measures[0].key, []
    for size in table_sizes(tally):
        at_size = []
        for player, name in enumerate(names):
            games = seat_sums(tally, results, player, size)["games"]
            rates: dict[str, float | None] = {measure.key: None for measure in results.measures}
            for measure in results.measures if games else ():
                share = sum_of(tally, results, measure, player, size) / (measure.scale * games)
                rates[measure.key] = Rate(share).on(measure.span).value
            at_size.append(SizeRow(name, size, games, rates, dict(results.equal_share(size))))
        rows += sorted(at_size, key=lambda row: (not row.games, -(row.rates[first] or 0.0), row.name))
    return rows
