"""Time for written bots on a loaded machine."""

from pathlib import Path

import pytest

from dubito.plugins.forge import play

_PATIENCE = 60.0  # seconds per decision


@pytest.fixture(autouse=True)
def _patience(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let a bot take long for a decision, also in another process, unless the test waits for the limit."""
    if "loop" not in request.node.name:
        monkeypatch.setattr(play, "DEADLINE", _PATIENCE)
        (tmp_path / "patience").mkdir()
        (tmp_path / "patience" / "sitecustomize.py").write_text(
            f"from dubito.plugins.forge import play, texts\n\nplay.DEADLINE = {_PATIENCE}\n"
        )
        monkeypatch.setenv("PYTHONPATH", str(tmp_path / "patience"))
