"""Rank the players of a run: rates with intervals and chance levels, paired differences, and ranks with ties.

Two contenders are significantly different if the 95 % interval of their paired difference excludes 0. With several
pairs, Holm's method controls for multiple comparisons. If a run stops once its contenders are decided, its own test
(`stopping.py`) determines significance for the first measure, and anytime intervals do for all others. Without
contenders there are no paired differences: two players are significantly different if their own 95 % intervals do not
overlap, even if they shared tables, and the interval of their difference is as wide as the two intervals together.
`relation.py` combines these differences with the number of deals and the fallbacks.

The *rank* of a player is 1 plus the number of players that win against it. If contenders are compared, only they have
ranks. They are compared in the contenders' seat, by differences on the same deals (R33).

`all_games.yaml` has the counts of a run, bot by bot (R30, R31).
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Final

from dubito.game import FALLBACK_TURNS, FORFEITS, Game, Measure, PlayerKind, Results
from dubito.stats.players import FallbackBounds, contender_bounds, fallback_bounds
from dubito.stats.rates import (
    ERROR,
    Rate,
    clustered_rate,
    deals_to_significance,
    deviation,
    paired_difference,
    variance_of,
)
from dubito.stats.relation import MIN_DEALS, ComparedPair, Relation, describe_limits, limit_difference, name_failures
from dubito.stats.stopping import PairVerdict, anytime_difference, decode_verdict, scale_difference
from dubito.stats.tally import Tally

_MAX_SHARE_GAP: Final = 0.02  # if fallback shares differ by more, systems are compared and not models


@dataclass(frozen=True, slots=True)
class Contender:
    """A player that is compared with other players on the same deals."""

    name: str
    run: int = 0  # contenders of the same run play their deals together
    seats: int = 1  # that it plays in each deal
    kind: PlayerKind = "hand-written"
    within: float | None = None  # points of its run's stop rule, with which intervals are anytime intervals


@dataclass(frozen=True, slots=True)
class ContenderRow:
    """A contender's results in the contenders' seat."""

    contender: Contender
    deals: int
    rates: dict[str, Rate]  # by measure, as played
    bounds: FallbackBounds
    equal_share: dict[str, float]  # the chance level at these tables, by measure


@dataclass(frozen=True, slots=True)
class PairRow:
    """Two contenders on their common deals. The better one by the first measure comes first."""

    one: Contender
    other: Contender
    differences: dict[str, ComparedPair]  # by headline key


def contender_ranking(tally: Tally, contenders: Sequence[Contender], results: Results) -> list[ContenderRow]:
    # The chance level over all games, which is the same for all contenders.
    share: dict[str, float] = {}
    for size in table_sizes(tally):
        for key, value in results.chance_level(size).items():
            share[key] = share.get(key, 0.0) + value * tally.tables["sizes"][size,][0] / tally.games
    rows = []
    for place in _best_first(tally, contenders):
        deals, *sums = tally.tables["contended"][place,]
        rates, m = {}, contenders[place].seats
        for at, measure in enumerate(results.measures):
            y, y2 = sums[at], sums[len(results.measures) + at]
            rate = clustered_rate(deals, m * deals, m * m * deals, y, y2, m * y, measure.scale)
            rates[measure.key] = rate.on_span(measure.span)
        bounds = contender_bounds(tally, results, place, m)
        rows.append(ContenderRow(contenders[place], deals, rates, bounds, share))
    return rows


def contender_pairs(tally: Tally, contenders: Sequence[Contender], results: Results) -> list[PairRow]:
    """Return every pair, starting with the best contender."""
    order = _best_first(tally, contenders)
    places = [*combinations(order, 2)]
    bounds = {place: contender_bounds(tally, results, place, contenders[place].seats) for place in order}
    in_run, by_measure = Counter(contender.run for contender in contenders), {}
    for key in results.headline:
        measure = results.measure(key)
        sums = [_sum_pair(tally, one, other, contenders, in_run, bounds, measure, results) for one, other in places]
        significant = significant_pairs(sums)
        by_measure[key] = [one.difference(place in significant, len(sums)) for place, one in enumerate(sums)]
    return [
        PairRow(
            contenders[one], contenders[other], {key: differences[place] for key, differences in by_measure.items()}
        )
        for place, (one, other) in enumerate(places)
    ]


@dataclass(frozen=True, slots=True)
class _PairSums:
    """The sums of two contenders' differences in one measure."""

    n: int  # deals
    d: int  # sum of the differences, and of their squares, in units of 1/scale
    d2: int
    scale: int
    width: float  # of the measure's span
    games: int  # a deal
    within: float | None  # in units of d, if the run has a stop rule
    points: float | None  # the same, as in the run's settings
    tested: bool  # whether the run's stop rule tests this measure
    stop_test: PairVerdict | None
    limits: tuple[float, float] = (0.0, 0.0)  # the difference in the worst and the best case, in the measure's units
    fallback_shares: tuple[float, float] = (0.0, 0.0)
    is_same: bool = False

    def rate(self, error: float = ERROR) -> Rate:
        if self.within is None:
            rate = paired_difference(self.n, self.d, self.d2, self.scale, error)
        else:
            rate = anytime_difference(self.n, self.d, self.d2, self.within, self.scale, error)
        return rate.rescale(self.width)

    @property
    def strength(self) -> float:
        variance = variance_of(self.n, self.d, self.d2)
        return abs(self.d) / math.sqrt(variance) if variance else math.inf if self.d else 0.0

    def difference(self, significant: bool, pairs: int) -> ComparedPair:
        """Return the compared pair. `significant` is the result of Holm's method for this many pairs."""
        if self.within is not None:
            significant = self.stop_test == "different" if self.tested else significant
        pair = ComparedPair(
            self.rate(),
            significant,
            *self.limits,
            self.fallback_shares,
            self.n,
            self.is_same,
            interval="fixed" if self.within is None else "anytime",
            stop_test=self.stop_test,
            within=self.points,
        )
        if pair.outcome in ("better", "worse"):
            return replace(pair, more_games=0)
        if pair.is_open and self.stop_test == "different":
            return replace(pair, stop_test="undecided")
        if self.within is not None or pair.limits_overlap:
            return pair
        deals = MIN_DEALS if significant else deals_to_significance(self.n, self.d, self.d2, ERROR / pairs)
        return replace(pair, more_games=None if deals is None else max(1, deals - self.n) * self.games)


