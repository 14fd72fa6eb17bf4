"""A user's prompts under pytest, with one line of configuration, in a separate process."""

import os
import re
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from dubito.games.dubito.facts import DubitoFacts, example_position
from dubito.games.dubito.game import GAME
from dubito.workshop.checks import golden_files
from dubito.workshop.recordings import read_folder, shipped_positions, write_files
from tests.cli.kit import REPO
from tests.workshop.kit import prompt

PLUGIN = "dubito.workshop.pytest_plugin"
OWN_TEST = """
import sys

def test_own():
    print(sorted(name for name in sys.modules if name.startswith("dubito")))
"""


def pytest_says(folder: Path, *words: str) -> tuple[int, str]:
    """Return pytest's exit code and output in this folder, with the plugin as an installation would load it."""
    environment = os.environ | {"PYTHONPATH": str(REPO), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", "-p", PLUGIN, "-p", "no:cacheprovider", "--color=no", *words]
    done = subprocess.run(command, cwd=folder, env=environment, text=True, capture_output=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Set up a project with a test, a prompt and the configuration line."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_own.py").write_text(OWN_TEST)
    (tmp_path / "pyproject.toml").write_text(
        '[tool.pytest.ini_options]\ntestpaths = ["tests"]\ndubito_prompts = ["prompts/mine"]\n'
    )
    prompt(tmp_path / "prompts", system="{{ 'The rules. ' * 900 }}", user="{{ question }}\n")
    return tmp_path


def read_outcomes(output: str, name: str = "mine") -> dict[str, str]:
    return dict(re.findall(rf"^prompts/{name}/prompt\.yaml::(\S+) (PASSED|FAILED)", output, re.MULTILINE))


NODES = [f"renders[{node}]" for node in "ABCDE"]
GOLDEN = [f"golden[{node}]" for node in "ABCDE"]
REST = ["system_text_stays", "beginning_stays"]


def test_one_line_of_configuration_tests_a_prompt_too(project: Path) -> None:
    code, output = pytest_says(project, "-v")
    assert code == 0, output
    assert read_outcomes(output) == dict.fromkeys(["loads", *NODES, *REST], "PASSED")
    assert "tests/test_own.py::test_own PASSED" in output


def test_failures_are_readable(project: Path) -> None:
    mine = project / "prompts" / "mine"
    write_files(golden_files(prompt(project / "prompts", "other", user="Old.\n{{ question }}\n")))
    (project / "prompts" / "other" / "golden").rename(mine / "golden")
    (mine / "system.jinja").write_text("You hold {{ own_cards }} cards.\n")
    example = DubitoFacts().facts(example_position("D"))["own_cards"]
    held = [
        DubitoFacts().facts(one.position)["own_cards"]
        for one in read_folder(shipped_positions(GAME), GAME).values()
        if one.position.node == "D"
    ]
    fails = f"node == 'D' and own_cards == {next(n for n in held if n != example)}"
    (mine / "user.jinja").write_text(f"New.\n{{% if {fails} %}}{{{{ 1 // 0 }}}}{{% endif %}}{{{{ question }}}}\n")
    (prompt(project / "prompts", "broken").folder / "user.jinja").write_text("{{ hands }}")
    (project / "pyproject.toml").write_text(
        '[tool.pytest.ini_options]\ndubito_prompts = ["prompts/mine", "prompts/broken"]\n'
    )
    code, output = pytest_says(project, "-v", "prompts")
    assert code == 1
    assert read_outcomes(output, "broken") == {"loads": "FAILED"}
    assert "unknown variable 'hands': did you mean 'hand'?" in output
    how = read_outcomes(output)
    assert {name for name, end in how.items() if end == "PASSED"} - set(REST) == {"loads", *NODES} - {"renders[D]"}
    assert {name for name, end in how.items() if end == "FAILED"} >= {"renders[D]", *GOLDEN, "beginning_stays"}
    assert "user.jinja, line 2: ZeroDivisionError" in output
    assert "the position is " in output
    assert "\n-Old.\n+New.\n" in output
    assert f"if this is intended, run dubito prompts golden {mine}" in output
    assert "Traceback" not in output
    assert "checks.py" not in output
    assert "tests/test_own.py" not in output, "the command line determines what is collected"


def test_no_line_does_nothing_and_a_wrong_line_is_named(project: Path) -> None:
    (project / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    code, output = pytest_says(project, "-v", "-s")
    assert (code, read_outcomes(output)) == (0, {}), output
    assert f"['dubito', 'dubito.workshop', '{PLUGIN}']" in output, "only these modules are imported"
    (project / "pyproject.toml").write_text('[tool.pytest.ini_options]\ndubito_prompts = ["prompts/none"]\n')
    code, output = pytest_says(project)
    assert code == 4
    assert f"dubito_prompts: {project}/prompts/none is not a prompt because it has no prompt.yaml" in output


def test_the_plugin_is_registered_and_imports_nothing_but_pytest() -> None:
    registered = tomllib.loads((REPO / "pyproject.toml").read_text())["project"]["entry-points"]["pytest11"]
    assert registered == {"dubito_prompts": PLUGIN}
    assert import_module(PLUGIN)
    script = f"import pytest, sys; before = set(sys.modules); import {PLUGIN}; print(sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", script], cwd=REPO, text=True, capture_output=True, check=True)
    assert done.stdout.strip() == str(["dubito", "dubito.workshop", PLUGIN])
