"""The ranking of a run: every rate with its interval, beside what an equal share would be; and ranks with ties.

Two contenders are *told apart* if the 95 % interval of their paired difference does not hold 0. Two players of a field
have no paired difference: they are told apart if their own 95 % intervals do not overlap, which holds however much
they shared the same tables, and their difference is given as wide as both intervals together. Of fewer than `FEW`
deals nobody is told apart from anybody.

The *rank* of a player is one more than the number of those who are told apart from it as better. Where contenders are
compared, they are who is ranked: the field has no place among them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from dubito.experiment.contenders import FEW, Contender, contender_pairs, contender_ranking
from dubito.experiment.fallbacks import FallbackBounds, player_bounds
from dubito.experiment.results import measured_beside, seat_sums, sum_of, table_sizes
from dubito.experiment.statistics import Rate, clustered_rate, deviation
from dubito.experiment.tally import Tally
from dubito.game import FALLBACK_TURNS, FORFEITS, Measure, Results


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


@dataclass(frozen=True)
class Order:
    """Who is ranked, the best by point estimate first, and what is known of every two of them."""

    names: Sequence[str]
    differences: Mapping[tuple[int, int], Rate]  # by places, of the better one over the other
    measure: Measure
    more_games: int | None = None  # that would tell the first two apart, where that is known
    deals: int = FEW
    paired: bool = False  # whether the differences are those of the same deals

    def apart(self, better: int, other: int) -> bool:
        """Whether the better one is told apart from the other."""
        rate = self.differences[better, other]
        return self.deals >= FEW and rate.value is not None and rate.low > 0

    @property
    def ranks(self) -> list[int]:
        """1 for the best, and the same for those that nobody is told apart from as better."""
        return [1 + sum(self.apart(better, place) for better in range(place)) for place in range(len(self.names))]

    def rank(self, name: str) -> int | None:
        """The rank of that player; None for who is not ranked."""
        return dict(zip(self.names, self.ranks, strict=True)).get(name)


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


def order_of(tally: Tally, names: Sequence[str], contenders: Sequence[Contender], results: Results) -> Order:
    """The ranks of a run, as every table has them: the contenders' where two are compared, else those of all players.

    `names` are those of all players.
    """
    deals = tally.games // (contenders[0].seats if contenders else 1)  # where they are not those of several contenders
    field = _of_field(ranking(tally, names, results), deals, results.measures[0])
    return order_of_contenders(tally, contenders, results) or field


def order_of_contenders(tally: Tally, contenders: Sequence[Contender], results: Results) -> Order | None:
    """The contenders by their paired differences; None where there are not two."""
    rows, pairs = contender_ranking(tally, contenders, results), contender_pairs(tally, contenders, results)
    if not pairs:
        return None
    measure = results.measure(results.headline[0])
    differences = [pair.differences[measure.key] for pair in pairs]
    places = combinations(range(len(rows)), 2)  # in which the pairs come
    found = {place: difference.rate for place, difference in zip(places, differences, strict=True)}
    names = [row.contender.name for row in rows]
    return Order(names, found, measure, differences[0].more_games, rows[0].deals, paired=True)


def _of_field(rows: Sequence[RankingRow], deals: int, measure: Measure) -> Order:
    """The players of a ranking by their own intervals; who never played is not in it."""
    rates = [row.rates[measure.key] for row in rows if row.games]
    differences = {
        (one, other): Rate(
            (rates[one].value or 0.0) - (rates[other].value or 0.0),
            rates[one].low - rates[other].high,
            rates[one].high - rates[other].low,
        )
        for one, other in combinations(range(len(rates)), 2)
    }
    return Order([row.name for row in rows if row.games], differences, measure, deals=deals)


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
