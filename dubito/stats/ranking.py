"""The ranking of a run: every rate with its interval, beside what an equal share would be; and ranks with ties.

Two contenders are *told apart* if the 95 % interval of their paired difference does not hold 0. Of several pairs Holm's
test decides: it takes the intervals of the clearest wider, so that not one in twenty such comparisons finds a
difference between any who do not differ. Where a run stopped when they were decided, the first measure goes by its test
(`stopping.py`), the others by the interval that holds at any time. Two players of a field have no paired difference:
they are told apart if their own 95 % intervals do not overlap, even if they shared tables, and the interval of their
difference is as wide as the two added. Of fewer than `FEW` deals nobody is told apart from anybody.

The *rank* of a player is 1 plus the number of players that are told apart from it as better. Where contenders are
compared, only they have ranks.

Contenders compared: each in the contenders' seat, and every pair by differences on the same deals (R33).

`all_games.yaml`: what a run counts, bot by bot (R30, R31).
"""

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final, Literal

from dubito.game import FALLBACK_TURNS, FORFEITS, Game, Measure, PlayerKind, Results
from dubito.stats.players import FallbackBounds, contender_bounds, fallback_share, player_bounds
from dubito.stats.rates import ERROR, Rate, clustered_rate, deals_to_separate, deviation, paired_difference, variance_of
from dubito.stats.stopping import PairVerdict, anytime_difference, difference_to_find, verdict_in
from dubito.stats.tally import Tally
from dubito.store.model_log import PlayerLog

FEW: Final = 10  # deals: of fewer nobody is told apart from anybody
PRELIMINARY: Final = 100  # deals: of fewer a comparison is called so; 100 show 11 points of Score in 80 of 100 runs
_SYSTEMS: Final = 0.02  # contenders whose fallback shares differ by more are compared as systems, not as models


@dataclass(frozen=True, slots=True)
class Contender:
    """Who is compared."""

    name: str
    run: int = 0  # contenders with the same number play their deals together
    fallback_share: float = 0.0  # of its decisions
    seats: int = 1  # in which it plays each deal
    kind: PlayerKind = "hand-written"
    within: float | None = None  # points; its run stops when it is decided so, so that intervals are anytime ones


@dataclass(frozen=True, slots=True)
class ContenderRow:
    """One contender in the contenders' seat."""

    contender: Contender
    deals: int
    rates: dict[str, Rate]  # by the keys of the game's measures, as played
    bounds: FallbackBounds


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """How much more one contender has of a measure than another, per game of the same deals."""

    rate: Rate
    more_games: int | None  # that would tell them apart; 0: they are told apart; None: no number can be named
    interval: Literal["fixed", "anytime"] = "fixed"  # for a number of deals settled before, or whenever it is looked at
    verdict: PairVerdict | None = None  # of the test that a run stops by; None: by another measure, or not yet


@dataclass(frozen=True, slots=True)
class PairRow:
    """Two contenders on their common deals, the better one by the first measure first."""

    one: Contender
    other: Contender
    differences: dict[str, PairedDifference]  # by the keys of the game's headline


def contenders_of(
    names: Sequence[str],
    models: Mapping[str, PlayerLog],
    kinds: Mapping[str, PlayerKind],
    run: int = 0,
    seats: int = 1,
    within: float | None = None,
) -> list[Contender]:
    """The contenders of these names in the `run`th of several runs; `models` are its model players, by name.

    Their fallback shares are of all their decisions, not of those in common deals.
    """
    shares = [fallback_share(models[name].outcomes) if name in models else 0.0 for name in names]
    return [Contender(name, run, share, seats, kinds[name], within) for name, share in zip(names, shares, strict=True)]


def contender_ranking(tally: Tally, contenders: Sequence[Contender], results: Results) -> list[ContenderRow]:
    """The contenders in their own seat, the best by the first measure first, then by name."""
    return [_contender_row(tally, place, contenders[place], results) for place in _best_first(tally, contenders)]


def contender_pairs(tally: Tally, contenders: Sequence[Contender], results: Results) -> list[PairRow]:
    """Every pair, those of the best contender first."""
    places = [*combinations(_best_first(tally, contenders), 2)]
    by_measure = {}
    for key in results.headline:
        seen = [_games_together(tally, one, other, contenders, results.measure(key), results) for one, other in places]
        told = told_apart(seen)
        by_measure[key] = [one.difference(place in told, len(seen)) for place, one in enumerate(seen)]
    return [
        PairRow(contenders[one], contenders[other], {key: found[place] for key, found in by_measure.items()})
        for place, (one, other) in enumerate(places)
    ]


