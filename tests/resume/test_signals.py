"""SIGTERM and SIGHUP end a run like Ctrl-C, and a second one ends it immediately.

They are sent to the whole group, as by a closed terminal, `timeout`, a job queue or `docker stop`.
"""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.cli.kit import REPO, Shell, start
from tests.conftest import in_gate
from tests.llm.kit import Incoming, Response, Server, config_file, contender, player_at, respond, rows, run_games, small
from tests.resume.killing import ended_here, same_games

SIGNALS = [signal.SIGTERM, signal.SIGHUP, signal.SIGINT]
WORDS = {signal.SIGTERM: "SIGTERM", signal.SIGHUP: "SIGHUP", signal.SIGINT: "Ctrl-C"}


@contextmanager
def group(folder: Path, *words: str, before: str = "") -> Iterator["subprocess.Popen[str]"]:
    """Start `dubito run` as a separate job, after the shell code in `before`. The job ends with the test."""
    command = ("/bin/sh", "-c", f'{before}exec "$@"', "sh", sys.executable, "-m", "dubito", "run", *words)
    environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environment | {"PYTHONPATH": str(REPO)},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


class Counted:
    """Answers yes, but holds calls from this number on until it is released, and reports the first of them."""

    def __init__(self, then_waits: int | None) -> None:
        self.calls, self.reached, self.goes = 0, threading.Event(), threading.Event()
        self._waits, self._lock = then_waits, threading.Lock()

    def __call__(self, request: Incoming) -> Response:
        with self._lock:
            self.calls += 1
            waits = self._waits is not None and self.calls >= self._waits
        if waits:
            self.reached.set()
            self.goes.wait(60)
        return respond(request.protocol)


