"""Values and exploitability of policies, compared with OpenSpiel and worked examples."""

import pytest

from dubito.plugins.openspiel.policy.tree import explain_incomplete, uniform
from dubito.plugins.openspiel.policy.values import best_response, expected_values, gains, losses, nash_conv
from tests.plugins.openspiel.policy.kit import (
    AUCTION,
    DICE,
    KUHN,
    KUHN_3,
    LEDUC,
    SMALL,
    TOGETHER,
    by_chance,
    engines,
    load,
    pyspiel,
    tree_of,
)

ALL = (*SMALL, TOGETHER, AUCTION, LEDUC)


@pytest.mark.parametrize(("name", "value"), [(KUHN, 11 / 12), (KUHN_3, 2.0625), (DICE, 10 / 9), (LEDUC, 4.7472222222)])
def test_uniform_play_can_be_exploited(name: str, value: float) -> None:
    assert nash_conv(tree_of(name), uniform(tree_of(name))) == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize("name", ALL)
def test_nash_conv_matches_open_spiel(name: str) -> None:
    tree = tree_of(name)
    for seed in range(1 if name == LEDUC else 8):
        table = by_chance(tree, seed)
        found = nash_conv(tree, table)
        assert found == pytest.approx(pyspiel.nash_conv(load(name), engines(table)), abs=1e-9)
        assert found > 0.01


@pytest.mark.parametrize("name", ALL)
def test_expected_values_match_open_spiel(name: str) -> None:
    tree = tree_of(name)
    tables = [by_chance(tree, seat) for seat in range(tree.players)]
    state = load(name).new_initial_state()
    theirs = pyspiel.expected_returns(state, [engines(table) for table in tables], -1, False)
    assert expected_values(tree, tables) == pytest.approx(theirs, abs=1e-9)


def test_best_response_wins_its_stated_value() -> None:
    for name in SMALL:
        tree = tree_of(name)
        tables = [by_chance(tree, 10 + seat) for seat in range(tree.players)]
        for seat in range(tree.players):
            best = best_response(tree, seat, tables)
            plays = {string: {action: 1.0} for string, action in best.choices.items()}
            plays = {
                s.string: {a: plays[s.string].get(a, 0.0) for a in s.actions} for s in tree.states if s.seat == seat
            }
            seated = [plays if player == seat else table for player, table in enumerate(tables)]
            assert expected_values(tree, seated)[seat] == pytest.approx(best.value, abs=1e-12)


def test_kuhn_against_a_player_who_always_bets() -> None:
    """Computed by hand: a jack passes and folds, a king bets or calls, and a queen may do either."""
    tree = tree_of(KUHN)
    bold = {state.string: {0: 0.0, 1: 1.0} for state in tree.states}
    first = best_response(tree, 0, [bold, bold])
    assert (first.choices["0"], first.choices["0pb"], first.choices["2pb"]) == (0, 0, 1)
    assert first.value == pytest.approx(1 / 3)  # -1 with the jack, 0 with the queen, 2 with the king
    assert gains(tree, bold) == pytest.approx([1 / 3, 1 / 3])
    jack, later = (next(loss for loss in losses(tree, bold) if loss.state.string == string) for string in ("0", "0pb"))
    assert (jack.loss, jack.reach) == pytest.approx((1 / 3, 1 / 3))  # it loses 2 instead of 1 in every third deal
    assert jack.best == 0
    assert (later.loss, later.reach) == (0, 0)  # this player never passes first


@pytest.mark.parametrize("name", ALL)
def test_losses_sum_to_nash_conv(name: str) -> None:
    tree = tree_of(name)
    table = by_chance(tree, 3)
    found = losses(tree, table)
    assert [loss.loss for loss in found] == sorted((loss.loss for loss in found), reverse=True)
    assert {loss.state.string for loss in found} == {state.string for state in tree.states}
    by_seat = [sum(loss.loss for loss in found if loss.state.seat == seat) for seat in range(tree.players)]
    assert by_seat == pytest.approx(gains(tree, table), abs=1e-9)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (None, "no probabilities at '1b'"),
        ({0: 1.0}, "at '1b' probabilities of the actions [0], but [0, 1] are legal"),
        ({0: 0.5, 1: 0.4}, "that sum to 0.9"),
        ({0: 1.5, 1: -0.5}, "a value that is not a probability"),
        ({0: float("nan"), 1: 1.0}, "a value that is not a probability"),
    ],
)
def test_invalid_table_is_refused(row: dict[int, float] | None, reason: str) -> None:
    tree = tree_of(KUHN)
    table = uniform(tree)
    assert explain_incomplete(tree, table) is None
    del table["1b"]
    if row:
        table["1b"] = row
    assert reason in str(explain_incomplete(tree, table))
