"""The fake server that replaces the extra."""

import os
from pathlib import Path
from typing import Final

import pytest

from tests.cli.kit import REPO, Shell

FAKE: Final = Path(__file__).parent / "fake"


@pytest.fixture
def model(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set up a model's file and the fake server that replaces the extra."""
    monkeypatch.syspath_prepend(str(FAKE))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(FAKE), str(REPO))))
    path = shell.folder / "m.gguf"
    path.write_bytes(b"GGUF weights")
    return path
