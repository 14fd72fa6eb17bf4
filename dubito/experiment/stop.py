"""Stop a run when the comparison of its contenders is decided, always after the same deal.

The deals are tested in order (`stats/stopping.py`). Hand-written bots play whole chunks, which are cut after the
deciding deal. With models, a deal starts only when all earlier deals have been tested, so that no call is wasted.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from dubito.errors import one_line
from dubito.experiment.experiment import Experiment
from dubito.experiment.play import ChunkResult
from dubito.experiment.stored import Run, list_contenders
from dubito.game import Game, Results
from dubito.stats.ranking import contender_pairs
from dubito.stats.stopping import FIRST_LOOK, PairTest, PairVerdict, StopTest, scale_difference
from dubito.stats.tally import contender_scores, read_tally, sum_deals, unpack_outcome

_DIFFERENT: Final = "significantly different"


class RunDecision:
    """Tests whether the deals played so far decide the run."""

    def __init__(self, experiment: Experiment, results: Results, kept: Iterable[bytes] = ()) -> None:
        """Start a test. `kept` contains the stored games of the first deals."""
        assert experiment.stop is not None  # checked by the callers
        measure, seats = results.measure(results.headline[0]), experiment.contender_seats
        within = scale_difference(experiment.stop.within, measure, seats)
        self.test = StopTest(len(experiment.contenders), within, measure.scale * seats)
        self._experiment, self._results = experiment, results
        for deal in _group_by_deal(iter(kept), experiment.games_per_deal):
            self.add(deal)

    def add(self, deal: Sequence[bytes]) -> None:
        self.test.add(contender_scores([unpack_outcome(row, self._results) for row in deal], self._results))

    def judge(self, piece: tuple[range, ChunkResult]) -> tuple[range, ChunkResult]:
        """Test the next deals. Return the deals up to the deciding one, with the decisions in their tally."""
        numbers, played = piece
        m, before = self._experiment.games_per_deal, self.test.rows()
        for deals in range(1, played.deals + 1):
            self.add(played.outcomes[(deals - 1) * m : deals * m])
            if self.test.decided:
                played = self._first_deals(played, deals)
                break
        for pair, row in self.test.rows().items():
            if pair not in before:
                played.tally.add("decided", pair, row)
        return numbers, played

    def _first_deals(self, played: ChunkResult, deals: int) -> ChunkResult:
        if deals == played.deals:
            return replace(played, decided=True, stopped=False, error=None)
        assert not played.records  # models play no deals beyond a test
        m = self._experiment.games_per_deal
        outcomes = [unpack_outcome(row, self._results) for row in played.outcomes[: deals * m]]
        by_deal = [outcomes[first : first + m] for first in range(0, len(outcomes), m)]
        return ChunkResult(
            played.number,
            deals,
            played.outcomes[: deals * m],
            tally=sum_deals(by_deal, self._results),
            first_fallback=played.first_fallback,
            decided=True,
        )

    def figure(self) -> str:
        """Describe the slowest pair for the progress line."""
        tests = self.test.pairs
        open_pairs = [pair for pair, test in tests.items() if test.verdict is None]
        if not open_pairs:
            return "decided"
        names = [player.name for player in self._experiment.contenders]
        last = min(open_pairs, key=lambda pair: tests[pair].way)
        slowest = describe_standing(PairStanding(names[last[0]], names[last[1]], tests[last]), self._experiment)
        return (
            slowest if len(tests) == 1 else f"{len(tests) - len(open_pairs)} of {len(tests)} pairs decided, {slowest}"
        )


@dataclass(frozen=True, slots=True)
class PairStanding:
    """Two contenders' progress towards a decision."""

    one: str
    other: str
    test: PairTest
    is_open: bool = False  # the test found a difference, but fallbacks may have caused it

    @property
    def verdict(self) -> PairVerdict | None:
        return "undecided" if self.is_open else self.test.verdict


def pair_standings(run: Run) -> list[PairStanding]:
    """Return the standing of every pair in a run with a stop rule, or an empty list for any other run."""
    if run.planned.stop is None:
        return []
    first = run.game.results.headline[0]
    pairs = contender_pairs(run.tally, list_contenders(run.planned), run.game.results)
    left_open = [{pair.one.name, pair.other.name} for pair in pairs if pair.differences[first].is_open]
    standings = []
    for places, test in replay_decision(run).test.pairs.items():
        one, other = (run.contenders[place] for place in places)
        standings.append(PairStanding(one, other, test, test.verdict == "different" and {one, other} in left_open))
    return standings


def replay_decision(run: Run) -> RunDecision:
    return RunDecision(run.planned, run.game.results, run.db.outcomes())


def describe_standing(pair: PairStanding, experiment: Experiment) -> str:
    """Describe a pair: `A - B: 140 deals, 62 % of the way to significantly different`."""
    test, names = pair.test, f"{one_line(pair.one)} - {one_line(pair.other)}"
    assert experiment.stop is not None
    closer = f"probably less than {experiment.stop.within:g} apart"
    if test.verdict is not None:
        verdict = {"different": _DIFFERENT, "within": closer, "undecided": "undecided, given up"}[test.verdict]
        caveat = ", but fallbacks leave the winner open" if pair.is_open else ""
        return f"{names}: {verdict} after {test.deals:,} deals{caveat}"
    if test.deals < FIRST_LOOK:
        return f"{names}: the first test is after {FIRST_LOOK} deals"
    goal = _DIFFERENT if test.goal == "different" else closer
    return f"{names}: {test.deals:,} deals, {100 * test.way:.0f} % of the way to {goal}"


def describe_stop_rule(experiment: Experiment, game: Game) -> str:
    """Describe when a run stops."""
    assert experiment.stop is not None
    measure = game.results.measure(game.results.headline[0])
    unit = measure.name if measure.span else f"points of {measure.name}"
    within = f"{experiment.stop.within:g} {unit}"
    return f"when every pair is {_DIFFERENT} or probably less than {within} apart; at most {experiment.deals:,} deals"


def find_stop_flaw(run: Run) -> str | None:
    """Check that a run stopped after the right deal. Return what is wrong, or None."""
    if run.planned.stop is None:
        return None
    decision, rows = RunDecision(run.planned, run.game.results), run.db.outcomes()
    for deals in _group_by_deal(rows, run.planned.games_per_deal):
        if decision.test.decided:
            return "it continues after every pair was decided"
        decision.add(deals)
    stored = dict(read_tally(run.db, run.game.results).rows("decided"))
    return None if stored == decision.test.rows() else "its stored decisions do not match its games"


def _group_by_deal(rows: Iterator[bytes], games: int) -> Iterator[list[bytes]]:
    while deal := [*islice(rows, games)]:
        yield deal
