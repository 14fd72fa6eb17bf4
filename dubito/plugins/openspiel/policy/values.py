"""What tables are worth against each other, what can be won of one, and where it loses: exactly, over a whole tree.

`tables` is a table for each seat. The definitions are OpenSpiel's, and the tests compare with it.

What rows that nobody stated could change: a fallback filled them, and any other probabilities might stand there.
"""

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Final

from dubito.plugins.openspiel.policy.tree import InfoState, PolicyTable, Row, Tree, TreeNode, seat_tables


def expected_values(tree: Tree, tables: Sequence[PolicyTable]) -> list[float]:
    """By seat: its mean return."""
    values: list[Sequence[float]] = [()] * len(tree.nodes)
    for number in range(len(tree.nodes) - 1, -1, -1):
        node = tree.nodes[number]
        if node.returns:
            values[number] = node.returns
            continue
        weights = _weights(node, tables)
        values[number] = [
            sum(weight * values[child][seat] for weight, child in zip(weights, node.children, strict=True))
            for seat in range(tree.players)
        ]
    return [*values[0]]


@dataclass(frozen=True)
class Response:
    """The best that a seat can do against the tables of the others."""

    value: float
    choices: dict[str, int]  # by state: the action, the lowest of equals
    worth: dict[str, list[float]]  # by state and legal action: the return it leads to, times the others' reach


def best_response(
    tree: Tree, seat: int, tables: Sequence[PolicyTable], free: Container[str] | None = None, sign: int = 1
) -> Response:
    """The best response of a seat; it chooses in the `free` states only (None: in all its own) and follows its table in
    the others. With `sign` -1 it is the worst that it can do.
    """
    return _Responder(tree, seat, tables, free, sign).response()


class _Responder:
    """Chooses per information state; the histories in it weigh as much as chance and the others make them probable.

    With perfect recall the seat's own reach is the same for all of these, and need not be known.
    """

    def __init__(
        self, tree: Tree, seat: int, tables: Sequence[PolicyTable], free: Container[str] | None, sign: int
    ) -> None:
        self._tree, self._seat, self._tables, self._free, self._sign = tree, seat, tables, free, sign
        self._reach = others_reach(tree, seat, tables)
        self._values: dict[int, float] = {}
        self._choices: dict[str, int] = {}
        self._worth: dict[str, list[float]] = {}

    def response(self) -> Response:
        value = self._value(0)
        for state in self._tree.states:  # those that its own choices never reach, too
            if state.seat == self._seat:
                self._row(state)
        return Response(value, self._choices, self._worth)

    def _value(self, number: int) -> float:
        if number not in self._values:
            node = self._tree.nodes[number]
            if node.returns:
                value = node.returns[self._seat]
            elif node.state and node.state.seat == self._seat:
                row = self._row(node.state)
                value = sum(
                    row[a] * self._value(c) for a, c in zip(node.state.actions, node.children, strict=True) if row[a]
                )
            else:
                weights = _weights(node, self._tables)
                value = sum(w * self._value(c) for w, c in zip(weights, node.children, strict=True))
            self._values[number] = value
        return self._values[number]

    def _row(self, state: InfoState) -> Row:
        if state.string not in self._worth:
            nodes = self._tree.nodes_of[state.string]
            worth = [
                sum(self._reach[number] * self._value(self._tree.nodes[number].children[place]) for number in nodes)
                for place in range(len(state.actions))
            ]
            self._worth[state.string] = worth
            best = max(range(len(worth)), key=lambda place: self._sign * worth[place])
            self._choices[state.string] = state.actions[best]
        if self._free is not None and state.string not in self._free:
            return self._tables[self._seat][state.string]
        choice = self._choices[state.string]
        return {action: float(action == choice) for action in state.actions}


def others_reach(tree: Tree, seat: int | None, tables: Sequence[PolicyTable]) -> list[float]:
    """By node: how probably chance and the other seats lead there, this seat doing what it takes; None: all of them."""
    reach = [1.0] * len(tree.nodes)
    for number, node in enumerate(tree.nodes):
        own = node.state is not None and node.state.seat == seat
        weights = [1.0] * len(node.children) if own else _weights(node, tables)
        for weight, child in zip(weights, node.children, strict=True):
            reach[child] = reach[number] * weight
    return reach


def gains(tree: Tree, table: PolicyTable) -> list[float]:
    tables = [table] * tree.players
    values = expected_values(tree, tables)
    return [best_response(tree, seat, tables).value - values[seat] for seat in range(tree.players)]


def nash_conv(tree: Tree, table: PolicyTable) -> float:
    return sum(gains(tree, table))


@dataclass(frozen=True, slots=True)
class Loss:
    """What a table loses in one information state."""

    state: InfoState
    loss: float  # a game, in the unit of the returns
    best: int  # the action of the best response, the lowest of equals
    reach: float  # how probably a game comes there


