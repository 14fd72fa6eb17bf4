"""Who sits beside whom, and what that does: maps by previous and next player, and how far rates vary with them."""

from collections.abc import Sequence
from typing import Final

from dubito.experiment.stored import StoredRun
from dubito.game import Measure
from dubito.report.page_parts import Block, Chart, HeatMap, Page, Paragraph, Section, ends_of, points
from dubito.report.result_table import Column, ResultTable, Value, counts, named
from dubito.report.scan import Scan
from dubito.report.strategy import habits_of, players_ranked
from dubito.stats.ranking import measured_beside
from dubito.stats.rates import Rate, apart, deviation

SIDES: Final = ((1, "next"), (0, "previous"))
_DEVIATION: Final = {
    key: [("", f"{name}: as it is"), ("_chance", f"{name}: by chance alone"), ("_beyond", f"{name}: without chance")]
    for key, name in (("next", "next"), ("prev", "previous"))
}
_NOTES: Final = (
    "As it is: the standard deviation of the rates in the maps, which chance alone makes greater than 0, more so the "
    "fewer games there are. By chance alone: what it would be (root mean square) were all neighbours alike.",
    "Without chance: what is left of it, with a 95 % interval. An interval that begins at 0 says that all of it may be "
    "chance. A side is named only if the 95 % interval of next - previous, without chance, does not hold 0.",
)


def neighbours(source: StoredRun, scanned: Scan) -> Page:
    """The page on who sits beside."""
    sections = [Section("Who varies with whom", _deviations(source, scanned))]
    results = source.game.results
    measures = [results.measure(key) for key in reversed(results.headline)]
    sections += [Section(f"{measure.name} by neighbour", _maps(source, scanned, measure)) for measure in measures]
    return Page("neighbours.html", "Neighbours", sections)


def _deviations(source: StoredRun, scanned: Scan) -> list[Block]:
    results = source.game.results
    order, rate = players_ranked(source), results.rate
    if results.charted:
        first = results.charted[0]
        order.sort(key=lambda player: (-(scanned.style(player, first).value or 0.0), source.names[player]))
    names = [source.names[player] for player in order]
    players = len(names)
    varied = {side: [scanned.variation(player, side, players) for player in order] for side, _ in SIDES}
    chart = Chart(
        "intervals",
        f"How far the {rate} of each bot varies with who sits beside it",
        f"standard deviation of the {rate} over the identities of the neighbour, without chance, points of 100",
        [*map(source.label, names)],
        [points(f"with the {name} player", [one.beyond for one in varied[side]]) for side, name in SIDES],
    )
    columns = [*named("bot"), Column("more", "varies more with", "text")]
    columns += [column for column in habits_of(results) if column.key in results.charted]
    columns += [Column(f"by_{key}{end}", title, "rate") for key in ("next", "prev") for end, title in _DEVIATION[key]]
    columns += [Column("difference", "next - previous", "points")]
    cells: list[list[Value]] = []
    for player, name, by_next, by_prev in zip(order, names, varied[1], varied[0], strict=True):
        habits = [scanned.style(player, habit).value for habit in results.charted]
        difference = apart(by_next.beyond, by_prev.beyond)
        sides = [value for one in (by_next, by_prev) for value in (one.seen, one.chance, one.beyond)]
        cells.append([name, _more(difference), *habits, *sides, difference])
    title = f"Deviations of the {rate} in points of 100"
    words = [Paragraph(results.neighbours)] if results.neighbours else []
    return [*words, chart, ResultTable("deviations", title, columns, cells, [*_NOTES, *scanned.widths])]


def _more(difference: Rate) -> str | None:
    """The side with which a bot varies more, if that cannot be chance."""
    if difference.value is None:
        return None
    return "next" if difference.low > 0 else "previous" if difference.high < 0 else "may be chance"


def _maps(source: StoredRun, scanned: Scan, measure: Measure) -> list[Block]:
    """The maps of a measure by next and by previous player, on the same scale."""
    order, title = players_ranked(source), measure.name
    maps = {side: [_cells(source, measure, side, player) for player in order] for side, _ in SIDES}
    ends = ends_of(cell for rows in maps.values() for row in rows for cell in row)
    return [
        HeatMap(
            f"{title} by {name} player, %",
            f"bot ↓ {name} player →",
            [source.label(source.names[player]) for player in order],
            [[row[other] for other in order] for row in maps[side]],
            [deviation([value for value, _ in row if value is not None]) for row in maps[side]],
            neighbour_table(source, scanned, measure, side, order, f"{measure.key.replace('_', '-')}-by-{name}"),
            ends,
        )
        for side, name in SIDES
    ]


def _cells(source: StoredRun, measure: Measure, side: int, player: int) -> list[tuple[float | None, int]]:
    """The rate with each other player at that side, and of how many seats."""
    return measured_beside(source.tally, source.game.results, measure, player, side, len(source.names))


def neighbour_table(
    source: StoredRun,
    scanned: Scan,
    measure: Measure,
    side: int,
    players: Sequence[int],
    key: str,
    *,
    best: bool = False,
) -> ResultTable:
    """The rates of these players with each neighbour at a side, a line each; `best`: the best first."""
    name = dict(SIDES)[side]
    rate = Column(measure.key, f"{measure.title} %", "rate")
    columns = [*named("bot"), Column(name, f"{name} player", "player"), *counts("games"), rate]
    lines: list[list[Value]] = []
    for player in players:
        with_whom = [
            (value, sat, other)
            for other, (value, sat) in enumerate(_cells(source, measure, side, player))
            if value is not None
        ]
        if best:
            with_whom.sort(key=lambda line: (-line[0], line[2]))
        for _, sat, other in with_whom:
            value = scanned.beside(player, side, other, measure.key)
            lines.append([source.names[player], source.names[other], sat, value])
    return ResultTable(key, f"{measure.name} by {name} player", columns, lines, scanned.widths)
