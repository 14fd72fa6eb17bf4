"""Who sits beside whom, and what that does: maps by previous and next player, and how far rates vary with them."""

from collections.abc import Sequence
from typing import Final

from dubito.core_game import Result
from dubito.experiment.ranking import Row, ranking
from dubito.experiment.results import beside
from dubito.experiment.statistics import deviation
from dubito.report.overview import no_intervals
from dubito.report.parts import Block, Chart, HeatMap, Page, Section, Words, points
from dubito.report.scan import Scan
from dubito.report.source import Source
from dubito.report.strategy import habit, ranked
from dubito.report.tables import Column, Table, Value

SIDES: Final = ((1, "next"), (0, "previous"))
_MEASURES: Final = (("hard_wins", "Hard wins"), ("score", "Score"))


def neighbours(source: Source, scanned: Scan | None) -> Page:
    """The page on who sits beside."""
    sections = [Section("Who varies with whom", _deviations(source, scanned))]
    sections += [Section(f"{title} by neighbour", _maps(source, scanned, measure)) for measure, title in _MEASURES]
    return Page("neighbours.html", "Neighbours", sections)


def _deviations(source: Source, scanned: Scan | None) -> list[Block]:
    rows = ranking(source.tally, source.names)
    bluffs, doubts = (
        {row.name: _value(habit(source, scanned, source.names.index(row.name), name)) for row in rows}
        for name in ("bluff", "doubt")
    )
    rows.sort(key=lambda row: (-(bluffs[row.name] or 0.0), row.name))
    chart = Chart(
        "intervals",
        "How far the hard-win rate of each bot varies with who sits beside it; who bluffs most stands first",
        "standard deviation of the hard-win rate over the identities of the neighbour, points of 100",
        [row.name for row in rows],
        [
            points("with the next player", [row.deviation_by_next for row in rows]),
            points("with the previous player", [row.deviation_by_prev for row in rows]),
        ],
    )
    columns = [
        Column("bot", "bot", "text"),
        Column("bluff", "bluffs, % of plays", "rate"),
        Column("doubt", "doubts, % of turns with cards on the board", "rate"),
        Column("by_next", "deviation by next, points", "rate"),
        Column("by_prev", "by previous", "rate"),
        Column("more", "varies more with the", "text"),
    ]
    cells: list[list[Value]] = [
        [row.name, bluffs[row.name], doubts[row.name], row.deviation_by_next, row.deviation_by_prev, _more(row)]
        for row in rows
    ]
    words = Words(
        "The next player may doubt what you put down; the previous one plays what you may doubt. So in general "
        "aggressive bots, who bluff much, vary with the next player, and passive ones with the previous. A deviation "
        "is over the rates as they are: chance is in it, more of it the fewer games there are."
    )
    title = "Deviations of the hard-win rate, beside how often a bot bluffs and doubts"
    return [words, chart, Table("deviations", title, columns, cells)]


def _value(value: Value) -> float | None:
    found = getattr(value, "value", value)
    return found if isinstance(found, float) else None


def _more(row: Row) -> str | None:
    if row.deviation_by_next is None or row.deviation_by_prev is None:
        return None
    return "next" if row.deviation_by_next > row.deviation_by_prev else "previous"


def _maps(source: Source, scanned: Scan | None, measure: str) -> list[Block]:
    """The maps of a measure by next and by previous player, on the same scale."""
    order, title = ranked(source), dict(_MEASURES)[measure]
    maps = {side: [_cells(source, measure, side, player) for player in order] for side, _ in SIDES}
    known = [value for rows in maps.values() for row in rows for value, _ in row if value is not None]
    return [
        HeatMap(
            f"{title} by {name} player, %",
            f"bot ↓ {name} player →",
            [source.names[player] for player in order],
            [[row[other] for other in order] for row in maps[side]],
            [deviation([value for value, _ in row if value is not None]) for row in maps[side]],
            neighbour_table(source, scanned, measure, side, order, f"{measure.replace('_', '-')}-by-{name}"),
            (min(known), max(known)),
        )
        for side, name in SIDES
    ]


def _cells(source: Source, measure: str, side: int, player: int) -> list[tuple[float | None, int]]:
    """The rate with each other player at that side, and of how many seats."""
    n = len(source.names)
    seats = beside(source.tally, player, side, n)
    good = [float(count) for count in beside(source.tally, player, side, n, Result.HARD_WIN)]
    if measure == "score":
        soft = beside(source.tally, player, side, n, Result.SOFT_WIN)
        good = [hard + half / 2 for hard, half in zip(good, soft, strict=True)]
    return [(won / sat if sat else None, sat) for won, sat in zip(good, seats, strict=True)]


def neighbour_table(
    source: Source,
    scanned: Scan | None,
    measure: str,
    side: int,
    players: Sequence[int],
    key: str,
    *,
    best: bool = False,
) -> Table:
    """The rates of these players with each neighbour at a side, a line each; `best`: the best first."""
    name = dict(SIDES)[side]
    title = dict(_MEASURES)[measure]
    rate = Column(measure, f"{'hard' if measure == 'hard_wins' else 'Score'} %", "rate")
    columns = [Column("bot", "bot", "text"), Column(name, f"{name} player", "text"), Column("games", "games"), rate]
    lines: list[list[Value]] = []
    for player in players:
        with_whom = [
            (value, sat, other)
            for other, (value, sat) in enumerate(_cells(source, measure, side, player))
            if value is not None
        ]
        if best:
            with_whom.sort(key=lambda line: (-line[0], line[2]))
        for value, sat, other in with_whom:
            shown = value if scanned is None else scanned.beside(player, side, other, measure)
            lines.append([source.names[player], source.names[other], sat, shown])
    notes = [] if scanned else [no_intervals("by neighbour")]
    return Table(key, f"{title} by {name} player", columns, lines, notes)
