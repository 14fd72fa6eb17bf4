"""A seat as a `verifiers` environment, whose client sends requests over HTTP."""

import runpy
from pathlib import Path
from typing import Any

import pytest

from dubito.game.find import find_games
from dubito.house.core import house_policy
from dubito.house.faults import Faults
from dubito.house.server import House
from tests.cli.kit import REPO, Shell
from tests.games.kit import write_kuhn

pytest.importorskip("verifiers", reason="verifiers is not installed, so no seat was its environment: '.[verifiers]'")
pytestmark = pytest.mark.filterwarnings("ignore")  # warnings in the library


@pytest.fixture(autouse=True)
def kuhn(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    write_kuhn(Path.cwd())
    monkeypatch.setenv("NO_KEY", "any")


def evaluated(faults: str = "", games: int = 4, **how: Any) -> list[Any]:
    """Return the library's result of each rollout, by deal."""
    import verifiers as vf

    environment = vf.load_environment(
        "dubito.seats.verifiers", game="kuhn", opponents=["Careful"], seed=3, games=games, **how
    )
    policy = house_policy(find_games(Path.cwd()))
    with House(policy=policy, faults=Faults.parse(faults) if faults else None) as house:
        client = vf.ClientConfig(api_key_var="NO_KEY", api_base_url=house.base_url("chat"))
        evaluated_rows = environment.evaluate_sync(
            client, "house-random", rollouts_per_example=2, state_columns=["outcomes"]
        )
    assert not environment._games
    return sorted(evaluated_rows["outputs"], key=lambda one: one["example_id"])


def test_rollouts_of_an_example_are_games_of_one_deal_with_the_score_as_reward() -> None:
    rollouts = evaluated(games=8)
    assert len(rollouts) == 16
    for one, other in zip(rollouts[::2], rollouts[1::2], strict=True):
        assert one["info"] == other["info"]
        assert one["prompt"] == other["prompt"]
        assert (one["reward"], one["completion"]) == (other["reward"], other["completion"])
    assert len({one["reward"] for one in rollouts}) > 1
    assert {one["reward"] for one in rollouts} <= {0, 0.25, 0.75, 1}
    for one in rollouts:
        assert one["prompt"][0]["content"].startswith("You play Kuhn poker.")
        assert [message["role"] for message in one["completion"]][::2] == ["assistant"] * int(one["decisions"])
        assert one["outcomes"] == {"model": one["decisions"]}
        assert (one["by_fallback"], one["asked_again"], one["unfinished"]) == (0, 0, 0)


def test_replies_that_cannot_be_used_are_counted() -> None:
    for one in evaluated("prose:1"):
        assert one["by_fallback"] == one["decisions"] == one["num_turns"] / 2
        assert one["outcomes"] == {"fallback:malformed": one["decisions"]}


def test_a_game_that_is_cut_short_has_no_score() -> None:
    for one in evaluated("prose:1", max_turns=1):
        assert (one["reward"], one["unfinished"], one["stop_condition"]) == (0, 1, "max_turns_reached")


def test_package_for_the_hub_plays_dubito_by_default() -> None:
    (module,) = (REPO / "examples" / "hubs" / "verifiers").glob("*.py")
    names = runpy.run_path(str(module))
    assert (
        names["load_environment"](games=1)._seat.describe(0) == "dubito, deal 0, seat 0 of LLMBot, StefaBot, ClaudeBot"
    )
