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
    with Server(lambda heard: respond(heard.protocol)) as server:
        ended = run_cli(shell, player_at(server), prices={"some-model": PRICE})
    said, calls = lines(shell), len(server.heard)
    assert said[:2] == ["games: 2 of 2 counted", "state: finished"]
    decisions = sum(outcomes_of(Path("r")).values())
    own = said.index(f"asker: {decisions} decisions in 2 games, {calls} calls, cache 0.0 %")
    assert said[own + 1 : own + 4] == [
        f"  model: {decisions}",
        f"  tokens: input {100 * calls:,}, cached 0, cache_write 0, output {20 * calls:,}, reasoning 0",
        f"  cost: {dollars(EACH * calls)}",
    ]
    digest = re.search(r"^results digest: [0-9a-f]{64}$", ended.out, re.MULTILINE)
    assert digest is not None
    assert said[-1] == digest[0]
    assert not any(line.startswith("failed calls") for line in said)


def test_a_run_that_was_stopped(shell: Shell) -> None:
    def answer(heard: Incoming) -> Response:
        return Response(429, headers={"retry-after": "0"}) if len(server.heard) % 3 == 0 else respond(heard.protocol)

    with Server(answer) as server:
        ended = run_cli(shell, player_at(server), games=40, budget={"calls": 30}, flags=["--in-flight", "1"])
    assert ended.code == 3
    said = lines(shell)
    ((kept,),) = rows(Path("r"), "SELECT count(*) FROM games")
    assert 0 < kept < 40
    assert said[:2] == [f"games: {kept} of 40 counted", "state: stopped"]
    assert "failed calls, rate_limit: 10" in said
    assert any(re.fullmatch(r"asker: \d+ decisions in \d+ games, 30 calls, cache 0\.0 %", line) for line in said)
    assert "  cost: unknown (no price for this model)" in said


def test_a_run_while_it_is_played(shell: Shell) -> None:
    """The status is read through a second connection during a call."""
    seen = list[list[str]]()

    def answer(heard: Incoming) -> Response:
        if len(server.heard) == 5:
            seen.append(lines(shell))
        return respond(heard.protocol)

    with Server(answer) as server:
        run_cli(shell, player_at(server), flags=["--in-flight", "1", "--no-preflight"])
    (said,) = seen
    assert said[:2] == ["games: 0 of 2 counted", "state: playing"]
    assert "asker: 4 decisions in 1 games, 5 calls, cache 0.0 %" in said
    assert "  cost: unknown (no price for this model)" in said


def test_a_run_of_hand_written_bots(shell: Shell) -> None:
    assert run_cli(shell, "ClaudeBot", games=3).code == 0
    said = lines(shell)
    assert said[:2] == ["games: 3 of 3 counted", "state: finished"]
    assert len(said) == 3
    assert said[2].startswith("results digest: ")


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
