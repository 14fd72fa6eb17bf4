"""No key and no proxy of whoever runs the tests; the shell."""

import os
from pathlib import Path

import pytest

from tests.cli.kit import Shell


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith(("OPENAI_", "ANTHROPIC_")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


@pytest.fixture
def shell(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    """`dubito` in an empty folder."""
    return Shell(tmp_path, capsys, monkeypatch)
