"""A log or a store that cannot be written ends a run with models: with a message, and nobody waits forever."""

import resource
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dubito.errors import RunStopped
from tests.conftest import in_gate
from tests.llm.kit import Server, asker, ran, says, small

GAMES = 20
DEADLINE_SECONDS = 60


def remove_folder(folder: Path) -> None:
    shutil.rmtree(folder)


def fill_disk(folder: Path) -> None:
    log = folder / "run.log"
    log.unlink(missing_ok=True)
    log.symlink_to("/dev/full")


def close_descriptors(folder: Path) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


@contextmanager
def same_limits() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


FAULTS: dict[str, Callable[[Path], None]] = {
    "folder removed": remove_folder,
    "disk full": fill_disk,
    "no descriptors": close_descriptors,
}
CASES = [(fault, moment) for fault in FAULTS for moment in (0, GAMES // 2, GAMES)]


@pytest.mark.parametrize(("fault", "moment"), in_gate(CASES, [("folder removed", 10), ("no descriptors", 20)]))
def test_unwritable_log_ends_run_with_message(tmp_path: Path, fault: str, moment: int) -> None:
    """At its start, while games play, and with the last one."""
    folder, broken, failures = tmp_path / "run", list[int](), list[str]()

    def break_at(games: int) -> None:
        if games >= moment and not broken:
            broken.append(games)
            FAULTS[fault](folder)

    def play() -> None:
        try:
            failures.append(str(ran(of, folder, progress=break_at, in_flight=GAMES, preflight=False).failure))
        except RunStopped as error:
            failures.append(str(error))

    with Server(lambda heard: says(heard.protocol)) as server, same_limits():
        of = small(asker(server), games=GAMES, turns=6)
        thread = threading.Thread(target=play, daemon=True)
        thread.start()
        thread.join(DEADLINE_SECONDS)
        assert not thread.is_alive()
    assert len(failures) == 1
    assert str(folder) in failures[0]
    assert "cannot write" in failures[0]
