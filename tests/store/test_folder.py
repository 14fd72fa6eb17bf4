"""The run folder: free, finished, resumable, or rejected with the difference; never overwritten."""

import errno
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dubito.errors import RunStopped, UsageError
from dubito.experiment.progress import ModelProgress
from dubito.experiment.run import play
from dubito.files import write_whole
from dubito.store.folder import DATABASE, MANIFEST, count_kept_games, open_run, to_yaml
from dubito.store.lock import LOCK, is_locked, lock_folder
from dubito.store.run_db import Chunk
from tests.conftest import any_text
from tests.experiment.kit import experiment, means, resolved

RUN: dict[str, Any] = {"games": 3, "identity": {"seed": 0, "bots": ["A"]}}


def a_run(folder: Path, games: int = 3) -> None:
    with lock_folder(folder), open_run(folder, RUN) as db:
        db.add_chunk(Chunk(0, games, 0, [b"\x01a"] * games), "sums", complete=False)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.endswith(("-shm", "-wal"))}


def test_stored_games_are_counted_in_whole_deals(tmp_path: Path) -> None:
    assert count_kept_games(tmp_path / "new", RUN) is None
    assert count_kept_games(tmp_path, RUN) is None, "an empty folder is free"
    with lock_folder(tmp_path / "claimed"):
        assert count_kept_games(tmp_path / "claimed", RUN) is None, "a folder with only a lock is free"
    a_run(tmp_path / "deep" / "run", games=2)
    assert count_kept_games(tmp_path / "deep" / "run", RUN) == 2


def test_fewer_games_than_there_are_is_refused(tmp_path: Path) -> None:
    a_run(tmp_path / "run")
    before = contents(tmp_path / "run")
    with pytest.raises(UsageError, match="already has 3 games of this run: set --games to at least as many"):
        count_kept_games(tmp_path / "run", RUN | {"games": 2})
    assert contents(tmp_path / "run") == before


def test_longer_run_resumes_and_updates_the_manifest(tmp_path: Path) -> None:
    a_run(tmp_path / "run")
    longer = RUN | {"games": 5}
    assert count_kept_games(tmp_path / "run", longer) == 3
    with open_run(tmp_path / "run", longer) as db:
        assert (db.game_count(), db.sums_json()) == (3, "sums")
    assert "games: 5" in (tmp_path / "run" / MANIFEST).read_text()


@pytest.mark.parametrize("left", [None, b""])
def test_run_that_died_before_its_first_write_starts_over(tmp_path: Path, left: bytes | None) -> None:
    a_run(tmp_path / "run")
    (tmp_path / "run" / DATABASE).unlink()
    if left is not None:
        (tmp_path / "run" / DATABASE).write_bytes(left)
    assert count_kept_games(tmp_path / "run", RUN) == 0
    with open_run(tmp_path / "run", RUN) as db:
        assert db.game_count() == 0


def test_run_that_died_before_its_tables_starts_over(tmp_path: Path) -> None:
    a_run(tmp_path / "run", games=0)
    database = tmp_path / "run" / DATABASE
    database.unlink()
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
    assert database.stat().st_size
    assert count_kept_games(tmp_path / "run", RUN) == 0
    a_run(tmp_path / "run")
    assert count_kept_games(tmp_path / "run", RUN) == 3


def test_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match="is not a run folder"):
        count_kept_games(tmp_path, RUN)
    with pytest.raises(UsageError, match="is not a run folder"):
        count_kept_games(tmp_path / "notes.txt", RUN)
    assert (tmp_path / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("text", ["{", "- a list", "\x00", "games: 3"])
def test_a_damaged_manifest_is_named(tmp_path: Path, text: str) -> None:
    a_run(tmp_path / "run")
    (tmp_path / "run" / MANIFEST).write_text(text)
    with pytest.raises(UsageError, match=r"manifest\.yaml is damaged"):
        count_kept_games(tmp_path / "run", RUN)


@pytest.mark.parametrize("cut", [50, 5000, -20000])
def test_damaged_database_is_named_and_left_unchanged(tmp_path: Path, cut: int) -> None:
    a_run(tmp_path / "run")
    file = tmp_path / "run" / DATABASE
    file.write_bytes(file.read_bytes()[:cut])
    before = contents(tmp_path / "run")
    with pytest.raises(UsageError, match=r"run\.db is damaged"):
        count_kept_games(tmp_path / "run", RUN)
    assert contents(tmp_path / "run") == before


def test_folder_that_cannot_be_created_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(UsageError, match=r"cannot write .*file"), lock_folder(tmp_path / "file" / "run"):
        pass
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / DATABASE).mkdir()
    with pytest.raises(UsageError, match=r"cannot write .*full"):
        open_run(tmp_path / "full", RUN)
    assert not (tmp_path / "full" / MANIFEST).exists()


