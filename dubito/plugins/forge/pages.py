"""The tables and pages of a forge: its rounds, and each bot's source, changes, results and feedback to the model."""

from collections.abc import Iterator
from difflib import unified_diff
from pathlib import Path
from typing import Final

from dubito.files import read_text
from dubito.plugins.forge.compare import Comparison
from dubito.plugins.forge.forge import Forged, Order, Round
from dubito.plugins.forge.play import REFERENCE, Bench
from dubito.report.render import Site
from dubito.report.run_tables import measure_column
from dubito.report.site import write_pages
from dubito.report.tables import (
    Block,
    Chart,
    Column,
    Page,
    Paragraph,
    ResultTable,
    Section,
    Verbatim,
    column_kind,
    difference_kind,
    measure_unit,
    points,
)
from dubito.stats.ranking import by_table_size

_INDEX: Final = "index.html"
_NASH_CONV: Final = "nash_conv is what best responses win from the bot, summed over both seats; 0 means unbeatable."


def rounds_table(forged: Forged, bench: Bench, order: Order) -> ResultTable:
    measure = bench.game.results.measures[0]
    column, difference = column_kind(measure), difference_kind(measure)
    title = f"Bots for {bench.game.name} by {order.model}: {order.training} training deals, "
    title += f"{order.held_out} held-out deals, 95 % confidence intervals"
    numbers, links = zip(*((f"{one.number}", f"{one.name}.html") for one in forged.rounds), strict=True)
    scores = [forged.scores_by_round.get(one.number) for one in forged.rounds]
    rates = {key: [getattr(score, key, None) for score in scores] for key in ("training", "held_out", "held_out_gain")}
    columns = [
        Column("round", "round", "text", numbers, links),
        Column("training", f"{measure.column_title} in training", column, rates["training"]),
        Column("held_out", "on held-out deals", column, rates["held_out"]),
        Column("gain", f"gain over {bench.reference}", difference, rates["held_out_gain"]),
        Column("note", "note", "text", [_describe_problems(one) for one in forged.rounds]),
    ]
    return ResultTable("rounds", title, columns)


def _describe_problems(one: Round) -> str:
    more = f" (and {len(one.problems) - 1} more)" if len(one.problems) > 1 else ""
    return f"{one.problems[0]}{more}" if one.problems else ""


def contestants_table(comparison: Comparison, bench: Bench) -> ResultTable:
    measure, rows = bench.game.results.measures[0], comparison.rows
    names = [row.name if row.name != REFERENCE else bench.reference for row in rows]
    columns = [
        Column("player", "player", "player", names),
        Column("rate", measure.column_title, column_kind(measure), [row.rate for row in rows]),
        Column("gain", f"gain over {bench.reference}", difference_kind(measure), [row.gain for row in rows]),
        Column("calls", "calls", "count", [row.calls for row in rows]),
        Column("tokens", "tokens", "count", [row.tokens for row in rows]),
        Column("usd", "cost", "dollars", [row.usd for row in rows]),
        Column("seconds", "seconds a decision", "seconds", [row.seconds for row in rows]),
    ]
    title = f"All players on the same {comparison.deals} deals, 95 % confidence intervals"
    return ResultTable("contestants", title, columns, max_rows=len(rows))


def growth_table(comparison: Comparison, bench: Bench) -> ResultTable:
    kind, growth = difference_kind(bench.game.results.measures[0]), comparison.growth
    rounds = Column("round", "round", "text", [f"{one.round.number}" for one in growth])
    games = [*growth[0].gains] if growth else []
    gains = [
        Column(f"gain_{place}", name, kind, [one.gains[name] for one in growth]) for place, name in enumerate(games)
    ]
    values = [one.nash_conv for one in growth]
    title = f"Gain over {bench.reference} of each round, by games"
    if {*values} <= {None}:
        return ResultTable("growth", title, [rounds, *gains])
    exploited = Column("nash_conv", "nash_conv in a small duel", "decimal", values)
    return ResultTable("growth", title, [rounds, *gains, exploited], [_NASH_CONV])


def write_forge_pages(forged: Forged, comparison: Comparison | None, bench: Bench, order: Order) -> Path:
    """Write a page of the forge, and one for each round. Return the first page's path."""
    menu = [(_INDEX, "All rounds")]
    pages = _list_pages(forged, comparison, bench, order)
    return write_pages(forged.folder / "report", Site(forged.folder.name, pages=menu), pages, ours=True)


def _list_pages(forged: Forged, comparison: Comparison | None, bench: Bench, order: Order) -> Iterator[Page]:
    sections = [Section("Rounds", [*_growth_chart(forged, bench), rounds_table(forged, bench, order)])]
    if comparison is not None:
        tables = [contestants_table(comparison, bench), growth_table(comparison, bench)]
        sections.append(Section("As player, programmer and advised player", tables))
    about = f"Written by {order.model} in {len(forged.rounds)} rounds"
    yield Page(_INDEX, "Bots that a model wrote", sections, about=about)
    before: Round | None = None
    for one in forged.rounds:
        yield Page(
            f"{one.name}.html", f"Round {one.number}", [*_describe_round(one, before, forged, bench)], about=about
        )
        before = one if one.written.source else before


def _growth_chart(forged: Forged, bench: Bench) -> Iterator[Chart]:
    measure = bench.game.results.measures[0]
    scores = sorted(forged.scores, key=lambda score: score.round.number)
    if scores:
        unit = measure_unit(measure)
        series = [
            points("in training", [score.training_gain for score in scores], unit),
            points("on held-out deals", [score.held_out_gain for score in scores], unit),
        ]
        names, axis = [f"round {score.round.number}" for score in scores], f"gain over {bench.reference}"
        yield Chart("intervals", "Growth over the rounds", f"{axis} in {measure.name}", names, series, zero=True)


def _describe_round(one: Round, before: Round | None, forged: Forged, bench: Bench) -> Iterator[Section]:
    says = [Paragraph(problem, warning=True) for problem in one.problems]
    if forged.chosen is one:
        says.insert(0, Paragraph("The chosen round: the best on held-out deals.", answer=True))
    yield Section("", [*says, *_tables_of_sizes(one, bench)])
    feedback = forged.folder / f"feedback-{one.number}.txt"
    if feedback.exists():
        yield Section("Feedback to the model", [Verbatim("after this round", read_text(feedback).strip())])
    if one.written.source:
        if before is not None:
            lines = unified_diff(
                before.written.source.splitlines(), one.written.source.splitlines(), before.name, one.name, lineterm=""
            )
            changed = "\n".join(lines) or "nothing"
            yield Section("What changed", [Verbatim(f"since round {before.number}", changed)])
        yield Section("Source", [Verbatim("bot.py", one.written.source)])


def _tables_of_sizes(one: Round, bench: Bench) -> Iterator[Block]:
    """Yield where it gained and lost in training: its results at each table size, beside the reference's."""
    if one.training is None:
        return
    results = bench.game.results
    rows = by_table_size(one.training.tally, one.training.experiment.names, results)
    own = {row.size: row for row in rows if row.name == one.name and row.games}
    reference = {row.size: row for row in rows if row.name == REFERENCE and row.games}
    sizes = [size for size in own if size in reference]
    measure = results.measures[0]
    columns = [
        Column("size", "players", "count", sizes),
        Column("games", "games", "count", [own[size].games for size in sizes]),
        measure_column(measure, [own[size].rates[measure.key] for size in sizes]),
        Column(
            "reference", bench.reference, column_kind(measure), [reference[size].rates[measure.key] for size in sizes]
        ),
    ]
    yield ResultTable("sizes", "Where it gained and lost in training", columns)
