"""If the log or store cannot be written, the run ends with a message, and no thread waits forever."""

import resource
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dubito.errors import RunStopped
from dubito.llm.cache import ReplyCache
from dubito.store.run_db import RunDb
from tests.cli.kit import Shell
from tests.conftest import in_gate
from tests.llm.kit import Server, player_at, respond, run_games, small

GAMES = 10
DEADLINE_SECONDS = 60


def remove_folder(folder: Path) -> None:
    # Rename first, because a thread can create a file in the folder during the deletion.
    shutil.rmtree(folder.rename(folder.with_name("removed")))


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


@pytest.mark.parametrize(
    ("fault", "moment"), in_gate(CASES, [("folder removed", GAMES // 2), ("no descriptors", GAMES)])
)
def test_unwritable_log_ends_run_with_message(tmp_path: Path, fault: str, moment: int) -> None:
    """Writing fails at the start, while games play, or with the last game."""
    folder, broken, failures = tmp_path / "run", list[int](), list[str]()

    def break_at(games: int) -> None:
        if games >= moment and not broken:
            broken.append(games)
            FAULTS[fault](folder)

    def play() -> None:
        try:
            failures.append(str(run_games(of, folder, progress=break_at, in_flight=GAMES, preflight=False).failure))
        except RunStopped as error:
            failures.append(str(error))

    with Server(lambda request: respond(request.protocol)) as server, same_limits():
        of = small(player_at(server), games=GAMES, turns=6)
        thread = threading.Thread(target=play, daemon=True)
        thread.start()
        thread.join(DEADLINE_SECONDS)
        assert not thread.is_alive()
    assert len(failures) == 1
    assert str(folder) in failures[0]
    assert "cannot write" in failures[0]


def test_memory_error_in_model_turn_is_not_blamed_on_player(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("dubito.llm.decide.build_request", fail)
    with Server(lambda request: respond(request.protocol)) as server:
        run = run_games(small(player_at(server), games=2), tmp_path / "run", preflight=False)
    assert isinstance(run.failure, RunStopped)
    assert str(run.failure).startswith("out of memory: raise the limit (`ulimit -v`)")


FULL = "database or disk is full"


@pytest.mark.parametrize("moment", in_gate([0, GAMES // 2, GAMES], [GAMES // 2]))
@pytest.mark.parametrize("store", ["run.db", "the cache"])
def test_full_disk_ends_run_that_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: str, moment: int
) -> None:
    """SQLite refuses to grow a file, as on a full disk."""
    folder, opened = tmp_path / "run", list[RunDb]()
    create, store_reply = RunDb.create, ReplyCache._store

    def create_and_keep(path: Path, shared: bool = False) -> RunDb:
        opened.append(create(path, shared))
        return opened[-1]

    def fill(connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA max_page_count = 1")

    def store_on_full_disk(cache: ReplyCache, key: str, text: str) -> None:
        fill(cache._cache._con)
        store_reply(cache, key, text)

    def fill_at(games: int) -> None:
        if games >= moment and store == "run.db":
            with opened[0]._exclusive():  # a connection in use by two threads can deadlock
                fill(opened[0]._connection)
        elif games >= moment:
            monkeypatch.setattr(ReplyCache, "_store", store_on_full_disk)

    with Server(lambda request: respond(request.protocol)) as server:
        of = small(player_at(server), games=GAMES, turns=9)
        with monkeypatch.context() as patched:
            patched.setattr(RunDb, "create", create_and_keep)
            cut = run_games(of, folder, progress=fill_at, in_flight=4, preflight=False)
        monkeypatch.undo()
        resumed = run_games(of, folder, in_flight=4, preflight=False)
        whole = run_games(of, tmp_path / "whole", in_flight=4, preflight=False, cache=tmp_path / "other")
    assert cut.failure is None or FULL in str(cut.failure)
    assert cut.failure is not None or moment == GAMES
    assert resumed.failure is None
    assert resumed.results_digest == whole.results_digest


def test_report_on_full_disk_names_the_reason(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(source: object, target: object) -> None:
        raise shutil.Error([("a", "b", "[Errno 28] No space left on device: 'a' -> 'b'")])

    assert shell("run", "--bots", "StefaBot,UsualBot,MrDoubt", "--games", "2", "--quiet", "--output", "r").code == 0
    monkeypatch.setattr("dubito.report.site.shutil.copytree", fail)
    for option in ("--output", "--site"):
        result = shell("report", "r", option, "p")
        assert result.code in (2, 3)
        assert result.err == "dubito: cannot write p: No space left on device\n"
