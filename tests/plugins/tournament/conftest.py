"""Skip these tests without OpenSpiel or process sessions."""

import multiprocessing
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dubito.plugins.tournament import tournament
from dubito.plugins.tournament.log import MatchLine
from dubito.sandbox import warden
from tests.plugins.tournament import kit

pytest.importorskip("pyspiel", reason="OpenSpiel is not installed, so no match was refereed: pip install open_spiel")
if sys.platform == "win32":
    pytest.skip("the referee needs groups of processes", allow_module_level=True)


@pytest.fixture(autouse=True, scope="session")
def quick_processes() -> Iterator[None]:
    """Referees' processes are forked, since each spends a second on imports; those of `KILLED` are spawned as ever.

    From 3.12 on Python warns of a fork beside threads, which the tests have.
    """
    with pytest.MonkeyPatch.context() as patch:
        if sys.version_info < (3, 12):
            patch.setattr(tournament, "_CONTEXT", multiprocessing.get_context("fork"))
        yield


@pytest.fixture
def meet(tmp_path: Path) -> Callable[..., list[MatchLine]]:
    """Have the script of a bot meet that of another one in both seats; nothing of them may be left afterwards."""

    def play(one: str, other: str = kit.GOOD, apart: bool = False, **config: object) -> list[MatchLine]:
        lines = list(kit.pair(tmp_path, one, other, apart, **config).play(range(2)))
        assert warden.sweep(str(tmp_path / "run")) == 0, "a process of a bot was left behind"
        return lines

    return play
