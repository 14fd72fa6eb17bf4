"""How the bots play: how often they bluff, are caught, doubt, and how their games end."""

from collections.abc import Callable, Sequence
from typing import Final

from dubito.experiment.replay import LIES, LieCounts
from dubito.experiment.stored import StoredRun
from dubito.game import Lie, Results
from dubito.report.page_parts import Block, Chart, Page, Paragraph, Section, points
from dubito.report.result_table import Column, ResultTable, Value, counts, named
from dubito.report.run_tables import calibration_bins, calibration_table, rates_of
from dubito.report.scan import Scan
from dubito.stats.players import Calibration, calibrations
from dubito.stats.ranking import ranking, relative_position, seat_sums

_LIES: Final[dict[Lie, str]] = {"chosen": "by choice", "forced": "forced"}


def habits_of(results: Results) -> list[Column]:
    """A column for each habit of a game; one that is no share is a number of cards."""
    return [Column(habit.key, habit.title, "rate" if habit.most == 1 else "cards") for habit in results.habits]


def strategy(source: StoredRun, scanned: Scan, lies: LieCounts | str | None) -> Page:
    """The page on how the bots play; of lies that could not be counted, why."""
    order = players_ranked(source)
    sections = [
        Section("How games end", _outcomes(source, order)),
        Section("Counts", [_counts(source, order)]),
    ]
    if source.game.results.habits:
        sections.insert(0, Section("Habits", _habits(source, scanned, order)))
    if lies is not None:
        title = source.game.results.habit(source.game.results.lies).name.capitalize()
        sections.insert(1, Section(f"{title} by choice and forced", lies_blocks(source, lies, order, "lies")))
    if stated := calibrations(source.tally, source.names):
        sections.append(Section("Stated probabilities", _stated(stated, source)))
    return Page("strategy.html", "Strategy", sections)


def players_ranked(source: StoredRun) -> list[int]:
    """The players in the order of the ranking."""
    return [source.names.index(row.name) for row in ranking(source.tally, source.names, source.game.results)]


def _habits(source: StoredRun, scanned: Scan, order: Sequence[int]) -> list[Block]:
    names = [source.names[player] for player in order]
    labels = [*map(source.label, names)]
    results = source.game.results
    habits = habits_of(results)
    rows = [[scanned.style(player, column.key) for column in habits] for player in order]
    notes = [*([results.habits_in_words] if results.habits_in_words else []), *scanned.widths]
    drawn = [habit for habit in results.habits if habit.key in results.charted]
    series = [points(habit.name, [scanned.style(player, habit.key) for player in order]) for habit in drawn]
    title = f"How often: {', '.join(habit.name for habit in drawn)}"
    chart = Chart("intervals", title, "; ".join(habit.title for habit in drawn), labels, series)
    cells: list[list[Value]] = [[name, *row] for name, row in zip(names, rows, strict=True)]
    links = [f"bots/{player}.html" for player in order]
    return [
        *([chart] if drawn else []),
        ResultTable(
            "habits", "Habits of each bot, in the order of the ranking", [*named("bot"), *habits], cells, notes, links
        ),
    ]


def lies_blocks(source: StoredRun, lies: LieCounts | str, players: Sequence[int], key: str) -> list[Block]:
    """Lies by choice beside forced ones, of these players."""
    results = source.game.results
    habit = results.habit(results.lies)
    if isinstance(lies, str):
        return [Paragraph(f"{habit.name.capitalize()} by choice and forced ones are not counted apart: {lies}.")]
    shares = [("chosen", f"{habit.name} by choice, % of plays"), ("forced", f"forced {habit.name}, % of plays")]
    columns = [*named("bot"), Column("plays", "plays"), Column("lies", habit.name)]
    columns += [Column("chosen", "by choice"), Column("forced", "forced")]
    columns += [Column(f"{lie}_share", title, "rate") for lie, title in shares]
    if asks := bool(results.lie_nodes and source.models):
        columns.append(Column("meant", f"yes at {' or '.join(results.lie_nodes)}"))
    cells: list[list[Value]] = []
    for player in players:
        counted = [lies.count(player, lie) for lie in LIES]
        rates = [lies.share(player, lie) for lie in LIES]
        meant = [lies.meant.get(source.names[player])] if asks else []
        cells.append([source.names[player], lies.plays(player), sum(counted), *counted, *rates, *meant])
    every = lies.games == source.tally.games
    over = f"Counted over all {lies.games:,} games" if every else f"Counted over the first {lies.games:,} games"
    over += "" if every else f" of {source.tally.games:,}"
    notes = [f"{over}, each played again move by move.", results.lies_in_words]
    chart = Chart(
        "intervals",
        f"{habit.name.capitalize()} by choice, and forced ones",
        f"{habit.name}, % of plays",
        [source.label(source.names[player]) for player in players],
        [points(lie_title, [lies.share(player, lie) for player in players]) for lie, lie_title in _LIES.items()],
    )
    title = f"{habit.name.capitalize()} by choice, and forced ones, with 95 % intervals"
    return [chart, ResultTable(key, title, columns, cells, notes)]


def _outcomes(source: StoredRun, order: Sequence[int]) -> list[Block]:
    results = source.game.results
    rows = ranking(source.tally, source.names, results)
    labels = [source.label(row.name) for row in rows]
    endings = [*zip(map(str, results.buckets), results.endings, strict=True)]
    rates = [column for column in rates_of(results) if column.key in results.buckets]
    chart = Chart(
        "stacked",
        "How the games of each bot end",
        "share of its games, %",
        labels,
        [
            points(title, [row.buckets[bucket] / row.games if row.games else None for row in rows])
            for bucket, title in endings
        ],
    )
    columns = [*named("bot"), *counts("games"), *(Column(bucket, title) for bucket, title in endings)]
    columns += [*(Column(f"{column.key}_rate", column.title, "rate") for column in rates)]
    if results.standing:
        columns += [Column("relative_position", "mean position, 1 first to 0 last", "decimal")]
    cells: list[list[Value]] = []
    for player, row in zip(order, rows, strict=True):
        position = [relative_position(source.tally, results, player)] if results.standing else []
        measured = (row.rates[column.key] for column in rates)
        cells.append([row.name, row.games, *row.buckets.values(), *measured, *position])
    return [chart, ResultTable("outcomes", "How games end, with 95 % intervals", columns, cells)]


def _counts(source: StoredRun, order: Sequence[int]) -> ResultTable:
    results = source.game.results
    columns = [*named("bot"), *(Column(count, count.replace("_", " ")) for count in results.counted)]
    cells: list[list[Value]] = []
    for player in order:
        sums = seat_sums(source.tally, results, player)
        cells.append([source.names[player], *(sums[count] for count in results.counted)])
    return ResultTable("counts", "What was counted: the same numbers as in all_games.yaml", columns, cells)


def _stated(stated: Sequence[Calibration], source: StoredRun) -> list[Block]:
    results = source.game.results
    words = Paragraph(
        f"A prompt may ask for the probability {results.stated}. The Brier score is the mean of (stated - truth)²: "
        "0 is perfect, and who always states the base rate gets the score of the base rate."
    )
    return [
        words,
        calibration_table(stated, results.stated),
        *calibration_blocks(stated, "calibration-bins", source.label),
    ]


def calibration_blocks(players: Sequence[Calibration], key: str, label: Callable[[str], str]) -> list[Block]:
    """What was stated against the truth, by tenths; `label` is what a legend calls a player."""
    table = calibration_bins(players, key)
    if table is None:
        return []
    series = [
        points(label(one.name), [stated.dishonest for stated in one.bins])
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
