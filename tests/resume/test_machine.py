"""Runs that share a cache, and machines whose clock jumps, give the results of undisturbed runs."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.cli.kit import REPO, Shell
from tests.llm.kit import Incoming, Response, Server, config_file, player_at, respond
from tests.resume.killing import same_games

pytestmark = pytest.mark.at_length
WORDS = ("run", "c.yaml", "--no-preflight", "--no-report", "--quiet")
# Replaces `time.time` from its 300th call on.
JUMPING_CLOCK = """
import itertools, time
real, calls = time.time, itertools.count()
def jump(hours):
    return real() + 3600 * hours
time.time = lambda: jump({hours} if next(calls) > 300 else 0)
"""
HOURS = {"a day later": "24", "a day earlier": "-24", "to and fro": "24 * (-1) ** next(calls)", "in 1970": "-490000"}


def set_up(server: Server, shell: Shell) -> None:
    """Write the config of a small run of two models, and play it."""
    config_file(player_at(server, "chat"), player_at(server, "responses", name="two"), games=20, in_flight=4)
    assert shell(*WORDS, "--output", "whole", "--cache", "other").code == 0


def begin(folder: Path, output: str, *python_path: str) -> "subprocess.Popen[bytes]":
    path = os.pathsep.join([*python_path, str(REPO)])
    command = (sys.executable, "-m", "dubito", *WORDS, "--output", output, "--cache", "shared")
    return subprocess.Popen(command, cwd=folder, env=os.environ | {"PYTHONPATH": path})


@pytest.mark.parametrize("part", [0.1, 0.3, 0.6, 0.9])
def test_killed_runs_that_share_a_cache_resume_to_the_same_result(tmp_path: Path, shell: Shell, part: float) -> None:
    reached = threading.Event()

    def answer(request: Incoming) -> Response:
        if calls and len(server.requests) >= calls * (1 + part):
            reached.set()
        return respond(request.protocol)

    calls = 0
    with Server(answer) as server:
        set_up(server, shell)
        calls = len(server.requests)
        runs = [begin(shell.folder, "one"), begin(shell.folder, "two")]
        assert reached.wait(120)
        for run in runs:
            run.send_signal(signal.SIGKILL)
            run.wait()
        assert [run.wait(120) for run in [begin(shell.folder, "one"), begin(shell.folder, "two")]] == [0, 0]
        assert len(server.requests) - calls <= calls + 2 * 4, "only calls in flight at the kill can repeat"
    for output in ("one", "two"):
        assert same_games(Path(output), Path("whole"))
        assert shell("replay", output, "--quiet").code == 0


@pytest.mark.parametrize("jump", HOURS)
def test_a_clock_that_jumps_changes_no_result(tmp_path: Path, shell: Shell, jump: str) -> None:
    (tmp_path / "sitecustomize.py").write_text(JUMPING_CLOCK.format(hours=HOURS[jump]))

    def refuse_some(request: Incoming) -> Response:
        if len(server.requests) % 17:
            return respond(request.protocol)
        return Response(429, "{}", {"retry-after": "1"})

    with Server(refuse_some) as server:
        set_up(server, shell)
        assert begin(shell.folder, "jumped", str(tmp_path)).wait(120) == 0
    assert same_games(Path("jumped"), Path("whole"))
