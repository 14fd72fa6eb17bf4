"""Other games than Dubito: killed with SIGKILL in a storm, a run of models ends as undisturbed, and replays."""

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from dubito.house.faults import Faults
from dubito.house.server import House
from tests.cli.kit import Shell
from tests.conftest import few
from tests.llm.kit import contender
from tests.resume.killing import ended_here, kill, same_games, start, storm

GAMES: Final[dict[str, dict[str, Any]]] = {
    "bs": {"bots": ["CalculatingLiar", "ConMan", "Player1", "Player3"], "rules": {"max_rounds": 2}},
    "defuse": {"bots": ["Medium", "Scared"]},
}
if find_spec("pyspiel"):
    GAMES["openspiel:leduc_poker"] = {"bots": ["UniformRandom", "FirstLegal"]}


def config(house: House, game: str) -> dict[str, Any]:
    """A few games of two models."""
    model = "house-random" if game.startswith("openspiel:") else "house-careful"
    one = contender("careful", model, prompt="reasoned", base_url=house.openai_base_url)
    two = contender("chance", api="chat", base_url=house.openai_base_url)
    more = {"games": 4, "provider_errors": "suspend", "in_flight": 4}
    return {"game": game, "contenders": [one, two], **more, **GAMES[game]}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("game", few(GAMES, 1))
def test_a_run_killed_in_a_storm_ends_as_undisturbed_and_replays(
    tmp_path: Path, shell: Shell, game: str, at_length: bool
) -> None:
    """In the gate the storm has no rate limits: each would stop the whole account for a while."""
    with storm(tmp_path, Faults(storm=0.3) if at_length else Faults(content=0.1, cut_body=0.1)) as watched:
        (tmp_path / "c.yaml").write_text(yaml.safe_dump(config(watched.house, game)))
        words = ("c.yaml", "--quiet", "--no-report")
        digest = ended_here(shell, *words, "--output", "whole", "--cache", "c1")
        events = len(watched.house.calls)
        watched.next(events)
        with start(tmp_path, *words, "--output", "cut", "--cache", "c2") as process:
            watched.next(events // 2, process)
            kill(process)
        assert ended_here(shell, *words, "--output", "cut", "--cache", "c2") == digest
        assert len(watched.house.calls) > 1.4 * events, "half of them were asked before the kill"
    said = shell("replay", "cut", "--quiet")
    assert (said.code, said.err) == (0, "")
    assert f"results digest: {digest}" in said.out
    assert same_games(tmp_path / "cut", tmp_path / "whole")
