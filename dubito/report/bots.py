"""Pages about bots: one page per bot, and two pages about all bots.

A bot's page shows its results and, for a model player, its decisions. "Strategy" shows habits, lies and how games end.
"Neighbours" shows who sat next to whom, and how much that affects results.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from dubito.experiment.lies import LIES, LieCounts, LieRate
from dubito.experiment.stored import Run
from dubito.game import Lie, Measure, Results
from dubito.report.deception import Stories
from dubito.report.games import ShownGames
from dubito.report.introductions import introduce
from dubito.report.run_tables import (
    attempts_table,
    calibration_bins,
    calibration_table,
    chance_level_column,
    decisions_table,
    measure_column,
    model_columns,
    use_table,
)
from dubito.report.scan import Scan
from dubito.report.tables import (
    Block,
    Chart,
    Column,
    HeatMap,
    Page,
    Paragraph,
    ResultTable,
    Section,
    column_kind,
    points,
    value_range,
)
from dubito.stats.players import Calibration, calibrations
from dubito.stats.ranking import (
    RankingRow,
    rates_by_neighbour,
    relative_position,
    seat_sums,
    table_sizes,
)
from dubito.stats.rates import Rate, deviation, independent_difference

_LIE_TITLES: Final[dict[Lie, str]] = {"chosen": "voluntary", "forced": "forced"}


def habit_columns(scanned: Scan, results: Results, players: Sequence[int]) -> list[Column]:
    return [
        Column(
            habit.key,
            habit.title,
            "rate" if habit.most == 1 else "cards",
            [scanned.style(player, habit.key) for player in players],
        )
        for habit in results.habits
    ]


def strategy(source: Run, scanned: Scan, lies: LieCounts | str | None) -> Page:
    """Return the strategy page. `lies` contains the counted lies, or the reason why they cannot be counted."""
    order, results = rank_order(source), source.game.results
    names = [source.names[player] for player in order]
    sections = []
    if results.habits:
        drawn = [habit for habit in results.habits if habit.key in results.charted]
        series = [points(habit.name, [scanned.style(player, habit.key) for player in order]) for habit in drawn]
        title = f"Frequency: {', '.join(habit.name for habit in drawn)}"
        axis = "; ".join(habit.title for habit in drawn)
        blocks: list[Block] = [Chart("intervals", title, axis, [*map(source.label, names)], series)] if drawn else []
        links = [f"bots/{player}.html" for player in order]
        columns = [Column("bot", "bot", "player", names, links), *habit_columns(scanned, results, order)]
        notes = [*([results.habits_in_words] if results.habits_in_words else []), *scanned.widths]
        blocks.append(ResultTable("habits", "Habits of each bot, in the order of the ranking", columns, notes))
        sections.append(Section("Habits", blocks))
    if lies is not None:
        name = results.habit(results.lies).name
        sections.append(Section(f"Voluntary and forced {name}", lies_blocks(source, lies, order, "lies")))
    sections.append(Section("How games end", _outcome_blocks(source, order)))

    sums = [seat_sums(source.tally, results, player) for player in order]
    counts = [
        Column("bot", "bot", "player", names),
        *(
            Column(count, count.replace("_", " "), "count", [own[count] for own in sums])
            for count in results.published_counts
        ),
    ]
    sections.append(Section("Counts", [ResultTable("counts", "Counts, as in all_games.yaml", counts)]))

    if stated := calibrations(source.tally, source.names):
        words = Paragraph(
            f"A prompt can ask for the probability {results.stated}. The Brier score is the mean of (stated - truth)²; "
            "0 is perfect. Compare it with the score of always stating the base rate."
        )
        bins = calibration_blocks(stated, "calibration-bins", source.label)
        rated = [words, calibration_table(stated, results.stated), *bins]
        sections.append(Section("Stated probabilities", rated))
    return Page("strategy.html", "Strategy", sections)


def rank_order(source: Run) -> list[int]:
    return [source.names.index(row.name) for row in source.rows]


def lies_blocks(source: Run, lies: LieCounts | str, players: Sequence[int], key: str) -> list[Block]:
    results = source.game.results
    habit = results.habit(results.lies)
    if isinstance(lies, str):
        return [Paragraph(f"Voluntary and forced {habit.name} cannot be counted separately: {lies}.")]
    call = results.lie_words[1]
    shares: dict[LieRate, str] = {
        "chosen": f"voluntary {habit.name}, % of plays",
        "forced": f"forced {habit.name}, % of plays",
    }
    shares |= {"caught": f"caught, % of {habit.name}"} if results.found_out else {}
    if source.game.has_lie_marks:
        shares["hits"] = f"{habit.name} it called, % of {habit.name} it was asked about"
        shares["alarms"] = f"false {call}s, % of honest plays it was asked about"
    columns = [
        Column("bot", "bot", "player", [source.names[player] for player in players]),
        Column("plays", "plays", "count", [lies.plays(player) for player in players]),
        Column("lies", habit.name, "count", [sum(lies.count(player, lie) for lie in LIES) for player in players]),
        *(
            Column(lie, title, "count", [lies.count(player, lie) for player in players])
            for lie, title in _LIE_TITLES.items()
        ),
        *(
            Column(f"{lie}_share", title, "rate", [lies.share(player, lie) for player in players])
            for lie, title in shares.items()
        ),
    ]
    if results.lie_nodes and source.models:
        meant = [lies.stated_lies.get(source.names[player]) for player in players]
        columns.append(Column("meant", f"yes at {' or '.join(results.lie_nodes)}", "count", meant))
    every = lies.games == source.tally.games
    over = f"Counted in all {lies.games:,} games" if every else f"Counted in the first {lies.games:,} games"
    over += "" if every else f" of {source.tally.games:,}"
    notes = [f"{over} by replaying them.", results.describe_lies]
    chart = Chart(
        "intervals",
        f"Voluntary and forced {habit.name}",
        f"{habit.name}, % of plays",
        [source.label(source.names[player]) for player in players],
        [points(lie_title, [lies.share(player, lie) for player in players]) for lie, lie_title in _LIE_TITLES.items()],
    )
    title = f"Voluntary and forced {habit.name}, with 95 % confidence intervals"
    return [chart, ResultTable(key, title, columns, notes)]


def _outcome_blocks(source: Run, order: Sequence[int]) -> list[Block]:
    results = source.game.results
    rows = source.rows
    labels = [source.label(row.name) for row in rows]
    endings = [*zip(map(str, results.buckets), results.endings, strict=True)]
    chart = Chart(
        "stacked",
        "How each bot's games end",
        "share of games, %",
        labels,
        [
            points(title, [row.buckets[bucket] / row.games if row.games else None for row in rows])
            for bucket, title in endings
        ],
    )
    columns = [
        Column("bot", "bot", "player", [row.name for row in rows]),
        Column("games", "games", "count", [row.games for row in rows]),
        *(Column(bucket, title, "count", [row.buckets[bucket] for row in rows]) for bucket, title in endings),
        *(
            Column(f"{one.key}_rate", one.column_title, "rate", [row.rates[one.key] for row in rows])
            for one in results.measures
            if one.key in results.buckets
        ),
    ]
    if results.standing:
        positions = [relative_position(source.tally, results, player) for player in order]
        columns.append(Column("relative_position", "mean position (1 = first, 0 = last)", "decimal", positions))
    return [chart, ResultTable("outcomes", "How games end, with 95 % confidence intervals", columns)]


def calibration_blocks(
    players: Sequence[Calibration], key: str, label: Callable[[str], str]
) -> tuple[Chart, ResultTable] | tuple[()]:
    """Compare stated probabilities with the truth, grouped by tenths.

    `label` returns a player's name for the legend.
    """
    table = calibration_bins(players, key)
    if table is None:
        return ()
    series = [
        points(label(one.name), [stated.dishonest for stated in one.bins])
        | {"x": [round(100 * stated.mean, 3) for stated in one.bins]}
        for one in players
        if one.bins
    ]
    chart = Chart(
        "calibration",
        "Stated probability vs. observed frequency. A well-calibrated player is on the diagonal.",
        "mean stated probability, %",
        [],
        series,
        vertical="dishonest plays, %",
    )
    return chart, table


SIDES: Final = ((1, "next"), (0, "previous"))
_MAX_MAPPED: Final = 40  # maximum number of players in a map (the best ones); the table shows all players
_NOTES: Final = (
    "Observed: the standard deviation of the rates in the maps. It is greater than 0 even by chance, especially with "
    "few games. Chance alone: its expected root mean square if all neighbours were equal.",
    "Excluding chance: what remains, with a 95 % confidence interval. If the interval starts at 0, the whole effect "
    "could be chance. A side is named only if the 95 % confidence interval of next - previous, excluding chance, "
    "does not contain 0.",
)


def neighbours(source: Run, scanned: Scan) -> Page:
    sections = [Section("Effect of neighbours", _deviations(source, scanned))]
    order, results = rank_order(source), source.game.results
    shown = order[:_MAX_MAPPED]
    for measure in map(results.measure, reversed(results.headline)):
        cells = {side: [_cells(source, measure, side, player) for player in shown] for side, _ in SIDES}
        # Both maps of a measure have the same scale.
        ends = value_range(cell for rows in cells.values() for row in rows for cell in row)
        maps = [
            HeatMap(
                f"{measure.name} by {name} player, %",
                f"bot ↓ {name} player →",
                [source.label(source.names[player]) for player in shown],
                [[row[other] for other in shown] for row in cells[side]],
                [deviation([value for value, _ in row if value is not None]) for row in cells[side]],
                neighbour_table(source, scanned, measure, side, order, f"{measure.key.replace('_', '-')}-by-{name}"),
                ends,
            )
            for side, name in SIDES
        ]
        sections.append(Section(f"{measure.name} by neighbour", maps))
    return Page("neighbours.html", "Neighbours", sections)


def _deviations(source: Run, scanned: Scan) -> list[Block]:
    results = source.game.results
    order, rate = rank_order(source), results.rate
    if results.charted:
        first = results.charted[0]
        order.sort(key=lambda player: (-(scanned.style(player, first).value or 0.0), source.names[player]))
    names = [source.names[player] for player in order]
    players = len(names)
    varied = {side: [scanned.variation(player, side, players) for player in order] for side, _ in SIDES}
    chart = Chart(
        "intervals",
        f"How much each bot's {rate} depends on its neighbours",
        f"standard deviation of the {rate} across neighbours, excluding chance, in percentage points",
        [*map(source.label, names)],
        [points(f"with the {name} player", [one.beyond for one in varied[side]]) for side, name in SIDES],
    )
    by_next, by_prev = varied[1], varied[0]
    differences = [independent_difference(*(one.beyond for one in both)) for both in zip(by_next, by_prev, strict=True)]
    columns = [
        Column("bot", "bot", "player", names),
        Column("more", "varies more with", "text", [*map(_stronger_side, differences)]),
    ]
    columns += [
        replace(habit, values=[scanned.style(player, habit.key).value for player in order])
        for habit in habit_columns(scanned, results, order)
        if habit.key in results.charted
    ]
    for key, name, own in (("next", "next", by_next), ("prev", "previous", by_prev)):
        columns += [
            Column(f"by_{key}", f"{name}: observed", "rate", [one.seen for one in own]),
            Column(f"by_{key}_chance", f"{name}: chance alone", "rate", [one.chance for one in own]),
            Column(f"by_{key}_beyond", f"{name}: excluding chance", "rate", [one.beyond for one in own]),
        ]
    columns.append(Column("difference", "next - previous", "points", differences))
    title = f"Standard deviations of the {rate} across neighbours, in percentage points"
    words = [Paragraph(results.neighbours)] if results.neighbours else []
    return [*words, chart, ResultTable("deviations", title, columns, [*_NOTES, *scanned.widths])]


def _stronger_side(difference: Rate) -> str | None:
    if difference.value is None:
        return None
    return "next" if difference.low > 0 else "previous" if difference.high < 0 else "may be chance"


def _cells(source: Run, measure: Measure, side: int, player: int) -> list[tuple[float | None, int]]:
    return rates_by_neighbour(source.tally, source.game.results, measure, player, side, len(source.names))


def neighbour_table(
    source: Run,
    scanned: Scan,
    measure: Measure,
    side: int,
    players: Sequence[int],
    key: str,
) -> ResultTable:
    """Return these players' rates for each neighbour on one side."""
    name = dict(SIDES)[side]
    seated = [
        (player, other, sat)
        for player in players
        for other, (value, sat) in enumerate(_cells(source, measure, side, player))
        if value is not None
    ]
    rates = [scanned.measure_beside(player, side, other, measure.key) for player, other, _ in seated]
    columns = [
        Column("bot", "bot", "player", [source.names[player] for player, _, _ in seated]),
        Column(name, f"{name} player", "player", [source.names[other] for _, other, _ in seated]),
        Column("games", "games", "count", [sat for _, _, sat in seated]),
        Column(measure.key, f"{measure.title} %", "rate", rates),
    ]
    return ResultTable(key, f"{measure.name} by {name} player", columns, scanned.widths)


