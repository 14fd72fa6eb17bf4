"""Time for written bots on a loaded machine."""

import pytest

from dubito.plugins.forge import play

_PATIENCE = 60.0  # seconds per decision


@pytest.fixture(autouse=True)
def _patience(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a bot take long for a decision, unless the test waits for the limit or starts another process."""
    if not any(name in request.node.name for name in ("loop", "killed")):
        monkeypatch.setattr(play, "DEADLINE", _PATIENCE)
