"""The play fixture."""

import io
from collections.abc import Callable

import pytest

from tests.cli.kit import Result, Shell

Play = Callable[..., Result]


@pytest.fixture
def play(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Play:
    """Run `dubito play` in an empty folder with these typed lines. Their end is Ctrl-D."""

    def played(*words: str, typed: str | bytes = "") -> Result:
        given = typed.encode() if isinstance(typed, str) else typed
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(given), "utf-8"))
        return shell("play", *words)

    return played