def bot_pages(
    source: Run,
    scanned: Scan,
    lies: LieCounts | str | None,
    shown: ShownGames,
    stories: Stories | None,
) -> list[Page]:
    """Return the pages of all players, in ranking order. Each begins with how the player decides."""
    examples = shown.example_tables()
    pages = []
    for row in source.rows:
        name, player = row.name, source.names.index(row.name)
        key = f"bot-{player}"
        sections = [introduce(source, name, shown.words)]
        if stories:
            sections += [*stories.style(player), *stories.section(player, rank_order(source))]
        results = _results_and_habits(source, scanned, row, player)
        if lies is not None:
            results += lies_blocks(source, lies, [player], f"{key}-lies")[-1:]
        sections.append(Section("Results and habits", results))
        if name in source.models:
            tables: list[Block] = [
                ResultTable(f"{key}-model", "Total", model_columns(source.models, [name])),
                decisions_table(source, name, key),
                attempts_table(source, name, key),
                use_table(source, name, key),
            ]
            sections.append(Section("As a model player", tables))
            if stated := [one for one in calibrations(source.tally, source.names) if one.name == name]:
                bins = calibration_blocks(stated, f"{key}-calibration", source.label)
                sections.append(Section("Stated probabilities", bins))
            if name in examples:
                sections.append(Section("Example decisions", [examples[name]]))
        sections.append(Section("By seat", _seats(source, scanned, player, key)))
        pages.append(Page(f"bots/{player}.html", source.label(name), sections))
    return pages


