"""A server with a person at a table."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.llm.kit import KEY
from tests.web.kit import Browser, WebServer, serve


@pytest.fixture
def server(tmp_path: Path) -> Iterator[WebServer]:
    with serve(tmp_path / "games") as server:
        yield server


@pytest.fixture
def browser(server: WebServer) -> Browser:
    return server.browser()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOME_KEY", KEY)
    return tmp_path
