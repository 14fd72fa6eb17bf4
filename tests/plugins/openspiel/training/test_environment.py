"""Dubito's games pass PettingZoo's own tests."""

import pickle
from collections.abc import Callable
from typing import Any

import pytest

GAMES = [("dubito", {"players": 4, "max_turns": 30}), ("dubito_bs", {"max_rounds": 5}), ("dubito_defuse", {})]
Make = Callable[..., Any]


@pytest.fixture(scope="module")
def make() -> Make:
    """Import the environment's class, which is slow, only for these tests."""
    pytest.importorskip(
        "shimmy", reason="shimmy is not installed, so no game of ours was PettingZoo's: '.[pettingzoo]'"
    )
    from dubito.plugins.openspiel.environment import HarnessEnv

    return HarnessEnv


@pytest.mark.parametrize(("game", "parameters"), GAMES)
@pytest.mark.filterwarnings("ignore:Agent's m.* observation space value is")  # shimmy sets no bounds
def test_pettingzoos_own_tests_pass(make: Make, game: str, parameters: dict[str, Any]) -> None:
    from pettingzoo.test import api_test, seed_test

    api_test(make(game, **parameters), num_cycles=40)
    seed_test(lambda: make(game, **parameters), num_cycles=20)


@pytest.mark.parametrize(("game", "parameters"), GAMES)
def test_a_reset_and_a_copy_keep_the_parameters(make: Make, game: str, parameters: dict[str, Any]) -> None:
    env = pickle.loads(pickle.dumps(make(game, **parameters)))  # noqa: S301, our own
    env.reset(seed=3)
    assert env._env.get_parameters().items() >= parameters.items()
    assert len(env.agents) == env._env.num_players()


@pytest.mark.parametrize(("game", "parameters"), GAMES)
def test_a_whole_game_ends_with_its_returns(make: Make, game: str, parameters: dict[str, Any]) -> None:
    """Each seat gets its return once, and sees the end."""
    env = make(game, **parameters)
    env.reset(seed=5)
    rewards = dict.fromkeys(env.agents, 0.0)
    for agent in env.agent_iter():
        _, reward, ended, _, info = env.last()
        rewards[agent] += reward
        env.step(None if ended else env.action_space(agent).sample(info["action_mask"]))
        if ended:
            seen = env.game_state.observation_tensor(env.agent_name_id_mapping[agent])
            assert env.observe(agent) == pytest.approx(seen)
    assert [*rewards.values()] == env.game_state.returns()
