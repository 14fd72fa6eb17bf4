"""OpenSpiel's games as trees, with random policies."""

from functools import cache
from random import Random
from typing import Any, Final

import pytest

from dubito.plugins.openspiel.policy.tree import PolicyTable, Tree, seat_tables
from dubito.plugins.openspiel.policy.values import expected_values

pyspiel = pytest.importorskip("pyspiel", reason="measures games of OpenSpiel: pip install 'dubito[openspiel]'")

KUHN: Final = "kuhn_poker"
KUHN_3: Final = "kuhn_poker(players=3)"
DICE: Final = "liars_dice(numdice=1,dice_sides=3)"
LEDUC: Final = "leduc_poker"
TOGETHER: Final = "tiny_hanabi"  # both players get the same return
AUCTION: Final = "first_sealed_auction(max_value=5)"  # the sum of the returns is not constant
SMALL: Final = (KUHN, KUHN_3, DICE)


def load(name: str) -> Any:
    return pyspiel.load_game(name)


@cache
def tree_of(name: str) -> Tree:
    return Tree(load(name))


def by_chance(tree: Tree, seed: int) -> dict[str, dict[int, float]]:
    """Return a policy with random probabilities, some of them 0 or 1."""
    chance, table = Random(seed), {}
    for state in tree.states:
        weights = [chance.choice((0, 0, 1, chance.random())) for _ in state.actions]
        weights[chance.randrange(len(weights))] += 0.1
        table[state.string] = {a: w / sum(weights) for a, w in zip(state.actions, weights, strict=True)}
    return table


def versus(tree: Tree, table: PolicyTable, others: PolicyTable) -> list[float]:
    return [expected_values(tree, seat_tables(tree, seat, table, others))[seat] for seat in range(tree.players)]


def engines(table: PolicyTable) -> Any:
    return pyspiel.TabularPolicy({string: [*row.items()] for string, row in table.items()})


def mixed(table: PolicyTable, other: PolicyTable, rows: list[str]) -> PolicyTable:
    return {**table, **{string: other[string] for string in rows}}
