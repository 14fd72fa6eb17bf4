"""The overview: who is best and how sure that is, at what cost, and what the run was."""

from collections.abc import Sequence
from typing import Final

from dubito.errors import one_line
from dubito.experiment.contenders import ContenderRow, Difference, as_systems, contender_pairs, contender_ranking
from dubito.experiment.fallbacks import Bounds
from dubito.experiment.ranking import Row, SizeRow, by_table_size, ranking
from dubito.experiment.stored import StoredRun
from dubito.report.about import about
from dubito.report.models import models_table
from dubito.report.parts import Block, Chart, Page, Section, Words, marks, points
from dubito.report.scan import Scan
from dubito.report.tables import Column, Table, Value, shown

RATES: Final = [
    Column("score", "Score %", "rate"),
    Column("hard_wins", "hard %", "rate"),
    Column("soft_wins", "soft %", "rate"),
    Column("losses", "loss %", "rate"),
    Column("unfinished", "unfinished %", "rate"),
]
SHARES: Final = [
    Column("equal_share_score", "equal share: Score %", "rate"),
    Column("equal_share_hard_wins", "equal share: hard %", "rate"),
]
_BOUNDS: Final = [
    Column("touched", "games with a fallback"),
    Column("touched_share", "of all %", "rate"),
    Column("worst_score", "Score %, worst", "rate"),
    Column("best_score", "best", "rate"),
    Column("worst_hard_wins", "hard %, worst", "rate"),
    Column("best_hard_wins", "best", "rate"),
]
_SCORE: Final = "Score is 1 for a hard win (first out of cards), 1/2 for a soft win (out of cards later), 0 for a loss."


def overview(source: StoredRun, scanned: Scan) -> Page:
    """The first page."""
    rows = ranking(source.tally, source.names)
    sections = [Section("Ranking", _ranking(source, rows))]
    if source.contenders:
        sections.append(Section("Contenders", _contenders(source)))
    if source.models:
        sections.append(Section("Model players", [models_table(source), *_bounds(source, rows)]))
    sections.append(Section("By table size", _sizes(source, scanned)))
    sections.append(Section("What this run was", about(source)))
    return Page("index.html", "Overview", sections)


def _ranking(source: StoredRun, rows: Sequence[Row]) -> list[Block]:
    games, planned = source.tally.games, source.games
    said = f"{games:,} games; 95 % intervals, clustered by deal. {_SCORE}"
    blocks: list[Block] = [Words(said)]
    if games < planned:
        blocks.append(Words(f"This run is unfinished: {games:,} of {planned:,} games are kept.", warning=True))
    table = Table(
        "ranking",
        "Ranking by Score",
        [Column("bot", "bot", "text"), Column("games", "games"), *RATES, *SHARES],
        [
            [row.name, row.games, *(row.rates[column.key] for column in RATES), *_share(row)]
            for row in rows
        ],
        [
            "An equal share is what all would get if all were alike, at the sizes of the tables this bot sat at.",
            "A bot that sits twice at a table counts the game twice.",
            "Two bots whose intervals overlap may well stand in the other order.",
        ],
        links=[f"bots/{source.names.index(row.name)}.html" for row in rows],
    )  # fmt: skip
    return [*blocks, _chart(rows), table, *_bot_errors(rows)]


def _share(row: Row | SizeRow) -> tuple[float, float]:
    return row.equal_share["score"], row.equal_share["hard_wins"]


def _chart(rows: Sequence[Row]) -> Chart:
    return Chart(
        "intervals",
        "Score of each bot with its 95 % interval, beside its equal share",
        "Score, %",
        [row.name for row in rows],
        [
            points("Score", [row.rates["score"] for row in rows]),
            marks("equal share", [row.equal_share["score"] if row.games else None for row in rows]),
        ],
    )


def _bot_errors(rows: Sequence[Row]) -> list[Block]:
    return [
        Words(f"{row.fallback_turns:,} turns of {row.name} were played by the fallback after bot errors.", warning=True)
        for row in rows
        if row.fallback_turns
    ]  # fmt: skip


