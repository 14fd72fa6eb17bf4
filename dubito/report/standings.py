"""The tables of a run's results that its pages and a terminal both show, from the same sums."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from dubito.errors import one_line
from dubito.experiment.calibration import Calibration
from dubito.experiment.contenders import Contender, PairedDifference, as_systems, contender_pairs, contender_ranking
from dubito.experiment.fallbacks import Bounds
from dubito.experiment.ranking import RankingRow, SizeRow
from dubito.experiment.tally import Tally
from dubito.report.parts import Words
from dubito.report.result_table import Column, ResultTable, Value, shown

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
    Column("touched", "games with a fallback", detail=True),
    Column("touched_share", "games with a fallback %", "rate"),
    Column("worst_score", "Score %, worst", "rate"),
    Column("best_score", "Score %, best", "rate"),
    Column("worst_hard_wins", "hard %, worst", "rate"),
    Column("best_hard_wins", "hard %, best", "rate"),
]
_OTHERWISE: Final = "had every game with one been lost, or been a hard win"


def ranking_table(rows: Sequence[RankingRow]) -> ResultTable:
    """Every player, the best Score first, beside what an equal share would be."""
    columns = [Column("bot", "bot", "text"), Column("games", "games"), *RATES, *SHARES]
    cells: list[list[Value]] = [
        [row.name, row.games, *(row.rates[column.key] for column in RATES), *_share(row)] for row in rows
    ]
    notes = [
        "An equal share is what all would get if all were alike, at the sizes of the tables this bot sat at.",
        "A bot that sits twice at a table counts the game twice.",
        "Two bots whose intervals overlap may well stand in the other order.",
    ]
    return ResultTable("ranking", "Ranking by Score", columns, cells, notes)


def _share(row: RankingRow | SizeRow) -> tuple[float, float]:
    return row.equal_share["score"], row.equal_share["hard_wins"]


def bot_errors(rows: Sequence[RankingRow]) -> list[Words]:
    """A sentence for each bot whose turns a fallback had to play."""
    failed = [row for row in rows if row.fallback_turns]
    said = "turns of {} were played by the fallback after bot errors."
    return [Words(f"{row.fallback_turns:,} {said.format(one_line(row.name))}", warning=True) for row in failed]


def contender_tables(tally: Tally, contenders: Sequence[Contender]) -> list[ResultTable | Words]:
    """The contenders, every pair of them, what their fallbacks could have changed, and a warning where that is much."""
    rows = contender_ranking(tally, contenders)
    if not rows:
        return []
    columns = [Column("contender", "contender", "text"), Column("deals", "deals")]
    cells: list[list[Value]] = [
        [row.contender.name, row.deals, *(row.rates[column.key] for column in RATES)] for row in rows
    ]
    title = "Contenders, in the same seat of the same deals"
    rates = [*RATES[:2], *(replace(column, detail=True) for column in RATES[2:])]
    found: list[ResultTable | Words] = [ResultTable("contenders", title, [*columns, *rates], cells)]
    if pairs := _pairs(tally, contenders, rows[0].deals):
        found.append(pairs)
    if any(row.bounds.touched for row in rows):
        columns = [*columns, Column("fallback_share", "fallback, decisions %", "rate"), *_BOUNDS]
        cells = [[row.contender.name, row.deals, row.contender.fallback_share, *_ends(row.bounds)] for row in rows]
        found.append(ResultTable("contenders-bounds", f"Fallbacks of contenders: {_OTHERWISE}", columns, cells))
    if two := as_systems(contenders):
        most, least = ((shown(one.fallback_share, "rate"), one_line(one.name)) for one in two)
        text = (
            f"Fallbacks took {most[0]} % of the decisions of {most[1]} and {least[0]} % of those of {least[1]}: this "
            "compares systems (model, prompt and fallback), not models."
        )
        found.append(Words(text, warning=True))
    return found


def _pairs(tally: Tally, contenders: Sequence[Contender], deals: int) -> ResultTable | None:
    pairs = contender_pairs(tally, contenders)
    if not pairs:
        return None
    columns = [
        Column("contender", "contender", "text"),
        Column("against", "against", "text"),
        Column("score", "Score", "points"),
        Column("score_apart", "told apart by Score", "text"),
        Column("hard_wins", "hard", "points"),
        Column("hard_wins_apart", "told apart by hard", "text"),
    ]
    cells = [[pair.one.name, pair.other.name, *_difference(pair.score), *_difference(pair.hard_wins)] for pair in pairs]
    return ResultTable("pairs", f"Every pair: differences in points on {deals:,} common deals", columns, cells)


def _difference(difference: PairedDifference) -> list[Value]:
    if difference.more_games is None:
        return [difference.rate, "no number of games we can name"]
    return [difference.rate, f"about {difference.more_games:,} more games" if difference.more_games else "yes"]


def _ends(bounds: Bounds) -> list[Value]:
    share = bounds.touched / bounds.seats if bounds.seats else None
    return [bounds.touched, share, *bounds.score, *bounds.hard_wins]


def bounds_table(rows: Sequence[RankingRow], contenders: Sequence[str], deals: int) -> ResultTable | None:
    """What fallbacks could have changed for players of the field; None if nothing.

    A contender that sat in the contenders' seat alone stands in the contenders' own table.
    """
    cells = [
        [row.name, row.games, *_ends(row.bounds)]
        for row in rows
        if row.bounds.touched and not (row.name in contenders and row.games == deals)
    ]
    columns = [Column("bot", "model player", "text"), Column("games", "games"), *_BOUNDS]
    return ResultTable("bounds", f"Fallbacks in all seats: {_OTHERWISE}", columns, cells) if cells else None


def sizes_table(
    rows: Sequence[SizeRow], rate: Callable[[SizeRow, str], Value], notes: Sequence[str] = ()
) -> ResultTable:
    """Every player at every table size; `rate` knows the values of RATES."""
    columns = [Column("bot", "bot", "text"), Column("size", "size"), Column("games", "games"), *RATES, *SHARES]
    cells: list[list[Value]] = [
        [row.name, row.size, row.games, *(rate(row, column.key) for column in RATES), *_share(row)]
        for row in rows
        if row.games
    ]
    return ResultTable("by-table-size", "Every bot at every table size", columns, cells, notes)


def calibration_table(stated: Sequence[Calibration]) -> ResultTable:
    """How good the probabilities are that players stated."""
    columns = [
        Column("player", "model player", "text"),
        Column("statements", "stated"),
        Column("brier", "Brier score", "decimal"),
        Column("base_brier", "of the base rate", "decimal"),
        Column("base_rate", "dishonest %", "rate"),
        Column("nulls", "null"),
        Column("impossible", "impossible"),
    ]
    cells: list[list[Value]] = [
        [one.name, one.statements, one.brier, one.base_brier, one.base_rate, one.nulls, one.impossible]
        for one in stated
    ]
    title = "Stated probability that the last play is dishonest (node C), against the truth"
    return ResultTable("calibration", title, columns, cells)


def calibration_bins(stated: Sequence[Calibration], key: str) -> ResultTable | None:
    """The same by tenths of what was stated; None if nobody stated anything."""
    columns = [
        Column("player", "model player", "text"),
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


def turns_a_game(tally: Tally) -> str:
    """How many turns a game took on average, in words (R32)."""
    games, turns, free = (sum(values[place] for _, values in tally.rows("sizes")) for place in range(3))
    return f"{turns / games:.1f} without free turns, {(turns + free) / games:.1f} with them"
