"""Tables of a run's results, used on its pages and in the terminal.

They cover the ranking, contenders, fallback bounds, two-player games (with a matrix of first against second player),
and the decisions and costs of model players.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import ceil
from typing import Final

from dubito.errors import join_names, one_line
from dubito.experiment.compare import Arm
from dubito.experiment.stored import Run
from dubito.game import Bool, Measure, Results
from dubito.report.tables import (
    Column,
    Paragraph,
    ResultTable,
    Value,
    cell_text,
    column_kind,
    counts,
    difference_kind,
    player_columns,
    texts,
)
from dubito.stats.players import Calibration, FallbackBounds, fallback_share
from dubito.stats.ranking import (
    Contender,
    ContenderRow,
    PairRow,
    RankingRow,
    SizeRow,
    contender_pairs,
    contender_ranking,
    find_unequal_fallbacks,
    relate_contenders,
)
from dubito.stats.rates import Rate, clustered_rate
from dubito.stats.relation import FALLBACK_LIMIT, PRELIMINARY, ComparedPair, Relation, describe_limits, name_failures
from dubito.stats.tally import ANYBODY, BOTH, Tally
from dubito.store.run_db import OF_PLAYER
from dubito.store.spend import PICO, TOKENS, PlayerLog, dollars

_RANK_NOTE: Final = (
    "Rank 1 means that no contender is significantly better. A contender's rank is 1 plus the number of contenders "
    "that are significantly better, judged by the paired difference in the first measure."
)
_HOLM_NOTE: Final = (
    "With {} pairs, Holm's method controls for multiple comparisons: at most 5 % of such tables report a difference "
    "that does not exist. A pair may therefore not be significant even if its own interval excludes 0."
)
_FALLBACK_NOTE: Final = (
    f'"no: fallbacks" means that one of the two had {{}} in more than {100 * FALLBACK_LIMIT:g} % of its games, and '
    "that the order would change if all of these games counted against the leader. Such a pair has no winner."
)
_FIXED: Final = "95 % confidence intervals for a fixed number of deals"
_ANYTIME: Final = "anytime 95 % confidence intervals"
_STOP_NOTE: Final = (
    "These differences determine when the run stops, so the table uses anytime intervals, which are valid whenever "
    "you look. For the first measure, significance is decided by the test that stops the run, which can happen before "
    "the interval excludes 0."
)
_OPPONENTS_NOTE: Final = "Opponents have no ranks, since they were not compared on the same deals."
_TIES_NOTE: Final = (
    "A rank is 1 plus the number of players whose whole interval is above this player's, unless fallbacks could "
    "explain the difference. Equal ranks are ties. If two intervals overlap, the true order may be the reverse."
)


def rate_columns(results: Results) -> list[Column]:
    return [Column(measure.key, measure.column_title, column_kind(measure)) for measure in results.measures]


def chance_level_columns(results: Results) -> list[Column]:
    measures = [results.measure(key) for key in results.headline]
    return [Column(f"equal_share_{one.key}", f"chance level: {one.column_title}", column_kind(one)) for one in measures]


def _bounds_columns(results: Results) -> list[Column]:
    columns = [
        Column("touched", f"games with {name_failures(results)}", detail=True),
        Column("touched_share", f"games with {name_failures(results)} %", "rate"),
    ]
    for key in results.headline:
        measure = results.measure(key)
        columns += [
            Column(f"{end}_{key}", f"{measure.column_title}, {end}", column_kind(measure)) for end in ("worst", "best")
        ]
    return columns


def _extreme_case(results: Results) -> str:
    return f"results if games with {name_failures(results)} counted as {describe_limits(results)}"


def ranking_table(rows: Sequence[RankingRow], relation: Relation, results: Results, *, twice: bool) -> ResultTable:
    """Return the table of players for a run without paired contenders.

    The players are ranked by the first measure. `twice` means that a bot can hold two seats in a game.
    """
    title = f"Ranking by {results.measures[0].name}"
    return _players_table("ranking", title, rows, results, [_TIES_NOTE, *_notes_on_seats(twice)], relation)


def opponents_table(
    rows: Sequence[RankingRow], relation: Relation, results: Results, title: str, *, twice: bool
) -> ResultTable | None:
    """Return a table of the contenders' opponents, without ranks, or None if all players are contenders."""
    others = [row for row in rows if row.name not in relation.names]
    if not others:
        return None
    return _players_table("opponents", title, others, results, [_OPPONENTS_NOTE, *_notes_on_seats(twice)], None)


