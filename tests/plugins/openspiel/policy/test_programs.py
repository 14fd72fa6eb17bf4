"""Programs in `dubito policy`."""

import sys

import pytest

from tests.cli.kit import Shell
from tests.plugins.openspiel.policy.test_command import nash_conv_of

pytest.importorskip("pyspiel", reason="OpenSpiel is an extra: pip install 'dubito[openspiel]'")

FLAGS = ("--duel", "--ranks", "2", "--copies", "2", "--jokers", "0", "--win-rule", "contested", "--max-turns", "2")
# Never doubts, never bluffs where it can avoid it, and plays as many cards as it can, like MrNoDoubt.
PROGRAM = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "hello":
        print(json.dumps({"ready": True, "resets": True}), flush=True)
    elif message["type"] == "decide":
        print(json.dumps({"answer": ANSWER}), flush=True)
"""
POLICY = ("--game", "dubito", *FLAGS, "--iterations", "20", "--allow-unsandboxed")


def write_program(shell: Shell, answer: str) -> str:
    (shell.folder / "mine.py").write_text(PROGRAM.replace("ANSWER", answer))
    return f"{sys.executable} mine.py"


def test_a_program_is_measured_like_the_bot_that_plays_the_same(shell: Shell) -> None:
    command = write_program(shell, 'message["node"] in "BE"')
    result = shell("policy", command, "MrNoDoubt", *POLICY, "--draws", "1")
    assert result.code == 0, result.err
    assert f"61 information states\n{command}: 9 questions\nMrNoDoubt: 9 questions\n" in result.err
    assert nash_conv_of(result.out, command) == nash_conv_of(result.out, "MrNoDoubt") == 1
    assert "program" in (shell.folder / "runs").glob("policy-*/report/index.html").__next__().read_text()


def test_a_program_that_fails_ends_the_command(shell: Shell) -> None:
    result = shell("policy", write_program(shell, '"no"'), *POLICY, "--quiet")
    assert result.code != 0
    assert "answered" in result.err
