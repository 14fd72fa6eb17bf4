"""The wheel and the sdist work in fresh environments, installed with their dependencies and used in an empty folder.

This needs a package index.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.kit import read_lobby
from tests.test_project import REPO, command

MAX_BYTES = {"wheel": 3_000_000, "sdist": 10_000_000}  # recorded runs of models are 5.6 MB of it
OWN_BOT = re.findall(r"^```python\n(.*?)^```$", (REPO / "docs" / "writing-a-bot.md").read_text(), re.M | re.S)[0]
OWN_PROJECT = {
    "bots/__init__.py": "",
    "bots/helper.py": "LEVEL = 3\n",
    "tests/test_own.py": "from bots.helper import LEVEL\n\n\ndef test_own():\n    assert LEVEL == 3\n",
    "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["."]\ndubito_prompts = ["prompts/mine"]\n',
}


def build(kind: str, folder: Path) -> Path:
    command(REPO, sys.executable, "-m", "hatchling", "build", "--target", kind, "--directory", str(folder))
    (built,) = folder.glob("dubito-*")
    assert built.stat().st_size < MAX_BYTES[kind]
    return built


@pytest.mark.at_length
@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_installed_artefact_does_what_a_newcomer_tries(kind: str, tmp_path: Path, subtests: pytest.Subtests) -> None:
    built, here, programs = build(kind, tmp_path), tmp_path / "here", tmp_path / "environment" / "bin"
    here.mkdir()
    command(tmp_path, sys.executable, "-m", "venv", "environment")
    command(here, str(programs / "pip"), "install", "--quiet", "--no-compile", str(built), "pytest")
    dubito = str(programs / "dubito")
    with subtests.test("demo"):
        assert "Identical: both runs have the same results digest." in command(here, dubito, "demo")
    with subtests.test("a bot of one's own"):
        command(here, dubito, "new", "bot", "MyBot")
        (here / "bots" / "manual" / "honest.py").write_text(OWN_BOT)
        output = command(here, dubito, "run", "--bots", "MyBot,Honest,ClaudeBot", "--games", "20")
        assert "\nMyBot " in output
        assert "\nHonest " in output
    with subtests.test("a game of one's own"):
        command(here, dubito, "examples", "copy", "games")
        kuhn = ("--games-path", "games/kuhn", "--game", "kuhn")
        assert "results digest: " in command(here, dubito, "run", *kuhn, "--games", "20", "--tables")
    with subtests.test("web"):
        words = (dubito, "web", "--port", "0", "--no-browser")
        with subprocess.Popen(words, cwd=here, text=True, stdout=subprocess.PIPE) as process:
            try:
                assert "Deal the cards" in read_lobby(process)
            finally:
                process.terminate()
    with subtests.test("pytest beside another package that is called bots"):
        project = here / "project"
        for name, text in OWN_PROJECT.items():
            (project / name).parent.mkdir(parents=True, exist_ok=True)
            (project / name).write_text(text)
        copied = shutil.ignore_patterns("golden")
        shutil.copytree(REPO / "prompts" / "plain", project / "prompts" / "mine", ignore=copied)
        passed = command(project, str(programs / "python"), "-m", "pytest", "-q")
        assert re.search(r"^9 passed", passed, re.MULTILINE)


@pytest.mark.at_length
@pytest.mark.skipif(not (Path(sys.executable).parent / "uv").exists(), reason="uv is not installed")
def test_uv_runs_and_installs_the_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built, uv = build("wheel", tmp_path), str(Path(sys.executable).parent / "uv")
    for variable in ("UV_TOOL_DIR", "UV_TOOL_BIN_DIR"):
        monkeypatch.setenv(variable, str(tmp_path / variable))
    demo = command(tmp_path, uv, "tool", "run", "--from", str(built), "dubito", "demo")
    assert "Identical: " in demo
    assert "\nall tables: uvx dubito demo --output " in demo
    command(tmp_path, uv, "tool", "install", "--quiet", str(built))
    assert command(tmp_path, os.path.join(tmp_path, "UV_TOOL_BIN_DIR", "dubito"), "bots").startswith("17 bots\n")
