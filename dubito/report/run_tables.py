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
    difference_kind,
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


def measure_column(measure: Measure, values: Sequence[Value]) -> Column:
    return Column(measure.key, measure.column_title, column_kind(measure), values)


def rate_columns(results: Results, rows: Sequence[RankingRow | ContenderRow]) -> list[Column]:
    return [measure_column(one, [row.rates[one.key] for row in rows]) for one in results.measures]


def chance_level_column(measure: Measure, values: Sequence[Value]) -> Column:
    return Column(f"equal_share_{measure.key}", f"chance level: {measure.column_title}", column_kind(measure), values)


def chance_level_columns(results: Results, rows: Sequence[RankingRow | SizeRow | ContenderRow]) -> list[Column]:
    measures = map(results.measure, results.headline)
    return [chance_level_column(one, [row.equal_share.get(one.key) for row in rows]) for one in measures]


def _bounds_columns(results: Results, bounds: Sequence[FallbackBounds]) -> list[Column]:
    title = f"games with {name_failures(results)}"
    columns = [
        Column("touched", title, "count", [one.touched for one in bounds], detail=True),
        Column("touched_share", f"{title} %", "rate", [one.share for one in bounds]),
    ]
    for measure in map(results.measure, results.headline):
        for place, end in enumerate(("worst", "best")):
            column = measure_column(measure, [one.rates[measure.key][place] for one in bounds])
            columns.append(replace(column, key=f"{end}_{measure.key}", title=f"{measure.column_title}, {end}"))
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
    measured = {measure.key for measure in results.measures}
    columns = [Column("bot", "bot", "player", [row.name for row in rows])]
    if relation:
        columns.append(Column("rank", "rank", "count", [relation.rank(row.name) for row in rows]))
    for bucket in results.scoreboard:
        bucket_key = f"{bucket}_games" if bucket in measured else bucket
        columns.append(Column(bucket_key, bucket.replace("_", " "), "count", [row.buckets[bucket] for row in rows]))
    columns.append(Column("games", "games", "count", [row.games for row in rows]))
    columns += [*rate_columns(results, rows), *chance_level_columns(results, rows)]
    return ResultTable(key, title, columns, notes)


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
    rows = contender_ranking(tally, contenders, results)
    if not rows:
        return []
    pairs = contender_pairs(tally, contenders, results)
    relation = relate_contenders(tally, contenders, results, pairs)
    columns = [Column("contender", "contender", "player", [row.contender.name for row in rows])]
    if relation:  # a single contender has no rank
        columns.append(Column("rank", "rank", "count", [relation.rank(row.contender.name) for row in rows]))
    columns.append(Column("deals", "deals", "count", [row.deals for row in rows]))
    columns += [replace(one, detail=one.key not in results.headline) for one in rate_columns(results, rows)]
    if rows[0].equal_share:
        columns += [replace(share, detail=True) for share in chance_level_columns(results, rows)]
    seat = "the same seat" if contenders[0].seats == 1 else "both seats"
    title = f"Contenders, in {seat} of the same deals"
    title += f"; {_FIXED}" if any(one.within is not None for one in contenders) else ""
    blocks: list[ResultTable | Paragraph] = [
        ResultTable("contenders", title, columns, [_RANK_NOTE] if relation else [])
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
        columns = [
            Column("contender", "contender", "player", [row.contender.name for row in rows]),
            Column("deals", "deals", "count", [row.deals for row in rows]),
            *_bounds_columns(results, [row.bounds for row in rows]),
        ]
        yield ResultTable("contenders-bounds", f"Fallbacks of contenders: {_extreme_case(results)}", columns)
    if two := find_unequal_fallbacks(rows):
        most, least = ((cell_text(row.bounds.share, "rate"), one_line(row.contender.name)) for row in two)
        text = (
            f"{most[0]} % of {most[1]}'s games had {name_failures(results)}, but {least[0]} % of {least[1]}'s, so "
            "this compares whole systems (with their fallbacks), not only the players."
        )
        yield Paragraph(text, warning=True)


def arm_tables(arms: Sequence[Arm], pairs: Sequence[PairRow], results: Results) -> list[ResultTable | Paragraph]:
    """Return tables of the contenders' prompts, the share of voluntary lies, and the effect of each condition.

    An effect is a condition's difference from the model's first one.
    """
    if not arms:
        return []
    columns = [
        Column("contender", "contender", "player", [arm.name for arm in arms]),
        Column("prompt", "prompt", "text", [arm.prompt for arm in arms]),
        Column("title", "description", "text", [arm.title for arm in arms]),
    ]
    title = "Prompt of each contender"
    if any(arm.chosen for arm in arms):
        name = results.habit(results.lies).name
        columns.append(Column("plays", "plays", "count", [arm.plays for arm in arms]))
        columns.append(Column("chosen", f"voluntary {name}, % of plays", "rate", [arm.chosen for arm in arms]))
        if any(arm.violations for arm in arms):
            rule = "violations of the honesty rule, % of plays that could be honest"
            columns.append(Column("violations", rule, "rate", [arm.violations for arm in arms]))
        games = max(arm.games or 0 for arm in arms)
        title += f"; voluntary {name} in all seats of the first {games:,} games, with 95 % confidence intervals"
    additions = dict[str, list[str]]()
    for arm in arms:
        if arm.paragraph and arm.prompt not in (prompts := additions.setdefault(arm.paragraph, [])):
            prompts.append(arm.prompt)
    texts_added = [
        Paragraph(f"{one_line(join_names(prompts))} add{'s' * (len(prompts) == 1)}: {one_line(text, 500)}")
        for text, prompts in additions.items()
    ]
    conditions = []
    if varied := [arm for arm in arms if arm.against]:
        swapped = [
            PairRow(pair.other, pair.one, {key: -difference for key, difference in pair.differences.items()})
            for pair in pairs
        ]
        by_names = {(pair.one.name, pair.other.name): pair for pair in [*pairs, *swapped]}
        rows = [by_names[arm.name, str(arm.against)] for arm in varied]
        table = pairs_table(rows, next(iter(rows[0].differences.values())).deals, results)
        condition = Column("condition", "condition", "text", [arm.condition for arm in varied])
        effects = replace(table, columns=[table.columns[0], condition, *table.columns[1:]], notes=[])
        heading = table.title.replace("Pairs", "Effect of each condition", 1)
        conditions.append(replace(effects, key="conditions", title=heading))
    return [*conditions, ResultTable("arms", title, columns), *texts_added]


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
    columns = [
        Column("contender", "contender", "player", [pair.one.name for pair in pairs]),
        Column("against", "against", "player", [pair.other.name for pair in pairs]),
    ]
    compared = [one for pair in pairs for one in pair.differences.values()]
    stopped = any(one.interval == "anytime" for one in compared)
    has_fallbacks = any(one.has_fallbacks for one in compared)
    for measure in map(results.measure, results.headline):
        key, title, kind = measure.key, measure.title, difference_kind(measure)
        both = [pair.differences[key] for pair in pairs]
        columns.append(Column(key, title, kind, [one.difference for one in both]))
        columns.append(Column(f"{key}_apart", f"{title} significant", "text", [*map(describe_significance, both)]))
        if has_fallbacks:
            columns.append(Column(f"{key}_worst", f"{title}, worst", kind, [one.worst for one in both], detail=True))
            columns.append(Column(f"{key}_best", f"{title}, best", kind, [one.best for one in both], detail=True))
    unit = " in points" if any(column.kind == "points" for column in columns) else ""
    title = f"Pairs: differences{unit} on {deals:,} common deals; {_ANYTIME if stopped else _FIXED}"
    notes = [_HOLM_NOTE.format(len(pairs))] if len(pairs) > 1 else []
    overlap = any(one.limits_overlap for one in compared)
    notes += [_FALLBACK_NOTE.format(name_failures(results))] if overlap else []
    return ResultTable("pairs", title, columns, [_STOP_NOTE, *notes] if stopped else notes)


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


def bounds_table(
    rows: Sequence[RankingRow], contenders: Sequence[str], games: int, results: Results
) -> ResultTable | None:
    """Return a table of how much fallbacks could have changed opponents' results, or None if empty.

    Contenders that played all their `games` as contenders are omitted, since they have their own table.
    """
    rows = [row for row in rows if row.bounds.touched and not (row.name in contenders and row.games == games)]
    columns = [
        Column("bot", "player", "player", [row.name for row in rows]),
        Column("games", "games", "count", [row.games for row in rows]),
        *_bounds_columns(results, [row.bounds for row in rows]),
    ]
    return ResultTable("bounds", f"Fallbacks in all seats: {_extreme_case(results)}", columns) if rows else None


def sizes_table(
    rows: Sequence[SizeRow], rate: Callable[[SizeRow, str], Value], results: Results, notes: Sequence[str] = ()
) -> ResultTable:
    """Return a table of each player's values at each table size. `rate` returns a measure's value."""
    rows = [row for row in rows if row.games]
    columns = [
        Column("bot", "bot", "player", [row.name for row in rows]),
        Column("size", "size", "count", [row.size for row in rows]),
        Column("games", "games", "count", [row.games for row in rows]),
        *(measure_column(one, [rate(row, one.key) for row in rows]) for one in results.measures),
        *chance_level_columns(results, rows),
    ]
    return ResultTable("by-table-size", "All bots by table size", columns, notes)


def calibration_table(stated: Sequence[Calibration], of: str = "") -> ResultTable:
    """Return a table that rates the stated probabilities. `of` names the event."""
    columns = [
        Column("player", "model player", "player", [one.name for one in stated]),
        Column("statements", "stated", "count", [one.statements for one in stated]),
        Column("brier", "Brier score", "decimal", [one.brier for one in stated]),
        Column("base_brier", "Brier score of the base rate", "decimal", [one.base_brier for one in stated]),
        Column("base_rate", "dishonest %", "rate", [one.base_rate for one in stated]),
        Column("nulls", "null", "count", [one.nulls for one in stated]),
        Column("impossible", "impossible", "count", [one.impossible for one in stated]),
    ]
    title = f"Stated probability{of and f' {of}'} vs. the truth"
    return ResultTable("calibration", title, columns)


def calibration_bins(stated: Sequence[Calibration], key: str) -> ResultTable | None:
    """Return the calibration by tenths of the stated probability, or None if there are no statements."""
    bins = [(one.name, at) for one in stated for at in one.bins]
    columns = [
        Column("player", "model player", "player", [name for name, _ in bins]),
        Column("from", "stated %", "text", [f"{100 * at.low:.0f} to {100 * at.low + 10:.0f}" for _, at in bins]),
        Column("statements", "times", "count", [at.statements for _, at in bins]),
        Column("mean", "mean stated %", "rate", [at.mean for _, at in bins]),
        Column("dishonest", "dishonest %", "rate", [at.dishonest for _, at in bins]),
    ]
    title = "By stated probability. For a well-calibrated player, the last two columns are equal."
    return ResultTable(key, title, columns) if bins else None


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
    measure = results.measures[0]
    whole, title, kind = Duels(tally, results, measure), measure.column_title, column_kind(measure)
    players = [player for player in range(len(names)) if whole.games(player)]
    order = sorted(players, key=lambda player: (-(whole.rate(player).value or 0.0), names[player]))

    cells = [Column("first", "first ↓ second →", "player", [names[player] for player in order])]
    for other in order:
        rates = [whole.rate(player, other, 0) if whole.games(player, other, 0) else None for player in order]
        cells.append(Column(f"against_{names[other]}", label(names[other]), kind, rates))
    cells += [
        Column("as_first", "as first", kind, [whole.rate(player, seat=0) for player in order]),
        Column("as_second", "as second", kind, [whole.rate(player, seat=1) for player in order]),
        Column("total", "total", kind, [whole.rate(player) for player in order]),
        Column("games", "games", "count", [whole.games(player) for player in order]),
    ]
    heading = f"{measure.name} of the first player{'' if measure.span else ', %'}, by second player"
    notes = ["95 % confidence intervals, clustered by deal."]
    matrix = ResultTable("first-second", heading, cells, notes)

    pairs = [(one, two) for one, two in combinations(order, 2) if whole.games(one, two)]
    columns = [
        Column("bot", "bot", "player", [names[one] for one, _ in pairs]),
        Column("rate", title, kind, [whole.rate(one, two) for one, two in pairs]),
        Column("other", "against", "player", [names[two] for _, two in pairs]),
        Column("other_rate", f"opponent's {title}", kind, [whole.rate(two, one) for one, two in pairs]),
        Column("games", "games", "count", [whole.games(one, two) for one, two in pairs]),
    ]
    both_seats = ResultTable("duels", "Pairs, both seats combined", columns)

    advantage, unit = whole.first_player_advantage(), "" if measure.span else " points of"
    text = f"Going first is worth {cell_text(advantage, difference_kind(measure))}{unit} {measure.name}"
    if advantage.value is None or advantage.low <= 0 <= advantage.high:
        text += ", which is not significant."
    else:
        text += f": an advantage for the {'first' if advantage.value > 0 else 'second'} player."
    return [matrix, both_seats, Paragraph(text)]


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
    notes = ["Tokens, costs and names of models are claimed: a replay cannot prove what a server reported."]
    for player, log in models.items():
        name = one_line(player)
        if log.picodollars is None:
            notes.append(f"The cost of {name} is unknown, since its model has no price.")
        if log.assumed:
            cost = "each is counted at its highest possible cost"
            if log.picodollars is not None and log.likely != log.at_worst:
                likely, at_worst = dollars(log.likely), dollars(log.at_worst)
                cost = f"{likely} is assumed for them, but the budget counts their maximum, {at_worst}"
            notes.append(f"Assumed: {_counted(log.assumed, 'call')} by {name} reported no cost; {cost}.")
        if log.beyond:
            notes.append(
                f"{_counted(log.beyond, 'call')} by {name} used more than the budget reserved, which no budget can "
                f"prevent. The first: {log.first_beyond}."
            )
        if len(log.ids) > 1:
            models_named = " and ".join(f"{one_line(model)} ({count:,})" for model, count in log.ids.items())
            notes.append(f"Several models answered for {name}: {models_named}. Its results are a mixture.")
        if log.deadlines:
            notes.append(f"Not repeatable: {_counted(log.deadlines, 'call')} by {name} hit the deadline.")
    links = [f"bots/{names.index(name)}.html" for name in models]
    return ResultTable("models", "Model players", model_columns(models, [*models]), notes).with_links(links)


def model_columns(models: Mapping[str, PlayerLog], shown: Sequence[str]) -> list[Column]:
    """Return the columns of the table of model players, with rows for the `shown` ones."""
    logs = [models[name] for name in shown]
    causes = sorted({outcome for log in models.values() for outcome in log.outcomes if ":" in outcome})
    fallbacks = [fallback_share(log.outcomes) if log.decisions else None for log in logs]
    likely = [None if log.picodollars is None else log.likely for log in logs]
    saved = [None if log.picodollars is None else log.saved for log in logs]
    costs = [log.picodollars // log.games if log.picodollars is not None and log.games else None for log in logs]
    columns = [
        Column("player", "model player", "player", shown),
        Column("decisions", "decisions", "count", [log.decisions for log in logs]),
        Column("fallback", "fallback %", "rate", fallbacks),
        *(
            Column(
                cause,
                f"{cause} %",
                "rate",
                [log.outcomes.get(cause, 0) / log.decisions if log.decisions else None for log in logs],
            )
            for cause in causes
        ),
        Column("reasks", "re-asks", "count", [log.reasks for log in logs]),
        Column("calls", "calls", "count", [log.calls for log in logs]),
        Column("cached", "cache %", "rate", [log.cached / log.attempts if log.attempts else None for log in logs]),
        *(
            Column(f"tokens_{kind}", title, "count", [log.tokens[kind] for log in logs], detail=title in _DETAIL_TITLES)
            for kind, title in zip(TOKENS, _TOKENS, strict=True)
        ),
        Column("cost", "cost", "dollars", [log.picodollars for log in logs]),
        Column("billed", "billed", "dollars", [log.billed for log in logs]),
        Column("assumed", "assumed", "dollars", likely),
        Column("cost_a_game", "cost per game", "dollars", costs),
        Column("saved", "saved by the provider's cache", "dollars", saved),
    ]
    if any(log.has_other_names for log in models.values()):
        columns.append(Column("ids", "answered by", "text", [", ".join(log.ids) or None for log in logs], detail=True))
    return columns


def decisions_table(source: Run, name: str, key: str) -> ResultTable:
    """Return a table of the outcomes of a player's decisions, by node."""
    rows = source.db.read(f"SELECT d.node, d.outcome, sum(d.answer = 1), count(*) {OF_PLAYER} GROUP BY 1, 2", (name,))
    outcomes = sorted({outcome for _, outcome, _, _ in rows}, key=lambda outcome: (":" in outcome, outcome))
    nodes = sorted({node for node, *_ in rows})
    ended = {node: {outcome: count for at, outcome, _, count in rows if at == node} for node in nodes}
    totals = {node: sum(ended[node].values()) for node in nodes}
    yes = {
        node: sum(row[2] for row in rows if row[0] == node) / totals[node]
        for node in nodes
        if isinstance(source.game.node(node).answer, Bool)
    }
    columns = [
        Column("question", "question", "text", [source.game.words.short_question(node) for node in nodes]),
        Column("node", "node", "text", nodes),
        Column("decisions", "decisions", "count", [totals[node] for node in nodes]),
        Column("yes", "yes %", "rate", [yes.get(node) for node in nodes]),
        *(Column(outcome, outcome, "count", [ended[node].get(outcome, 0) for node in nodes]) for outcome in outcomes),
    ]
    return ResultTable(f"{key}-decisions", "Decisions by node and outcome", columns)


def attempts_table(source: Run, name: str, key: str) -> ResultTable:
    """Return a table of where a player's replies came from, and why replies are missing."""
    rows = source.db.read(
        f"SELECT a.origin, coalesce(a.cause, 'reply'), sum(a.attempt > 0), count(*) {_OF} GROUP BY 1, 2 ORDER BY 1, 2",
        (name,),
    )
    columns = [
        Column("origin", "origin", "text", [origin for origin, _, _, _ in rows]),
        Column("ended", "ended with", "text", [cause for _, cause, _, _ in rows]),
        Column("reasks", "re-asks", "count", [reasks for _, _, reasks, _ in rows]),
        Column("attempts", "attempts", "count", [attempts for _, _, _, attempts in rows]),
    ]
    return ResultTable(f"{key}-attempts", "Attempts by origin and result", columns)


def use_table(source: Run, name: str, key: str) -> ResultTable:
    """Return a table of tokens, latency and cost per call: median, 90th percentile and maximum."""
    read = source.db.read
    received = "SELECT seconds FROM tries WHERE player = ? AND state = 'received' AND seconds IS NOT NULL"
    tokens = read(f"SELECT a.input, a.output {_OF} AND a.input IS NOT NULL AND a.output IS NOT NULL", (name,))
    priced = "SELECT coalesce(likely, picodollars) FROM tries WHERE player = ? AND picodollars IS NOT NULL"
    seconds, costs = read(received, (name,)), read(priced, (name,))
    columns = [
        Column("which", "calls", "text", ["median", "90th percentile", "maximum"]),
        Column("seconds", "seconds until the reply", "seconds", _quantiles([row[0] for row in seconds])),
        Column("input", "tokens in", "count", _quantiles([row[0] for row in tokens])),
        Column("output", "tokens out", "count", _quantiles([row[1] for row in tokens])),
        Column("cost", "cost, $", "price", _quantiles([row[0] / PICO for row in costs])),
    ]
    return ResultTable(f"{key}-use", "Time, tokens and cost per call", columns)


def _quantiles(values: Sequence[float]) -> list[float | None]:
    ordered = sorted(values)
    return [ordered[ceil(share * len(ordered)) - 1] if ordered else None for share in (0.5, 0.9, 1.0)]
