"""Correct the results of a run's contenders for luck, in a small OpenSpiel game (see `luck.py`).

Games are replayed to obtain each seat's decisions. Opponents state their probabilities, which are tested (see
`chances.py`).
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean, variance
from typing import Final, NamedTuple

from pydantic import Field

from dubito.errors import UsageError, one_line
from dubito.experiment.compare import Comparison
from dubito.experiment.lies import replay_moves
from dubito.experiment.stored import Run
from dubito.game import Results
from dubito.game.table import Entrant
from dubito.plugins.openspiel.game import OpenSpielGame
from dubito.plugins.openspiel.policy.chances import ChancesTest
from dubito.plugins.openspiel.policy.luck import LuckyGame, OwnDecision, corrected_returns
from dubito.plugins.openspiel.policy.small import small_game, states_chances
from dubito.plugins.openspiel.policy.stated_policy import read_bot_policy
from dubito.plugins.openspiel.policy.tree import PolicyTable, Tree, uniform
from dubito.report.documents import DocumentPart, Interval, part_of
from dubito.report.tables import Column, ComparisonPart, Paragraph, ResultTable
from dubito.stats.rates import Rate, rule_of_three, student_quantile

_MAX_GAMES: Final = 10_000  # maximum number of games, since each is replayed
_MIN_DEALS: Final = 10  # minimum number of deals for an interval
_ROUNDING: Final = 1e-12  # smaller variances count as 0
_ByDeal = Mapping[int, float]


class _Contender(NamedTuple):
    games: int
    raw: _ByDeal
    corrected: _ByDeal
    misstated: Sequence[str]


class CorrectedResult(DocumentPart):
    """A row of `less_luck` in `dubito compare --json`."""

    name: str
    against: str = Field(description="the other contender; empty if there is only one")
    games: int
    raw: Interval
    corrected: Interval
    times: float | None = Field(
        description="how many times as many games the raw mean would need for the same precision"
    )
    misstated: list[str] = Field(description="opponents that do not play as they state, which prevents the correction")


@dataclass(frozen=True, slots=True)
class LessLuck:
    """A contender's mean return, raw and corrected for luck, or its difference from another contender's."""

    name: str
    against: str  # the other contender; empty if there is only one
    games: int
    raw: Rate
    corrected: Rate
    times: float | None  # how many times as many games the raw mean would need; None if unknown
    misstated: Sequence[str] = ()  # opponents that do not play as they state, which prevents the correction


def luck_corrected_rows(runs: Sequence[Run], comparison: Comparison) -> list[LessLuck]:
    """Return one row per contender whose opponents all state how they play, then one per pair of them.

    The list is empty if the game's tree is too large to enumerate.
    """
    contenders, by_name = iter(comparison.contenders), dict[str, _Contender]()
    for run in runs:
        known = _Known.of(run)
        for player in run.planned.contenders:
            name = next(contenders).name
            if known and (games := known.games(run.planned.players.index(player))):
                raw = _average_by_deal(games, [game.came_to for game in games])
                corrected = _average_by_deal(games, known.correct_scores(games))
                by_name[name] = _Contender(len(games), raw, corrected, known.misstated)
    least, most = comparison.results.measures[0].span or (0.0, 1.0)
    rows = [_less_luck(name, "", contender, most - least) for name, contender in by_name.items()]
    return rows + [
        _pair(one, other, by_name[one], by_name[other], most - least) for one, other in combinations(by_name, 2)
    ]


def luck_corrected_part(runs: Sequence[Run], comparison: Comparison) -> ComparisonPart:
    """Return the section of `dubito compare` with these rows."""
    rows = luck_corrected_rows(runs, comparison)
    return ComparisonPart(
        "less_luck", [part_of(CorrectedResult, row) for row in rows], _blocks(rows, comparison.results)
    )


def _blocks(rows: Sequence[LessLuck], results: Results) -> list[ResultTable | Paragraph]:
    """Return a table of raw and corrected results, and a warning for each opponent that does not play as it states."""
    if not rows:
        return []
    what = "corrected for chance and for the moves of opponents with known strategies"
    title = (
        f"Less luck: {results.measures[0].name} per game, raw and {what}; games saved: how many more the raw mean needs"
    )
    saved = [None if one.times is None else round(one.games * (one.times - 1)) for one in rows]
    columns = [
        Column("contender", "contender", "player", [one.name for one in rows]),
        Column("against", "against", "player", [one.against or None for one in rows]),
        Column("games", "games", "count", [one.games for one in rows]),
        Column("raw", "raw", "decimal", [one.raw for one in rows]),
        Column("corrected", "corrected", "decimal", [one.corrected for one in rows]),
        Column(
            "times", "times fewer games", "text", [None if one.times is None else f"{one.times:,.1f}" for one in rows]
        ),
        Column("saved", "games saved", "count", saved),
    ]
    misstated = [*dict.fromkeys(name for one in rows for name in one.misstated)]
    warnings = [f"{one_line(name)} does not play as it states, so its results are not corrected." for name in misstated]
    return [ResultTable("less-luck", title, columns), *(Paragraph(one, warning=True) for one in warnings)]


class _Known:
    """A run of a small game, with tables of the players that state their probabilities."""

    def __init__(self, run: Run, tree: Tree) -> None:
        self._run, self._tree = run, tree
        states, small = tree.states, small_game(run.game, run.game.rules())
        self._tables: dict[int, PolicyTable] = {}
        self._tests: defaultdict[int, ChancesTest] = defaultdict(ChancesTest)  # by opponent
        for number, player in enumerate(run.experiment.players):
            cls = run.registry.find(player.bot).cls
            if states_chances(cls):
                self._tables[number] = read_bot_policy(
                    Entrant(player.name, cls, player.settings), small, states, 1, 0
                ).rows

    @classmethod
    def of(cls, run: Run) -> "_Known | None":
        """Return None if the game's tree cannot be enumerated, or a bot has changed since it played."""
        engine = run.game.engine if isinstance(run.game, OpenSpielGame) else None
        try:
            return cls(run, Tree(engine)) if engine is not None and run.has_same_bots else None
        except UsageError:
            return None

    def games(self, player: int) -> list[LuckyGame]:
        """Return a contender's games, or none if an opponent failed or does not state how it plays."""
        experiment, games, failed = self._run.experiment, list[LuckyGame](), False
        for number in experiment.game_numbers[:_MAX_GAMES]:
            outcome = self._run.outcome_of(number)
            seat = outcome.contender_seat
            if seat is None or outcome.seats[seat] != player:
                continue
            others = [place for place in range(len(outcome.seats)) if place != seat]
            if any(outcome.seats[place] not in self._tables for place in others):
                return []
            if any(outcome.counts[place][-1] for place in others):
                failed = True
                continue
            measure, measured = self._run.game.results.measures[0], outcome.measure_seats(self._run.game.results)
            least, most = measure.span or (0.0, 1.0)
            came_to = least + measured[seat][0] / measure.scale * (most - least)
            deal, place = divmod(number, experiment.games_per_deal)
            decisions = self._decisions(number)
            # Use only one contender's games, because opponents repeat their draws on the same deal with another
            # contender.
            if place < experiment.contender_seats:
                self._test_opponents(outcome.seats, seat, decisions)
            own = tuple(decision for at, decision in decisions if at == seat)
            games.append(LuckyGame(deal, seat, tuple(outcome.seats), came_to, own))
        return [] if failed else games

    def _decisions(self, number: int) -> list[tuple[int, OwnDecision]]:
        """Return the decisions of a game, each with its seat."""
        decisions = []
        for state, output in replay_moves(self._run, number):
            view = state.view()
            action = next(action for action, name in view.names.items() if name == output)
            decisions.append((state.seat, (view.sees, action)))
        return decisions

    def _test_opponents(self, players: Sequence[int], seat: int, decisions: Sequence[tuple[int, OwnDecision]]) -> None:
        for at, (state, action) in decisions:
            if at != seat:
                self._tests[players[at]].add(state, action, self._tables[players[at]][state])

    @property
    def misstated(self) -> list[str]:
        names = self._run.experiment.names
        return [names[player] for player, test in sorted(self._tests.items()) if test.refuted]

    def correct_scores(self, games: Sequence[LuckyGame]) -> list[float]:
        return corrected_returns(self._tree, games, self._policy_of_others, uniform(self._tree))

    def _policy_of_others(self, game: LuckyGame) -> PolicyTable:
        tables = {place: self._tables[player] for place, player in enumerate(game.players) if place != game.seat}
        return {state.string: tables[state.seat][state.string] for state in self._tree.states if state.seat in tables}


