"""What rows that nobody stated could change: a fallback filled them, and any other probabilities might stand there."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Final

from dubito.policy.policy_table import PolicyTable, seated
from dubito.policy.tree import InfoState, Tree
from dubito.policy.values import best_response, nash_conv

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
    tables, states = seated(tree, seat, table, others), frozenset(free)
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
    """The table with every choice of one certain action in these states."""
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
        won -= best_response(tree, 1 - seat, seated(tree, seat, response, table), free).value
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
