"""Exact beliefs in a small game: how probable it is that the last play is a lie, given the other player's strategy.

By Bayes' rule, a history weighs the probability that chance and the other player lead to it. With perfect recall, the
player's own strategy makes no difference.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from dubito.errors import BotError, UsageError
from dubito.experiment.stored import Run
from dubito.game.table import Entrant
from dubito.hooks import StartProgress
from dubito.plugins.openspiel.courses.dubito import CardsCourse
from dubito.plugins.openspiel.policy.small import CourseGame, small_game
from dubito.plugins.openspiel.policy.stated_policy import list_starts, read_bot_policy
from dubito.plugins.openspiel.policy.tree import PolicyTable, Tree
from dubito.plugins.openspiel.policy.values import reach_of_others

_MAX_HISTORIES: Final = 20_000  # in a tree, which take about 10 seconds
_DRAWS: Final = 100  # actions of a bot in each state


def exact_beliefs(tree: Tree, engine: CourseGame, seat: int, others: PolicyTable) -> dict[str, float]:
    """Return a seat's belief that the last play is a lie, by information state.

    Left out are states in which no play can be called a lie, and those that the others' strategy never reaches.
    """
    reach, beliefs = reach_of_others(tree, seat, [others] * tree.players), dict[str, float]()
    truths = dict(_list_truths(tree, engine))
    for state in tree.states:
        nodes = [number for number in tree.nodes_of[state.string] if number in truths]
        total = sum(reach[number] for number in nodes)
        if state.seat == seat and total:
            beliefs[state.string] = sum(reach[number] for number in nodes if truths[number]) / total
    return beliefs


def _list_truths(tree: Tree, engine: CourseGame) -> Iterator[tuple[int, bool]]:
    """Yield the decisions at which a play can be called a lie, each with whether it is one."""
    left = [(0, engine.new_course())]
    while left:
        number, course = left.pop()
        node = tree.nodes[number]
        if node.state and (truth := course.game.truth(course.engine)) is not None:
            yield number, truth
        actions = node.state.actions if node.state else [outcome for outcome, _ in course.outcomes]
        left += [(child, course.child(action)) for child, action in zip(node.children, actions, strict=True)]


class ExactReference:
    """Reference beliefs for the deception sheet: exact, given the strategies of hand-written opponents."""

    name = "the exact posterior"

    def __init__(self, engine: CourseGame, tree: Tree, strategies: Mapping[int, PolicyTable]) -> None:
        self._engine = engine
        self._beliefs = {
            (seat, player): exact_beliefs(tree, engine, seat, table)
            for player, table in strategies.items()
            for seat in range(tree.players)
        }

    @classmethod
    def of(cls, run: Run, start_progress: StartProgress) -> "ExactReference | None":
        """Return None unless the run is a small duel with hand-written bots, whose strategies can be listed."""
        rules = run.game.rules(**run.planned.rules)
        if run.game.seat_range(rules) != (2, 2):
            return None
        try:
            small = small_game(run.game, rules)
            if not isinstance(small.engine, CourseGame):
                return None
            tree = Tree(small.engine, histories=_MAX_HISTORIES)
            bots = {
                number: Entrant(one.name, one.bot.cls, one.spec.settings)
                for number, one in enumerate(run.resolved.players)
                if not one.needs_calls
            }
            if not bots:
                return None
            questions = len(list_starts(small, tree.states)) * _DRAWS
            progress, strategies = start_progress(questions * len(bots)), dict[int, PolicyTable]()
            for number, bot in bots.items():
                strategies[number] = read_bot_policy(bot, small, tree.states, _DRAWS, 0).rows
                progress(questions * len(strategies))
        except (UsageError, BotError):
            return None
        return cls(small.engine, tree, strategies)

    def begin(self, state: Any, seats: Sequence[int]) -> None:
        course = self._engine.new_course()
        assert isinstance(course, CardsCourse)
        course.deal_cards([hand.cards for hand in state.hands])
        self._course, self._seats = course, seats

    def rate(self, state: Any) -> float | None:
        seat = state.seat
        beliefs = self._beliefs.get((seat, self._seats[1 - seat]), {})
        return beliefs.get(self._course.information(seat))

    def see(self, output: Any, events: object) -> None:
        self._course.make(output, deque())
