"""A strategy as a table: for every information state, how probable each legal action is."""

from collections.abc import Mapping, Sequence
from math import isclose
from typing import Final

from dubito.errors import one_line
from dubito.policy.tree import Tree

Row = Mapping[int, float]  # by action id
PolicyTable = Mapping[str, Row]  # by information state string, for all seats
_NEAR: Final = 1e-6  # to 1: what rounding may make of a sum


def uniform(tree: Tree) -> dict[str, dict[int, float]]:
    """The table that has all legal actions equally probable."""
    return {state.string: {action: 1 / len(state.actions) for action in state.actions} for state in tree.states}


def why_incomplete(tree: Tree, table: PolicyTable) -> str | None:
    """What keeps the table from being a strategy for the game, in words; None if nothing does.

    Rows of states that the game does not have are no harm.
    """
    for state in tree.states:
        row, where = table.get(state.string), f"at {one_line(repr(state.string), 60)}"
        if row is None:
            return f"nothing {where}"
        if row.keys() != {*state.actions}:
            return f"{where} probabilities of the actions {sorted(row)}, where {list(state.actions)} are legal"
        if not all(chance >= 0 for chance in row.values()):
            return f"{where} what is no probability"
        if not isclose(sum(row.values()), 1, abs_tol=_NEAR):
            return f"{where} probabilities that sum to {sum(row.values()):.6g}"
    return None


def seated(tree: Tree, seat: int, table: PolicyTable, others: PolicyTable) -> Sequence[PolicyTable]:
    """By seat: one table in this seat, another in all others."""
    return [table if player == seat else others for player in range(tree.players)]
