"""One page a bot: how it plays, where it does well, and, if a model plays it, how its decisions went."""

from collections.abc import Sequence
from dataclasses import replace

from dubito.experiment.replay import LieCounts
from dubito.experiment.stored import StoredRun
from dubito.report.model_tables import attempts_table, decisions_table, models_table, use_table
from dubito.report.neighbours import SIDES, neighbour_table
from dubito.report.page_parts import Block, Chart, Page, Section, beside_equal_share, points
from dubito.report.result_table import Column, ResultTable, Value, counts, texts
from dubito.report.run_tables import kind_of, rates_of, shares_of
from dubito.report.scan import Scan
from dubito.report.strategy import calibration_blocks, habits_of, lies_blocks
from dubito.stats.players import calibrations
from dubito.stats.ranking import RankingRow, SizeRow, by_table_size, ranking, table_sizes
from dubito.stats.rates import Rate


def bots(
    source: StoredRun, scanned: Scan, lies: LieCounts | str | None, examples: dict[str, ResultTable]
) -> list[Page]:
    """The pages of all players, in the order of the ranking; `examples` are decisions of model players to be shown."""
    rows = ranking(source.tally, source.names, source.game.results)
    sizes = by_table_size(source.tally, source.names, source.game.results)
    return [
        _bot(source, scanned, lies, row, [one for one in sizes if one.name == row.name], examples.get(row.name))
        for row in rows
    ]


def _bot(
    source: StoredRun,
    scanned: Scan,
    lies: LieCounts | str | None,
    row: RankingRow,
    sizes: Sequence[SizeRow],
    examples: ResultTable | None,
) -> Page:
    player = source.names.index(row.name)
    key = f"bot-{player}"
    sections = [
        Section("Results and habits", _style(source, scanned, row, player)),
        Section("By seat", _seats(source, scanned, player, key)),
    ]
    if lies is not None:
        sections[0] = replace(
            sections[0], blocks=[*sections[0].blocks, *lies_blocks(source, lies, [player], f"{key}-lies")[-1:]]
        )
    if len(source.identity.table_sizes) > 1:
        sections.insert(1, Section("By table size", _sizes(source, scanned, sizes, player, key)))
    if source.game.has_neighbours:
        sections.append(Section("Best and worst neighbours", _neighbours(source, scanned, player, key)))
    if row.name in source.models:
        sections[1:1] = _model(source, row.name, key, examples)
    return Page(f"bots/{player}.html", source.label(row.name), sections)


def _style(source: StoredRun, scanned: Scan, row: RankingRow, player: int) -> list[Block]:
    lines: list[list[Value]] = []
    results_of_game = source.game.results
    for column in rates_of(results_of_game):
        share = row.equal_share.get(column.key)
        lines.append([column.title, row.rates[column.key], share if row.games else None])
    kind, unit = kind_of(results_of_game.measures[0]), "" if results_of_game.measures[0].span else ", %"
    columns = [
        *texts("what"),
        Column("value", f"value{unit}", kind),
        Column("equal_share", f"equal share{unit}", kind),
    ]
    results = ResultTable(
        f"bot-{player}-results", f"Results over {row.games:,} seats, with 95 % intervals", columns, lines
    )
    columns = habits_of(results_of_game)
    habits: list[Value] = [scanned.style(player, column.key) for column in columns]
    own = ResultTable(f"bot-{player}-habits", "Habits", columns, [habits], scanned.widths)
    return [results, own] if columns else [results]


def _sizes(source: StoredRun, scanned: Scan, sizes: Sequence[SizeRow], player: int, key: str) -> list[Block]:
    results = source.game.results
    first, rates = results.measures[0], rates_of(results)
    columns = [*counts("size", "games"), *rates, *shares_of(results)]
    rows = [row for row in sizes if row.games]
    cells: list[list[Value]] = [
        [
            row.size,
            row.games,
            *(scanned.sized(player, row.size, c.key) for c in rates),
            *(row.equal_share.get(key) for key in results.headline),
        ]
        for row in rows
    ]
    chart = beside_equal_share(
        f"{first.name} by table size, beside an equal share",
        first,
        [f"{row.size} players" for row in rows],
        [scanned.sized(player, row.size, first.key) for row in rows],
        [row.equal_share.get(first.key) for row in rows],
    )
    return [chart, ResultTable(f"{key}-by-size", "By table size", columns, cells, scanned.widths)]


def _seats(source: StoredRun, scanned: Scan, player: int, key: str) -> list[Block]:
    results = source.game.results
    rates = [column for column in rates_of(results) if column.key in results.headline]
    columns = [Column("size", "table size"), Column("seat", "seat (0 opens)"), *counts("games")]
    columns += [*rates, shares_of(results)[0]]
    cells: list[list[Value]] = []
    for size in table_sizes(source.tally):
        for seat in range(size):
            if games := scanned.seats(player, size, seat):
                seated = [scanned.seated(player, size, seat, column.key) for column in rates]
                cells.append([size, seat, games, *seated, results.equal_share(size).get(results.headline[0])])
    return [ResultTable(f"{key}-by-seat", "By seat: the first seat opens the game", columns, cells, scanned.missing)]


def _neighbours(source: StoredRun, scanned: Scan, player: int, key: str) -> list[Block]:
    blocks: list[Block] = []
    first = source.game.results.measures[0]
    for side, name in SIDES:
        table = neighbour_table(source, scanned, first, side, [player], f"{key}-{name}", best=True)
        found = [row[3] for row in table.rows]
        blocks += [
            Chart(
                "intervals",
                f"{first.name} with each {name} player, the best first",
                f"{first.name}, %",
                [source.label(str(row[1])) for row in table.rows],
                [points(first.name, [value for value in found if isinstance(value, Rate | float)])],
            ),
            table,
        ]
    return blocks


def _model(source: StoredRun, name: str, key: str, examples: ResultTable | None) -> Sequence[Section]:
    whole = models_table(source.models, source.names)
    own = ResultTable(f"{key}-model", "In all", whole.columns, [row for row in whole.rows if row[0] == name])
    tables: list[Block] = [
        own,
        decisions_table(source, name, key),
        attempts_table(source, name, key),
        use_table(source, name, key),
    ]
    sections = [Section("As a model player", tables)]
    stated = [one for one in calibrations(source.tally, source.names) if one.name == name]
    if stated:
        sections.append(Section("Stated probabilities", calibration_blocks(stated, f"{key}-calibration", source.label)))
    if examples is not None:
        sections.append(Section("Example decisions", [examples]))
    return sections
