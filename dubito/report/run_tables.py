"""The tables of a run's results that its pages and a terminal both show, from the same sums."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from dubito.errors import one_line
from dubito.game import Measure, Results
from dubito.report.page_parts import Paragraph
from dubito.report.result_table import Column, ColumnKind, ResultTable, Value, cell_text, counts, named
from dubito.stats.players import Calibration, FallbackBounds
from dubito.stats.ranking import (
    Contender,
    Order,
    PairedDifference,
    RankingRow,
    SizeRow,
    as_systems,
    contender_pairs,
    contender_ranking,
    order_of_contenders,
)
from dubito.stats.tally import Tally

_TESTED: Final = (
    "A contender's rank is 1 plus the number of contenders that are told apart from it as better by their paired "
    "difference in the first measure."
)
_PAIRED: Final = f"{_TESTED} The rates here are over all its seats, and players of the field alone have no rank."
_FIELD: Final = (
    "A rank is 1 plus the number of players whose whole interval lies above this one's; equal ranks are ties. Two bots "
    "whose intervals overlap may well stand in the other order."
)


def rates_of(results: Results) -> list[Column]:
    """A column for each measure of a game."""
    return [Column(measure.key, measure.titled, kind_of(measure)) for measure in results.measures]


def kind_of(measure: Measure) -> ColumnKind:
    """How the values of a measure are shown."""
    return "decimal" if measure.span else "rate"


def difference_of(measure: Measure) -> ColumnKind:
    """How its differences are shown."""
    return "difference" if measure.span else "points"


def shares_of(results: Results) -> list[Column]:
    """A column for the equal share of each headline measure."""
    measures = [results.measure(key) for key in results.headline]
    return [Column(f"equal_share_{one.key}", f"equal share: {one.titled}", kind_of(one)) for one in measures]


def _bounds_of(results: Results) -> list[Column]:
    columns = [
        Column("touched", "games with a fallback", detail=True),
        Column("touched_share", "games with a fallback %", "rate"),
    ]
    for key in results.headline:
        measure = results.measure(key)
        columns += [Column(f"{end}_{key}", f"{measure.titled}, {end}", kind_of(measure)) for end in ("worst", "best")]
    return columns


def _otherwise(results: Results) -> str:
    if results.measures[0].span:
        return f"if every game with a fallback had come to the least, or to the most, {results.measures[0].name}"
    return f"if every game with a fallback had been lost, or been a {results.endings[0]}"


def ranking_table(rows: Sequence[RankingRow], order: Order, results: Results, *, twice: bool) -> ResultTable:
    """Every player, the best by the first measure first, with its rank, beside what an equal share would be.

    `twice` says that a bot may sit in two seats of a game.
    """
    rates = rates_of(results)
    shares = {rate.key for rate in rates}
    keys = {bucket: f"{bucket}_games" if bucket in shares else bucket for bucket in results.scoreboard}
    board = [Column(key, bucket.replace("_", " ")) for bucket, key in keys.items()]
    columns = [*named("bot"), *counts("rank"), *board, *counts("games"), *rates, *shares_of(results)]
    cells: list[list[Value]] = []
    for row in rows:
        ended = [row.buckets[bucket] for bucket in keys]
        measured = (row.rates[rate.key] for rate in rates)
        cells.append([row.name, order.rank(row.name), *ended, row.games, *measured, *_share(row, results)])
    notes = [
        _PAIRED if order.paired else _FIELD,
        "An equal share is what all would get if all were alike, at the sizes of the tables this bot sat at.",
        *(["A bot that sits twice at a table counts the game twice."] if twice else []),
    ]
    return ResultTable("ranking", f"Ranking by {results.measures[0].name}", columns, cells, notes)


def _share(row: RankingRow | SizeRow, results: Results) -> list[float | None]:
    return [row.equal_share.get(key) for key in results.headline]


def bot_errors(rows: Sequence[RankingRow]) -> list[Paragraph]:
    """A sentence for each bot whose turns a fallback had to play, or that forfeited games."""
    played = "{:,} turns of {} were played by the fallback after bot errors."
    forfeited = "{:,} games were forfeited by {} after bot errors; they count for all who sat there."
    said = [(played, row.fallback_turns, row.name) for row in rows] + [
        (forfeited, row.forfeits, row.name) for row in rows
    ]
    return [Paragraph(sentence.format(n, one_line(name)), warning=True) for sentence, n, name in said if n]


def contender_tables(tally: Tally, contenders: Sequence[Contender], results: Results) -> list[ResultTable | Paragraph]:
    """The contenders, every pair of them, what their fallbacks could have changed, and a warning where that is much."""
    rows, rates = contender_ranking(tally, contenders, results), rates_of(results)
    if not rows:
        return []
    order = order_of_contenders(tally, contenders, results)
    columns = [*named("contender"), *counts("deals")]
    ranked = [*named("contender"), *counts(*(["rank"] if order else []), "deals")]  # alone it has none here
    cells: list[list[Value]] = []
    for row in rows:
        rank = [order.rank(row.contender.name)] if order else []
        cells.append([row.contender.name, *rank, row.deals, *(row.rates[column.key] for column in rates)])
    seat = "the same seat" if contenders[0].seats == 1 else "both seats"
    title = f"Contenders, in {seat} of the same deals"
    shown_rates = [column if column.key in results.headline else replace(column, detail=True) for column in rates]
    found: list[ResultTable | Paragraph] = [
        ResultTable("contenders", title, [*ranked, *shown_rates], cells, [_TESTED] if order else [])
    ]
    if pairs := _pairs(tally, contenders, rows[0].deals, results):
        found.append(pairs)
    if any(row.bounds.touched for row in rows):
        columns = [*columns, Column("fallback_share", "fallback, decisions %", "rate"), *_bounds_of(results)]
        cells = [[row.contender.name, row.deals, row.contender.fallback_share, *_ends(row.bounds)] for row in rows]
        found.append(
            ResultTable("contenders-bounds", f"Fallbacks of contenders: {_otherwise(results)}", columns, cells)
        )
    if two := as_systems(contenders):
        most, least = ((cell_text(one.fallback_share, "rate"), one_line(one.name)) for one in two)
        text = (
            f"Fallbacks took {most[0]} % of the decisions of {most[1]} and {least[0]} % of those of {least[1]}: this "
            "compares systems (model, prompt and fallback), not models."
        )
        found.append(Paragraph(text, warning=True))
    return found


def _pairs(tally: Tally, contenders: Sequence[Contender], deals: int, results: Results) -> ResultTable | None:
    pairs = contender_pairs(tally, contenders, results)
    if not pairs:
        return None
    columns = named("contender", "against")
    for key in results.headline:
        measure = results.measure(key)
        columns += [Column(key, measure.title, difference_of(measure))]
        columns += [Column(f"{key}_apart", f"told apart by {measure.title}", "text")]
    cells: list[list[Value]] = []
    for pair in pairs:
        told = [value for key in results.headline for value in _difference(pair.differences[key])]
        cells.append([pair.one.name, pair.other.name, *told])
    unit = " in points" if any(column.kind == "points" for column in columns) else ""
    return ResultTable("pairs", f"Every pair: differences{unit} on {deals:,} common deals", columns, cells)


def _difference(difference: PairedDifference) -> list[Value]:
    if difference.more_games is None:
        return [difference.rate, "cannot be estimated"]
    return [difference.rate, f"about {difference.more_games:,} more games" if difference.more_games else "yes"]


def _ends(bounds: FallbackBounds) -> list[Value]:
    share = bounds.touched / bounds.seats if bounds.seats else None
    return [bounds.touched, share, *(end for ends in bounds.rates.values() for end in ends)]


def bounds_table(
    rows: Sequence[RankingRow], contenders: Sequence[str], games: int, results: Results
) -> ResultTable | None:
    """What fallbacks could have changed for players of the field; None if nothing.

    A contender that had so many `games`, all in the contenders' seats, stands in the contenders' own table.
    """
    cells = [
        [row.name, row.games, *_ends(row.bounds)]
        for row in rows
        if row.bounds.touched and not (row.name in contenders and row.games == games)
    ]
    columns = [Column("bot", "model player", "player"), *counts("games"), *_bounds_of(results)]
    return ResultTable("bounds", f"Fallbacks in all seats: {_otherwise(results)}", columns, cells) if cells else None


def sizes_table(
    rows: Sequence[SizeRow], rate: Callable[[SizeRow, str], Value], results: Results, notes: Sequence[str] = ()
) -> ResultTable:
    """Every player at every table size; `rate` knows the values of the measures."""
    rates, shares = rates_of(results), shares_of(results)
    columns = [*named("bot"), *counts("size", "games"), *rates, *shares]
    cells: list[list[Value]] = [
        [row.name, row.size, row.games, *(rate(row, column.key) for column in rates), *_share(row, results)]
        for row in rows
        if row.games
    ]
    return ResultTable("by-table-size", "Every bot at every table size", columns, cells, notes)


def calibration_table(stated: Sequence[Calibration], of: str = "") -> ResultTable:
    """How good the probabilities are that players stated, `of` what in words."""
    columns = [
        Column("player", "model player", "player"),
        Column("statements", "stated"),
        Column("brier", "Brier score", "decimal"),
        Column("base_brier", "of the base rate", "decimal"),
        Column("base_rate", "dishonest %", "rate"),
        Column("nulls", "null"),
        *counts("impossible"),
    ]
    cells: list[list[Value]] = [
        [one.name, one.statements, one.brier, one.base_brier, one.base_rate, one.nulls, one.impossible]
        for one in stated
    ]
    title = f"Stated probability{of and f' {of}'}, against the truth"
    return ResultTable("calibration", title, columns, cells)


def calibration_bins(stated: Sequence[Calibration], key: str) -> ResultTable | None:
    """The same by tenths of what was stated; None if nobody stated anything."""
    columns = [
        Column("player", "model player", "player"),
        Column("from", "stated %", "text"),
        Column("statements", "times"),
        Column("mean", "mean stated %", "rate"),
        Column("dishonest", "dishonest %", "rate"),
    ]
    cells: list[list[Value]] = [
        [one.name, f"{100 * at.low:.0f} to {100 * at.low + 10:.0f}", at.statements, at.mean, at.dishonest]
        for one in stated
        for at in one.bins
    ]
    title = "The same by what was stated: the last two columns of a well-calibrated player are alike"
    return ResultTable(key, title, columns, cells) if cells else None


def turns_a_game(tally: Tally, results: Results) -> str:
    """How many turns a game took on average, in words (R32)."""
    games, *counts = (sum(column) for column in zip(*(values for _, values in tally.rows("sizes")), strict=True))
    return results.turns_in_words([count / games for count in counts])
