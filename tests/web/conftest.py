"""A server, and somebody at a table of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.web.kit import Browser, Served, served


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    """A server with an empty folder."""
    with served(tmp_path / "games") as server:
        yield server


@pytest.fixture
def browser(server: Served) -> Browser:
    """A browser that has not sat down yet."""
    return server.browser()
