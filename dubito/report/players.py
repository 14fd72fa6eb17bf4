"""The overview of a run's players: the chart of their scores and the table of their figures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from dubito.experiment.lies import LieCounts
from dubito.experiment.stored import Run, list_contenders
from dubito.game import Measure
from dubito.report.run_tables import chance_level_columns, rate_columns
from dubito.report.tables import (
    Chart,
    Column,
    ColumnKind,
    ResultTable,
    ScoreChart,
    ScoreChartRow,
    cell_text,
    column_kind,
    difference_kind,
    measure_unit,
    points,
)
from dubito.stats.ranking import ContenderRow, RankingRow, contender_ranking
from dubito.stats.relation import Relation

_MAX_CHARTED: Final = 12  # maximum number of contenders, and of opponents; the table shows all
_NOTES: Final = (
    "A rank is 1 plus the number of players that are significantly better, unless fallbacks could explain the "
    "difference; equal ranks are ties. Shares of fewer than ten cases are shown as counts."
)


@dataclass(frozen=True)
class RunPlayers:
    """The players of a run. If several contenders are compared, the other players are their opponents."""

    source: Run

    @cached_property
    def compared(self) -> Sequence[ContenderRow | RankingRow]:
        """The contenders' rows if several are compared, or else all players' rows."""
        source = self.source
        if not source.relation.paired:
            return source.rows
        contenders = list_contenders(source.planned)
        return contender_ranking(source.tally, contenders, source.game.results)

    @cached_property
    def opponents(self) -> Sequence[RankingRow]:
        """The rows of the players that are not compared."""
        relation = self.source.relation
        return [row for row in self.source.rows if row.name not in relation.names] if relation.paired else []

    @property
    def names(self) -> list[str]:
        return [_player_name(row) for row in (*self.compared, *self.opponents)]

    def chart(self) -> Chart:
        """Return a chart of the compared players' first measure, for preview pictures."""
        source, first = self.source, self.source.game.results.measures[0]
        return Chart(
            "intervals",
            f"{first.name} of each player, with 95 % confidence interval",
            first.heading,
            [source.label(_player_name(row)) for row in self.compared],
            [points(first.name, [row.rates[first.key] for row in self.compared], measure_unit(first))],
        )

    def score_chart(self) -> ScoreChart:
        results = self.source.game.results
        first = results.measures[0]
        compared = [row for row in self.compared if row.rates[first.key].value is not None]
        opponents = [row for row in self.opponents if row.rates[first.key].value is not None]
        rows = [self._score_row(row) for row in compared[:_MAX_CHARTED]]
        rows += [self._score_row(row, is_opponent=True) for row in opponents[:_MAX_CHARTED]]
        chance, note = self._chance_line(compared)
        left_out = len(compared) + len(opponents) - len(rows)
        return draw_scores(first, rows, chance=chance, note=note, left_out=left_out)

    def _chance_line(self, compared: Sequence[ContenderRow | RankingRow]) -> tuple[float | None, str]:
        """Return where chance stands, and what it is: the game's random player if it was measured, or equal players."""
        source, first = self.source, self.source.game.results.measures[0]
        kind = column_kind(first)
        for row in compared:
            if source.planned.players[source.names.index(_player_name(row))].bot == source.game.chance_bot:
                return row.rates[first.key].value, f"dashed line: {_player_name(row)}, which decides at random"
        if line := source.chance:
            level = cell_text(line.rates[first.key], kind)
            return line.level(
                first.key
            ), f"dashed line: {line.bot}, which decides at random, in the same seats: {level}"
        chances = {row.equal_share.get(first.key) for row in compared}
        chance = chances.pop() if len(chances) == 1 else None
        return chance, "" if chance is None else f"dashed line: chance level, {cell_text(chance, kind)}"

    def _score_row(self, row: ContenderRow | RankingRow, is_opponent: bool = False) -> ScoreChartRow:
        source, name = self.source, _player_name(row)
        path, first = f"bots/{source.names.index(name)}.html", source.game.results.measures[0]
        rate, kind = row.rates[first.key], source.kinds[name]
        relation = source.relation
        if is_opponent or name not in relation.names:
            return ScoreChartRow(name, kind, path, rate, is_opponent=is_opponent)
        return ScoreChartRow(name, kind, path, rate, *compare_with_first(relation, name, difference_kind(first)))

    def table(self, lies: LieCounts | None) -> ResultTable:
        """Return the table of all players. Lies are counted in all of a player's seats."""
        source, results = self.source, self.source.game.results
        rows = [*self.compared, *self.opponents]
        names = [_player_name(row) for row in rows]
        relation, seats = source.relation, source.planned.contender_seats
        compared = relation.names if relation.paired else source.contenders
        roles = ["contender" if name in compared else "opponent" if compared else "player" for name in names]
        games = [row.deals * seats if isinstance(row, ContenderRow) else row.games for row in rows]
        players = [source.names.index(name) for name in names]
        links = [f"bots/{player}.html" for player in players]
        columns = [
            Column("player", "player", "player", names, links),
            Column("role", "role", "text", roles, only_in_files=True),
            Column("rank", "rank", "count", [relation.rank(name) for name in names]),
            Column("games", "games", "count", games),
            *(
                replace(rate, only_in_files=not any(row.rates[rate.key].value for row in rows))
                for rate in rate_columns(results, rows)
            ),
            *(replace(share, only_in_files=True) for share in chance_level_columns(results, rows)),
        ]
        if lies is not None:
            lie = results.habit(results.lies).name
            chosen = [lies.share(player, "chosen") for player in players]
            columns.append(Column("chosen", f"voluntary {lie} %", "rate", chosen))
            if source.game.has_lie_marks:
                hits = [lies.share(player, "hits") for player in players]
                columns.append(Column("hits", f"{lie} it catches %", "rate", hits))
        if source.models:
            logs = [source.models.get(name) for name in names]
            tokens = [None if log is None else log.tokens["input"] + log.tokens["output"] for log in logs]
            columns.append(Column("tokens", "tokens", "count", tokens))
            columns.append(
                Column("cost", "cost", "dollars", [None if log is None else log.picodollars for log in logs])
            )
        headings = ["Opponents, in all their seats" if isinstance(row, RankingRow) else _CONTENDERS for row in rows]
        return ResultTable("players", "Players", columns, [_NOTES], headings=headings if relation.paired else ())