def _results_and_habits(source: Run, scanned: Scan, row: RankingRow, player: int) -> list[Block]:
    measures = source.game.results.measures
    kind, unit = column_kind(measures[0]), "" if measures[0].span else ", %"
    shares = [row.equal_share.get(one.key) if row.games else None for one in measures]
    columns = [
        Column("what", "what", "text", [one.column_title for one in measures]),
        Column("value", f"value{unit}", kind, [row.rates[one.key] for one in measures]),
        Column("equal_share", f"chance level{unit}", kind, shares),
    ]
    title = f"Results in all {row.games:,} seats, with 95 % confidence intervals"
    results = ResultTable(f"bot-{player}-results", title, columns)
    habits = habit_columns(scanned, source.game.results, [player])
    return [results, ResultTable(f"bot-{player}-habits", "Habits", habits, scanned.widths)] if habits else [results]


def _seats(source: Run, scanned: Scan, player: int, key: str) -> list[Block]:
    results = source.game.results
    sizes = [(size, seat) for size in table_sizes(source.tally) for seat in range(size)]
    seats = [(size, seat, games) for size, seat in sizes if (games := scanned.seats(player, size, seat))]
    chances = [results.chance_level(size).get(results.headline[0]) for size, _, _ in seats]
    columns = [
        Column("size", "table size", "count", [size for size, _, _ in seats]),
        Column("seat", "seat", "count", [seat for _, seat, _ in seats]),
        Column("games", "games", "count", [games for _, _, games in seats]),
        *(
            measure_column(one, [scanned.measure_in_seat(player, size, seat, one.key) for size, seat, _ in seats])
            for one in results.measures
            if one.key in results.headline
        ),
        chance_level_column(results.measure(results.headline[0]), chances),
    ]
    return [ResultTable(f"{key}-by-seat", "By seat; seat 0 plays first", columns, scanned.coverage_notes)]
