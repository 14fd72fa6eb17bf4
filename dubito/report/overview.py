"""The overview page: the players, the best of them, how certain that is, the cost.

It starts with the result in words, computed from the figures and their intervals (`ranking.py`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from dubito.errors import listed, one_line
from dubito.experiment.experiment import PlayerSpec, describe_fake_models
from dubito.experiment.stop import describe_stop_rule
from dubito.experiment.stored import Run, list_contenders
from dubito.game.words import display_name
from dubito.llm.prices import PICO, dollars
from dubito.report.deception import Stories
from dubito.report.run_tables import (
    bot_errors,
    bounds_table,
    contender_tables,
    contenders_among_opponents,
    duel_blocks,
    models_table,
    opponents_table,
    ranking_table,
    sizes_table,
    turns_per_game,
)
from dubito.report.scan import Scan
from dubito.report.tables import (
    Block,
    Chart,
    Column,
    NamedValues,
    Page,
    Paragraph,
    Preview,
    ResultTable,
    Section,
    Value,
    player_columns,
    points,
    texts,
    unit_of,
    with_chance_level,
)
from dubito.report.verdicts import describe_verdict
from dubito.stats.players import fallback_share
from dubito.stats.ranking import (
    Order,
    RankingRow,
    by_table_size,
    contender_pairs,
    contender_ranking,
    rank_players,
    ranking,
)
from dubito.store.folder import last_written, to_yaml
from dubito.store.model_log import PlayerLog

_FALLBACK: Final = "a bot's answer used instead of an unusable one"
_UNITS: Final = ((10**9, "G"), (10**6, "M"), (10**3, "k"))


def _order(source: Run) -> Order:
    contenders = list_contenders(source.planned, source.models)
    return rank_players(source.tally, source.names, contenders, source.game.results, source.models)


def headline(source: Run) -> list[str]:
    verdict = describe_verdict(_order(source), source.label)
    return [verdict, *(_describe_models(source.models, source.label) if source.models else [])]


def _describe_models(models: Mapping[str, PlayerLog], label: Callable[[str], str]) -> list[str]:
    """Summarize tokens, cost and fallbacks of all model players.

    A player whose every answer was a fallback is named.
    """
    tokens = sum(log.tokens["input"] + log.tokens["output"] for log in models.values())
    costs = [log.picodollars for log in models.values()]
    cost = _dollars(sum(filter(None, costs))) if None not in costs else "cost unknown"
    shares = {label(name): fallback_share(log.outcomes) for name, log in models.items() if log.decisions}
    some = {name: share for name, share in shares.items() if 0 < share < 1}
    every = [name for name, share in shares.items() if share == 1]
    usable = "" if some or every else " Every model answer was usable (no fallbacks)."
    sentences = [f"{_format_count(tokens)} tokens, {cost}.{usable}"]
    if some:
        parts = [f"{_describe_share(share)} of the answers of {name}" for name, share in some.items()]
        sentences.append(f"Fallbacks ({_FALLBACK}): {' and '.join(parts)}.")
    if every:
        what = "fallbacks" if some else f"fallbacks ({_FALLBACK})"
        sentences.append(f"All answers of {' and '.join(every)} were {what}, so this run does not measure the model.")
    return sentences


def _describe_share(share: float) -> str:
    return "less than 0.1 %" if share < 0.001 else f"{100 * min(share, 0.999):.1f} %"


def _format_count(count: int) -> str:
    """Format a large number, such as 5.9 M."""
    for size, unit in _UNITS:
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count}"


def _dollars(pico: int) -> str:
    return dollars(pico) if 0 < pico < PICO // 100 else f"${pico / PICO:,.2f}"


_PLAYER_COLUMNS: Final = [
    *player_columns("player"),
    *texts("role", "bot", "settings"),
    Column("source", "sha256 of its file", "text"),
    Column("prompt", "digest of its prompt", "text"),
    Column("fallback", "sha256 of its fallback's file", "text"),
]


def overview(source: Run, scanned: Scan, stories: Stories | None) -> Page:
    """Return the first page."""
    results = source.game.results
    rows = ranking(source.tally, source.names, results)
    order, opponents = _order(source), [player.name for player in source.planned.bots]
    sections = [Section("Summary", _summary_blocks(source, stories))]
    if order.paired:
        sections.append(Section("Contenders", [*_run_summary(source), *_contenders(source)]))
        sections.append(Section("Opponents", _opponents(source, rows, order)))
    else:
        sections.append(Section("Ranking", [*_run_summary(source), *_ranking(source, rows, order)]))
    both = contenders_among_opponents(order, opponents)
    over_all_seats = [Paragraph(both)] if both else []
    if source.game.is_duel:
        blocks = duel_blocks(source.tally, source.names, results, source.label)
        sections.append(Section("First against second", [*over_all_seats, *blocks]))
    if source.contenders and not order.paired:
        sections.append(Section("Contender", _contenders(source)))
    if source.models:
        bounds = bounds_table(rows, source.contenders, source.deals * source.planned.contender_seats, results)
        costs = [models_table(source.models, source.names), *([bounds] if bounds else [])]
        sections.append(Section("Model cost and usage", costs))
    if len(source.planned.table_sizes) > 1:
        sections.append(Section("By table size", [*over_all_seats, *_size_blocks(source, scanned)]))
    sections.append(Section("Settings", [NamedValues(_settings_pairs(source))]))
    sections.append(Section("Digests, versions and files", _digests(source), folded=True))
    preview = Preview(" ".join(headline(source)), players_chart(source))
    return Page("index.html", _title(source), sections, about=_date_line(source), preview=preview)


_NUMBERS: Final = (
    "No",
    "One",
    "Two",
    "Three",
    "Four",
    "Five",
    "Six",
    "Seven",
    "Eight",
    "Nine",
    "Ten",
    "Eleven",
    "Twelve",
)
_FEW_NAMES: Final = 3  # a title has room for this many


def _title(source: Run) -> str:
    """Return a title: who played whom at which game."""
    shown = source.contenders or [*source.models]
    others = [name for name in source.names if name not in shown]
    parts = [_in_title(source, those, _FEW_NAMES) for those in (shown, others) if those][:1]
    if shown and others:
        against = _in_title(source, others, 1)
        parts.append(against if len(others) == 1 else against.lower())
    return f"{' against '.join(parts)} at {display_name(source.game)}"


def _in_title(source: Run, names: Sequence[str], most: int) -> str:
    """Return the names, or their number if there are more than `most`."""
    kinds = [source.kinds[name] for name in names]
    if len(names) > most:
        what = "bots" if {*kinds} == {"hand-written"} else "players"
        return f"{_NUMBERS[len(names)] if len(names) < len(_NUMBERS) else len(names)} {what}"
    few = [one_line(name, 40) for name in names]
    if {*kinds} == {"stand-in"}:
        return f"Fake model{'s' * (len(names) > 1)} {listed(few)}"
    fake = {name for name, kind in zip(few, kinds, strict=True) if kind == "stand-in"}
    return listed([f"{name} (fake model)" if name in fake else name for name in few])


def _date_line(source: Run) -> str:
    # None for an exported run.
    written = last_written(source.folder)
    when = f"{datetime.fromtimestamp(written, UTC):%Y-%m-%d %H:%M} UTC, " if written else ""
    return f"{when}{source.tally.games:,} games"


def _summary_blocks(source: Run, stories: Stories | None) -> list[Block]:
    """Return the result in words and as a chart, and a card for each model."""
    blocks: list[Block] = [Paragraph(sentence, answer=not place) for place, sentence in enumerate(headline(source))]
    if stand_ins := describe_fake_models(source.kinds):
        blocks.insert(0, Paragraph(stand_ins, warning=True))
    return [*blocks, players_chart(source), *(stories.tiles() if stories else [])]


def _run_summary(source: Run) -> list[Block]:
    """Say how many games there are and what the first measure means."""
    games, planned = source.tally.games, source.planned.games
    fixed = ", for a fixed number of deals" if source.planned.stop else ""
    text = f"{games:,} games; 95 % confidence intervals, clustered by deal{fixed}. {source.game.results.meaning}"
    blocks: list[Block] = [Paragraph(text)]
    if not source.is_finished:
        blocks.append(Paragraph(f"This run is unfinished: {games:,} of {planned:,} games are counted.", warning=True))
    return blocks


def _ranking(source: Run, rows: Sequence[RankingRow], order: Order) -> list[Block]:
    table = ranking_table(rows, order, source.game.results, twice=source.game.lineup == "uniform")
    return [_link_to_bots(table, source), *bot_errors(rows)]


def _opponents(source: Run, rows: Sequence[RankingRow], order: Order) -> list[Block]:
    results, twice = source.game.results, source.game.lineup == "uniform"
    table = opponents_table(rows, order, results, "Opponents, over all their seats", twice=twice)
    both = contenders_among_opponents(order, [player.name for player in source.planned.bots])
    blocks: list[Block] = [_link_to_bots(table, source)] if table else []
    return [*blocks, *([Paragraph(both)] if both else []), *bot_errors(rows)]


def _link_to_bots(table: ResultTable, source: Run) -> ResultTable:
    return replace(table, links=[f"bots/{source.names.index(str(row[0]))}.html" for row in table.rows])


def players_chart(source: Run) -> Chart:
    """Return the first chart: the contenders if there are two, else all players."""
    results = source.game.results
    contenders, first = list_contenders(source.planned, source.models), results.measures[0]
    if _order(source).paired:
        seat = "the same seat" if source.planned.contender_seats == 1 else "both seats"
        whom = f"contender in {seat} of the same deals"
        rows = contender_ranking(source.tally, contenders, results)
        points_by_player = [(row.contender.name, row.rates[first.key], row.equal_share.get(first.key)) for row in rows]
    else:
        whom, players = "player", ranking(source.tally, source.names, results)
        points_by_player = [(row.name, row.rates[first.key], row.equal_share.get(first.key)) for row in players]
    names = [name for name, _, _ in points_by_player]
    return with_chance_level(
        f"{first.name} of each {whom}, with its 95 % confidence interval; grey: the chance level, which is the score "
        "if all players were equal",
        first,
        [source.label(name) for name in names],
        [rate for _, rate, _ in points_by_player],
        [share for _, _, share in points_by_player],
        [source.kinds[name] for name in names],
    )


def _contenders(source: Run) -> list[Block]:
    contenders = list_contenders(source.planned, source.models)
    results = source.game.results
    first = results.measures[0]
    first_table, *others = contender_tables(source.tally, contenders, results)
    assert isinstance(first_table, ResultTable)
    blocks: list[Block] = [_link_to_bots(first_table, source), *others]
    if pairs := contender_pairs(source.tally, contenders, results):
        kind = "anytime " if source.planned.stop else ""
        chart = Chart(
            "intervals",
            f"Paired difference in {first.name} of every pair of contenders, with its {kind}95 % confidence interval",
            f"difference in {first.name}" + ("" if first.span else ", points of 100"),
            [f"{source.label(pair.one.name)} against {source.label(pair.other.name)}" for pair in pairs],
            [points("difference", [pair.differences[first.key].rate for pair in pairs], unit_of(first))],
            zero=True,
        )
        # Between the contenders and the table of the charted values.
        blocks.insert(1, chart)
    return blocks


def _size_blocks(source: Run, scanned: Scan) -> list[Block]:
    places = {name: player for player, name in enumerate(source.names)}
    results = source.game.results
    rows = by_table_size(source.tally, source.names, results)
    sized = sizes_table(
        rows, lambda row, key: scanned.measure_at_size(places[row.name], row.size, key), results, scanned.widths
    )
    return [sized]


def _settings_pairs(source: Run) -> list[tuple[str, str]]:
    planned = source.planned
    return [
        ("games", f"{source.tally.games:,} of {planned.games:,}"),
        *((("stop", describe_stop_rule(planned, source.game)),) if planned.stop else ()),
        *((("shard", f"{planned.shard.number} of {planned.shard.of}"),) if planned.shard else ()),
        ("game", planned.game),
        ("seed", f"{planned.seed}"),
        ("table sizes", ", ".join(map(str, planned.table_sizes))),
        ("turns per game", turns_per_game(source.tally, source.game.results)),
        *((f"rules: {key}", f"{value}") for key, value in planned.rules.items()),
        ("on_bot_error", planned.on_bot_error),
        *((f"player: {player.name}", _settings_of(player)) for player in planned.players if player.settings),
    ]


def _settings_of(player: PlayerSpec) -> str:
    return f"{player.bot}; {'; '.join(f'{key}: {value}' for key, value in player.settings.items())}"


def _digests(source: Run) -> list[Block]:
    planned = source.planned
    facts = [
        ("results digest", source.results_digest),
        *((key, f"{value}") for key, value in source.other_settings.items()),
        *((f"version of {key}", f"{value}") for key, value in source.versions.items()),
    ]
    roles = {"field": planned.bots, "contender": planned.contenders}
    cells: list[list[Value]] = [
        [
            player.name,
            " and ".join(role for role, those in roles.items() if player in those),
            player.bot,
            to_yaml(player.settings).strip().removeprefix("{}") or None,
            *(digest or None for digest in (player.source, player.prompt, player.fallback)),
        ]
        for player in planned.players
    ]
    return [
        NamedValues(facts),
        ResultTable("players", "Players, and digests of their files", _PLAYER_COLUMNS, cells),
    ]
