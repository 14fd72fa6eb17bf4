"""Killed with SIGKILL at points chosen at random, gone on with each time: the end is that of an undisturbed run."""

import os
import random
import signal
from collections import Counter
from pathlib import Path

import pytest
import yaml

from dubito.house.faults import Faults
from dubito.house.server import House
from tests.cli.kit import Shell
from tests.llm.kit import contender, rows
from tests.resume.killing import ended_here, kill, same_games, start, storm

IN_FLIGHT = 8


def config(house: House, path: Path, games: int) -> Path:
    """Some ten calls a game of two models in turn."""
    both = [
        contender("one", "house-sharp", base_url=house.openai_base_url, prompt="reasoned"),
        contender("two", base_url=house.openai_base_url, api="chat"),  # one SDK: each start has to import it
    ]
    base = {"games": games, "table_sizes": [3], "bots": ["StefaBot", "UsualBot"], "rules": {"max_turns": 18}}
    path.write_text(yaml.safe_dump(base | {"contenders": both, "provider_errors": "suspend", "in_flight": IN_FLIGHT}))
    return path


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_run_with_models_that_is_killed_ends_as_undisturbed(tmp_path: Path, shell: Shell, at_length: bool) -> None:
    """In the gate the storm has no rate limits: each would stop the whole account for a while."""
    many, games, faults = (25, 40, Faults(storm=0.3)) if at_length else (1, 6, Faults(content=0.1, cut_body=0.1))
    chance = random.Random(7)
    with storm(tmp_path, faults) as watched:
        words = (str(config(watched.house, tmp_path / "c.yaml", games)), "--quiet", "--no-report")
        digest = ended_here(shell, *words, "--output", "whole", "--cache", "c1")
        events = len(watched.house.calls)
        watched.next(events)
        kills = sorted(chance.sample(range(1, events - 20), many))
        seen = 0
        for point in kills:
            with start(tmp_path, *words, "--output", "cut", "--cache", "c2") as process:
                seen += len(watched.next(point - seen, process))
                kill(process)
        assert ended_here(shell, *words, "--output", "cut", "--cache", "c2") == digest
        calls = watched.house.calls[events:]
    assert same_games(tmp_path / "cut", tmp_path / "whole")
    bought = Counter((call.request, call.draw) for call in calls if call.status == 200 and call.output_tokens)
    twice = sum(count - 1 for count in bought.values())
    assert twice <= many * IN_FLIGHT, "only what was in flight at a kill"
    ((received,),) = rows(tmp_path / "cut", "SELECT count(*) FROM tries WHERE state = 'received'")
    assert received <= sum(bought.values()) + sum(call.status == 200 and not call.output_tokens for call in calls)


def test_a_run_of_two_workers_that_is_killed_ends_as_undisturbed(tmp_path: Path, shell: Shell, at_length: bool) -> None:
    """And the workers end with it."""
    games, kills = (9000, (1, 3, 6)) if at_length else (3000, (1,))
    base = {"bots": ["StefaBot", "ClaudeBot", "RandomBoi"], "table_sizes": [3], "rules": {"max_turns": 12}}
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(base | {"games": games}))
    words = ("c.yaml", "--workers", "2", "--no-report")
    digest = ended_here(shell, "c.yaml", "--output", "whole", "--quiet")
    for tenth in kills:
        with start(tmp_path, *words, "--output", "cut") as process:
            output = process.stdout
            assert output is not None
            next(line for line in output if line.startswith(f"{tenth},000 of {games:,} games"))
            process.send_signal(signal.SIGKILL)
            process.communicate(timeout=60)  # workers and trackers have this output too: it ends when they have ended
            assert process.returncode == -signal.SIGKILL
    assert ended_here(shell, "c.yaml", "--output", "cut", "--quiet") == digest
    assert same_games(tmp_path / "cut", tmp_path / "whole")