def models(folder: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """Return the arguments of a small run of models."""
    monkeypatch.chdir(folder)
    of: dict[str, Any] = {"table_sizes": [3], "bots": ["StefaBot", "UsualBot"], "rules": {"max_turns": 9}}
    file = config_file(player_at(server, "chat"), games=5, in_flight=4, **of)
    return (file, "--quiet", "--no-report")


@pytest.mark.parametrize("number", in_gate(SIGNALS, [signal.SIGHUP]))
def test_interrupted_run_with_models_can_resume(
    tmp_path: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """The message names the signal, and the exit code contains it, as in shells."""
    counted = Counted(then_waits=15)
    with Server(counted) as server:
        words = models(tmp_path, server, monkeypatch)
        with group(tmp_path, *words, "--output", "cut", "--cache", "c1") as process:
            assert counted.reached.wait(60)
            os.killpg(process.pid, number)
            assert process.stdout is not None
            output = process.stdout.readline()
            counted.goes.set()
            output += process.communicate(timeout=60)[0]
        assert process.returncode == 128 + number
        assert "finishing calls in flight (at most 25 s)" in output
        assert f"dubito: stopped by {WORDS[number]}; " in output
        assert "Traceback" not in output
        assert WORDS[number] in (tmp_path / "cut" / "run.log").read_text()
        (figures,) = re.findall(r"\d+ games? finished, \d+ of them counted, [\d,]+ replies saved", output)
        assert figures in shell("status", "cut").out
        digest = ended_here(shell, *words, "--output", "cut", "--cache", "c1")
        assert ended_here(shell, *words, "--output", "whole", "--cache", "c2") == digest
    assert same_games(tmp_path / "cut", tmp_path / "whole")
    said_again = shell("replay", "cut", "--quiet")
    assert (said_again.code, f"results digest: {digest}" in said_again.out) == (0, True)


@pytest.mark.parametrize("number", in_gate(SIGNALS, [signal.SIGINT]))
def test_second_signal_ends_run_at_once_with_calls_at_worst_price(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """The server may never answer. A signal that arrives twice, as `timeout` and shells send it, counts once."""
    counted = Counted(then_waits=2)
    with Server(counted) as server:
        words = models(tmp_path, server, monkeypatch)
        with group(tmp_path, *words, "--output", "cut", "--no-preflight") as process:
            assert counted.reached.wait(60)
            assert process.stdout is not None
            os.killpg(process.pid, number)
            assert f"{WORDS[number]} again stops immediately" in process.stdout.readline()
            if number != signal.SIGINT:
                os.killpg(process.pid, number)  # a duplicate of the same signal
            assert process.poll() is None
            until = time.monotonic() + 20
            while process.poll() is None and time.monotonic() < until:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(0.4)
                    break
                os.killpg(process.pid, number)
            output = process.stdout.read()
        assert process.returncode == 128 + number
        assert f"dubito: stopped by {WORDS[number]}" in output
        calls = rows(tmp_path / "cut", "SELECT DISTINCT assumed, tokens > 8192 FROM tries WHERE state = 'open'")
        assert calls == [(1, 1)]
        counted.goes.set()


@pytest.mark.at_length
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_watch_ends_at_first_signal_with_call_at_worst_price(tmp_path: Path, number: signal.Signals) -> None:
    counted = Counted(then_waits=2)
    with Server(counted) as server:
        at = ("--base-url", server.base_url("chat"), "--api", "chat", "--max-output", "8192")
        with start(tmp_path, "watch", "openai:m@plain", "StefaBot", "UsualBot", "--pace", "0", *at) as process:
            assert counted.reached.wait(60)
            process.send_signal(number)
            _, err = process.communicate(timeout=20)
        counted.goes.set()
    assert (process.returncode, err.splitlines()[-1]) == (128 + number, f"dubito: stopped by {WORDS[number]}")
    calls = rows(tmp_path / "games", "SELECT DISTINCT assumed, tokens > 8192 FROM tries WHERE state = 'open'")
    assert calls == [(1, 1)]


def test_signal_is_handled_even_if_no_thread_wakes(tmp_path: Path) -> None:
    """The signal reaches another thread, as here, or the main thread just before it waits."""
    arrived, in_time = threading.Event(), list[bool]()

    def ended(games: int) -> None:
        if threading.current_thread() is not threading.main_thread():
            signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)
            in_time.append(arrived.wait(10))

    before = signal.signal(signal.SIGUSR1, lambda *_: arrived.set())
    try:
        run_games(small(contender("one"), games=1), tmp_path / "run", progress=ended)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert in_time == [True]


@pytest.mark.at_length
def test_signals_ignored_by_nohup_stay_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(then_waits=5)
    with Server(counted) as server:
        words = models(tmp_path, server, monkeypatch)
        with group(tmp_path, *words, "--output", "r", before="trap '' HUP; ") as process:
            assert counted.reached.wait(60)
            os.killpg(process.pid, signal.SIGHUP)
            counted.goes.set()
            output = process.communicate(timeout=60)[0]
    assert process.returncode == 0
    assert "stopp" not in output


SERVERS: dict[str, tuple[str, ...]] = {
    "web": ("web", "--port", "0"),
    "house": ("house", "--port", "0"),
    "watch": ("watch", "StefaBot", "ClaudeBot", "MrDoubt", "--web", "--port", "0"),
}


@pytest.mark.parametrize(("name", "number"), in_gate([(n, s) for s in SIGNALS[:2] for n in SERVERS], 1))
def test_signal_ends_a_server_like_ctrl_c(tmp_path: Path, name: str, number: signal.Signals) -> None:
    with start(tmp_path, *SERVERS[name]) as process:
        assert process.stdout is not None
        while "ress Ctrl-C to stop" not in process.stdout.readline():
            assert process.poll() is None
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (0, "")
    assert out.splitlines()[-1] in ("stopped", "0 calls answered")


def test_other_commands_report_the_signal(tmp_path: Path) -> None:
    """One of these commands is a game that waits for a person."""
    how = {"stdin": subprocess.PIPE}  # with standard input closed, the game would end
    with start(tmp_path, "play", "ClaudeBot", "StefaBot", "--seed", "1", **how) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 143
    assert err.strip().splitlines()[-1] == "dubito: stopped by SIGTERM"