def losses(tree: Tree, table: PolicyTable) -> list[Loss]:
    """Every information state with what the table loses there against itself, the greatest first.

    The loss is the difference between the best response's action and the table's mixture, each followed by the best
    response, times the probability that the table comes there. It is never below 0, and over the states of a seat it
    sums exactly to how much more a best response wins than the table (the performance difference lemma of Kakade and
    Langford, 2002). So the losses of all seats sum to its nash_conv, and no state counts that the table never comes to.
    """
    found, tables = [], [table] * tree.players
    for seat in range(tree.players):
        response = best_response(tree, seat, tables)
        by_others, by_all = others_reach(tree, seat, tables), others_reach(tree, None, tables)
        for state in tree.states:
            if state.seat == seat:
                nodes, worth = tree.nodes_of[state.string], response.worth[state.string]
                reach = sum(by_all[number] for number in nodes)
                might = sum(by_others[number] for number in nodes)
                row = table[state.string]
                short = max(worth) - sum(row[a] * w for a, w in zip(state.actions, worth, strict=True))
                own = reach / might if might else 0.0
                found.append(Loss(state, max(0.0, own * short), response.choices[state.string], reach))
    return sorted(found, key=lambda loss: -loss.loss)


def _weights(node: TreeNode, tables: Sequence[PolicyTable]) -> Sequence[float]:
    if node.state is None:
        return node.chances
    row = tables[node.state.seat][node.state.string]
    return [row[action] for action in node.state.actions]


_WORK: Final = 500_000  # nodes that may be gone through for an exact bound: seconds


@dataclass(frozen=True, slots=True)
class MeasureBounds:
    """The least and the most that a measure could be."""

    low: float
    high: float
    exact: bool = True  # whether `high` is reached by some rows; otherwise it is only certain that it is not passed


def value_bounds(tree: Tree, seat: int, table: PolicyTable, others: PolicyTable, free: Sequence[str]) -> MeasureBounds:
    """The mean return of a table in a seat, over all probabilities that could stand in its `free` rows.

    Both ends are exact: a best and a worst response that choose in these states alone. The others' table stays as it
    is.
    """
    tables, states = seat_tables(tree, seat, table, others), frozenset(free)
    low, high = (best_response(tree, seat, tables, states, sign).value for sign in (-1, 1))
    return MeasureBounds(low, high)


def nash_conv_bounds(tree: Tree, table: PolicyTable, free: Sequence[str]) -> MeasureBounds:
    """The nash_conv of a table, over all probabilities that could stand in its `free` rows.

    The upper end is exact where that is cheap: nash_conv is convex in every single row, so that it is highest where
    each of these rows has one certain action, and all such tables are tried. Where they are too many, the upper end is
    what responders who saw all cards and chose the free rows too would win. The lower end is 0 or, in a two-player
    game of constant sum, what the best responses to the table win at least, whatever stands in these rows.
    """
    free_states = [state for state in tree.states if state.string in set(free)]
    base = nash_conv(tree, table)
    if not free_states:
        return MeasureBounds(base, base)
    two = tree.players == 2 and tree.constant_sum is not None
    # Then it is a sum of what each seat's rows let the other win, and either seat's can be tried alone.
    groups = [[s for s in free_states if s.seat == seat] for seat in (0, 1)] if two else [free_states]
    low = max(0.0, _certain(tree, table, frozenset(free))) if two else 0.0
    if sum(prod(len(s.actions) for s in group) for group in groups) * len(tree.nodes) > _WORK:
        return MeasureBounds(low, max(base, _with_insight(tree, table, frozenset(free))), exact=False)
    tops = (max(nash_conv(tree, pure) for pure in _pure(table, group)) for group in groups)
    return MeasureBounds(low, base + sum(top - base for top in tops))


def _pure(table: PolicyTable, states: Sequence[InfoState]) -> Iterator[PolicyTable]:
    for choice in product(*(state.actions for state in states)):
        rows = {s.string: {a: float(a == c) for a in s.actions} for s, c in zip(states, choice, strict=True)}
        yield {**table, **rows}


def _certain(tree: Tree, table: PolicyTable, free: frozenset[str]) -> float:
    """Of two players: what the best responses to the table win together when the free rows do most against them."""
    won = 0.0
    for seat in (0, 1):
        choices = best_response(tree, seat, [table, table]).choices
        response = {
            s.string: {a: float(a == choices[s.string]) for a in s.actions} for s in tree.states if s.seat == seat
        }
        won -= best_response(tree, 1 - seat, seat_tables(tree, seat, response, table), free).value
    assert tree.constant_sum is not None
    return won + tree.constant_sum


def _with_insight(tree: Tree, table: PolicyTable, free: frozenset[str]) -> float:
    """More than nash_conv can be: each seat's best with all cards open, less what the seats have together."""
    most = sum(_open(tree, table, free, seat) for seat in range(tree.players))
    if tree.constant_sum is not None:
        return most - tree.constant_sum
    return most - sum(_open(tree, table, free, seat, least=True) for seat in range(tree.players))


def _open(tree: Tree, table: PolicyTable, free: frozenset[str], seat: int, least: bool = False) -> float:
    """The return of a seat that sees all and chooses in its own and in the free states; the least: with its own as they
    are, and the free ones against it.
    """
    values = [0.0] * len(tree.nodes)
    for number in range(len(tree.nodes) - 1, -1, -1):
        node = tree.nodes[number]
        if node.returns:
            values[number] = node.returns[seat]
            continue
        after = [values[child] for child in node.children]
        if node.state is None:
            values[number] = sum(chance * value for chance, value in zip(node.chances, after, strict=True))
        elif node.state.string in free or (node.state.seat == seat and not least):
            values[number] = min(after) if least else max(after)
        else:
            row = table[node.state.string]
            values[number] = sum(row[a] * value for a, value in zip(node.state.actions, after, strict=True))
    return values[0]
