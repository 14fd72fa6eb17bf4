"""Compute exact values, best responses and losses of tables over a whole tree.

`tables` contains one table per seat. The definitions are OpenSpiel's, and tests compare the results. Bounds show what
unstated rows could change. These rows were filled by a fallback, but could have any probabilities.
"""

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Final

from dubito.plugins.openspiel.policy.tree import InfoState, PolicyTable, Row, Tree, TreeNode, seat_tables


def expected_values(tree: Tree, tables: Sequence[PolicyTable]) -> list[float]:
    """Return each seat's mean return."""
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
    """A seat's best response to the other seats' tables."""

    value: float
    choices: dict[str, int]  # best action by state, the lowest if several are equal
    worth: dict[str, list[float]]  # return by state and legal action, times the others' reach


def best_response(
    tree: Tree, seat: int, tables: Sequence[PolicyTable], free: Container[str] | None = None, sign: int = 1
) -> Response:
    """Return a seat's best response, or the worst if `sign` is -1.

    It only chooses in the `free` states (by default all of its own) and follows its table elsewhere.
    """
    return _Responder(tree, seat, tables, free, sign).response()


class _Responder:
    """Chooses per information state, weighting histories by the reach of chance and the other seats.

    With perfect recall the seat's own reach is the same for all of them, so it is not needed.
    """

    def __init__(
        self, tree: Tree, seat: int, tables: Sequence[PolicyTable], free: Container[str] | None, sign: int
    ) -> None:
        self._tree, self._seat, self._tables, self._free, self._sign = tree, seat, tables, free, sign
        self._reach = reach_of_others(tree, seat, tables)
        self._values: dict[int, float] = {}
        self._choices: dict[str, int] = {}
        self._worth: dict[str, list[float]] = {}

    def response(self) -> Response:
        value = self._value(0)
        for state in self._tree.states:  # including states that its own choices never reach
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


def reach_of_others(tree: Tree, seat: int | None, tables: Sequence[PolicyTable]) -> list[float]:
    """Return each node's reach probability of chance and the other seats, or of all seats if `seat` is None."""
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
    """How much a table loses in an information state."""

    state: InfoState
    loss: float  # a game, in the unit of the returns
    best: int  # the best response's action, the lowest if several are equal
    reach: float  # probability of reaching the state


def losses(tree: Tree, table: PolicyTable) -> list[Loss]:
    """Return how much the table loses in every information state, largest loss first.

    The loss is the value of the best response's action minus the table's mixture, each followed by the best response,
    times the probability that the table reaches the state. It is never negative. A seat's losses sum to how much more a
    best response wins than the table (the performance difference lemma of Kakade and Langford, 2002), so the losses of
    all seats sum to its nash_conv. States that the table never reaches have no loss.
    """
    losses_by_state, tables = [], [table] * tree.players
    for seat in range(tree.players):
        response = best_response(tree, seat, tables)
        by_others, by_all = reach_of_others(tree, seat, tables), reach_of_others(tree, None, tables)
        for state in tree.states:
            if state.seat == seat:
                nodes, worth = tree.nodes_of[state.string], response.worth[state.string]
                reach = sum(by_all[number] for number in nodes)
                might = sum(by_others[number] for number in nodes)
                row = table[state.string]
                short = max(worth) - sum(row[a] * w for a, w in zip(state.actions, worth, strict=True))
                own = reach / might if might else 0.0
                losses_by_state.append(Loss(state, max(0.0, own * short), response.choices[state.string], reach))
    return sorted(losses_by_state, key=lambda loss: -loss.loss)


def _weights(node: TreeNode, tables: Sequence[PolicyTable]) -> Sequence[float]:
    if node.state is None:
        return node.chances
    row = tables[node.state.seat][node.state.string]
    return [row[action] for action in node.state.actions]


_MAX_NODES: Final = 500_000  # maximum number of nodes to visit for an exact bound, which takes seconds


@dataclass(frozen=True, slots=True)
class MeasureBounds:
    """The lowest and the highest possible value of a measure."""

    low: float
    high: float
    exact: bool = True  # whether some rows reach `high`, which otherwise is only an upper bound


def value_bounds(tree: Tree, seat: int, table: PolicyTable, others: PolicyTable, free: Sequence[str]) -> MeasureBounds:
    """Bound a table's mean return in a seat, over all probabilities in its `free` rows.

    Both bounds are exact, since they are a best and a worst response that choose only in these states. The other seats'
    table is fixed.
    """
    tables, states = seat_tables(tree, seat, table, others), frozenset(free)
    low, high = (best_response(tree, seat, tables, states, sign).value for sign in (-1, 1))
    return MeasureBounds(low, high)


def nash_conv_bounds(tree: Tree, table: PolicyTable, free: Sequence[str]) -> MeasureBounds:
    """Bound a table's nash_conv over all probabilities in its `free` rows.

    The upper bound is exact if that is cheap: nash_conv is convex in each row, so its maximum has a certain action in
    each free row, and all such tables are tried. If there are too many, the upper bound is what responders that see all
    cards and choose the free rows would win. The lower bound is 0 or, in a two-player constant-sum game, what best
    responses win at least, regardless of the free rows.
    """
    free_states = [state for state in tree.states if state.string in set(free)]
    base = nash_conv(tree, table)
    if not free_states:
        return MeasureBounds(base, base)
    two = tree.players == 2 and tree.constant_sum is not None
    # The value is the sum of what each seat's rows let the other seat win, so each seat can be tried separately.
    groups = [[s for s in free_states if s.seat == seat] for seat in (0, 1)] if two else [free_states]
    low = max(0.0, _certain(tree, table, frozenset(free))) if two else 0.0
    if sum(prod(len(s.actions) for s in group) for group in groups) * len(tree.nodes) > _MAX_NODES:
        return MeasureBounds(low, max(base, _open_card_bound(tree, table, frozenset(free))), exact=False)
    tops = (max(nash_conv(tree, pure) for pure in _pure(table, group)) for group in groups)
    return MeasureBounds(low, base + sum(top - base for top in tops))


def _pure(table: PolicyTable, states: Sequence[InfoState]) -> Iterator[PolicyTable]:
    for choice in product(*(state.actions for state in states)):
        rows = {s.string: {a: float(a == c) for a in s.actions} for s, c in zip(states, choice, strict=True)}
        yield {**table, **rows}


def _certain(tree: Tree, table: PolicyTable, free: frozenset[str]) -> float:
    """Return what two best responses win together if the free rows are the worst for them."""
    won = 0.0
    for seat in (0, 1):
        choices = best_response(tree, seat, [table, table]).choices
        response = {
            s.string: {a: float(a == choices[s.string]) for a in s.actions} for s in tree.states if s.seat == seat
        }
        won -= best_response(tree, 1 - seat, seat_tables(tree, seat, response, table), free).value
    assert tree.constant_sum is not None
    return won + tree.constant_sum


def _open_card_bound(tree: Tree, table: PolicyTable, free: frozenset[str]) -> float:
    """Return an upper bound on nash_conv: each seat's best result with all cards open, summed, minus the total."""
    most = sum(_open(tree, table, free, seat) for seat in range(tree.players))
    if tree.constant_sum is not None:
        return most - tree.constant_sum
    return most - sum(_open(tree, table, free, seat, least=True) for seat in range(tree.players))


def _open(tree: Tree, table: PolicyTable, free: frozenset[str], seat: int, least: bool = False) -> float:
    """Return the value of a seat that sees everything and chooses in its own and the free states.

    If `least` is set, its own rows are fixed and the free rows are chosen against it.
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
