"""A pipeline to a scripted server."""

from collections.abc import Iterator

import pytest

from tests.llm.kit import KEY, Line, NoWait


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dubito.cli.run.ModelProgress", NoWait)


@pytest.fixture(scope="session")
def line() -> Iterator[Line]:
    with Line(KEY) as line:
        yield line
