"""A slow server gets one short question before the first game, and the run says how long its games will take."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.kit import Result, Shell
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
    said = (
        r"the server is slow: a question takes .* s, .* A game of about \d+ questions takes .*, and 2 games one after"
    )
    assert re.search(said, ran.err), ran.err
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