def _players_table(
    key: str, title: str, rows: Sequence[RankingRow], results: Results, notes: Sequence[str], relation: Relation | None
) -> ResultTable:
    rates = rate_columns(results)
    shares = {rate.key for rate in rates}
    keys = {bucket: f"{bucket}_games" if bucket in shares else bucket for bucket in results.scoreboard}
    board = [Column(key, bucket.replace("_", " ")) for bucket, key in keys.items()]
    rank = counts("rank") if relation else []
    columns = [*player_columns("bot"), *rank, *board, *counts("games"), *rates, *chance_level_columns(results)]
    cells: list[list[Value]] = []
    for row in rows:
        ended = [row.buckets[bucket] for bucket in keys]
        measured = (row.rates[rate.key] for rate in rates)
        ranked = [relation.rank(row.name)] if relation else []
        cells.append([row.name, *ranked, *ended, row.games, *measured, *_equal_shares(row, results)])
    return ResultTable(key, title, columns, cells, notes)


def _notes_on_seats(twice: bool) -> list[str]:
    notes = ["The chance level is the result a bot would get at its table sizes if all players were equal."]
    return [*notes, "A game in which a bot has two seats counts twice for that bot."] if twice else notes


def contenders_among_opponents(relation: Relation, opponents: Sequence[str]) -> str | None:
    """Return a sentence if a contender was also drawn as an opponent, or else None.

    The sentence belongs below tables that cover all seats.
    """
    both = [one_line(name) for name in relation.names if name in opponents] if relation.paired else []
    if not both:
        return None
    one = len(both) == 1
    drawn, their = ("was also drawn as an opponent", "its") if one else ("were also drawn as opponents", "their")
    return (
        f"{join_names(both)} {drawn}. Figures for all seats include those games, so they differ from {their} figures "
        f"as {'a contender' if one else 'contenders'}."
    )


def _equal_shares(row: RankingRow | SizeRow | ContenderRow, results: Results) -> list[float | None]:
    return [row.equal_share.get(key) for key in results.headline]


def bot_errors(rows: Sequence[RankingRow]) -> list[Paragraph]:
    """Return a warning for each bot with fallback turns or forfeits."""
    played = [
        f"The fallback played {_counted(row.fallback_turns, 'turn')} for {one_line(row.name)} after bot errors."
        for row in rows
        if row.fallback_turns
    ]
    forfeited = [
        f"{one_line(row.name)} forfeited {_counted(row.forfeits, 'game')} after bot errors. Forfeited games count for "
        "all players."
        for row in rows
        if row.forfeits
    ]
    return [Paragraph(sentence, warning=True) for sentence in (*played, *forfeited)]


def contender_tables(tally: Tally, contenders: Sequence[Contender], results: Results) -> list[ResultTable | Paragraph]:
    """Return tables of the contenders, their pairs and their fallbacks, and any warnings."""
    rows, rates = contender_ranking(tally, contenders, results), rate_columns(results)
    if not rows:
        return []
    pairs = contender_pairs(tally, contenders, results)
    relation = relate_contenders(tally, contenders, results, pairs)
    columns, rank_column = [*player_columns("contender"), *counts("deals")], counts("rank") if relation else []
    ranked = [columns[0], *rank_column, columns[1]]  # a single contender has no rank
    shares = [replace(share, detail=True) for share in chance_level_columns(results)] if rows[0].equal_share else []
    cells: list[list[Value]] = []
    for row in rows:
        rank = [relation.rank(row.contender.name)] if relation else []
        shared = _equal_shares(row, results) if shares else []
        cells.append([row.contender.name, *rank, row.deals, *(row.rates[column.key] for column in rates), *shared])
    seat = "the same seat" if contenders[0].seats == 1 else "both seats"
    title = f"Contenders, in {seat} of the same deals"
    title += f"; {_FIXED}" if any(one.within is not None for one in contenders) else ""
    shown_rates = [column if column.key in results.headline else replace(column, detail=True) for column in rates]
    blocks: list[ResultTable | Paragraph] = [
        ResultTable("contenders", title, [*ranked, *shown_rates, *shares], cells, [_RANK_NOTE] if relation else [])
    ]
    if pairs:
        blocks.append(pairs_table(pairs, rows[0].deals, results))
    return [*blocks, *contender_notes(rows, relation, results)]