@dataclass(frozen=True, slots=True)
class _Seen:
    """What was seen of two contenders by one measure."""

    n: int  # deals
    d: int  # sum of the differences, and of their squares, in units of 1/scale
    d2: int
    scale: int
    width: float  # of the measure's span
    games: int  # a deal
    within: float | None  # in units of d, where the deals were not settled before
    tested: bool  # its verdict is that of a test by which its run stops
    verdict: PairVerdict | None

    def rate(self, error: float = ERROR) -> Rate:
        if self.within is None:
            rate = paired_difference(self.n, self.d, self.d2, self.scale, error)
        else:
            rate = anytime_difference(self.n, self.d, self.d2, self.within, self.scale, error)
        return rate.times(self.width)

    @property
    def strength(self) -> float:
        """The difference in standard errors, but for what all pairs share."""
        variance = variance_of(self.n, self.d, self.d2)
        return abs(self.d) / math.sqrt(variance) if variance else math.inf if self.d else 0.0

    def difference(self, apart: bool, pairs: int) -> PairedDifference:
        """What is said of it, `apart` or not by Holm's test of so many pairs."""
        if self.within is not None:
            apart = self.verdict == "told apart" if self.tested else apart and self.n >= FEW
            return PairedDifference(self.rate(), 0 if apart else None, "anytime", self.verdict)
        if apart:
            return PairedDifference(self.rate(), max(0, FEW - self.n) * self.games)
        deals = deals_to_separate(self.n, self.d, self.d2, ERROR / pairs)
        return PairedDifference(self.rate(), None if deals is None else max(1, deals - self.n) * self.games)


def told_apart(pairs: Sequence[_Seen]) -> set[int]:
    """The places of those that Holm's test (1979) tells apart: at most in 5 of 100 such families any wrongly.

    The clearest difference at an error of 5 % over the number of pairs, the next at 5 % over one less, and so on up to
    the first that is not clear enough.
    """
    told = set[int]()
    for place in sorted(range(len(pairs)), key=lambda place: -pairs[place].strength):
        rate = pairs[place].rate(ERROR / (len(pairs) - len(told)))
        if rate.low <= 0 <= rate.high:
            break
        told.add(place)
    return told


def _games_together(
    tally: Tally, one: int, other: int, contenders: Sequence[Contender], measure: Measure, results: Results
) -> _Seen:
    key, sign = (min(one, other), max(one, other)), 1 if one < other else -1
    n, *sums = tally.tables["pairs"][key]
    at, m = results.place(measure.key), contenders[one].seats
    d = sign * sums[at]
    both = contenders[one], contenders[other]
    withins = [contender.within for contender in both if contender.within is not None]
    tested = bool(withins) and both[0].run == both[1].run and measure.key == results.headline[0]
    row = tally.tables.get("decided", {}).get(key) if tested else None
    least, most = measure.span or (0.0, 1.0)
    return _Seen(
        n=n,
        d=d,
        d2=sums[len(results.measures) + at],
        scale=m * measure.scale,
        width=most - least,
        games=m * sum(contender.run in {each.run for each in both} for contender in contenders),
        within=difference_to_find(min(withins), measure, m) if withins else None,
        tested=tested,
        verdict=verdict_in(row, (sums[at] > 0) - (sums[at] < 0)),
    )


def _deals_that_decide(tally: Tally, order: Sequence[int]) -> int | None:
    """The fewest deals without which the first of these contenders would not be alone in front; None: not kept.

    One other is in front of it, or level, as soon as the deals are gone in which it was the furthest behind.
    """
    fewest: list[int] = []
    for other in order[1:]:
        first, sign = order[0], 1 if order[0] < other else -1
        key = (min(first, other), max(first, other))
        rows = tally.rows("differences")
        seen = {sign * value: count for (*pair, value), (count,) in rows if (*pair,) == key}
        if sum(seen.values()) != tally.tables["pairs"][key][0]:
            return None
        fewest.append(_largest_to_remove(seen))
    return min(fewest, default=None)


