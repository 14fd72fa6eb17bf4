"""The ranking of a run: every rate with its interval, beside what an equal share would be."""

from collections.abc import Sequence
from dataclasses import dataclass

from dubito.experiment.fallbacks import Bounds, player_bounds
from dubito.experiment.outcome import RESULTS
from dubito.experiment.results import beside, seat_sums, table_sizes
from dubito.experiment.statistics import Rate, clustered_rate, deviation, equal_share
from dubito.experiment.tally import MEASURES, SCALES, Tally
from dubito.games.dubito.core_game import Result


@dataclass(frozen=True, slots=True)
class RankingRow:
    """One player of a run."""

    name: str
    games: int  # seats it played, one bot seated twice counting twice
    rates: dict[str, Rate]  # by the names of MEASURES
    equal_share: dict[str, float]  # what all alike would get at the tables it sat at
    deviation_by_next: float | None  # of its hard-win rate over the identities of the next player
    deviation_by_prev: float | None
    fallback_turns: int  # after bot errors
    bounds: Bounds  # of a model player: had every game with a fallback gone otherwise


@dataclass(frozen=True, slots=True)
class SizeRow:
    """One player at tables of one size."""

    name: str
    size: int
    games: int
    rates: dict[str, float | None]
    equal_share: dict[str, float]


def ranking(tally: Tally, names: Sequence[str]) -> list[RankingRow]:
    """All players, the best Score first, then by name."""
    rows = [_row(tally, player, names) for player in range(len(names))]
    return sorted(rows, key=lambda row: (-(row.rates["score"].value or 0.0), row.name))


def _row(tally: Tally, player: int, names: Sequence[str]) -> RankingRow:
    sums = seat_sums(tally, player)
    games = sums["games"]
    deals, m2, *measured = tally.tables["clusters"].get((player,), [0] * (2 + 3 * len(MEASURES)))
    rates = {}
    for place, (measure, scale) in enumerate(zip(MEASURES, SCALES, strict=True)):
        y, y2, ym = measured[3 * place : 3 * place + 3]
        rates[str(measure)] = clustered_rate(deals, games, m2, y, y2, ym, scale)
    share = {str(measure): 0.0 for measure in MEASURES}
    for size in table_sizes(tally):
        seats = seat_sums(tally, player, size)["games"]
        for measure, value in equal_share(size).items():
            share[measure] += value * seats / games if games else 0.0
    by_next, by_prev = (_neighbours(tally, player, side, len(names)) for side in (1, 0))
    bounds = player_bounds(tally, player, games, measured[0], measured[3])
    return RankingRow(names[player], games, rates, share, by_next, by_prev, sums["fallback_turns"], bounds)


def _neighbours(tally: Tally, player: int, side: int, players: int) -> float | None:
    """How much the hard-win rate depends on who sits at that side: its deviation over that neighbour's identities."""
    seats = beside(tally, player, side, players)
    wins = beside(tally, player, side, players, Result.HARD_WIN)
    return deviation([won / sat for won, sat in zip(wins, seats, strict=True) if sat])


def by_table_size(tally: Tally, names: Sequence[str]) -> list[SizeRow]:
    """All players at each size that was played."""
    rows = []
    for size in table_sizes(tally):
        at_size = []
        for player, name in enumerate(names):
            games = seat_sums(tally, player, size)["games"]
            counts = {str(result): seat_sums(tally, player, size, result)["games"] for result in RESULTS}
            score = counts["hard_wins"] + counts["soft_wins"] / 2
            rates = {measure: count / games if games else None for measure, count in {"score": score, **counts}.items()}
            at_size.append(SizeRow(name, size, games, rates, equal_share(size)))
        rows += sorted(at_size, key=lambda row: (-(row.rates["score"] or 0.0), row.name))
    return rows