def contender_notes(
    rows: Sequence[ContenderRow], relation: Relation | None, results: Results
) -> Iterator[ResultTable | Paragraph]:
    """Yield notes about what limits the contenders' results: few deals, and fallbacks.

    A single contender has no relation.
    """
    if relation and (warnings := list_cautions(relation)):
        yield Paragraph(" ".join(warnings))
    if any(row.bounds.touched for row in rows):
        columns = [*player_columns("contender"), *counts("deals"), *_bounds_columns(results)]
        cells: list[list[Value]] = [[row.contender.name, row.deals, *_bounds(row.bounds)] for row in rows]
        yield ResultTable("contenders-bounds", f"Fallbacks of contenders: {_extreme_case(results)}", columns, cells)
    if two := find_unequal_fallbacks(rows):
        most, least = ((cell_text(row.bounds.share, "rate"), one_line(row.contender.name)) for row in two)
        text = (
            f"{most[0]} % of {most[1]}'s games had {name_failures(results)}, but {least[0]} % of {least[1]}'s, so "
            "this compares whole systems (with their fallbacks), not only the players."
        )
        yield Paragraph(text, warning=True)


def arm_tables(arms: Sequence[Arm], results: Results) -> list[ResultTable | Paragraph]:
    """Return a table of the contenders' prompts, what each prompt adds, and the share of voluntary lies."""
    if not arms:
        return []
    columns = [*player_columns("contender"), Column("prompt", "prompt", "text"), Column("title", "description", "text")]
    cells: list[list[Value]] = [[arm.name, arm.prompt, arm.title] for arm in arms]
    title = "Prompt of each contender"
    if any(arm.chosen for arm in arms):
        habit = results.habit(results.lies)
        columns += [*counts("plays"), Column("chosen", f"voluntary {habit.name}, % of plays", "rate")]
        cells = [[*row, arm.plays, arm.chosen] for row, arm in zip(cells, arms, strict=True)]
        title += f"; voluntary {habit.name} in all seats, with 95 % confidence intervals"
    additions = {arm.prompt: arm.paragraph for arm in arms if arm.paragraph}
    texts_added = [Paragraph(f"{one_line(name)} adds: {one_line(text, 500)}") for name, text in additions.items()]
    return [ResultTable("arms", title, columns, cells), *texts_added]


def list_cautions(relation: Relation) -> list[str]:
    """Return warnings if the result depends on few deals."""
    deals = _counted(relation.deals, "deal")
    warnings = [f"Preliminary: only {deals} (fewer than {PRELIMINARY})."] if relation.is_preliminary else []
    if relation.fragility:
        few = f"{relation.fragility:,} of the {relation.deals:,} deals" if relation.deals > 1 else "its only deal"
        warnings.append(f"Without {few}, {one_line(relation.names[0])} would no longer lead.")
    return warnings


def _counted(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'s' * (n != 1)}"


def pairs_table(pairs: Sequence[PairRow], deals: int, results: Results) -> ResultTable:
    columns = player_columns("contender", "against")
    compared = [one for pair in pairs for one in pair.differences.values()]
    has_fallbacks = any(one.has_fallbacks for one in compared)
    for key in results.headline:
        measure = results.measure(key)
        columns += [Column(key, measure.title, difference_kind(measure))]
        columns += [Column(f"{key}_apart", f"{measure.title} significant", "text")]
        if has_fallbacks:
            columns += [
                Column(f"{key}_{end}", f"{measure.title}, {end}", difference_kind(measure), detail=True)
                for end in ("worst", "best")
            ]
    cells: list[list[Value]] = []
    stopped = any(one.interval == "anytime" for one in compared)
    for pair in pairs:
        row: list[Value] = [pair.one.name, pair.other.name]
        for one in (pair.differences[key] for key in results.headline):
            row += [one.difference, describe_significance(one)]
            row += [one.worst, one.best] if has_fallbacks else []
        cells.append(row)
    unit = " in points" if any(column.kind == "points" for column in columns) else ""
    title = f"Pairs: differences{unit} on {deals:,} common deals; {_ANYTIME if stopped else _FIXED}"
    notes = [_HOLM_NOTE.format(len(pairs))] if len(pairs) > 1 else []
    overlap = any(one.limits_overlap for one in compared)
    notes += [_FALLBACK_NOTE.format(name_failures(results))] if overlap else []
    return ResultTable("pairs", title, columns, cells, [_STOP_NOTE, *notes] if stopped else notes)


