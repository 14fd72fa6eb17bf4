"""Skip these tests without OpenSpiel or process sessions."""

import multiprocessing
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from dubito.plugins.tournament import tournament
from dubito.plugins.tournament.log import MatchLine
from dubito.sandbox import warden
from tests.plugins.tournament import kit

pytest.importorskip("pyspiel", reason="OpenSpiel is not installed, so no match was refereed: pip install open_spiel")
if sys.platform == "win32":
    pytest.skip("the referee needs process groups", allow_module_level=True)


class Forked(ProcessPoolExecutor):
    """Referees that are forked from the tests' process, because each started one spends half a second on imports."""

    def __init__(self, count: int) -> None:
        super().__init__(count, multiprocessing.get_context("fork"))

    def kill(self) -> None:
        for process in self._processes.values():
            process.kill()


@pytest.fixture(autouse=True, scope="session")
def quick_processes() -> Iterator[None]:
    """Fork the referees, except those of `KILLED` and of commands in a process of their own.

    Python 3.12 and later warn about forking in a process with threads, which the tests have.
    """
    with pytest.MonkeyPatch.context() as patch:
        if sys.version_info < (3, 12):
            patch.setattr(tournament, "WorkerProcesses", Forked)
        yield


@pytest.fixture
def meet(tmp_path: Path) -> Callable[..., list[MatchLine]]:
    """Let one bot's script play against another's in both seats, and check that no process is left."""

    def play(one: str, other: str = kit.GOOD, apart: bool = False, **config: object) -> list[MatchLine]:
        lines = list(kit.pair(tmp_path, one, other, apart, **config).play(range(2)))
        assert warden.sweep(str(tmp_path / "run")) == 0, "a process of a bot was left behind"
        return lines

    return play
