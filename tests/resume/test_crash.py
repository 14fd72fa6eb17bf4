"""Killed with SIGKILL at points chosen at random, gone on with each time: the end is that of an undisturbed run."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, Queue
from typing import Any

import pytest
import yaml

from dubito.house.faults import Faults
from dubito.house.server import House
from tests.cli.kit import REPO
from tests.llm.kit import contender, rows

IN_FLIGHT = 8


class Watched:
    """A house in a storm, and its call log as it is written."""

    def __init__(self, folder: Path, faults: Faults) -> None:
        self.pipe = folder / "calls"
        os.mkfifo(self.pipe)
        self.calls: Queue[dict[str, Any]] = Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.house = House(faults=faults, log=self.pipe)

    def _read(self) -> None:
        with self.pipe.open() as lines:
            for line in lines:
                self.calls.put(json.loads(line))

    def next(self, n: int, process: "subprocess.Popen[str] | None" = None) -> list[dict[str, Any]]:
        """The next calls, once there are so many, or fewer when the process has ended."""
        taken: list[dict[str, Any]] = []
        while len(taken) < n and (process is None or process.poll() is None or not self.calls.empty()):
            try:
                taken.append(self.calls.get(timeout=0.2))
            except Empty:
                continue  # look at the process again
        return taken


@contextmanager
def storm(folder: Path, faults: Faults) -> Iterator[Watched]:
    """The house, up."""
    watched = Watched(folder, faults)
    with watched.house:
        yield watched


def config(house: House, path: Path, games: int) -> Path:
    """Some ten calls a game of two models in turn."""
    both = [
        contender("one", "house-sharp", base_url=house.openai_base_url, prompt="reasoned"),
        contender("two", base_url=house.openai_base_url, api="chat"),  # one SDK: each start has to import it
    ]
    base = {"games": games, "table_sizes": [3], "bots": ["StefaBot", "UsualBot"], "rules": {"max_turns": 18}}
    path.write_text(yaml.safe_dump(base | {"contenders": both, "provider_errors": "suspend", "in_flight": IN_FLIGHT}))
    return path


def start(folder: Path, *words: str) -> "subprocess.Popen[str]":
    """`dubito run` in a process of its own."""
    environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    return subprocess.Popen(
        (sys.executable, "-m", "dubito", "run", *words),
        cwd=folder,
        env=environment | {"PYTHONPATH": str(REPO)},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def ended(process: "subprocess.Popen[str]") -> str:
    """The results digest of a run that ends well."""
    with process:
        assert process.stdout is not None
        said = process.stdout.read()
    assert process.returncode == 0, said
    found = re.search(r"results digest: (\w+)", said)
    assert found is not None, said
    return found[1]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_run_with_models_that_is_killed_ends_as_undisturbed(tmp_path: Path, at_length: bool) -> None:
    """In the gate the storm has no rate limits: each would stop the whole account for a while."""
    many, games, faults = (25, 40, Faults(storm=0.3)) if at_length else (3, 12, Faults(content=0.1, cut_body=0.1))
    chance = random.Random(7)
    with storm(tmp_path, faults) as watched:
        words = (str(config(watched.house, tmp_path / "c.yaml", games)), "--quiet")
        digest = ended(start(tmp_path, *words, "--output", "whole", "--cache", "c1"))
        events = len(watched.house.calls)
        watched.next(events)
        kills = sorted(chance.sample(range(1, events - 20), many))
        seen, killed = 0, 0
        for kill in kills:
            with start(tmp_path, *words, "--output", "cut", "--cache", "c2") as process:
                seen += len(watched.next(kill - seen, process))
                process.send_signal(signal.SIGKILL)
                killed += process.wait() == -signal.SIGKILL
        assert ended(start(tmp_path, *words, "--output", "cut", "--cache", "c2")) == digest
        calls = watched.house.calls[events:]
    assert killed == many
    assert (tmp_path / "cut" / "all_games.yaml").read_bytes() == (tmp_path / "whole" / "all_games.yaml").read_bytes()
    bought = Counter((call.request, call.draw) for call in calls if call.status == 200 and call.output_tokens)
    twice = sum(count - 1 for count in bought.values())
    assert twice <= many * IN_FLIGHT, "only what was in flight at a kill"
    ((received,),) = rows(tmp_path / "cut", "SELECT count(*) FROM tries WHERE state = 'received'")
    assert received <= sum(bought.values()) + sum(call.status == 200 and not call.output_tokens for call in calls)


def test_a_run_of_two_workers_that_is_killed_ends_as_undisturbed(tmp_path: Path, at_length: bool) -> None:
    """And the workers end with it."""
    games, kills = (9000, (1, 3, 6)) if at_length else (3000, (1,))
    base = {"bots": ["StefaBot", "ClaudeBot", "RandomBoi"], "table_sizes": [3], "rules": {"max_turns": 12}}
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(base | {"games": games}))
    words = ("c.yaml", "--workers", "2")
    digest = ended(start(tmp_path, *words, "--output", "whole", "--quiet"))
    for tenth in kills:
        with start(tmp_path, *words, "--output", "cut") as process:
            output = process.stdout
            assert output is not None
            next(line for line in output if line.startswith(f"{tenth},000 of {games:,} games"))
            process.send_signal(signal.SIGKILL)
            process.communicate(timeout=60)  # workers and trackers have this output too: it ends when they have ended
            assert process.returncode == -signal.SIGKILL
    assert ended(start(tmp_path, *words, "--output", "cut", "--quiet")) == digest
    assert (tmp_path / "cut" / "all_games.yaml").read_bytes() == (tmp_path / "whole" / "all_games.yaml").read_bytes()