def compare_with_first(relation: Relation, name: str, kind: ColumnKind) -> tuple[str, str, bool]:
    """Return what a chart shows beside a player: the verdict, the difference, and whether the player is worse."""
    if name == relation.names[0]:
        return "", "", False
    pair = relation.pair(relation.names.index(name), 0)
    text = f"undecided because of {relation.failures}" if pair.is_open else pair.withheld or pair.outcome
    return _COMPARED_WITH_FIRST.get(text, text), cell_text(pair.difference, kind), pair.outcome == "worse"


def draw_scores(
    first: Measure,
    rows: Sequence[ScoreChartRow],
    *,
    chance: float | None = None,
    note: str = "",
    left_out: int = 0,
) -> ScoreChart:
    """Return a chart of a measure, with an axis that fits the rows."""
    shown = [end for row in rows for end in (row.rate.low, row.rate.high)] + [0.0 if chance is None else chance]
    ends = (min(shown), max(shown)) if first.span else (0.0, 1.0)
    title = f"{first.name}, with 95 % confidence interval"
    return ScoreChart(title, note, rows, column_kind(first), ends, chance, left_out)


_COMPARED_WITH_FIRST: Final[Mapping[str, str]] = {
    "better": "significantly better",
    "worse": "significantly worse",
    "identical": "played identically",
}
_CONTENDERS: Final = "Contenders, in the same seats of the same deals"


def _player_name(row: ContenderRow | RankingRow) -> str:
    return row.contender.name if isinstance(row, ContenderRow) else row.name