def significant_pairs(pairs: Sequence[_PairSums]) -> set[int]:
    """Return the indexes of the pairs that are significantly different according to Holm's method (1979).

    The largest difference is tested at an error of 5 % divided by the number of pairs, the next at 5 % divided by one
    less, and so on until one is not significant. Thus, at most 5 % of such families contain a false positive.
    """
    significant = set[int]()
    for place in sorted(range(len(pairs)), key=lambda place: -pairs[place].strength):
        rate = pairs[place].rate(ERROR / (len(pairs) - len(significant)))
        if rate.low <= 0 <= rate.high:
            break
        significant.add(place)
    return significant


def _sum_pair(
    tally: Tally,
    one: int,
    other: int,
    contenders: Sequence[Contender],
    in_run: Mapping[int, int],
    bounds: Mapping[int, FallbackBounds],
    measure: Measure,
    results: Results,
) -> _PairSums:
    """Return the sums of a pair. `in_run` contains the number of contenders in each run."""
    key, sign = (min(one, other), max(one, other)), 1 if one < other else -1
    n, *sums = tally.tables["pairs"][key]
    at, m = results.place(measure.key), contenders[one].seats
    d = sign * sums[at]
    both = contenders[one], contenders[other]
    within = min((contender.within for contender in both if contender.within is not None), default=None)
    tested = within is not None and both[0].run == both[1].run and measure.key == results.headline[0]
    row = tally.tables.get("decided", {}).get(key) if tested else None
    least, most = measure.span or (0.0, 1.0)
    limits, shares = limit_difference(bounds[one], bounds[other], measure.key)
    return _PairSums(
        n=n,
        d=d,
        d2=sums[len(results.measures) + at],
        scale=m * measure.scale,
        width=most - least,
        games=m * sum(in_run[run] for run in {each.run for each in both}),
        within=None if within is None else scale_difference(within, measure, m),
        points=within,
        tested=tested,
        stop_test=decode_verdict(row, (sums[at] > 0) - (sums[at] < 0)),
        limits=limits,
        fallback_shares=shares,
        is_same=tally.tables.get("same", {}).get(key) == [n],
    )


