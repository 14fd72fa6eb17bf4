"""A slow server gets one short question before its games, the run says how long they take, and Ctrl-C loses nothing."""

import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.kit import Result, Shell, start
from tests.plugins.local.kit import Call, calls_of

RUN = ("run", "--bots", "Sherlock,ClaudeBot", "--contenders", "local:m.gguf@reasoned", "--games", "2")
TABLE = ("--table-sizes", "3", "--max-turns", "20", "--output")


@contextmanager
def slow_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let every answer count as slow."""
    with monkeypatch.context() as patched:
        patched.setattr("dubito.llm.preflight._SLOW_SECONDS", 0.0)
        patched.setattr("dubito.llm.pipeline._SLOW_SECONDS", 0.0)
        yield


def play(shell: Shell, model: Path, output: str, *words: str) -> tuple[Result, list[Call], list[Call]]:
    """Return the result of a run, and its calls before and in its games."""
    log = Path(f"{model}.calls")
    log.unlink(missing_ok=True)
    ran = shell(*RUN, *TABLE, output, *words)
    assert ran.code == 0, ran.err
    calls = calls_of(shell.folder / output, model) if log.exists() else []
    return ran, [call for call in calls if call.game < 0], [call for call in calls if call.game >= 0]


def test_slow_server_is_asked_one_short_question_first(
    shell: Shell, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with slow_server(monkeypatch):
        ran, before, games = play(shell, model, "slow")
    (short,) = before
    assert short.size < 1.05 * min(call.size for call in games)
    assert games[0].known >= 0.9 * short.size, "the first game needs what the server has read"
    message = (
        r"the server is slow: a question takes .* s, a game .* s, and all games .* s, depending on what it remembers"
    )
    assert re.search(message, ran.err), ran.err
    assert re.search(r"\d+ s per question, about \d+ s per game", (shell.folder / "slow" / "run.log").read_text())

    _, fast, _ = play(shell, model, "fast", "--cache", "other")
    sizes = [call.size for call in fast]
    assert sizes[0] == short.size
    assert len(sizes) == 3, "and the longest question of each form"
    assert min(sizes[1:]) > short.size


def test_later_run_asks_a_slow_server_nothing_before_its_games(
    shell: Shell, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with slow_server(monkeypatch):
        assert len(play(shell, model, "first")[1]) == 1
        ran, before, games = play(shell, model, "second", "--games", "4")
    assert (before, "the server is slow" in ran.err) == ([], False)
    assert games


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are not available")
def test_ctrl_c_loses_no_answer(shell: Shell, model: Path) -> None:
    hold, log, table = Path(f"{model}.hold"), Path(f"{model}.calls"), ("--no-report", "--quiet", *TABLE)
    os.mkfifo(hold)
    with start(shell.folder, *RUN, *table, "cut", start_new_session=True) as process:
        assert process.stderr is not None
        with hold.open("w"):  # a question is in flight
            os.killpg(process.pid, signal.SIGINT)
            assert "finishing calls in flight" in process.stderr.readline()
        _, err = process.communicate(timeout=60)
    assert (process.returncode, "stopped by Ctrl-C" in err) == (130, True), err
    hold.unlink()
    assert len(log.read_text().splitlines()) == 3 + 5, "the preflight, and five questions"
    resumed = shell("run", "cut", "--quiet")
    calls = len(log.read_text().splitlines())
    log.unlink()
    whole = shell(*RUN, *table, "whole", "--cache", "other")
    assert (resumed.code, whole.code) == (0, 0), resumed.err + whole.err
    assert calls == len(log.read_text().splitlines()), "no question is asked twice"
    digests = {re.findall(r"^results digest: .*", ran.out, re.MULTILINE)[0] for ran in (resumed, whole)}
    assert len(digests) == 1
