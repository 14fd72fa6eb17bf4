"""How the bots play: how often they bluff, are caught, doubt, and how their games end."""

from collections.abc import Sequence
from typing import Final

from dubito.experiment.calibration import Calibration, calibrations
from dubito.experiment.outcome import RESULTS
from dubito.experiment.ranking import ranking
from dubito.experiment.results import relative_position, seat_sums
from dubito.experiment.stored import StoredRun
from dubito.report.parts import Block, Chart, Page, Section, Words, points
from dubito.report.result_table import Column, ResultTable, Value
from dubito.report.scan import Scan
from dubito.report.standings import RATES, calibration_bins, calibration_table

HABITS: Final = [
    Column("bluff", "bluffs, % of plays", "rate"),
    Column("caught", "caught, % of bluffs", "rate"),
    Column("doubt", "doubts, % of turns with cards on the board", "rate"),
    Column("accuracy", "right, % of doubts", "rate"),
    Column("cards", "cards per play", "cards"),
]
_COUNTS: Final = (
    "play_turns",
    "bluffs",
    "bluff_caught",
    "not_first_turns",
    "doubts",
    "successful_doubts",
    "cards_played",
)
_BOT: Final = Column("bot", "bot", "text")


def strategy(source: StoredRun, scanned: Scan) -> Page:
    """The page on how the bots play."""
    order = ranked(source)
    sections = [
        Section("Habits", _habits(source, scanned, order)),
        Section("How games end", _outcomes(source, order)),
        Section("Counts", [_counts(source, order)]),
    ]
    if stated := calibrations(source.tally, source.names):
        sections.append(Section("Stated probabilities", _stated(stated)))
    return Page("strategy.html", "Strategy", sections)


def ranked(source: StoredRun) -> list[int]:
    """The players in the order of the ranking."""
    return [source.names.index(row.name) for row in ranking(source.tally, source.names)]


def _habits(source: StoredRun, scanned: Scan, order: Sequence[int]) -> list[Block]:
    names = [source.names[player] for player in order]
    rows = [[scanned.style(player, column.key) for column in HABITS] for player in order]
    notes = [
        "A bluff is a play with a card that is neither the declared number nor a joker. A doubt is right when it "
        "turns over a bluff.",
        *scanned.widths,
    ]
    series = [points(title, [row[place] for row in rows]) for title, place in (("bluffs", 0), ("doubts", 2))]
    chart = Chart(
        "intervals",
        "How often each bot bluffs and doubts",
        "share of its plays (bluffs), of its turns with cards on the board (doubts), %",
        names,
        series,
    )
    cells: list[list[Value]] = [[name, *row] for name, row in zip(names, rows, strict=True)]
    links = [f"bots/{player}.html" for player in order]
    return [
        chart,
        ResultTable("habits", "Habits of each bot, in the order of the ranking", [_BOT, *HABITS], cells, notes, links),
    ]


def _outcomes(source: StoredRun, order: Sequence[int]) -> list[Block]:
    rows = ranking(source.tally, source.names)
    names = [row.name for row in rows]
    results = [
        (str(result), title)
        for result, title in zip(RESULTS, ("hard win", "soft win", "loss", "unfinished"), strict=True)
    ]
    chart = Chart(
        "stacked",
        "How the games of each bot end",
        "share of its games, %",
        names,
        [points(title, [row.rates[key].value for row in rows]) for key, title in results],
    )
    columns = [_BOT, Column("games", "games"), *(Column(key, title) for key, title in results)]
    columns += [*(Column(f"{column.key}_rate", column.title, "rate") for column in RATES[1:])]
    columns += [Column("relative_position", "mean position, 1 first to 0 last", "decimal")]
    cells: list[list[Value]] = []
    for player, row in zip(order, rows, strict=True):
        counts = [seat_sums(source.tally, player, result=result)["games"] for result in RESULTS]
        rates = [row.rates[column.key] for column in RATES[1:]]
        cells.append([row.name, row.games, *counts, *rates, relative_position(source.tally, player)])
    return [chart, ResultTable("outcomes", "How games end, with 95 % intervals", columns, cells)]


def _counts(source: StoredRun, order: Sequence[int]) -> ResultTable:
    columns = [_BOT, *(Column(count, count.replace("_", " ")) for count in _COUNTS)]
    cells: list[list[Value]] = []
    for player in order:
        sums = seat_sums(source.tally, player)
        cells.append([source.names[player], *(sums[count] for count in _COUNTS)])
    return ResultTable("counts", "What was counted: the same numbers as in all_games.yaml", columns, cells)


def _stated(stated: Sequence[Calibration]) -> list[Block]:
    words = Words(
        "At node C a prompt may ask how probable it is that the last play is dishonest. The Brier score is the mean of "
        "(stated - truth)²: 0 is perfect, and who always states the base rate gets the score of the base rate."
    )
    return [words, calibration_table(stated), *calibration_blocks(stated, "calibration-bins")]


def calibration_blocks(players: Sequence[Calibration], key: str) -> list[Block]:
    """What was stated against the truth, by tenths."""
    table = calibration_bins(players, key)
    if table is None:
        return []
    series = [
        points(one.name, [stated.dishonest for stated in one.bins])
        | {"x": [round(100 * stated.mean, 3) for stated in one.bins]}
        for one in players
        if one.bins
    ]
    chart = Chart(
        "calibration",
        "Stated probability against how often it was true; on the diagonal both are alike",
        "mean stated probability, %",
        [],
        series,
        vertical="dishonest plays, %",
    )
    return [chart, table]