def test_a_second_process_is_refused_until_the_first_has_ended(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from dubito.store.lock import lock_folder\n"
        "with lock_folder(Path(sys.argv[1])):\n    print('in', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        (sys.executable, "-c", program, str(tmp_path / "run")), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"in\n"
        with pytest.raises(UsageError, match=r"another process is playing into .*run"), lock_folder(tmp_path / "run"):
            pass
        other.kill()
        other.wait()
    with lock_folder(tmp_path / "run"):
        assert [path.name for path in (tmp_path / "run").iterdir()] == ["lock"]


def test_file_is_written_atomically(tmp_path: Path) -> None:
    write_whole(tmp_path / "a.yaml", "old")
    (tmp_path / "a.yaml.part").mkdir()
    with pytest.raises(RunStopped, match=r"cannot write .*a\.yaml"):
        write_whole(tmp_path / "a.yaml", "new")
    assert (tmp_path / "a.yaml").read_text() == "old"


def player(name: str, **settings: object) -> dict[str, object]:
    return {"name": name, "bot": "B" * 100, "settings": {"model": "m" * 100, **settings}, "source": "aa"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"bots": [player("one"), player("t\nwo", tries=4)]}, r"bots\.t wo\.settings\.tries is 5 there and 4 here"),
        ({"bots": [player("one"), player("two", tries=5)]}, r"bots\.1\.name is t wo there and two here"),
        ({"rules": {"jokers": 1, "max_turns": 9, "new": None}}, r"rules\.new is not set there and None here"),
        ({"bots": [player("one")]}, r"the number of bots is 2 there and 1 here"),
        ({"table_sizes": [3, 5]}, r"table_sizes is \[3, 4\] there and \[3, 5\] here"),
    ],
)
def test_differences_from_the_existing_run_are_listed(tmp_path: Path, change: dict[str, object], words: str) -> None:
    bots = [player("one"), player("t\nwo", tries=5)]
    identity = {"seed": 1, "table_sizes": [3, 4], "rules": {"jokers": 1, "max_turns": 9}, "bots": bots}
    folder = tmp_path / "run"
    folder.mkdir()
    open_run(folder, {"games": 2, "identity": identity}).__exit__()
    with pytest.raises(UsageError, match=f"run belongs to another run: {words}; choose another --output"):
        count_kept_games(folder, {"games": 2, "identity": identity | change})


def test_checking_a_lock_does_not_hold_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that starts during the check waits until it ends."""
    fcntl = pytest.importorskip("fcntl")
    assert not is_locked(tmp_path)
    with lock_folder(tmp_path):
        assert is_locked(tmp_path)
    assert not is_locked(tmp_path)
    with (tmp_path / LOCK).open("rb") as look:
        fcntl.flock(look, fcntl.LOCK_SH)
        monkeypatch.setattr("dubito.store.lock.time.sleep", lambda _: look.close())
        with lock_folder(tmp_path):
            assert is_locked(tmp_path)


TEXTS = any_text(30, "aZ09_ .:@+-#'{\n\xe9") | st.sampled_from(["null", "yes", "1e3", "0x1", "1:30", "2026-01-01", "~"])
VALUES = st.recursive(
    TEXTS | st.integers() | st.floats() | st.booleans() | st.none(),
    lambda each: st.lists(each, max_size=4) | st.dictionaries(TEXTS | st.integers(0, 9), each, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(TEXTS, VALUES, max_size=4))
def test_yaml_has_the_same_bytes_with_and_without_libyaml(content: dict[str, Any]) -> None:
    plain = yaml.dump(content, Dumper=yaml.SafeDumper, sort_keys=False, allow_unicode=True, width=4096)
    assert to_yaml(content) == plain


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP])
def test_file_system_without_locks_does_not_block_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Lustre without `-o flock` and some NFS have none. The run is played, with a warning about the risk."""

    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("fcntl.flock", refuse)
    with lock_folder(tmp_path / "run") as is_locked:
        assert not is_locked
    warnings = list[str]()
    how = replace(means(tmp_path / "r"), model_progress=ModelProgress(notify=warnings.append))
    assert play(resolved(experiment(games=2, table_sizes=[3])), tmp_path / "r", how).failure is None
    assert len(warnings) == 1
    assert "does not support locks" in warnings[0]
