"""Digests do not change, and users' files stay readable."""

import csv
from pathlib import Path
from shutil import copytree

import pytest
import yaml

from dubito.files import read_yaml
from dubito.games.dubito.game import GAME
from tests.cli.kit import Shell
from tests.conftest import in_gate
from tests.freeze.made import HAND_WRITTEN, HERE, MODELS, frozen, request_digests

FROZEN = frozen()


def said_digest(out: str) -> str:
    (line,) = [line for line in out.splitlines() if line.startswith("results digest: ")]
    return line.removeprefix("results digest: ")


@pytest.mark.parametrize("name", in_gate(HAND_WRITTEN, {"contenders"}))
def test_frozen_games_end_as_recorded(shell: Shell, name: str) -> None:
    result = shell("run", *HAND_WRITTEN[name], "--output", "r", "--quiet", "--workers", "1")
    assert said_digest(result.out) == FROZEN["results"][name]


def test_demo_has_the_same_result(shell: Shell, at_length: bool) -> None:
    if not at_length:
        pytest.skip("slow test: use --at-length")
    Path("demo.yaml").write_text(yaml.safe_dump(GAME.demo))
    assert said_digest(shell("run", "demo.yaml", "--output", "r", "--quiet").out) == FROZEN["results"]["demo"]


def test_models_are_asked_the_same_bytes() -> None:
    assert request_digests() == FROZEN["requests"]


def test_a_run_is_played_again(shell: Shell) -> None:
    copytree(HERE / "finished", "finished")
    result = shell("replay", "finished")
    assert result.code == 0, result.out + result.err
    assert said_digest(result.out) == FROZEN["results"]["finished"]


def test_an_export_is_played_again(shell: Shell) -> None:
    result = shell("replay", str(HERE / "finished.zip"))
    assert result.code == 0, result.out + result.err
    assert said_digest(result.out) == FROZEN["results"]["finished"]


def test_saved_game_is_narrated_again(shell: Shell) -> None:
    result = shell("replay", str(HERE / "game.json"))
    assert (result.code, result.out.partition(":")[0]) == (0, "identical")


def test_finished_run_is_shown_and_reported(shell: Shell) -> None:
    copytree(HERE / "finished", "finished")
    Path("c.yaml").write_text(yaml.safe_dump(dict(MODELS)))
    result = shell("run", "c.yaml", "--output", "finished", "--quiet")
    assert "this run is already finished in" in result.err
    assert said_digest(result.out) == FROZEN["results"]["finished"]
    assert shell("report", "finished").code == 0
    assert "Model players" in Path("finished/report/index.html").read_text()


def test_finished_run_distinguishes_fake_models_and_counts_lies(shell: Shell) -> None:
    copytree(HERE / "finished", "finished")
    assert shell("report", "finished").code == 0
    with Path("finished/report/data/lies.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["bot"]: row["kind"] for row in rows} == {
        "one": "fake model",
        "two": "fake model",
        "StefaBot": "hand-written",
        "UsualBot": "hand-written",
    }
    counted = read_yaml(Path("finished/all_games.yaml"))
    assert all(int(row["chosen"]) + int(row["forced"]) == counted[row["bot"]]["total"]["bluffs"] > 0 for row in rows)


def test_stopped_run_resumes(shell: Shell) -> None:
    copytree(HERE / "stopped", "stopped")
    before = said_digest(shell("status", "stopped").out)
    assert before == FROZEN["results"]["stopped"] != FROZEN["results"]["finished"]
    Path("c.yaml").write_text(yaml.safe_dump(dict(MODELS)))
    result = shell("run", "c.yaml", "--output", "stopped", "--quiet")
    assert said_digest(result.out) == FROZEN["results"]["finished"]
