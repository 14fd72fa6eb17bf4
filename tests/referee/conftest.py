"""The whole room needs OpenSpiel and a system with sessions of processes."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dubito.referee import warden
from dubito.referee.log import MatchLine
from tests.referee import kit

pytest.importorskip("pyspiel", reason="OpenSpiel is not installed, so no match was refereed: pip install open_spiel")
if sys.platform == "win32":
    pytest.skip("the referee needs groups of processes", allow_module_level=True)


@pytest.fixture
def meet(tmp_path: Path) -> Callable[..., list[MatchLine]]:
    """Have the script of a bot meet that of another one in both seats; nothing of them may be left afterwards."""

    def play(one: str, other: str = kit.GOOD, apart: bool = False, **config: object) -> list[MatchLine]:
        lines = list(kit.pair(tmp_path, one, other, apart, **config).play(range(2)))
        assert warden.sweep(str(tmp_path / "run")) == 0, "a process of a bot was left behind"
        return lines

    return play
