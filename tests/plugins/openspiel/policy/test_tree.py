"""Information states of small games, and why other games are rejected."""

import pytest

from dubito.errors import UsageError
from dubito.plugins.openspiel.policy.tree import Tree
from tests.plugins.openspiel.policy.kit import DICE, KUHN, KUHN_3, LEDUC, load, tree_of


@pytest.mark.parametrize(("name", "count"), [(KUHN, 12), (KUHN_3, 48), (DICE, 192), (LEDUC, 936)])
def test_every_information_state_is_found(name: str, count: int) -> None:
    """Every information state is found once, and its history leads to it."""
    game, states = load(name), tree_of(name).states
    assert len(states) == len({state.string for state in states}) == count
    assert [state.seat for state in states] == sorted(state.seat for state in states)
    for state in states:
        there = game.new_initial_state()
        for action in state.history:
            there.apply_action(action)
        assert (there.current_player(), there.information_state_string()) == (state.seat, state.string)
        assert [*state.actions] == there.legal_actions()


def test_states_come_seat_by_seat_as_they_are_met() -> None:
    states = [(state.seat, state.string, state.history) for state in tree_of(KUHN).states]
    assert states[:3] == [(0, "0", (0, 1)), (0, "0pb", (0, 1, 0, 1)), (0, "1", (1, 0))]
    assert states[6:8] == [(1, "1p", (0, 1, 0)), (1, "1b", (0, 1, 1))]


def test_children_follow_their_parents() -> None:
    for name in (KUHN, DICE, LEDUC):
        tree = tree_of(name)
        parents = {child: number for number, node in enumerate(tree.nodes) for child in node.children}
        assert sorted(parents) == [*range(1, len(tree.nodes))]
        assert all(parent < child for child, parent in parents.items())
        assert sum(map(len, tree.nodes_of.values())) == sum(node.state is not None for node in tree.nodes)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("tic_tac_toe", "has perfect information"),
        ("goofspiel(imp_info=True,num_cards=3,points_order=descending)", "has simultaneous moves"),
        ("mfg_crowd_modelling", "is a mean-field game"),
        ("gin_rummy", "has no information state strings in OpenSpiel"),
        ("negotiation", "does not report the probabilities of its chance outcomes"),
        ("liars_dice_ir(dice_sides=3)", "has imperfect recall"),
        ("phantom_ttt", "for two seats or for different legal actions"),
        ("kriegspiel", "more than 100 moves in a game"),
    ],
)
def test_a_game_without_a_tree_is_refused(name: str, reason: str) -> None:
    with pytest.raises(UsageError) as refusal:
        Tree(load(name))
    assert reason in str(refusal.value)
    assert "choose " in str(refusal.value)


def test_a_large_game_is_refused_before_it_is_counted() -> None:
    with pytest.raises(UsageError, match=r"^liars_dice has more than 2,000 information states, so it is too large "):
        Tree(load("liars_dice"))
    with pytest.raises(UsageError, match="more than 191 information states"):
        Tree(load(DICE), limit=191)
    assert len(Tree(load(DICE), limit=192).states) == 192


def test_histories_are_bounded_too() -> None:
    with pytest.raises(UsageError, match=r"^kuhn_poker has more than 57 histories"):
        Tree(load(KUHN), histories=57)
    assert len(Tree(load(KUHN), histories=58).nodes) == 58
