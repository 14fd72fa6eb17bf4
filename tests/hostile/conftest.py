"""Runs without waits, and a pipeline to a scripted server."""

from collections.abc import Iterator

import pytest

from tests.hostile.kit import Scene
from tests.llm.conftest import unhurried

__all__ = ["unhurried"]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    scene = Scene(tmp_path_factory.mktemp("scene"))
    with scene.server, scene.desk:
        yield scene
