"""Prompt cassettes: recorded once, then tested without a key, a network or a model."""

import json
import shutil
from pathlib import Path
from typing import Any, Final

import pytest

from dubito.errors import RunStopped, UsageError
from dubito.workshop.verdict import parse_expectations
from tests.cli.kit import REPO, Shell
from tests.llm.kit import KEY, Incoming, Server, respond

MODEL: Final = ("--model", "house:house-sharp")


@pytest.fixture
def cassette(shell: Shell) -> str:
    """Record a cassette of a copy of the prompt `plain` at ten positions."""
    shutil.copytree(REPO / "prompts" / "plain", shell.folder / "mine", ignore=shutil.ignore_patterns("golden"))
    shutil.copytree(REPO / "prompts" / "shared", shell.folder / "shared")
    positions = shell.folder / "positions"
    positions.mkdir()
    for file in sorted((REPO / "prompts" / "positions").glob("*.json"))[::4]:
        shutil.copy2(file, positions)
    recorded = shell("prompts", "test", "./mine", *MODEL, "--positions", "positions", "--record", "c.yaml")
    assert recorded.code == 0, recorded.err
    return "c.yaml"


def test_cassette_gives_the_same_figures_without_a_call(shell: Shell, cassette: str) -> None:
    live = json.loads(shell("prompts", "test", "./mine", *MODEL, "--positions", "positions", "--json").out)
    replayed = shell("prompts", "test", "./mine", "--cassette", cassette, "--json")
    assert (replayed.code, json.loads(replayed.out)) == (0, live)
    assert live["prompts"][0]["positions"] == 10


def test_changed_prompt_fails_with_the_first_difference_and_the_command(shell: Shell, cassette: str) -> None:
    text = shell.folder / "mine" / "user.jinja"
    text.write_text(text.read_text() + "Think twice.\n")
    replayed = shell("prompts", "test", "./mine", "--cassette", cassette)
    assert replayed.code == 1
    assert "Think twice." in replayed.err
    assert "dubito prompts test ./mine --model house:house-sharp --record c.yaml" in replayed.err


def test_full_disk_is_not_a_changed_prompt(shell: Shell, monkeypatch: pytest.MonkeyPatch, cassette: str) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RunStopped("cannot write run.db: database or disk is full")

    monkeypatch.setattr("dubito.store.model_log.ModelLog.decision", fail)
    replayed = shell("prompts", "test", "./mine", "--cassette", cassette)
    assert (replayed.code, replayed.err) == (3, "dubito: cannot write run.db: database or disk is full\n")


def test_expectation_that_is_not_met_is_exit_code_1(shell: Shell, cassette: str) -> None:
    given = ("prompts", "test", "./mine", "--cassette", cassette, "--expect")
    assert shell(*given, "right>=0, invalid<=0").code == 0
    failed = shell(*given, "right>=101, tokens_in<=1")
    assert failed.code == 1
    assert failed.err.count("expectation not met: ") == 2


@pytest.mark.parametrize("expected", ["right", "right=5", "write>=5", "right>=5;", ""])
def test_expectation_that_cannot_be_read_is_reported_in_one_message(expected: str) -> None:
    with pytest.raises(UsageError, match=r"^--expect"):
        parse_expectations(expected)


def test_file_is_one_of_vcrpy_without_a_key(shell: Shell, monkeypatch: pytest.MonkeyPatch, cassette: str) -> None:
    from vcr.serialize import deserialize
    from vcr.serializers import yamlserializer

    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    def answer(request: Incoming) -> Any:
        return respond(request.protocol, text='{"answer": true}', note=KEY)

    with Server(answer) as server:
        where = ("--base-url", server.base_url("responses"), "--api-key-env", "OPENAI_API_KEY", "--no-preflight")
        recorded = shell(
            *("prompts", "test", "./mine", "--model", "openai:m", *where),
            *("--positions", "positions", "--record", "k/k.yaml"),
        )
    assert recorded.code == 0, recorded.err
    text = (shell.folder / "k" / "k.yaml").read_text()
    assert KEY not in text
    monkeypatch.delenv("OPENAI_API_KEY")
    assert shell("prompts", "test", "./mine", "--cassette", "k/k.yaml").code == 0
    requests, responses = deserialize(text, yamlserializer)
    assert len(requests) == len(responses) == 10
    assert json.loads(requests[0].body)["model"] == "m"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("hello", "is not a prompt's cassette"),
        ("version: 1\ninteractions: []", "is not a prompt's cassette"),
        ("dubito: {format: 9}", "was written by another version of Dubito"),
        ("dubito: {format: 1}", "is damaged"),
        ("[" * 5000, "is not a prompt's cassette"),
    ],
)
def test_other_file_is_refused_with_one_message(shell: Shell, content: str, message: str) -> None:
    (shell.folder / "x.yaml").write_text(content)
    refused = shell("prompts", "test", "plain", "--cassette", "x.yaml")
    assert (refused.code, message in refused.err) == (2, True), refused.err
    assert refused.err.count("\n") == 1


def test_cassette_of_a_run_replays_the_run_s_replies(shell: Shell) -> None:
    bots = ("--bots", "Sherlock,ClaudeBot,house:house-sharp@plan")
    assert shell("run", *bots, "--games", "3", "--table-sizes", "3", "--output", "r").code == 0
    recorded = shell("prompts", "cassette", "r", "c.yaml", "--count", "4")
    assert "recorded: 4 positions of house:house-sharp@plan in c.yaml" in recorded.out
    assert shell("prompts", "test", "plan", "--cassette", "c.yaml").code == 0
    assert shell("prompts", "test", "plain", "--cassette", "c.yaml").code == 1


def test_fixture_scores_a_prompt_and_fails_a_changed_one(
    shell: Shell, cassette: str, prompt_cassette: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert prompt_cassette("./mine", cassette).invalid.value == 0
    (shell.folder / "mine" / "user.jinja").write_text("Anything.")
    with pytest.raises(pytest.fail.Exception, match=r"has no reply to a request of \./mine"):
        prompt_cassette("./mine", Path(cassette))
