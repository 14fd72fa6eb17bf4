"""Closed or unread output is not an error, and a killed command does not block others."""

import os
import signal
import subprocess
import sys
from itertools import cycle, product
from pathlib import Path
from shutil import copytree

import pytest

from tests.cli.kit import REPO, Shell
from tests.conftest import in_gate

COMMANDS = ("status r", "run --help", "watch StefaBot UsualBot RandomBoi")


@pytest.fixture
def run(shell: Shell) -> Shell:
    copytree(REPO / "tests" / "freeze" / "finished", "r")
    copytree("r", "runs/r")
    return shell


def in_bash(line: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(REPO)}
    script = f'set -o pipefail; dubito() {{ {sys.executable} -m dubito "$@"; }}; {line}'
    return subprocess.run(["/bin/bash", "-c", script], env=environment, capture_output=True, text=True, check=False)


UNREAD = [">&-", "| true", ">&- 2>&- <&-"]


@pytest.mark.parametrize(("to", "command"), in_gate(product(UNREAD, COMMANDS), zip(cycle(UNREAD), COMMANDS)))
def test_unread_output_is_not_an_error(run: Shell, to: str, command: str) -> None:
    done = in_bash(f"dubito {command} {to}")
    assert (done.returncode, done.stderr) == (0, "")


def test_difference_does_not_depend_on_the_output(run: Shell) -> None:
    Path("r/all_games.yaml").write_text("changed")
    assert in_bash("dubito replay r --quiet >&-").returncode == 1
    assert in_bash("dubito nothing >&-").returncode == 2


def test_killed_export_does_not_block_the_next(run: Shell, tmp_path: Path) -> None:
    """A killed export leaves only a partial file next to the target, which the next export replaces."""
    (tmp_path / "scratch").mkdir()
    program = (
        "import os, signal, shutil, dubito.store.folder as export\n"
        "export.copyfileobj = lambda *words: os.kill(os.getpid(), signal.SIGKILL)\n"  # in the middle of the export
        "from dubito.cli.main import main; main(['export', 'r', 'run.zip'])"
    )
    environment = os.environ | {"PYTHONPATH": str(REPO), "TMPDIR": str(tmp_path / "scratch")}
    killed = subprocess.run([sys.executable, "-c", program], env=environment, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert not [*(tmp_path / "scratch").iterdir()]
    assert not Path("run.zip").exists()
    before = {path.name for path in Path().iterdir()}
    assert run("export", "r", "run.zip").out == "written: run.zip\n"
    assert {path.name for path in Path().iterdir()} == before - {".run.zip.part"} | {"run.zip"}
    assert run("replay", "run.zip", "--quiet").code == 0
