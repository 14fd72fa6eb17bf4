"""Shared helpers for command line tests: run a command in this process or in a new one."""

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

import dubito
from dubito.cli.main import main

REPO = Path(dubito.__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class Result:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str


STARTS_PROGRAMS = ("run", "seat", "play", "watch", "web", "estimate")
PLAY_TOURNAMENT = ("tournament", "play")


def with_trust(words: tuple[str, ...]) -> tuple[str, ...]:
    """Add consent to start programs, unless the test's own flag `--ask` is there."""
    if "--ask" in words:
        return tuple(word for word in words if word != "--ask")
    starts = words[:1] in [(name,) for name in STARTS_PROGRAMS] or words[:2] in [("bots", "check"), PLAY_TOURNAMENT]
    starts |= words[:1] == ("replay",) and "--programs" in words
    return (*words, "--trust") if starts else words


def with_test_flags(words: tuple[str, ...]) -> tuple[str, ...]:
    """Add the flags that tests use.

    These are all tables, consent to start programs and, unless requested, no report and no worker processes.
    """
    words = with_trust(words)
    if words[:1] in (("run",), ("merge",), ("policy",)):
        words += ("--tables",)
    if words[:1] == ("run",):
        words += () if "--report" in words else ("--no-report",)
        words += () if "--workers" in words else ("--workers", "1")
    return words


class Shell:
    """Runs `dubito` with a working directory that belongs to the test."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(folder)
        self.folder = folder
        self._capsys = capsys

    def __call__(self, *words: str) -> Result:
        """Run the command in this process.

        It prints all tables. Unless requested, a run writes no report and starts no worker processes.
        """
        with pytest.raises(SystemExit) as ended:
            main(with_test_flags(words))
        out, err = self._capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return Result(ended.value.code, out, err)

    def bot(self, name: str, text: str, kind: str = "manual") -> None:
        folder = self.folder / "bots" / kind
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def run_in(folder: Path, *words: str) -> None:
    with contextlib.chdir(folder), pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 0


@contextmanager
def start(folder: Path, *words: str, **how: Any) -> Iterator[subprocess.Popen[str]]:
    """Start `python -m dubito` as a process in that folder. It ends with the test."""
    command = [sys.executable, "-m", "dubito", *with_trust(words)]
    path = os.pathsep.join(filter(None, (str(REPO), os.environ.get("PYTHONPATH"))))
    environment = {"BROWSER": "true"} | os.environ | {"PYTHONPATH": path}  # the command `true` opens no browser
    with subprocess.Popen(
        command, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **how
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def read_lobby(web: subprocess.Popen[str]) -> str:
    """Return the first page of a `dubito web` that was started with `--no-browser`."""
    assert web.stdout is not None
    found = next(filter(None, (re.search(r"http://127\.0\.0\.1:\d+/", line) for line in web.stdout)))
    with urlopen(found[0]) as answer:  # noqa: S310, an address on this machine
        return str(answer.read().decode())
