"""The duel in OpenSpiel deals like the engine and is zero-sum."""

from collections import Counter
from itertools import permutations
from typing import Any

import pyspiel
import pytest

from dubito.games.dubito.engine import Rules
from tests.plugins.openspiel.training.kit import DUEL, new


def deals(name: str) -> dict[tuple[int, ...], float]:
    """Return the probability of each first hand of seat 0."""
    found: dict[tuple[int, ...], float] = {}

    def go(state: Any, odds: float) -> None:
        if state.is_chance_node():
            for outcome, chance in state.chance_outcomes():
                go(state.child(outcome), odds * chance)
        else:
            hand = tuple(state.course.hand(0))
            assert hand not in found, "each hand must have one history"
            found[hand] = odds

    go(new(name), 1.0)
    return found


@pytest.mark.parametrize(("ranks", "copies", "jokers"), [(2, 2, 0), (2, 3, 0), (2, 2, 1), (3, 2, 1), (2, 3, 2)])
def test_hand_probabilities_match_the_deal(ranks: int, copies: int, jokers: int) -> None:
    rules = Rules(ranks=ranks, copies=copies, jokers=jokers, duel=True)
    kept = Counter[tuple[int, ...]]()
    for deck in permutations(rules.deck):
        hands = [Counter(deck[seat::2]) for seat in (0, 1)]
        if all(hand[number] < copies for hand in hands for number in range(1, ranks + 1)):
            kept[tuple(sorted(deck[::2]))] += 1
    found = deals(f"dubito(players=2,duel=true,ranks={ranks},copies={copies},jokers={jokers})")
    assert found == pytest.approx({hand: n / kept.total() for hand, n in kept.items()})


def test_a_duel_is_zero_sum() -> None:
    game: Any = pyspiel.load_game(DUEL)
    assert game.get_type().utility == pyspiel.GameType.Utility.ZERO_SUM
    assert (game.num_players(), game.min_utility(), game.max_utility(), game.utility_sum()) == (2, -1, 1, 0)
    state = game.new_initial_state()
    while not state.is_terminal():
        state.apply_action(state.chance_outcomes()[0][0] if state.is_chance_node() else state.legal_actions()[0])
    assert sorted(state.returns()) in ([-1, 1], [0, 0])
