"""The play fixture."""

import io
from collections.abc import Callable

import pytest

from tests.cli.kit import Said, Shell

Play = Callable[..., Said]


@pytest.fixture
def play(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Play:
    """`dubito play` in an empty folder, with these lines typed; their end is Ctrl-D."""

    def played(*words: str, typed: str | bytes = "") -> Said:
        given = typed.encode() if isinstance(typed, str) else typed
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(given), "utf-8"))
        return shell("play", *words)

    return played
