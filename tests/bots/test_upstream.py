"""Files of the source project (github.com/isBre/Dubito) play in a user's folder, unchanged.

Its files are not in this repository. `pytest --at-length --upstream FOLDER` tests each subfolder of FOLDER that has one
version: its folder `bots` and its `experiment.yaml`.
"""

import json
import re
from pathlib import Path
from shutil import copy, copytree

import pytest

from tests.cli.kit import Shell

pytestmark = pytest.mark.at_length


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    folder = metafunc.config.getoption("--upstream")
    versions = sorted(file.parent for file in Path(folder).glob("*/experiment.yaml")) if folder else []
    metafunc.parametrize("version", versions, ids=lambda version: version.name)


@pytest.fixture
def home(shell: Shell, version: Path) -> Shell:
    copytree(version / "bots", shell.folder / "bots")
    copy(version / "experiment.yaml", shell.folder)
    return shell


def class_names(version: Path) -> set[str]:
    files = [file for kind in ("manual", "llms") for file in (version / "bots" / kind).glob("[a-z]*.py")]
    return {name for file in files for name in re.findall(r"^class (\w+)\(BotBase\)", file.read_text("utf-8"), re.M)}


def test_every_class_is_a_repeatable_bot(home: Shell, version: Path) -> None:
    listed = json.loads(home("bots", "--json").out)
    assert listed["broken"] == []
    theirs = {bot["name"]: bot for bot in listed["bots"] if bot["file"].startswith("bots/")}
    assert theirs.keys() == class_names(version)
    assert all(bot["repeatable"] and not bot["missing"] for bot in theirs.values())


def test_games_are_the_same_with_two_workers_and_replay(home: Shell, version: Path) -> None:
    digests = set()
    for workers in ("1", "2"):
        words = ("--games", "200", "--workers", workers, "--output", f"r{workers}", "--quiet", "--no-report")
        ran = home("run", "--bots", ",".join(sorted(class_names(version))), *words)
        assert ran.code == 0, ran.err
        replayed = home("replay", f"r{workers}", "--quiet").out
        assert replayed.startswith("identical: 200 games")
        digests.add(replayed.split("results digest: ")[1].split()[0])
    assert len(digests) == 1


def test_experiment_yaml_is_translated(home: Shell) -> None:
    ran = home("run", "experiment.yaml", "--games", "60", "--output", "run", "--quiet", "--no-report")
    assert ran.code == 0, ran.err
    (line,) = [line for line in ran.err.splitlines() if "is translated from isBre/Dubito" in line]
    for change in (
        "n_experiments is now games: 1",
        "available_players is now table_sizes: [3, 4, 5, 6, 7]",
        "left out",
    ):
        assert change in line
    assert "60 games" in ran.out
