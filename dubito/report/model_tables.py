"""What model players were asked, and what it took: as tables."""

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Final

from dubito.errors import one_line
from dubito.experiment.stored import StoredRun
from dubito.game import Bool
from dubito.game.words import question_in_words
from dubito.llm.prices import PICO, dollars
from dubito.report.result_table import Column, ResultTable, Value, counts, texts
from dubito.stats.players import fallback_share
from dubito.store.model_log import OF_PLAYER, TOKENS, PlayerLog

_TOKENS: Final = ("tokens in", "cached in", "written to cache", "tokens out", "reasoning out")  # titles, as TOKENS
_DETAILS: Final = ("written to cache", "reasoning out")
_OF: Final = (  # the attempts of a player; the preflight belongs to no game
    "FROM attempts a WHERE a.player = ? AND a.game >= 0 AND (a.reply IS NOT NULL OR a.cause IS NOT NULL)"
)


def models_table(models: Mapping[str, PlayerLog], names: Sequence[str]) -> ResultTable:
    """Every model player: decisions, fallbacks by cause, calls, tokens and cost; `names` are those of all players."""
    causes = sorted({outcome for log in models.values() for outcome in log.outcomes if ":" in outcome})
    columns = [
        Column("player", "model player", "player"),
        *counts("decisions"),
        Column("fallback", "fallback %", "rate"),
        *(Column(cause, f"{cause} %", "rate") for cause in causes),
        Column("reasks", "re-asks"),
        Column("calls", "calls"),
        Column("cached", "cache %", "rate"),
        *(
            Column(f"tokens_{kind}", title, detail=title in _DETAILS)
            for kind, title in zip(TOKENS, _TOKENS, strict=True)
        ),
        Column("cost", "cost", "dollars"),
        Column("billed", "billed", "dollars"),
        Column("assumed", "assumed", "dollars"),
        Column("cost_a_game", "cost a game", "dollars"),
        Column("saved", "saved by the provider's cache", "dollars"),
    ]
    rows = [[name, *_totals(log, causes)] for name, log in models.items()]
    links = [f"bots/{names.index(name)}.html" for name in models]
    return ResultTable("models", "Model players", columns, rows, _notes(models), links)


def _totals(log: PlayerLog, causes: Sequence[str]) -> list[Value]:
    def share(count: int, of: int) -> float | None:
        return count / of if of else None

    priced = log.picodollars is not None
    return [
        log.decisions,
        fallback_share(log.outcomes) if log.decisions else None,
        *(share(log.outcomes.get(cause, 0), log.decisions) for cause in causes),
        log.reasks,
        log.calls,
        share(log.cached, log.attempts),
        *(log.tokens[kind] for kind in TOKENS),
        log.picodollars,
        log.billed,
        log.likely if priced else None,
        log.picodollars // log.games if log.picodollars is not None and log.games else None,
        log.saved if priced else None,
    ]


def _notes(models: Mapping[str, PlayerLog]) -> list[str]:
    notes = []
    for player, log in models.items():
        name = one_line(player)
        if log.picodollars is None:
            notes.append(f"No price is known for {name}: no cost is shown.")
        if log.assumed:
            notes.append(f"Assumed: {log.assumed:,} calls of {name} reported no cost: {_lost_in_words(log)}.")
        if log.beyond:
            notes.append(
                f"More than was reserved: {log.beyond:,} calls of {name} used it, which no budget can prevent. "
                f"The first: {log.first_beyond}."
            )
        if log.deadlines:
            notes.append(f"Not repeatable: {log.deadlines:,} calls of {name} were cut off by their deadline.")
    return notes


def _lost_in_words(log: PlayerLog) -> str:
    """How calls are counted that reported no cost."""
    if log.picodollars is None or log.likely == log.at_worst:
        return "they are counted at their highest possible cost"
    return f"{dollars(log.likely)} is assumed by its other replies, and {dollars(log.at_worst)}, the most, in a budget"


def decisions_table(source: StoredRun, name: str, key: str) -> ResultTable:
    """How a player's decisions ended, node by node."""
    rows = source.db.read(f"SELECT d.node, d.outcome, sum(d.answer = 1), count(*) {OF_PLAYER} GROUP BY 1, 2", (name,))
    outcomes = sorted({outcome for _, outcome, _, _ in rows}, key=lambda outcome: (":" in outcome, outcome))
    columns = [*texts("question", "node"), *counts("decisions"), Column("yes", "yes %", "rate"), *counts(*outcomes)]
    cells: list[list[Value]] = []
    for node in sorted({row[0] for row in rows}):
        ended = {outcome: count for at, outcome, _, count in rows if at == node}
        total, yes = sum(ended.values()), sum(row[2] for row in rows if row[0] == node)
        share = yes / total if isinstance(source.game.node(node).answer, Bool) else None
        asked = question_in_words(source.game, node)
        cells.append([asked, node, total, share, *(ended.get(outcome, 0) for outcome in outcomes)])
    return ResultTable(f"{key}-decisions", "Decisions by node and outcome", columns, cells)


def attempts_table(source: StoredRun, name: str, key: str) -> ResultTable:
    """Where a player's replies came from, and why there was none."""
    rows = source.db.read(
        f"SELECT a.origin, coalesce(a.cause, 'reply'), sum(a.attempt > 0), count(*) {_OF} GROUP BY 1, 2 ORDER BY 1, 2",
        (name,),
    )
    columns = [*texts("origin"), Column("ended", "ended with", "text")]
    columns += [Column("reasks", "of them re-asks"), *counts("attempts")]
    return ResultTable(f"{key}-attempts", "Attempts by origin and end", columns, [list(row) for row in rows])


def use_table(source: StoredRun, name: str, key: str) -> ResultTable:
    """Tokens, latency and cost of a player's calls, as they are spread."""
    read = source.db.read
    received = "SELECT seconds FROM tries WHERE player = ? AND state = 'received' AND seconds IS NOT NULL"
    tokens = read(f"SELECT a.input, a.output {_OF} AND a.input IS NOT NULL AND a.output IS NOT NULL", (name,))
    priced = "SELECT coalesce(likely, picodollars) FROM tries WHERE player = ? AND picodollars IS NOT NULL"
    measured = [
        (Column("seconds", "seconds until the reply", "seconds"), [row[0] for row in read(received, (name,))]),
        (Column("input", "tokens of input"), [row[0] for row in tokens]),
        (Column("output", "tokens of output"), [row[1] for row in tokens]),
        (Column("cost", "cost, $", "price"), [row[0] / PICO for row in read(priced, (name,))]),
    ]
    columns = [Column("which", "of its calls", "text"), *(column for column, _ in measured)]
    cells: list[list[Value]] = [
        [which, *(_at(share, values) for _, values in measured)]
        for which, share in (("median", 0.5), ("9 of 10 at most", 0.9), ("most", 1.0))
    ]
    return ResultTable(f"{key}-use", "What its calls took", columns, cells)


def _at(share: float, values: Sequence[float]) -> float | None:
    """The least value that so large a share of them does not pass; None of none."""
    return sorted(values)[ceil(share * len(values)) - 1] if values else None