def describe_significance(pair: ComparedPair) -> str:
    """Return whether a pair has a winner, or why not."""
    if pair.outcome in ("better", "worse"):
        return "yes"
    if pair.outcome == "identical":
        return "no: identical"
    if pair.limits_overlap:
        return "no: fallbacks"
    if pair.stop_test is not None:
        return f"probably less than {pair.within:g} apart" if pair.stop_test == "within" else "undecided"
    if pair.interval == "anytime":
        return "not yet"
    return "cannot be estimated" if pair.more_games is None else f"about {pair.more_games:,} more games"


def _bounds(bounds: FallbackBounds) -> list[Value]:
    return [bounds.touched, bounds.share, *(end for ends in bounds.rates.values() for end in ends)]


def bounds_table(
    rows: Sequence[RankingRow], contenders: Sequence[str], games: int, results: Results
) -> ResultTable | None:
    """Return a table of how much fallbacks could have changed opponents' results, or None if empty.

    Contenders that played all their `games` as contenders are omitted, since they have their own table.
    """
    cells = [
        [row.name, row.games, *_bounds(row.bounds)]
        for row in rows
        if row.bounds.touched and not (row.name in contenders and row.games == games)
    ]
    columns = [Column("bot", "player", "player"), *counts("games"), *_bounds_columns(results)]
    return ResultTable("bounds", f"Fallbacks in all seats: {_extreme_case(results)}", columns, cells) if cells else None


def sizes_table(
    rows: Sequence[SizeRow], rate: Callable[[SizeRow, str], Value], results: Results, notes: Sequence[str] = ()
) -> ResultTable:
    """Return a table of each player's values at each table size. `rate` returns a measure's value."""
    rates, shares = rate_columns(results), chance_level_columns(results)
    columns = [*player_columns("bot"), *counts("size", "games"), *rates, *shares]
    cells: list[list[Value]] = [
        [row.name, row.size, row.games, *(rate(row, column.key) for column in rates), *_equal_shares(row, results)]
        for row in rows
        if row.games
    ]
    return ResultTable("by-table-size", "All bots by table size", columns, cells, notes)


def calibration_table(stated: Sequence[Calibration], of: str = "") -> ResultTable:
    """Return a table that rates the stated probabilities. `of` names the event."""
    columns = [
        Column("player", "model player", "player"),
        Column("statements", "stated"),
        Column("brier", "Brier score", "decimal"),
        Column("base_brier", "Brier score of the base rate", "decimal"),
        Column("base_rate", "dishonest %", "rate"),
        Column("nulls", "null"),
        *counts("impossible"),
    ]
    cells: list[list[Value]] = [
        [one.name, one.statements, one.brier, one.base_brier, one.base_rate, one.nulls, one.impossible]
        for one in stated
    ]
    title = f"Stated probability{of and f' {of}'} vs. the truth"
    return ResultTable("calibration", title, columns, cells)


def calibration_bins(stated: Sequence[Calibration], key: str) -> ResultTable | None:
    """Return the calibration by tenths of the stated probability, or None if there are no statements."""
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
    title = "By stated probability. For a well-calibrated player, the last two columns are equal."
    return ResultTable(key, title, columns, cells) if cells else None


def turns_per_game(tally: Tally, results: Results) -> str:
    games, *counts = (sum(column) for column in zip(*(values for _, values in tally.rows("sizes")), strict=True))
    return results.describe_turns([count / games for count in counts])


@dataclass(frozen=True, slots=True)
class Duels:
    """One measure of a run's two-player games."""

    tally: Tally
    results: Results
    measure: Measure

    def games(self, player: int, other: int = ANYBODY, seat: int = BOTH) -> int:
        row = self.tally.tables.get("seated", {}).get((player, other, seat))
        return row[1] if row else 0

    def rate(self, player: int, other: int = ANYBODY, seat: int = BOTH) -> Rate:
        row = self.tally.tables.get("seated", {}).get((player, other, seat))
        return self._rate(row, self.measure.scale).on_span(self.measure.span)

    def first_player_advantage(self) -> Rate:
        least, most = self.measure.span or (0, 1)
        rate = self._rate(self.tally.tables.get("begun", {}).get(()), 2 * self.measure.scale)
        return rate.on_span((least - most, most - least))

    def _rate(self, row: list[int] | None, scale: int) -> Rate:
        if row is None:
            return Rate(None)
        place = 3 + 3 * self.results.place(self.measure.key)
        deals, m, m2 = row[:3]
        y, y2, ym = row[place : place + 3]
        return clustered_rate(deals, m, m2, y, y2, ym, scale)


