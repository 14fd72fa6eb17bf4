"""Skip these tests without OpenSpiel or process sessions."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dubito.plugins.tournament.log import MatchLine
from dubito.sandbox import warden
from tests.plugins.tournament import kit

pytest.importorskip("pyspiel", reason="OpenSpiel is not installed, so no match was refereed: pip install open_spiel")
if sys.platform == "win32":
    pytest.skip("the referee needs process groups", allow_module_level=True)


@pytest.fixture
def meet(tmp_path: Path) -> Callable[..., list[MatchLine]]:
    """Let one bot's script play against another's in both seats, and check that no process is left."""

    def play(one: str, other: str = kit.GOOD, apart: bool = False, **config: object) -> list[MatchLine]:
        lines = list(kit.pair(tmp_path, one, other, apart, **config).play(range(2)))
        assert warden.sweep(str(tmp_path / "run")) == 0, "a process of a bot was left behind"
        return lines

    return play