def _count_decisive_deals(tally: Tally, order: Sequence[int]) -> int | None:
    """Return the fewest deals without which the first contender would not be the sole leader, or None.

    Another contender ties with it or leads once the deals in which it was furthest behind are removed.
    """
    first = order[0]
    leads: dict[int, dict[int, int]] = {other: {} for other in order[1:]}  # by difference, the number of deals
    for (one, other, value), (count,) in tally.tables.get("differences", {}).items():
        if one == first:
            leads[other][value] = count
        elif other == first:
            leads[one][-value] = count
    pairs = tally.tables["pairs"]
    if any(sum(leads[other].values()) != pairs[min(first, other), max(first, other)][0] for other in leads):
        return None
    return min(map(_count_to_remove, leads.values()), default=None)


def _count_to_remove(counts: Mapping[int, int]) -> int:
    """Return how many of the largest numbers must be removed for the rest to sum to 0 or less."""
    total, gone = sum(value * count for value, count in counts.items()), 0
    for value in sorted(counts, reverse=True):
        if total <= 0:
            break
        take = min(counts[value], -(-total // value))
        total, gone = total - take * value, gone + take
    return gone


def find_unequal_fallbacks(rows: Sequence[ContenderRow]) -> tuple[ContenderRow, ContenderRow] | None:
    """Return two contenders whose shares of games with fallbacks differ too much to be fair, higher first."""
    if not rows:
        return None
    by_share = sorted(rows, key=lambda row: -row.bounds.share)
    most, least = by_share[0], by_share[-1]
    return (most, least) if most.bounds.share - least.bounds.share > _MAX_SHARE_GAP else None


def _best_first(tally: Tally, contenders: Sequence[Contender]) -> list[int]:
    scores = {place: values[1] for (place,), values in tally.rows("contended")}
    return sorted(scores, key=lambda place: (-scores[place], contenders[place].name))


def all_games(tally: Tally, names: Sequence[str], game: Game) -> dict[str, Any]:
    results, by_player = game.results, {}
    for player, name in enumerate(names):
        counts: dict[str, Any] = {"total": _counts_in(tally, player, None, names, game)}
        for bucket in results.buckets:
            counts[str(bucket)] = _counts_in(tally, player, bucket, names, game)
        by_size: dict[int, dict[str, Any]] = {}
        for size in table_sizes(tally):
            by_size[size] = {"games": seat_sums(tally, results, player, size)["games"]}
            for bucket in results.buckets:
                by_size[size][str(bucket)] = seat_sums(tally, results, player, size, bucket)["games"]
            if results.standing:
                by_size[size]["relative_position"] = relative_position(tally, results, player, size)
        by_player[name] = counts | {"by_table_size": by_size}
    return by_player


def seat_sums(
    tally: Tally, results: Results, player: int, size: int | None = None, bucket: str | None = None
) -> dict[str, int]:
    """Sum the game's `seat_sums` over a player's seats, at one or all table sizes and in one or all buckets."""
    sums = [0] * len(results.seat_sums)
    for n in table_sizes(tally) if size is None else [size]:
        for place, other in enumerate(results.buckets):
            values = tally.tables["seats"].get((player, n, place)) if bucket in (None, other) else None
            if values is not None:
                sums = [a + b for a, b in zip(sums, values, strict=True)]
    return dict(zip(results.seat_sums, sums, strict=True))


def sum_measure(tally: Tally, results: Results, measure: Measure, player: int, size: int | None) -> int:
    """Sum a measure over a player's seats, in all buckets."""
    if measure.count:
        return seat_sums(tally, results, player, size)[measure.count]
    return sum(
        value * seat_sums(tally, results, player, size, other)["games"]
        for other, value in zip(results.buckets, measure.values, strict=True)
        if value
    )


def table_sizes(tally: Tally) -> list[int]:
    return [size for (size,), _ in tally.rows("sizes")]


def relative_position(
    tally: Tally, results: Results, player: int, size: int | None = None, bucket: str | None = None
) -> float | None:
    """Return the mean of (n - place) / (n - 1) over finished seats, or None if there are none (R31)."""
    total, seats = 0.0, 0
    for n in table_sizes(tally):
        if size in (None, n):
            for other in results.buckets:
                if other != results.unfinished and bucket in (None, other):
                    sums = seat_sums(tally, results, player, n, other)
                    total += sums["position"] / (2 * (n - 1))
                    seats += sums["games"]
    return total / seats if seats else None


def _counts_in(tally: Tally, player: int, bucket: str | None, names: Sequence[str], game: Game) -> dict[str, Any]:
    results = game.results
    sums = seat_sums(tally, results, player, bucket=bucket)
    games = sums["games"]
    whole: dict[str, Any] = {"games": games}
    whole |= {f"avg_{count}": sums[count] / games if games else None for count in results.averaged}
    for measure in results.measures:
        if measure.count:
            mean = Rate(sums[measure.count] / (measure.scale * games)) if games else Rate(None)
            whole[f"avg_{measure.key}"] = mean.on_span(measure.span).value
    whole |= {count: sums[count] for count in results.published_counts}
    if results.standing:
        whole["relative_position"] = relative_position(tally, results, player, bucket=bucket)
    if game.has_neighbours:
        for side, name in enumerate(("prev", "next")):
            whole[name] = dict(
                zip(names, count_neighbours(tally, results, player, side, len(names), bucket), strict=True)
            )
    return whole


def count_neighbours(
    tally: Tally, results: Results, player: int, side: int, players: int, bucket: str | None = None
) -> list[int]:
    """Return how many of a player's seats had each player on that side."""
    table = tally.tables["beside"]
    places = [place for place, other in enumerate(results.buckets) if bucket in (None, other)]
    return [sum(table.get((player, place, side, other), (0,))[0] for place in places) for other in range(players)]


def rates_by_neighbour(
    tally: Tally, results: Results, measure: Measure, player: int, side: int, players: int
) -> list[tuple[float | None, int]]:
    """Return a measure next to each player on that side and the number of seats, or None without seats."""
    seats, won = count_neighbours(tally, results, player, side, players), [0] * players
    for bucket, value in zip(results.buckets, measure.values, strict=True):
        if value:
            counts = count_neighbours(tally, results, player, side, players, bucket)
            won = [y + value * count for y, count in zip(won, counts, strict=True)]
    return [(y / (measure.scale * sat) if sat else None, sat) for y, sat in zip(won, seats, strict=True)]


@dataclass(frozen=True, slots=True)
class RankingRow:
    """A player in a run's ranking."""

    name: str
    games: int  # seats: a bot in two seats of a game counts twice
    buckets: dict[str, int]  # games in each of the game's buckets
    rates: dict[str, Rate]  # by measure
    equal_share: dict[str, float]  # the chance level at its tables, by measure
    deviation_by_next: float | None  # of its last headline rate, over the players next to it
    deviation_by_prev: float | None
    fallback_turns: int  # after bot errors
    forfeits: int  # games that it ended with an error
    bounds: FallbackBounds  # for model players


@dataclass(frozen=True, slots=True)
class SizeRow:
    """A player's results at tables of one size."""

    name: str
    size: int
    games: int
    rates: dict[str, float | None]
    equal_share: dict[str, float]


def ranking(tally: Tally, names: Sequence[str], results: Results) -> list[RankingRow]:
    rows = []
    for player, name in enumerate(names):
        sums = seat_sums(tally, results, player)
        games = sums["games"]
        deals, m2, *measured = tally.tables["clusters"].get((player,), [0] * (2 + 3 * len(results.measures)))
        rates = {}
        for place, measure in enumerate(results.measures):
            y, y2, ym = measured[3 * place : 3 * place + 3]
            rates[measure.key] = clustered_rate(deals, games, m2, y, y2, ym, measure.scale).on_span(measure.span)
        buckets = {bucket: seat_sums(tally, results, player, bucket=bucket)["games"] for bucket in results.buckets}
        share: dict[str, float] = {}
        for size in table_sizes(tally):
            seats = seat_sums(tally, results, player, size)["games"]
            for key, value in results.chance_level(size).items():
                share[key] = share.get(key, 0.0) + (value * seats / games if games else 0.0)
        by_next, by_prev = (_deviation_by_neighbour(tally, results, player, side, len(names)) for side in (1, 0))
        row = RankingRow(
            name=name,
            games=games,
            buckets=buckets,
            rates=rates,
            equal_share=share,
            deviation_by_next=by_next,
            deviation_by_prev=by_prev,
            fallback_turns=sums[FALLBACK_TURNS],
            forfeits=sums.get(FORFEITS, 0),
            bounds=fallback_bounds(tally.tables["touched"].get((player,)), results, games, measured[::3]),
        )
        rows.append(row)
    first = results.measures[0].key
    return sorted(rows, key=lambda row: (not row.games, -(row.rates[first].value or 0.0), row.name))


def relate_players(tally: Tally, names: Sequence[str], contenders: Sequence[Contender], results: Results) -> Relation:
    """Return the relation that every table uses: of the contenders if there are at least two, or else of all players.

    `names` are all players.
    """
    relation = relate_contenders(tally, contenders, results)
    if relation is not None:
        return relation
    deals = tally.games // (contenders[0].seats if contenders else 1)
    return _relate_by_intervals(ranking(tally, names, results), deals, results)


def relate_contenders(
    tally: Tally, contenders: Sequence[Contender], results: Results, pairs: Sequence[PairRow] | None = None
) -> Relation | None:
    """Return the contenders' relation by their paired differences, or None if there are fewer than two.

    `pairs` is the result of `contender_pairs` if already known.
    """
    rows = contender_ranking(tally, contenders, results)
    pairs = contender_pairs(tally, contenders, results) if pairs is None else pairs
    if not pairs:
        return None
    measure = results.measure(results.headline[0])
    differences = (pair.differences[measure.key] for pair in pairs)
    return Relation(
        [row.contender.name for row in rows],
        dict(zip(combinations(range(len(rows)), 2), differences, strict=True)),  # pairs in order
        measure,
        rows[0].deals,
        paired=True,
        within=min((one.within for one in contenders if one.within is not None), default=None),
        fragility=_count_decisive_deals(tally, _best_first(tally, contenders)),
        limits=describe_limits(results),
        failures=name_failures(results),
    )


def _relate_by_intervals(rows: Sequence[RankingRow], deals: int, results: Results) -> Relation:
    """Return the players' relation by their own intervals, leaving out players that never played."""
    measure, played = results.measures[0], [row for row in rows if row.games]
    pairs = {}
    for one, other in combinations(range(len(played)), 2):
        better, worse = played[one], played[other]
        rate, other_rate = better.rates[measure.key], worse.rates[measure.key]
        difference = Rate(
            (rate.value or 0.0) - (other_rate.value or 0.0), rate.low - other_rate.high, rate.high - other_rate.low
        )
        limits, shares = limit_difference(better.bounds, worse.bounds, results.headline[0])
        pairs[one, other] = ComparedPair(difference, difference.low > 0, *limits, shares, deals)
    return Relation(
        [row.name for row in played],
        pairs,
        measure,
        deals,
        limits=describe_limits(results),
        failures=name_failures(results),
    )


def _deviation_by_neighbour(tally: Tally, results: Results, player: int, side: int, players: int) -> float | None:
    """Return the deviation of the last headline rate over the neighbours on that side."""
    measure = results.measure(results.headline[-1])
    if measure.count:
        return None
    rates = rates_by_neighbour(tally, results, measure, player, side, players)
    return deviation([rate for rate, _ in rates if rate is not None])


def by_table_size(tally: Tally, names: Sequence[str], results: Results) -> list[SizeRow]:
    """Return the rates of all players at each table size."""
    first, rows = results.measures[0].key, []
    for size in table_sizes(tally):
        at_size = []
        for player, name in enumerate(names):
            games = seat_sums(tally, results, player, size)["games"]
            rates: dict[str, float | None] = {measure.key: None for measure in results.measures}
            for measure in results.measures if games else ():
                share = sum_measure(tally, results, measure, player, size) / (measure.scale * games)
                rates[measure.key] = Rate(share).on_span(measure.span).value
            at_size.append(SizeRow(name, size, games, rates, dict(results.chance_level(size))))
        rows += sorted(at_size, key=lambda row: (not row.games, -(row.rates[first] or 0.0), row.name))
    return rows
