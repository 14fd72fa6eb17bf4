"""Resampled worlds look the same to the seat and do not depend on hidden information."""

from collections import Counter
from collections.abc import Iterator
from math import comb
from random import Random
from typing import Any

import numpy as np
import pyspiel
import pytest
from open_spiel.python.algorithms import ismcts, mcts

from tests.conftest import in_gate
from tests.plugins.openspiel.training.kit import draw_step, new, states

GAMES = (
    "dubito(max_turns=40)",
    "dubito(players=6,win_rule=contested,max_turns=40)",
    "dubito(players=4,moves=cards,max_turns=40)",
    "dubito(players=2,duel=true,win_rule=contested,max_turns=60)",
    "dubito_defuse",
)


def some(name: str) -> Iterator[Any]:
    for seed in range(6) if name == "dubito_defuse" else [5]:
        yield from states(name, seed)


@pytest.mark.parametrize("name", in_gate(GAMES, 1))
def test_sampled_worlds_are_indistinguishable_to_the_seat(name: str) -> None:
    worlds, others = 0, 0
    for number, state in enumerate(some(name)):
        if state.is_terminal() or number % 20:
            continue
        seat, truths = state.current_player(), {str(state)}
        for draw in range(2):
            world = state.resample_from_infostate(seat, Random(draw).random)
            worlds, others = worlds + 1, others + (str(world) not in truths)
            truths.add(str(world))
            assert world.current_player() == seat
            assert world.legal_actions() == state.legal_actions()
            for show in ("information_state_string", "observation_string", "information_state_tensor"):
                assert getattr(world, show)(seat) == getattr(state, show)(seat)
    assert others > (0.5 if "duel" in name else 0.9) * worlds > 5, "in a duel a seat often knows the other hand"


@pytest.mark.parametrize("name", in_gate(GAMES, 1))
def test_world_depends_only_on_the_seats_observations(name: str) -> None:
    """In another world the same draw leads to the same third one, so hidden information was not used."""
    for number, state in enumerate(states(name, seed=6)):
        if not state.is_terminal() and number % 23 == 0:
            seat = state.current_player()
            other = state.resample_from_infostate(seat, Random(1).random)
            third = [one.resample_from_infostate(seat, Random(2).random) for one in (state, other)]
            assert third[0].history() == third[1].history()


@pytest.mark.parametrize("name", in_gate(GAMES, 1))
def test_same_seat_moves_in_a_sampled_world(name: str) -> None:
    """The mover is another seat or chance, during a turn or a shuffle."""
    chance, movers = Random(3), set[tuple[bool, bool]]()
    for _ in range(4):
        state = new(name)
        while not state.is_terminal():
            seat, mover = chance.randrange(state.num_players()), state.current_player()
            if chance.random() < 0.1:
                world = state.resample_from_infostate(seat, chance.random)
                assert world.current_player() == mover
                assert world.information_state_string(seat) == state.information_state_string(seat)
                movers.add((mover < 0, mover == seat))
            state.apply_action(draw_step(state, chance))
    assert len(movers) == 3


@pytest.mark.at_length
def test_worlds_have_the_probabilities_of_the_shuffle() -> None:
    """Seat 1 has played two sees at once, so it was dealt at least two. Nothing else is known about its hand."""
    state = after_two_sees(Random(0))
    held = Counter[int]()
    for draw in range(200):
        world = state.resample_from_infostate(0, Random(draw).random)
        held[world.course.engine.hands[1]["see"]] += 1
    sees = 8 - state.course.engine.hands[0]["see"]  # among the 19 cards that seat 0 was not dealt
    ways = [comb(sees, dealt) * comb(19 - sees, 5 - dealt) for dealt in range(2, 6)]
    for left in (0, 1):
        assert held[left] / held.total() == pytest.approx(ways[left] / sum(ways), abs=0.1)


@pytest.mark.at_length
def test_cards_on_the_board_are_sampled_from_the_hand() -> None:
    """Seat 0 has opened with three cards, and seat 1 is asked whether it doubts."""
    state = new("dubito(moves=cards)")
    deck = [*range(1, 14)] * 4 + [0, 0]
    for card in [*sorted(deck[::3]), *sorted(deck[1::3])]:
        state.apply_action(card)
    for action in (15 + 4, 1, 4, 7):
        state.apply_action(action)
    boards = [state.resample_from_infostate(1, Random(draw).random).course.engine.board for draw in range(60)]
    assert len({tuple(sorted(board)) for board in boards}) > 40
    honest = [set(board) <= {0, 4} for board in boards]
    assert sum(honest) < 6


def after_two_sees(chance: Random) -> Any:
    """Return a state in which seat 0 has skipped, seat 1 has played two sees, and it is seat 1's turn."""
    while True:
        for state in states("dubito_defuse", seed=chance.randrange(10**6)):
            hands = state.course.engine.hands
            if hands[0]["skip"] and hands[1]["see"] >= 2:
                for act in (1, 4, 4):
                    state.apply_action(act)
                return state
            break


@pytest.mark.parametrize("name", ["dubito(max_turns=30)", "dubito_defuse"])
def test_a_search_plays_on_these_worlds(name: str) -> None:
    """OpenSpiel's IS-MCTS in Python checks that each world has its information state."""
    state = next(state for number, state in enumerate(states(name, seed=2)) if number == 6)
    random = np.random.RandomState(0)
    bot: Any = ismcts.ISMCTSBot(
        state.get_game(), mcts.RandomRolloutEvaluator(1, random), uct_c=1.5, max_simulations=12, random_state=random
    )
    policy = bot.get_policy(state)
    assert sum(share for _, share in policy) == pytest.approx(1)
    assert {action for action, _ in policy} == set(state.legal_actions())


def test_bs_reports_that_it_has_no_worlds() -> None:
    state = next(states("dubito_bs(max_rounds=2)"))
    with pytest.raises(NotImplementedError, match="most plays are never revealed"):
        state.resample_from_infostate(0, pyspiel.UniformProbabilitySampler(0.0, 1.0))
