"""Runs that are killed with SIGKILL at random points and resumed have the same result as undisturbed ones."""

import os
import random
import signal
from collections import Counter
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from dubito.house.faults import Faults
from dubito.house.server import House
from tests.cli.kit import Shell
from tests.llm.kit import contender, rows
from tests.resume.killing import ended_here, kill, same_games, start, storm

IN_FLIGHT = 8
GAMES: Final[dict[str, dict[str, Any]]] = {
    "dubito": {"table_sizes": [3], "bots": ["StefaBot", "UsualBot"], "rules": {"max_turns": 18}},
    "bs": {"bots": ["CalculatingLiar", "ConMan", "Player1", "Player3"], "rules": {"max_rounds": 2}},
    "defuse": {"bots": ["Medium", "Scared"]},
}


def config(house: House, game: str, games: int) -> dict[str, Any]:
    """Return a config for games of two models in turn, one of which gives reasons."""
    knows = "house-sharp" if game == "dubito" else "house-careful"
    one = contender("one", knows, prompt="reasoned", base_url=house.openai_base_url)
    two = contender("two", api="chat", base_url=house.openai_base_url)  # one SDK, which each start has to import
    more = {"games": games, "provider_errors": "suspend", "in_flight": IN_FLIGHT}
    return {"game": game, "contenders": [one, two], **more, **GAMES[game]}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are not available")
@pytest.mark.at_length
@pytest.mark.parametrize("game", GAMES)
def test_killed_run_with_models_resumes_to_the_same_result(tmp_path: Path, shell: Shell, game: str) -> None:
    """The gate covers this with test_signals.py and test_paid_once.py."""
    faults = Faults(storm=0.3)
    many, games = (25, 40) if game == "dubito" else (1, 4)
    chance = random.Random(7)
    with storm(tmp_path, faults) as watched:
        (tmp_path / "c.yaml").write_text(yaml.safe_dump(config(watched.house, game, games)))
        words = ("c.yaml", "--quiet", "--no-report")
        digest = ended_here(shell, *words, "--output", "whole", "--cache", "c1")
        events = len(watched.house.calls)
        watched.next(events)
        kills = sorted(chance.sample(range(1, max(events - 20, events // 2)), many))
        seen = 0
        for point in kills:
            with start(tmp_path, *words, "--output", "cut", "--cache", "c2") as process:
                seen += len(watched.next(point - seen, process))
                kill(process)
        assert ended_here(shell, *words, "--output", "cut", "--cache", "c2") == digest
        calls = watched.house.calls[events:]
    result = shell("replay", "cut", "--quiet")
    claimed = "kind, model, server, tokens, dollars and status codes of one and two"
    assert (result.code, result.err) == (0, f"Claimed by the run, not proven by a replay: {claimed}.\n")
    assert f"results digest: {digest}" in result.out
    assert same_games(tmp_path / "cut", tmp_path / "whole")
    bought = Counter((call.request, call.draw) for call in calls if call.status == 200 and call.output_tokens)
    twice = sum(count - 1 for count in bought.values())
    assert twice <= many * IN_FLIGHT, "only calls in flight at a kill can repeat"
    ((received,),) = rows(tmp_path / "cut", "SELECT count(*) FROM tries WHERE state = 'received'")
    assert received <= sum(bought.values()) + sum(call.status == 200 and not call.output_tokens for call in calls)


@pytest.mark.at_length
def test_killed_run_with_two_workers_resumes_to_the_same_result(tmp_path: Path, shell: Shell) -> None:
    """The workers end with the run."""
    games, kills = 9000, (1, 3, 6)
    base = {"bots": ["StefaBot", "ClaudeBot", "RandomBoi"], "table_sizes": [3], "rules": {"max_turns": 12}}
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(base | {"games": games}))
    words = ("c.yaml", "--workers", "2", "--no-report")
    digest = ended_here(shell, "c.yaml", "--output", "whole", "--quiet")
    for tenth in kills:
        with start(tmp_path, *words, "--output", "cut") as process:
            output = process.stdout
            assert output is not None
            next(line for line in output if f" of {games:,} games" in line)
            while rows(tmp_path / "cut", "SELECT coalesce(sum(games), 0) FROM chunks") < [(tenth * 1000,)]:
                assert process.poll() is None
            process.send_signal(signal.SIGKILL)
            process.communicate(timeout=60)  # workers and trackers share this output, so it ends when they have exited
            assert process.returncode == -signal.SIGKILL
    assert ended_here(shell, "c.yaml", "--output", "cut", "--quiet") == digest
    assert same_games(tmp_path / "cut", tmp_path / "whole")