def _average_by_deal(games: Sequence[LuckyGame], values: Sequence[float]) -> _ByDeal:
    """Return the mean over each deal's games, because games of a deal are not independent."""
    by_deal: dict[int, list[float]] = {}
    for game, value in zip(games, values, strict=True):
        by_deal.setdefault(game.deal, []).append(value)
    return {deal: fmean(of_deal) for deal, of_deal in by_deal.items()}


def _pair(one: str, other: str, first: _Contender, second: _Contender, width: float) -> LessLuck:
    """Return the difference between two contenders on the deals that both played."""
    raw, less = (
        {deal: ours[deal] - theirs[deal] for deal in ours.keys() & theirs.keys()}
        for ours, theirs in ((first.raw, second.raw), (first.corrected, second.corrected))
    )
    misstated = [*dict.fromkeys([*first.misstated, *second.misstated])]
    return _less_luck(one, other, _Contender(min(first.games, second.games), raw, less, misstated), width)


def _less_luck(name: str, against: str, contender: _Contender, width: float) -> LessLuck:
    games, raw, less, misstated = contender
    if misstated:
        return LessLuck(name, against, games, _mean(raw, width), Rate(None), None, misstated)
    spreads = [variance(values.values()) if len(values) > 1 else 0.0 for values in (raw, less)]
    times = spreads[0] / spreads[1] if min(spreads) > _ROUNDING and len(raw) >= _MIN_DEALS else None
    return LessLuck(name, against, games, _mean(raw, width), _mean(less, width), times)


def _mean(values: _ByDeal, width: float) -> Rate:
    """Return the mean over deals with Student's interval.

    If all values are the same, the interval follows the rule of three. `width` is that of the results' range.
    """
    n = len(values)
    if n < _MIN_DEALS:
        return Rate(None)
    mean, spread = fmean(values.values()), variance(values.values())
    half = student_quantile(n - 1) * math.sqrt(spread / n) if spread > _ROUNDING else width * rule_of_three(n)
    return Rate(mean, mean - half, mean + half)
