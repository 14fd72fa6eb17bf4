"""Short chunks, so that a few games fill many chunks."""

import pytest

from dubito.experiment import play as chunk


@pytest.fixture
def short_chunks(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(chunk, "DEALS_PER_CHUNK", 2)
    return 2
