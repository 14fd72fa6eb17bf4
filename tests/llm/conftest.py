"""The shell, and a line to a scripted server."""

from collections.abc import Iterator

import pytest

from tests.cli.conftest import shell
from tests.llm.kit import KEY, Line, Unhurried

__all__ = ["shell"]


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dubito.cli.run.ModelProgress", Unhurried)


@pytest.fixture(scope="session")
def line() -> Iterator[Line]:
    with Line(KEY) as line:
        yield line