def _largest_to_remove(seen: Mapping[int, int]) -> int:
    """How many of the largest of these numbers, each so many times, are to go until the rest adds up to 0 or less."""
    total, gone = sum(value * count for value, count in seen.items()), 0
    for value in sorted(seen, reverse=True):
        if total <= 0:
            break
        take = min(seen[value], -(-total // value))
        total, gone = total - take * value, gone + take
    return gone


def as_systems(contenders: Sequence[Contender]) -> tuple[Contender, Contender] | None:
    """The two whose fallback shares differ most, if that is too much to speak of models; the higher share first."""
    if not contenders:
        return None
    by_share = sorted(contenders, key=lambda contender: -contender.fallback_share)
    most, least = by_share[0], by_share[-1]
    return (most, least) if most.fallback_share - least.fallback_share > _SYSTEMS else None


def _best_first(tally: Tally, contenders: Sequence[Contender]) -> list[int]:
    scores = {place: values[1] for (place,), values in tally.rows("contended")}
    return sorted(scores, key=lambda place: (-scores[place], contenders[place].name))


def _contender_row(tally: Tally, place: int, contender: Contender, results: Results) -> ContenderRow:
    deals, *sums = tally.tables["contended"][place,]
    rates, m = {}, contender.seats
    for at, measure in enumerate(results.measures):
        y, y2 = sums[at], sums[len(results.measures) + at]
        rate = clustered_rate(deals, m * deals, m * m * deals, y, y2, m * y, measure.scale)
        rates[measure.key] = rate.on(measure.span)
    return ContenderRow(contender, deals, rates, contender_bounds(tally, results, place, m))


def all_games(tally: Tally, names: Sequence[str], game: Game) -> dict[str, Any]:
    """Bot name -> bucket -> fields, and -> `by_table_size` -> size -> fields; players in their given order."""
    return {name: _counts_of(tally, player, names, game) for player, name in enumerate(names)}


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


def _counts_of(tally: Tally, player: int, names: Sequence[str], game: Game) -> dict[str, Any]:
    results = game.results
    buckets: dict[str, Any] = {"total": _counts_in(tally, player, None, names, game)}
    for bucket in results.buckets:
        buckets[str(bucket)] = _counts_in(tally, player, bucket, names, game)
    buckets["by_table_size"] = {size: _counts_at(tally, results, player, size) for size in table_sizes(tally)}
    return buckets


def _counts_in(tally: Tally, player: int, bucket: str | None, names: Sequence[str], game: Game) -> dict[str, Any]:
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


def _counts_at(tally: Tally, results: Results, player: int, size: int) -> dict[str, Any]:
    whole: dict[str, Any] = {
        "games": seat_sums(tally, results, player, size)["games"],
        **{str(bucket): seat_sums(tally, results, player, size, bucket)["games"] for bucket in results.buckets},
    }
    if results.standing:
        whole["relative_position"] = relative_position(tally, results, player, size)
    return whole


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
    more_games: int | None = None  # that would tell the first two apart, where that is known; 0: they are told apart
    deals: int = FEW
    paired: bool = False  # whether the differences are those of the same deals
    told: Set[tuple[int, int]] = frozenset()  # the pairs that are told apart, the better one first
    close: Set[tuple[int, int]] = frozenset()  # those that are known to be `within` so many points
    within: float | None = None  # of a run that stops when decided, whose intervals are anytime ones
    fragility: int | None = None  # the fewest deals without which the first would not be alone in front

    @property
    def is_preliminary(self) -> bool:
        """Whether contenders are compared on fewer deals than it takes; a test that stops a run takes what it takes."""
        return self.paired and self.within is None and self.deals < PRELIMINARY

    def apart(self, better: int, other: int) -> bool:
        return (better, other) in self.told

    @property
    def ranks(self) -> list[int]:
        """1 for the best, and the same for those that nobody is told apart from as better."""
        return [1 + sum(self.apart(better, place) for better in range(place)) for place in range(len(self.names))]

    def rank(self, name: str) -> int | None:
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
    rows = [_ranking_row(tally, player, names, results) for player in range(len(names))]
    return sorted(rows, key=lambda row: (not row.games, -(row.rates[first].value or 0.0), row.name))


def order_of(tally: Tally, names: Sequence[str], contenders: Sequence[Contender], results: Results) -> Order:
    """The ranks of a run, as every table has them: the contenders' where two are compared, else those of all players.

    `names` are those of all players.
    """
    deals = tally.games // (contenders[0].seats if contenders else 1)  # where they are not those of several contenders
    field = _order_of_field(ranking(tally, names, results), deals, results.measures[0])
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
    by_place = dict(zip(found, differences, strict=True))
    told = {place for place, one in by_place.items() if one.more_games == 0 and (one.rate.value or 0.0) > 0}
    close = {place for place, one in by_place.items() if one.verdict == "within"}
    within = min((one.within for one in contenders if one.within is not None), default=None)
    return Order(
        names,
        found,
        measure,
        differences[0].more_games,
        rows[0].deals,
        paired=True,
        told=told,
        close=close,
        within=within,
        fragility=_deals_that_decide(tally, _best_first(tally, contenders)),
    )


def _order_of_field(rows: Sequence[RankingRow], deals: int, measure: Measure) -> Order:
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
    told = {pair for pair, rate in differences.items() if deals >= FEW and rate.low > 0}
    return Order([row.name for row in rows if row.games], differences, measure, deals=deals, told=told)


def _ranking_row(tally: Tally, player: int, names: Sequence[str], results: Results) -> RankingRow:
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