def duel_tables(
    tally: Tally, names: Sequence[str], results: Results, label: Callable[[str], str] = one_line
) -> list[ResultTable | Paragraph]:
    """Return the matrix with totals, the table of all pairs, and the advantage of going first.

    `label` returns a player's name for headings.
    """
    whole = Duels(tally, results, results.measures[0])
    order = _best_first(whole, names)
    return [_matrix(whole, names, order, label), _duel_pairs(whole, names, order), Paragraph(_advantage(whole))]


def _best_first(whole: Duels, names: Sequence[str]) -> list[int]:
    players = [player for player in range(len(names)) if whole.games(player)]
    return sorted(players, key=lambda player: (-(whole.rate(player).value or 0.0), names[player]))


def _matrix(whole: Duels, names: Sequence[str], order: Sequence[int], label: Callable[[str], str]) -> ResultTable:
    columns, kind = [Column("first", "first ↓ second →", "player")], column_kind(whole.measure)
    columns += [Column(f"against_{names[other]}", label(names[other]), kind) for other in order]
    columns += [Column("as_first", "as first", kind), Column("as_second", "as second", kind)]
    columns += [Column("total", "total", kind), *counts("games")]
    rows: list[list[Value]] = []
    for player in order:
        against = [whole.rate(player, other, 0) if whole.games(player, other, 0) else None for other in order]
        totals = [whole.rate(player, ANYBODY, seat) for seat in (0, 1, BOTH)]
        rows.append([names[player], *against, *totals, whole.games(player)])
    title = f"{_first_player_title(whole.measure)}, by second player"
    return ResultTable("first-second", title, columns, rows, ["95 % confidence intervals, clustered by deal."])


def _duel_pairs(whole: Duels, names: Sequence[str], order: Sequence[int]) -> ResultTable:
    title, kind = whole.measure.column_title, column_kind(whole.measure)
    columns = [*player_columns("bot"), Column("rate", title, kind), Column("other", "against", "player")]
    columns += [Column("other_rate", f"opponent's {title}", kind), *counts("games")]
    rows: list[list[Value]] = [
        [names[one], whole.rate(one, two), names[two], whole.rate(two, one), whole.games(one, two)]
        for one, two in combinations(order, 2)
        if whole.games(one, two)
    ]
    return ResultTable("duels", "Pairs, both seats combined", columns, rows)


def _advantage(whole: Duels) -> str:
    rate, measure = whole.first_player_advantage(), whole.measure
    unit = "" if measure.span else " points of"
    sentence = f"Going first is worth {cell_text(rate, difference_kind(measure))}{unit} {measure.name}"
    if rate.value is None or rate.low <= 0 <= rate.high:
        return f"{sentence}, which is not significant."
    return f"{sentence}: an advantage for the {'first' if rate.value > 0 else 'second'} player."


def _first_player_title(measure: Measure) -> str:
    return f"{measure.name} of the first player{'' if measure.span else ', %'}"


# titles, in the order of TOKENS
_TOKENS: Final = ("tokens in", "cached in", "written to cache", "tokens out", "reasoning out")
_DETAIL_TITLES: Final = ("written to cache", "reasoning out")
_OF: Final = (  # a player's attempts in games, excluding the preflight
    "FROM attempts a WHERE a.player = ? AND a.game >= 0 AND (a.reply IS NOT NULL OR a.cause IS NOT NULL)"
)


def models_table(models: Mapping[str, PlayerLog], names: Sequence[str]) -> ResultTable:
    """Return a table of each model player's decisions, fallbacks by cause, calls, tokens and cost.

    `names` lists all players.
    """
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
            Column(f"tokens_{kind}", title, detail=title in _DETAIL_TITLES)
            for kind, title in zip(TOKENS, _TOKENS, strict=True)
        ),
        Column("cost", "cost", "dollars"),
        Column("billed", "billed", "dollars"),
        Column("assumed", "assumed", "dollars"),
        Column("cost_a_game", "cost per game", "dollars"),
        Column("saved", "saved by the provider's cache", "dollars"),
    ]
    others = any(log.has_other_names for log in models.values())
    columns += [Column("ids", "answered by", "text", detail=True)] if others else []
    rows = [
        [name, *_model_cells(log, causes), *([", ".join(log.ids) or None] if others else [])]
        for name, log in models.items()
    ]
    links = [f"bots/{names.index(name)}.html" for name in models]
    return ResultTable("models", "Model players", columns, rows, _model_notes(models), links)


def _model_cells(log: PlayerLog, causes: Sequence[str]) -> list[Value]:
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


