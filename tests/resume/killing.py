"""Runs in separate processes that use a fake server with many faults, to be killed at chosen points."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, Queue
from typing import Any

from dubito.house.faults import Faults
from dubito.house.server import House
from tests.cli.kit import REPO, Shell


class Watched:
    """A fake server with many faults, and its call log."""

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
        """Wait for this many calls, or the end of the process, and return the new ones."""
        taken: list[dict[str, Any]] = []
        while len(taken) < n and (process is None or process.poll() is None or not self.calls.empty()):
            try:
                taken.append(self.calls.get(timeout=0.2))
            except Empty:
                continue  # check the process again
        return taken


@contextmanager
def storm(folder: Path, faults: Faults) -> Iterator[Watched]:
    watched = Watched(folder, faults)
    with watched.house:
        yield watched


def start(folder: Path, *words: str) -> "subprocess.Popen[str]":
    """Start `dubito run` in a separate process."""
    environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    return subprocess.Popen(
        (sys.executable, "-m", "dubito", "run", *words),
        cwd=folder,
        env=environment | {"PYTHONPATH": str(REPO)},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def ended_here(shell: Shell, *words: str) -> str:
    """Finish a run in this process and return its results digest."""
    result = shell("run", *words)
    assert result.code == 0, result.err
    (digest,) = re.findall(r"results digest: (\w+)", result.out)
    return str(digest)


def kill(process: "subprocess.Popen[str]") -> None:
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL


def same_games(one: Path, other: Path) -> bool:
    return (one / "all_games.yaml").read_bytes() == (other / "all_games.yaml").read_bytes()
