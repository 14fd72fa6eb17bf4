"""`dubito status` in every state of a run."""

import re
from pathlib import Path
from typing import Any

import pytest

from dubito.store.spend import dollars
from tests.cli.kit import Shell
from tests.llm.kit import Incoming, Response, Server, outcomes_of, player_at, respond, rows, run_cli

PRICE = {"input": 2, "cached_input": 0.1, "cache_write": 2.5, "output": 10}
EACH = 100 * 2_000_000 + 20 * 10_000_000  # picodollars per reply of the server


def lines(shell: Shell, folder: str = "r") -> list[str]:
    ended = shell("status", folder)
    assert (ended.code, ended.err) == (0, "")
    return ended.out.splitlines()


def test_status_of_a_finished_run_adds_up_its_calls(shell: Shell) -> None:
    with Server(lambda request: respond(request.protocol)) as server:
        ended = run_cli(shell, player_at(server), prices={"some-model": PRICE})
    status, calls = lines(shell), len(server.requests)
    assert status[:2] == ["games: 2 of 2 counted", "state: finished"]
    decisions = sum(outcomes_of(Path("r")).values())
    own = status.index(f"asker: {decisions} decisions in 2 games, {calls} calls, cache 0.0 %")
    assert status[own + 1 : own + 4] == [
        f"  model: {decisions}",
        f"  tokens: input {100 * calls:,}, cached 0, cache_write 0, output {20 * calls:,}, reasoning 0",
        f"  cost: {dollars(EACH * calls)}",
    ]
    digest = re.search(r"^results digest: [0-9a-f]{64}$", ended.out, re.MULTILINE)
    assert digest is not None
    assert status[-1] == digest[0]
    assert not any(line.startswith("failed calls") for line in status)


def test_a_run_that_was_stopped(shell: Shell) -> None:
    def answer(request: Incoming) -> Response:
        return (
            Response(429, headers={"retry-after": "0"}) if len(server.requests) % 3 == 0 else respond(request.protocol)
        )

    with Server(answer) as server:
        ended = run_cli(shell, player_at(server), games=40, budget={"calls": 30}, flags=["--in-flight", "1"])
    assert ended.code == 3
    status = lines(shell)
    ((kept,),) = rows(Path("r"), "SELECT count(*) FROM games")
    assert 0 < kept < 40
    assert status[:2] == [f"games: {kept} of 40 counted", "state: stopped"]
    assert "failed calls, rate_limit: 10" in status
    assert any(re.fullmatch(r"asker: \d+ decisions in \d+ games, 30 calls, cache 0\.0 %", line) for line in status)
    assert "  cost: unknown (no price for this model)" in status


def test_a_run_while_it_is_played(shell: Shell) -> None:
    """The status is read through a second connection during a call."""
    seen = list[list[str]]()

    def answer(request: Incoming) -> Response:
        if len(server.requests) == 5:
            seen.append(lines(shell))
        return respond(request.protocol)

    with Server(answer) as server:
        run_cli(shell, player_at(server), flags=["--in-flight", "1", "--no-preflight"])
    (status,) = seen
    assert status[:2] == ["games: 0 of 2 counted", "state: playing"]
    assert "asker: 4 decisions in 1 games, 5 calls, cache 0.0 %" in status
    assert "  cost: unknown (no price for this model)" in status


def test_a_run_of_hand_written_bots(shell: Shell) -> None:
    assert run_cli(shell, "ClaudeBot", games=3).code == 0
    status = lines(shell)
    assert status[:2] == ["games: 3 of 3 counted", "state: finished"]
    assert len(status) == 3
    assert status[2].startswith("results digest: ")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda folder: None, "r does not exist: no runs in runs either"),
        (lambda folder: folder.mkdir(), "r is not a run folder: it has no manifest.yaml"),
        (
            lambda folder: folder.write_text("a file"),
            "r is not a run; give a run folder or an exported run",
        ),
    ],
)
def test_folder_without_a_run_is_refused(shell: Shell, make: Any, words: str) -> None:
    make(Path("r"))
    ended = shell("status", "r")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"dubito: {words}")
    assert ended.err.count("\n") == 1