def _model_notes(models: Mapping[str, PlayerLog]) -> list[str]:
    notes = ["Tokens, costs and names of models are claimed: a replay cannot prove what a server reported."]
    for player, log in models.items():
        name = one_line(player)
        if log.picodollars is None:
            notes.append(f"The cost of {name} is unknown, since its model has no price.")
        if log.assumed:
            notes.append(
                f"Assumed: {_counted(log.assumed, 'call')} by {name} reported no cost; {_describe_assumed(log)}."
            )
        if log.beyond:
            notes.append(
                f"{_counted(log.beyond, 'call')} by {name} used more than the budget reserved, which no budget can "
                "prevent. "
                f"The first: {log.first_beyond}."
            )
        if len(log.ids) > 1:
            models_named = " and ".join(f"{one_line(model)} ({count:,})" for model, count in log.ids.items())
            notes.append(f"Several models answered for {name}: {models_named}. Its results are a mixture.")
        if log.deadlines:
            notes.append(f"Not repeatable: {_counted(log.deadlines, 'call')} by {name} hit the deadline.")
    return notes


def _describe_assumed(log: PlayerLog) -> str:
    if log.picodollars is None or log.likely == log.at_worst:
        return "each is counted at its highest possible cost"
    return f"{dollars(log.likely)} is assumed for them, but the budget counts their maximum, {dollars(log.at_worst)}"


def decisions_table(source: Run, name: str, key: str) -> ResultTable:
    """Return a table of the outcomes of a player's decisions, by node."""
    rows = source.db.read(f"SELECT d.node, d.outcome, sum(d.answer = 1), count(*) {OF_PLAYER} GROUP BY 1, 2", (name,))
    outcomes = sorted({outcome for _, outcome, _, _ in rows}, key=lambda outcome: (":" in outcome, outcome))
    columns = [*texts("question", "node"), *counts("decisions"), Column("yes", "yes %", "rate"), *counts(*outcomes)]
    cells: list[list[Value]] = []
    for node in sorted({row[0] for row in rows}):
        ended = {outcome: count for at, outcome, _, count in rows if at == node}
        total, yes = sum(ended.values()), sum(row[2] for row in rows if row[0] == node)
        share = yes / total if isinstance(source.game.node(node).answer, Bool) else None
        question = source.game.words.short_question(node)
        cells.append([question, node, total, share, *(ended.get(outcome, 0) for outcome in outcomes)])
    return ResultTable(f"{key}-decisions", "Decisions by node and outcome", columns, cells)


def attempts_table(source: Run, name: str, key: str) -> ResultTable:
    """Return a table of where a player's replies came from, and why replies are missing."""
    rows = source.db.read(
        f"SELECT a.origin, coalesce(a.cause, 'reply'), sum(a.attempt > 0), count(*) {_OF} GROUP BY 1, 2 ORDER BY 1, 2",
        (name,),
    )
    columns = [*texts("origin"), Column("ended", "ended with", "text")]
    columns += [Column("reasks", "re-asks"), *counts("attempts")]
    return ResultTable(f"{key}-attempts", "Attempts by origin and result", columns, [list(row) for row in rows])


def use_table(source: Run, name: str, key: str) -> ResultTable:
    """Return a table of tokens, latency and cost per call: median, 90th percentile and maximum."""
    read = source.db.read
    received = "SELECT seconds FROM tries WHERE player = ? AND state = 'received' AND seconds IS NOT NULL"
    tokens = read(f"SELECT a.input, a.output {_OF} AND a.input IS NOT NULL AND a.output IS NOT NULL", (name,))
    priced = "SELECT coalesce(likely, picodollars) FROM tries WHERE player = ? AND picodollars IS NOT NULL"
    measured = [
        (Column("seconds", "seconds until the reply", "seconds"), [row[0] for row in read(received, (name,))]),
        (Column("input", "tokens in"), [row[0] for row in tokens]),
        (Column("output", "tokens out"), [row[1] for row in tokens]),
        (Column("cost", "cost, $", "price"), [row[0] / PICO for row in read(priced, (name,))]),
    ]
    columns = [Column("which", "calls", "text"), *(column for column, _ in measured)]
    cells: list[list[Value]] = [
        [which, *(_quantile(share, values) for _, values in measured)]
        for which, share in (("median", 0.5), ("90th percentile", 0.9), ("maximum", 1.0))
    ]
    return ResultTable(f"{key}-use", "Time, tokens and cost per call", columns, cells)


def _quantile(share: float, values: Sequence[float]) -> float | None:
    return sorted(values)[ceil(share * len(values)) - 1] if values else None
