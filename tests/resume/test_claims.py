"""What a run claims without proof, and `replay --programs`, which asks its programs again."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from dubito.experiment.experiment import describe_claims, list_claims
from dubito.seats.program import check_program
from tests.cli.kit import Shell
from tests.conftest import in_gate

# Answers hello, then every question with the code in its last line.
PROGRAM = """import json, os, sys
def say(value): print(json.dumps(value), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "hello":
        say({"ready": True})
    elif message["type"] == "decide":
        """
HONEST = "say({'answer': message['node'] in ('B', 'E')})"
OTHER = "say({'answer': False})"
RANDOM = "say({'answer': os.urandom(1)[0] % 2 == 0})"
FAILS = "sys.exit(3)"


def write_program(name: str, answer: str) -> None:
    Path(name).write_text(PROGRAM + answer)


def play_program(shell: Shell, answer: str, *words: str) -> None:
    write_program("mine.py", answer)
    mine = {"name": "mine", "process": [sys.executable, "mine.py"]}
    config = {"games": 3, "table_sizes": [3], "seed": 3, "bots": ["StefaBot", "ClaudeBot"], "contenders": [mine]}
    Path("c.yaml").write_text(yaml.safe_dump(config))
    result = shell("run", "c.yaml", "--output", "run", "--quiet", *words)
    assert result.code == 0, result.err


def change_player(settings: Mapping[str, Any]) -> None:
    """Let the manifest claim other settings of the program."""
    file = Path("run/manifest.yaml")
    content = yaml.safe_load(file.read_text())
    content["identity"]["contenders"][0]["settings"] = dict(settings)
    file.write_text(yaml.safe_dump(content))


def settings_of(name: str) -> dict[str, Any]:
    return check_program("mine", {"process": [sys.executable, name]}, {}, None, Path.cwd())


def test_programs_are_asked_again_with_the_same_answers(shell: Shell) -> None:
    play_program(shell, HONEST)
    plain, asked = shell("replay", "run"), shell("replay", "run", "--programs")
    claim = "Claimed by the run, not proven by a replay: kind, command and files of mine."
    assert (plain.code, claim in plain.err) == (0, True)
    assert (asked.code, claim in asked.err) == (0, False), asked.err
    assert "asked again, with identical answers: mine" in asked.out
    assert shell("export", "run", "run.zip").code == 0
    assert "identical answers: mine" in shell("replay", "run.zip", "--programs").out
    assert "leave out --game" in shell("replay", "run", "--programs", "--game", "1").err


def test_errors_of_a_program_are_asked_again_too(shell: Shell) -> None:
    play_program(shell, FAILS, "--on-bot-error", "fallback")
    asked = shell("replay", "run", "--programs")
    assert (asked.code, "identical answers: mine" in asked.out) == (0, True), asked.out


def claim_other_command() -> None:
    write_program("other.py", OTHER)
    change_player(settings_of("mine.py") | {"process": [sys.executable, "other.py"]})


def claim_other_command_with_its_files() -> None:
    write_program("other.py", OTHER)
    change_player(settings_of("other.py"))


def claim_other_files() -> None:
    change_player(settings_of("mine.py") | {"files": "0" * 64})


def edit_program() -> None:
    write_program("mine.py", HONEST + "  # changed")


@pytest.mark.parametrize(
    ("answer", "change", "problem"),
    in_gate(
        [
            (HONEST, claim_other_command, "mine: the program's files are not those in the manifest"),
            (HONEST, claim_other_command_with_its_files, "the program answers differently now"),
            (HONEST, claim_other_files, "mine: the program's files are not those in the manifest"),
            (HONEST, edit_program, "mine: the program's files are not those in the manifest"),
            (RANDOM, lambda: None, "the program answers differently now"),
        ],
        2,
    ),
)
def test_a_run_of_another_program_differs(shell: Shell, answer: str, change: Any, problem: str) -> None:
    play_program(shell, answer)
    change()
    plain = shell("replay", "run")
    assert (plain.code, "Claimed by the run" in plain.err) == (0, True), "a plain replay cannot tell, and says so"
    asked = shell("replay", "run", "--programs")
    assert asked.code == 1
    assert asked.out.startswith("differs: mine")
    assert problem in asked.out
    assert "recorded: " in asked.out
    assert "now: " in asked.out


def test_a_program_that_is_called_an_agent_is_not_asked_and_only_claimed(shell: Shell) -> None:
    play_program(shell, HONEST)
    change_player({"remote": True, "deadline": 5.0})
    plain = shell("replay", "run")
    assert (plain.code, "kind and identity of mine" in plain.err) == (0, True)
    asked = shell("replay", "run", "--programs")
    assert asked.code == 2
    assert "agents cannot be asked again; that mine played as an agent is only claimed" in asked.err
    assert "run has no programs that could be asked again" in asked.err


def test_claims_are_marked_where_they_are_shown(shell: Shell) -> None:
    play_program(shell, HONEST, "--report")
    mine = {"mine": ["kind", "command", "files"]}
    assert json.loads(shell("run", "run", "--json").out)["claimed"] == mine
    assert json.loads(shell("compare", "run", "--json").out)["claimed"] == mine
    compared = shell("compare", "run").out
    assert "kind (claimed)" in compared
    assert "kind, command and files of mine" in compared
    overview = Path("run/report/index.html").read_text()
    assert "kind (claimed)" in overview
    assert "Claimed by the run, not proven by a replay: kind, command and files of mine." in overview


def test_only_what_a_replay_proves_is_not_claimed() -> None:
    assert list_claims({"a": "hand-written"}) == {}
    assert describe_claims({"a": "hand-written"}) is None
    models = list_claims({"a": "model", "b": "fake model"})
    assert models["a"] == models["b"] == ["kind", "model", "server", "tokens", "dollars", "status codes"]
    claims = describe_claims({"a": "model", "b": "agent", "c": "hand-written", "d": "model"})
    assert claims is not None
    assert "status codes of a and d; kind and identity of b." in claims
