"""A run's worker processes never import the program that started it, and a dead worker is reported as it died."""

import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import dubito
from dubito.errors import RunStopped
from dubito.experiment.processes import WorkerProcesses
from tests.cli.kit import REPO, Shell
from tests.conftest import in_gate
from tests.experiment.kit import experiment, play_all
from tests.llm.kit import Server, player_at, respond, rows

SCRIPT = """
import dubito

small = {"table_sizes": [3], "bots": ["StefaBot", "UsualBot"], "rules": {"max_turns": 5}}
models = dubito.run(small, games=4, contenders=[MODEL, "ClaudeBot"], preflight=False, output="models")
bots = dubito.run(small, games=1002, output="bots", WORKERS)
print("games:", models.counted, bots.counted, models.results_digest, bots.results_digest)
"""
IN_DAEMON = """
import multiprocessing

def play():
    SCRIPT

process = multiprocessing.get_context("fork").Process(target=play, daemon=True)
process.start()
process.join()
"""


def run_file(script: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    (folder / "script.py").write_text(script)
    return run_python(folder, "script.py")


def run_python(folder: Path, *words: str, given: str | None = None) -> "subprocess.CompletedProcess[str]":
    command = (sys.executable, *words)
    return subprocess.run(
        command, cwd=folder, input=given, env=os.environ | {"PYTHONPATH": str(REPO)}, text=True, capture_output=True
    )


def run_in_daemon(script: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    return run_file(IN_DAEMON.replace("SCRIPT", textwrap.indent(script, "    ").strip()), folder)


WAYS: dict[str, Callable[[str, Path], "subprocess.CompletedProcess[str]"]] = {
    "script without a guard": run_file,
    "standard input": lambda script, folder: run_python(folder, "-", given=script),
    "python -c": lambda script, folder: run_python(folder, "-c", script),
    "daemonic process": run_in_daemon,
    "frozen program": lambda script, folder: run_file(
        "import sys; sys.frozen = True\n" + script.replace("workers=2", ""), folder
    ),
}


def fill_in(server: Server) -> str:
    return SCRIPT.replace("MODEL", repr(player_at(server, "chat"))).replace("WORKERS", "workers=2")


def check_played_once(folder: Path, printed: str, server: Server) -> None:
    assert len(re.findall(r"games: 4 1002 \w+ \w+", printed)) == 1, printed
    assert {path.parent.name for path in folder.glob("*/manifest.yaml")} == {"models", "bots"}
    assert rows(folder / "models", "SELECT count(*) FROM tries") == [(len(server.requests),)]
    assert len(server.requests) > 4


@pytest.mark.parametrize("way", in_gate(WAYS, ["script without a guard"]))
def test_caller_of_a_run_plays_and_pays_only_once(way: str, tmp_path: Path) -> None:
    with Server(lambda request: respond(request.protocol)) as server:
        done = WAYS[way](fill_in(server), tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        check_played_once(tmp_path, done.stdout, server)


@pytest.mark.at_length
def test_a_notebook_kernel_plays_and_pays_only_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("ipykernel", "nbclient"):
        pytest.importorskip(package, reason=f"{package} is not installed, so no notebook was run")
    nbclient, nbformat = import_module("nbclient"), import_module("nbformat")

    monkeypatch.setenv("PYTHONPATH", str(REPO))
    with Server(lambda request: respond(request.protocol)) as server:
        cells = [nbformat.v4.new_code_cell(part) for part in fill_in(server).split("\n\n")]
        notebook = nbformat.v4.new_notebook(cells=cells)
        played = nbclient.execute(notebook, cwd=str(tmp_path))
        check_played_once(tmp_path, str(played), server)


def test_frozen_program_cannot_have_workers(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    with pytest.raises(dubito.UsageError, match="frozen into the program; set `workers: 1`"):
        dubito.run(bots=["StefaBot"], games=2000, workers=2, output="r")
    assert not Path("r").exists()


class Mine:
    """A bot that a script defines."""


@pytest.mark.parametrize(
    ("settings", "where"),
    [
        ({"bots": [Mine]}, "bots.0"),
        ({"bots": [{"bot": Mine}]}, "bots.0.bot"),
        ({"game": Mine}, "game"),
        ({"bots": ["StefaBot", {"bot": "LLMBot", "prompt": lambda: ""}]}, "bots.1.prompt"),
    ],
)
def test_code_that_cannot_travel_is_refused_before_the_run(shell: Shell, settings: dict[str, Any], where: str) -> None:
    with pytest.raises(dubito.UsageError, match=rf"^{where}: set the name of .* worker processes load it by name"):
        dubito.run(output="r", **settings)
    assert not Path("r").exists()


ENDING = '''
import os, signal, sys
from bots.manual.random_boi import RandomBoi
class Ending(RandomBoi):
    """Ends its process in the second chunk."""
    def bluff_first_hand(self, p):
        if self._seating.deal > 1000:
            print("an ordinary line")
            {end}
        return super().bluff_first_hand(p)
'''
LAST = "; the last line that it printed is: an ordinary line"


@pytest.mark.parametrize(
    ("end", "words"),
    [
        ("os._exit(3)", f"a worker process ended with exit code 3{LAST}"),
        *in_gate(
            [
                ("os.kill(os.getpid(), signal.SIGKILL)", f"a worker process was ended by SIGKILL{LAST}"),
                ("os.kill(os.getpid(), 40)", f"a worker process was ended by signal 40{LAST}"),
                (
                    "print('\\x1b[31mout of memory', file=sys.stderr, flush=True); os.abort()",
                    r"a worker process was ended by SIGABRT; the last line that it printed is: \x1b[31mout of memory",
                ),
            ],
            1,
        ),
    ],
)
def test_dead_worker_is_reported_with_its_end(shell: Shell, end: str, words: str) -> None:
    shell.bot("ending.py", ENDING.format(end=end))
    result = shell("run", "--bots", "Ending,StefaBot", "--games", "2001", "--workers", "2", "--max-turns", "4")
    assert result.code == 3
    assert f"{words}; " in result.err, result.err


def fail(kind: str) -> Sequence[str]:
    if kind == "unpicklable":
        raise type("Odd", (Exception,), {})("odd")
    raise RunStopped(kind)


def test_error_of_a_call_is_raised_and_the_process_goes_on() -> None:
    processes = WorkerProcesses(1)
    try:
        with pytest.raises(RunStopped, match="why"):
            processes.submit(fail, "why").result()
        with pytest.raises(RuntimeError, match="Odd: odd"):
            processes.submit(fail, "unpicklable").result()
        assert processes.submit(os.path.join, "a", "b").result() == os.path.join("a", "b")
    finally:
        processes.shutdown()


def test_bots_in_workers_print_to_standard_error(shell: Shell) -> None:
    shell.bot("ending.py", ENDING.format(end="pass"))
    result = shell(
        "run", "--bots", "Ending,StefaBot", "--games", "2001", "--workers", "2", "--max-turns", "4", "--json"
    )
    assert (result.code, "an ordinary line" in result.err) == (0, True)
    assert result.out.startswith("{")


def test_results_do_not_depend_on_the_number_of_processes(tmp_path: Path) -> None:
    of = experiment(bots=["RandomBoi", "StefaBot"], games=2400, rules={"max_turns": 4})
    digests = {play_all(of, tmp_path / str(workers), workers=workers).results_digest for workers in (1, 3)}
    assert len(digests) == 1
