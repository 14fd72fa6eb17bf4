"""Games of two as tables and a map: first against second, every pair, and who profits from going first."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

from dubito.errors import one_line
from dubito.game import Measure, Results
from dubito.report.page_parts import Block, HeatMap, Paragraph, ends_of
from dubito.report.result_table import Column, ResultTable, Value, cell_text, counts, named
from dubito.report.run_tables import difference_of, kind_of
from dubito.stats.rates import Rate, clustered_rate
from dubito.stats.tally import ANYBODY, BOTH, Tally


@dataclass(frozen=True, slots=True)
class Duels:
    """One measure of a run's games of two."""

    tally: Tally
    results: Results
    measure: Measure

    def games(self, player: int, other: int = ANYBODY, seat: int = BOTH) -> int:
        """How many games a player has had so seated."""
        row = self.tally.tables.get("seated", {}).get((player, other, seat))
        return row[1] if row else 0

    def rate(self, player: int, other: int = ANYBODY, seat: int = BOTH) -> Rate:
        """The measure of a player against another one, as first (seat 0) or second."""
        row = self.tally.tables.get("seated", {}).get((player, other, seat))
        return self._rate(row, self.measure.scale).on(self.measure.span)

    def advantage(self) -> Rate:
        """How much more of the measure, a game, the first seat gets than the second."""
        least, most = self.measure.span or (0, 1)
        rate = self._rate(self.tally.tables.get("begun", {}).get(()), 2 * self.measure.scale)
        return rate.on((least - most, most - least))

    def _rate(self, row: list[int] | None, scale: int) -> Rate:
        if row is None:
            return Rate(None)
        place = 3 + 3 * self.results.place(self.measure.key)
        deals, m, m2 = row[:3]
        y, y2, ym = row[place : place + 3]
        return clustered_rate(deals, m, m2, y, y2, ym, scale)


def duel_tables(
    tally: Tally, names: Sequence[str], results: Results, label: Callable[[str], str] = one_line
) -> list[ResultTable | Paragraph]:
    """The matrix with its totals, every pair over both seats, and the advantage of going first.

    `label` is what a heading calls a player.
    """
    whole = Duels(tally, results, results.measures[0])
    order = _order(whole, names)
    return [_matrix(whole, names, order, label), _pairs(whole, names, order), Paragraph(_advantage(whole))]


def duels(tally: Tally, names: Sequence[str], results: Results, label: Callable[[str], str] = one_line) -> list[Block]:
    """The same with the matrix as a map as well, for a page."""
    whole = Duels(tally, results, results.measures[0])
    order = _order(whole, names)
    matrix, pairs, said = duel_tables(tally, names, results, label)
    return [said, _map(whole, names, order, label), matrix, pairs]


def _order(whole: Duels, names: Sequence[str]) -> list[int]:
    """Who has played, the best over both seats first."""
    players = [player for player in range(len(names)) if whole.games(player)]
    return sorted(players, key=lambda player: (-(whole.rate(player).value or 0.0), names[player]))


def _matrix(whole: Duels, names: Sequence[str], order: Sequence[int], label: Callable[[str], str]) -> ResultTable:
    columns, kind = [Column("first", "first ↓ second →", "player")], kind_of(whole.measure)
    columns += [Column(f"against_{names[other]}", label(names[other]), kind) for other in order]
    columns += [Column("as_first", "as first", kind), Column("as_second", "as second", kind)]
    columns += [Column("total", "total", kind), *counts("games")]
    rows: list[list[Value]] = []
    for player in order:
        against = [whole.rate(player, other, 0) if whole.games(player, other, 0) else None for other in order]
        totals = [whole.rate(player, ANYBODY, seat) for seat in (0, 1, BOTH)]
        rows.append([names[player], *against, *totals, whole.games(player)])
    title = f"{_of_first(whole.measure)}, by who is second"
    return ResultTable("first-second", title, columns, rows, ["Intervals are 95 %, clustered by deal."])


def _pairs(whole: Duels, names: Sequence[str], order: Sequence[int]) -> ResultTable:
    title, kind = whole.measure.titled, kind_of(whole.measure)
    columns = [*named("bot"), Column("rate", title, kind), Column("other", "against", "player")]
    columns += [Column("other_rate", f"the other: {title}", kind), *counts("games")]
    rows: list[list[Value]] = [
        [names[one], whole.rate(one, two), names[two], whole.rate(two, one), whole.games(one, two)]
        for one, two in combinations(order, 2)
        if whole.games(one, two)
    ]
    return ResultTable("duels", "Every pair, over both seats", columns, rows)


def _advantage(whole: Duels) -> str:
    """Who profits from going first, in a sentence."""
    rate, measure = whole.advantage(), whole.measure
    unit = " of" if measure.span else " points of 100 in"
    said = f"Going first is worth {cell_text(rate, difference_of(measure))}{unit} {measure.name}"
    if rate.value is None or rate.low <= 0 <= rate.high:
        return f"{said}: that may be chance."
    return f"{said}: {'the first' if rate.value > 0 else 'the second'} player profits."


def _map(whole: Duels, names: Sequence[str], order: Sequence[int], label: Callable[[str], str]) -> HeatMap:
    cells = [
        [(whole.rate(player, other, 0).value, whole.games(player, other, 0)) for other in order] for player in order
    ]
    rows: list[list[Value]] = [
        [names[player], names[other], whole.games(player, other, 0), whole.rate(player, other, 0)]
        for player in order
        for other in order
        if whole.games(player, other, 0)
    ]
    rate = Column(whole.measure.key, whole.measure.titled, kind_of(whole.measure))
    columns = [*named("first", "second"), *counts("games"), rate]
    title = _of_first(whole.measure)
    return HeatMap(
        title,
        "first ↓ second →",
        [label(names[player]) for player in order],
        cells,
        [whole.rate(player, ANYBODY, 0).value for player in order],
        ResultTable("first-against-second", title, columns, rows),
        ends_of(cell for row in cells for cell in row),
        "as first",
        "The last column is the row's total.",
        percent=whole.measure.span is None,
    )


def _of_first(measure: Measure) -> str:
    return f"{measure.name} of the first player{'' if measure.span else ', %'}"
