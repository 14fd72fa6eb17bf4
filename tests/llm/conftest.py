"""No key, no proxy and no SDK setting of whoever runs the tests; the shell."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.kit import Shell
from tests.llm.kit import KEY, Line


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith(("OPENAI_", "ANTHROPIC_")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


@pytest.fixture
def shell(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    """`dubito` in an empty folder."""
    return Shell(tmp_path, capsys, monkeypatch)


@pytest.fixture(scope="session")
def line() -> Iterator[Line]:
    """A scripted server and both SDKs, one for all tests that need nothing special of them."""
    with Line(KEY) as line:
        yield line
