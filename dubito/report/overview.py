"""The overview: who is best and how sure that is, at what cost, and what the run was."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from dubito.experiment.experiment import stand_ins_in_words
from dubito.experiment.stored import StoredPlayer, StoredRun
from dubito.report.duels import duels
from dubito.report.headline import headline
from dubito.report.model_tables import models_table
from dubito.report.page_parts import (
    Block,
    Chart,
    NamedValues,
    Page,
    Paragraph,
    Section,
    beside_equal_share,
    points,
    unit_of,
)
from dubito.report.result_table import Column, ResultTable, named, texts
from dubito.report.run_tables import (
    bot_errors,
    bounds_table,
    contender_tables,
    ranking_table,
    sizes_table,
    turns_a_game,
)
from dubito.report.scan import Scan
from dubito.stats.ranking import RankingRow, by_table_size, contender_pairs, order_of, ranking
from dubito.store.folder import to_yaml

_PLAYER: Final = [
    *named("player"),
    *texts("role", "bot", "settings"),
    Column("source", "sha256 of its file", "text"),
    Column("prompt", "digest of its prompt", "text"),
    Column("fallback", "sha256 of its fallback's file", "text"),
]


def overview(source: StoredRun, scanned: Scan) -> Page:
    """The first page."""
    results = source.game.results
    rows = ranking(source.tally, source.names, results)
    said = headline(source)
    answer: list[Block] = [Paragraph(sentence, answer=not place) for place, sentence in enumerate(said)]
    if stand_ins := stand_ins_in_words(source.kinds):
        answer.insert(0, Paragraph(stand_ins, warning=True))
    sections = [Section("In short", answer), Section("Ranking", _ranking(source, rows))]
    if source.game.is_duel:
        blocks = duels(source.tally, source.names, results, source.label)
        sections.append(Section("First against second", blocks))
    if source.contenders:
        sections.append(Section("Contenders", _contenders(source)))
    if source.models:
        bounds = bounds_table(rows, source.contenders, source.deals * source.contender_seats, results)
        sections.append(
            Section("Model players", [models_table(source.models, source.names), *([bounds] if bounds else [])])
        )
    if len(source.identity.table_sizes) > 1:
        sections.append(Section("By table size", _sizes(source, scanned)))
    sections.append(Section("What this run was", _about(source)))
    return Page("index.html", "Overview", sections)


def _ranking(source: StoredRun, rows: Sequence[RankingRow]) -> list[Block]:
    games, planned = source.tally.games, source.games
    said = f"{games:,} games; 95 % intervals, clustered by deal. {source.game.results.meaning}"
    blocks: list[Block] = [Paragraph(said)]
    if games < planned:
        blocks.append(Paragraph(f"This run is unfinished: {games:,} of {planned:,} games are kept.", warning=True))
    order = order_of(source.tally, source.names, source.compared(), source.game.results)
    table = ranking_table(rows, order, source.game.results, twice=source.game.lineup == "uniform")
    table = replace(table, links=[f"bots/{source.names.index(row.name)}.html" for row in rows])
    return [*blocks, _chart(rows, source), table, *bot_errors(rows)]


def _chart(rows: Sequence[RankingRow], source: StoredRun) -> Chart:
    first = source.game.results.measures[0]
    return beside_equal_share(
        f"{first.name} of each bot with its 95 % interval, beside its equal share",
        first,
        [source.label(row.name) for row in rows],
        [row.rates[first.key] for row in rows],
        [row.equal_share.get(first.key) if row.games else None for row in rows],
    )


def _contenders(source: StoredRun) -> list[Block]:
    contenders = source.compared()
    results = source.game.results
    first = results.measures[0]
    blocks: list[Block] = [*contender_tables(source.tally, contenders, results)]
    if pairs := contender_pairs(source.tally, contenders, results):
        chart = Chart(
            "intervals",
            f"Paired difference in {first.name} of every pair of contenders, with its 95 % interval",
            f"difference in {first.name}" + ("" if first.span else ", points of 100"),
            [f"{source.label(pair.one.name)} against {source.label(pair.other.name)}" for pair in pairs],
            [points("difference", [pair.differences[first.key].rate for pair in pairs], unit_of(first))],
            zero=True,
        )
        blocks.insert(1, chart)  # between the contenders and the table of what it draws
    return blocks


def _sizes(source: StoredRun, scanned: Scan) -> list[Block]:
    places = {name: player for player, name in enumerate(source.names)}
    results = source.game.results
    rows = by_table_size(source.tally, source.names, results)
    sized = sizes_table(rows, lambda row, key: scanned.sized(places[row.name], row.size, key), results, scanned.widths)
    return [sized]


def _about(source: StoredRun) -> list[Block]:
    """Facts of the run, and its players."""
    identity = source.identity
    facts = [
        ("results digest", source.results_digest),
        ("games", f"{source.tally.games:,} of {source.games:,}"),
        *((("shard", f"{identity.shard.number} of {identity.shard.of}"),) if identity.shard else ()),
        ("game", identity.game),
        ("seed", f"{source.seed}"),
        ("table sizes", ", ".join(map(str, identity.table_sizes))),
        ("turns a game", turns_a_game(source.tally, source.game.results)),
        *((f"rules: {key}", f"{value}") for key, value in identity.rules.items()),
        ("on_bot_error", identity.on_bot_error),
        *((key, f"{value}") for key, value in (identity.model_extra or {}).items()),
        *((f"version of {key}", f"{value}") for key, value in source.manifest.versions.items()),
    ]
    cells = [
        [
            player.name,
            _role(source, player),
            player.bot,
            to_yaml(player.settings).strip().removeprefix("{}") or None,
            *(digest or None for digest in (player.source, player.prompt, player.fallback)),
        ]
        for player in source.players
    ]
    return [
        NamedValues(facts),
        ResultTable("players", "The players, and digests of what they were made of", _PLAYER, cells),
    ]


def _role(source: StoredRun, player: StoredPlayer) -> str:
    roles = {"field": source.identity.bots, "contender": source.identity.contenders}
    return " and ".join(role for role, players in roles.items() if player in players)