def _contenders(source: StoredRun) -> list[Block]:
    rows = contender_ranking(source.tally, source.compared())
    columns = [Column("contender", "contender", "text"), Column("deals", "deals"), *RATES]
    cells: list[list[Value]] = [
        [row.contender.name, row.deals, *(row.rates[column.key] for column in RATES)] for row in rows
    ]
    title = "Contenders, in the same seat of the same deals"
    blocks: list[Block] = [Table("contenders", title, columns, cells), *_pairs(source, rows)]
    if any(row.bounds.touched for row in rows):
        of_contenders = [
            [row.contender.name, row.deals, row.contender.fallback_share, *_ends(row.bounds)] for row in rows
        ]
        columns = [*columns[:2], Column("fallback_share", "fallback, decisions %", "rate"), *_BOUNDS]
        title = "Fallbacks of contenders: had every game with one been lost, or been a hard win"
        blocks.append(Table("contenders-bounds", title, columns, of_contenders))
    if two := as_systems(source.compared()):
        most, least = two
        blocks.append(
            Words(
                f"Fallbacks took {shown(most.fallback_share, 'rate')} % of the decisions of {one_line(most.name)} and "
                f"{shown(least.fallback_share, 'rate')} % of those of {one_line(least.name)}: this compares systems "
                "(model, prompt and fallback), not models.",
                warning=True,
            )
        )
    return blocks


def _pairs(source: StoredRun, rows: Sequence[ContenderRow]) -> list[Block]:
    pairs = contender_pairs(source.tally, source.compared())
    if not pairs:
        return []
    columns = [
        Column("contender", "contender", "text"),
        Column("against", "against", "text"),
        Column("score", "Score, points", "points"),
        Column("score_apart", "told apart by Score", "text"),
        Column("hard_wins", "hard, points", "points"),
        Column("hard_wins_apart", "told apart by hard", "text"),
    ]
    cells = [[pair.one.name, pair.other.name, *_difference(pair.score), *_difference(pair.hard_wins)] for pair in pairs]
    chart = Chart(
        "intervals",
        "Paired difference in Score of every pair of contenders, with its 95 % interval",
        "difference in Score, points of 100",
        [f"{pair.one.name} against {pair.other.name}" for pair in pairs],
        [points("difference", [pair.score.rate for pair in pairs])],
        zero=True,
    )
    title = f"Every pair: differences on {rows[0].deals:,} common deals"
    return [chart, Table("pairs", title, columns, cells)]


def _difference(difference: Difference) -> list[Value]:
    if difference.more_games is None:
        return [difference.rate, "no number of games we can name"]
    return [difference.rate, f"about {difference.more_games:,} more games" if difference.more_games else "yes"]


def _ends(bounds: Bounds) -> list[Value]:
    share = bounds.touched / bounds.seats if bounds.seats else None
    return [bounds.touched, share, *bounds.score, *bounds.hard_wins]


def _bounds(source: StoredRun, rows: Sequence[Row]) -> list[Block]:
    """The bounds of who did not sit only in the contenders' seat, of whom the contenders' table says it."""
    deals = source.tally.games // source.games_per_deal
    cells = [
        [row.name, row.games, *_ends(row.bounds)]
        for row in rows
        if row.bounds.touched and not (row.name in source.contenders and row.games == deals)
    ]
    title = "Fallbacks in all seats: had every game with one been lost, or been a hard win"
    columns = [Column("bot", "model player", "text"), Column("games", "games"), *_BOUNDS]
    return [Table("bounds", title, columns, cells)] if cells else []


def _sizes(source: StoredRun, scanned: Scan) -> list[Block]:
    columns = [Column("bot", "bot", "text"), Column("size", "size"), Column("games", "games"), *RATES, *SHARES]
    rows = by_table_size(source.tally, source.names)
    cells: list[list[Value]] = [
        [row.name, row.size, row.games, *(scanned.sized(player, row.size, c.key) for c in RATES), *_share(row)]
        for row in rows
        for player in [source.names.index(row.name)]
        if row.games
    ]
    return [Table("by-table-size", "Every bot at every table size", columns, cells, scanned.widths)]
