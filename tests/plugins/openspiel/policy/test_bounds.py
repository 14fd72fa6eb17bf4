"""Bounds over unknown rows: no policy exceeds them, and some policies reach them."""

import pytest

from dubito.plugins.openspiel.policy.tree import seat_tables, uniform
from dubito.plugins.openspiel.policy.values import (
    best_response,
    expected_values,
    nash_conv,
    nash_conv_bounds,
    value_bounds,
)
from tests.conftest import in_gate
from tests.plugins.openspiel.policy.kit import (
    AUCTION,
    DICE,
    KUHN,
    KUHN_3,
    SMALL,
    TOGETHER,
    by_chance,
    mixed,
    tree_of,
    versus,
)


@pytest.mark.parametrize("name", SMALL)
def test_bounds_of_a_value_hold(name: str) -> None:
    tree = tree_of(name)
    table, others = by_chance(tree, 1), uniform(tree)
    for seat in range(tree.players):
        free = [state.string for state in tree.states if state.seat == seat][::3]
        bounds = value_bounds(tree, seat, table, others, free)
        tables = [seat_tables(tree, seat, mixed(table, by_chance(tree, seed), free), others) for seed in range(20)]
        values = [expected_values(tree, each)[seat] for each in tables]
        assert bounds.low - 1e-9 <= min(values) < max(values) <= bounds.high + 1e-9
        assert bounds.exact


def test_the_bounds_of_a_value_are_reached() -> None:
    """If all rows are unknown, the bounds are the best and worst possible values; if none is, both are the value."""
    tree = tree_of(KUHN)
    table, others = by_chance(tree, 1), by_chance(tree, 2)
    whole = value_bounds(tree, 1, table, others, [state.string for state in tree.states])
    assert whole.high == best_response(tree, 1, [others, table]).value
    assert whole.low == best_response(tree, 1, [others, table], sign=-1).value < whole.high
    none = value_bounds(tree, 1, table, others, [])
    assert none.low == none.high == expected_values(tree, [others, table])[1]
    ends = value_bounds(tree, 1, table, others, ["1b"])
    pure = [versus(tree, {**table, "1b": row}, others)[1] for row in ({0: 1.0, 1: 0.0}, {0: 0.0, 1: 1.0})]
    assert (ends.low, ends.high) == pytest.approx((min(pure), max(pure)))


@pytest.mark.parametrize(("name", "every"), in_gate([(KUHN, 2), (KUHN_3, 12), (DICE, 38)], 2))
def test_bounds_of_nash_conv_hold(name: str, every: int) -> None:
    tree = tree_of(name)
    table = by_chance(tree, 1)
    free = [state.string for state in tree.states][::every]
    bounds = nash_conv_bounds(tree, table, free)
    values = [nash_conv(tree, mixed(table, by_chance(tree, seed), free)) for seed in range(20)]
    assert bounds.exact
    assert bounds.low - 1e-9 <= min(values) <= max(values) <= bounds.high + 1e-9


@pytest.mark.parametrize(("name", "free"), [(KUHN, ["2", "1b"]), (KUHN, ["0", "2"]), (KUHN_3, ["3", "2b"])])
def test_the_upper_bound_of_nash_conv_is_reached(name: str, free: list[str]) -> None:
    """Rows with one certain action reach it, for one seat or both."""
    tree = tree_of(name)
    table = uniform(tree)
    rows = ({0: 1.0, 1: 0.0}, {0: 0.0, 1: 1.0})
    tried = [nash_conv(tree, {**table, free[0]: one, free[1]: two}) for one in rows for two in rows]
    assert nash_conv_bounds(tree, table, free).high == pytest.approx(max(tried), abs=1e-12)


def test_lower_bound_is_the_loss_elsewhere() -> None:
    """One unknown row cannot repair a policy that folds its kings, and without unknown rows the bound is exact."""
    tree = tree_of(KUHN)
    table = {**uniform(tree), "2b": {0: 1.0, 1: 0.0}}
    one = nash_conv_bounds(tree, table, ["0"])
    assert 0.5 < one.low <= nash_conv(tree, table) <= one.high
    assert nash_conv_bounds(tree, table, ["2b"]).low < one.low
    none = nash_conv_bounds(tree, table, [])
    assert none.low == none.high == nash_conv(tree, table)


@pytest.mark.parametrize("name", in_gate([DICE, KUHN_3, AUCTION], 1))
def test_too_many_rows_have_a_bound_that_is_not_exact(name: str) -> None:
    tree = tree_of(name)
    table = uniform(tree)
    free = [state.string for state in tree.states]
    bounds = nash_conv_bounds(tree, table, free)
    assert not bounds.exact
    for seed in range(10):
        assert nash_conv(tree, by_chance(tree, seed)) <= bounds.high
    half = nash_conv_bounds(tree, table, free[::4])
    for seed in range(10):
        assert half.low - 1e-9 <= nash_conv(tree, mixed(table, by_chance(tree, seed), free[::4])) <= half.high
    assert half.high < bounds.high or name == DICE


def test_bounds_are_wider_without_a_constant_sum() -> None:
    """Both players win the same, so both gain from the unknown rows."""
    tree = tree_of(TOGETHER)
    table, free = by_chance(tree, 6), [state.string for state in tree.states][::2]
    bounds = nash_conv_bounds(tree, table, free)
    assert bounds.exact
    assert bounds.low == 0
    for seed in range(30):
        assert nash_conv(tree, mixed(table, by_chance(tree, seed), free)) <= bounds.high + 1e-9
