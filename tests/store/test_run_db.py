"""`run.db`: transactions, rejections, and its state after a failure."""

import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from hashlib import sha256
from pathlib import Path

import pytest

from dubito.errors import RunStopped, UsageError
from dubito.store.folder import is_export, pack
from dubito.store.run_db import Chunk, RunDb, results_digest

FIRST = Chunk(0, 2, 0, [b"\x01a", b"\x01b"])
SECOND = Chunk(1, 1, 2, [b"\x01c"])


def test_chunks_come_back_in_order_with_their_sums_and_digest(tmp_path: Path) -> None:
    with RunDb.create(tmp_path / "run.db") as db:
        db.add_chunk(FIRST, "first", complete=True)
        db.add_chunk(SECOND, "both", complete=False)
    with RunDb.open(tmp_path / "run.db") as db:
        assert list(db.outcomes()) == [b"\x01a", b"\x01b", b"\x01c"]
        assert (db.game_count(), db.sums_json(), db.sums_json("complete"), db.deals_by_chunk()) == (
            3,
            "both",
            "first",
            [2, 1],
        )
        digests = [sha256(b"\x01a\x01b").digest(), sha256(b"\x01c").digest()]
        assert db.results_digest() == sha256(b"".join(digests)).hexdigest() == results_digest(digests)


def test_file_is_complete_despite_a_reader(tmp_path: Path) -> None:
    with RunDb.create(tmp_path / "run.db") as db:
        db.add_chunk(FIRST, "first", complete=True)
        reader = RunDb.open(tmp_path / "run.db")
    with reader:
        assert reader.game_count() == 2
        (tmp_path / "copy.db").write_bytes((tmp_path / "run.db").read_bytes())
    with RunDb.open(tmp_path / "copy.db") as db:
        assert db.game_count() == 2


def test_partial_chunk_is_rewritten_with_more_deals(tmp_path: Path) -> None:
    with RunDb.create(tmp_path / "run.db") as db:
        db.add_chunk(Chunk(0, 1, 0, [b"\x01a"]), "one", complete=False)
        assert (db.game_count(), db.sums_json("complete")) == (1, "{}")
        db.add_chunk(FIRST, "two", complete=True)
        assert (db.game_count(), db.deals_by_chunk(), db.sums_json("complete")) == (2, [2], "two")
        assert list(db.outcomes()) == [b"\x01a", b"\x01b"]
        db.check()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE games SET outcome = x'0162' WHERE game = 0",
        "UPDATE games SET outcome = 'text' WHERE game = 0",
        "DELETE FROM games WHERE game = 1",
        "UPDATE games SET decisions = x'00' WHERE game = 1",
    ],
)
def test_changed_game_is_refused_and_named(tmp_path: Path, change: str) -> None:
    with RunDb.create(tmp_path / "run.db") as db:
        db.add_chunk(FIRST, "first", complete=True)
        with db.writing() as connection:
            connection.execute(change)
        with pytest.raises(RunStopped, match="games 0 to 1 were changed or are damaged"):
            list(db.outcomes())


@pytest.mark.parametrize(
    "change",
    ["DELETE FROM games WHERE game = 1", "DELETE FROM chunks", "DELETE FROM tally", "UPDATE chunks SET chunk = 4"],
)
def test_inconsistent_tables_count_as_damage(tmp_path: Path, change: str) -> None:
    with RunDb.create(tmp_path / "run.db") as db:
        db.add_chunk(FIRST, "first", complete=True)
        db.check()
        with db.writing() as connection:
            connection.execute(change)
        with pytest.raises(UsageError, match=r"run\.db is damaged \(games, chunks and sums do not match"):
            db.check()


def test_failed_write_of_a_chunk_changes_nothing(tmp_path: Path) -> None:
    with RunDb.create(tmp_path / "run.db") as db:
        db.add_chunk(FIRST, "first", complete=True)
        with pytest.raises(AssertionError, match="consecutive"):
            db.add_chunk(Chunk(1, 1, 1, [b"\x01x"]), "game 1 is taken", complete=True)
        with pytest.raises(RunStopped, match="cannot write"):
            db.add_chunk(SECOND, None, complete=True)  # type: ignore[arg-type]
        assert (db.game_count(), db.sums_json()) == (2, "first")
        db.add_chunk(SECOND, "both", complete=True)
        assert list(db.outcomes()) == [b"\x01a", b"\x01b", b"\x01c"]


@pytest.mark.parametrize("content", [b"", b"no database at all, only words" * 99])
def test_other_file_is_not_a_run_store(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "run.db").write_bytes(content)
    with pytest.raises(UsageError, match=r"run\.db is damaged or not a run store"):
        RunDb.open(tmp_path / "run.db")


@pytest.mark.parametrize("use", [RunDb.open, RunDb.create])
def test_a_store_of_another_format_is_refused(tmp_path: Path, use: Callable[[Path], RunDb]) -> None:
    RunDb.create(tmp_path / "run.db").__exit__()
    with closing(sqlite3.connect(tmp_path / "run.db")) as connection:
        connection.execute("ALTER TABLE chunks ADD COLUMN hue TEXT")
        connection.execute("PRAGMA user_version=3")
    words = r"run\.db was written by another version of Dubito \(format 3; this one reads 4\): use that version, or "
    with pytest.raises(UsageError, match=words):
        use(tmp_path / "run.db")


@pytest.mark.parametrize("change", ["DROP TABLE batches", "ALTER TABLE tries DROP COLUMN seal"])
def test_store_without_a_table_is_damaged(tmp_path: Path, change: str) -> None:
    RunDb.create(tmp_path / "run.db").__exit__()
    with closing(sqlite3.connect(tmp_path / "run.db")) as connection:
        connection.execute(change)
    with pytest.raises(UsageError, match=r"run\.db is damaged or not a run store: no column"):
        RunDb.open(tmp_path / "run.db")


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[Path]:
    """Return a store with games in a read-only folder. Skipped for users who can write everywhere, such as root."""
    folder = tmp_path / "run"
    folder.mkdir()
    with RunDb.create(folder / "run.db") as db:
        db.add_chunk(FIRST, "first", complete=True)
    folder.chmod(0o555)
    try:
        (folder / "probe").touch()
    except PermissionError:
        yield folder
        return
    finally:
        folder.chmod(0o755)
    pytest.skip("this user can write everywhere")


def test_store_in_a_read_only_folder_can_be_read(locked: Path) -> None:
    """The folder can be on a disk that is mounted read-only."""
    locked.chmod(0o555)
    with RunDb.open(locked / "run.db") as db:
        db.check()
        assert (db.game_count(), list(db.outcomes())) == (2, list(FIRST.outcomes))
    pack(locked, locked.parent / "run.zip")
    assert is_export(locked.parent / "run.zip")


def test_unreadable_journal_is_not_damage(locked: Path) -> None:
    locked.chmod(0o755)
    (locked / "run.db-wal").write_bytes(b"something that was not yet in the file")
    locked.chmod(0o555)
    with pytest.raises(
        UsageError,
        match=r"run\.db has a journal, which cannot be read in a folder without write access; copy the folder",
    ):
        RunDb.open(locked / "run.db")


def _keep(name: str) -> Callable[[sqlite3.Connection], object]:
    return lambda connection: connection.execute("INSERT INTO tally (chunks, sums) VALUES (?, '')", (name,))


def _names(db: RunDb) -> list[str]:
    return [name for (name,) in db.read("SELECT chunks FROM tally ORDER BY chunks")]


def test_pending_write_is_committed_after_the_current_one(tmp_path: Path) -> None:
    """No thread waits forever, whether a transaction, a reader or another committer has the connection."""
    names = [f"{thread}.{number}" for thread in range(8) for number in range(40)]
    with RunDb.create(tmp_path / "run.db") as db, ThreadPoolExecutor(9) as pool:
        reads = [pool.submit(_names, db) for _ in range(40)]
        kept = [pool.submit(db.write, _keep(name), paid=True) for name in names]
        for number in range(40):
            with db.writing() as connection:
                _keep(f"alone {number}")(connection)
        for write in kept:
            write.result(60)
        for read in reads:
            read.result(60)
    with RunDb.open(tmp_path / "run.db") as db:
        assert sorted(_names(db)) == sorted(names + [f"alone {number}" for number in range(40)])


def test_releasing_the_connection_commits_pending_writes(tmp_path: Path) -> None:
    with RunDb.create(tmp_path / "run.db") as db, ThreadPoolExecutor(1) as pool:
        with db.writing():
            waits = pool.submit(db.write, _keep("meanwhile"))
            while not db._pending:
                pass
        waits.result(20)
        assert _names(db) == ["meanwhile"]


def test_write_within_a_transaction_joins_it(tmp_path: Path) -> None:
    with RunDb.create(tmp_path / "run.db") as db:
        with suppress(ZeroDivisionError), db.writing():
            db.write(_keep("within"))
            assert _names(db) == ["within"]
            raise ZeroDivisionError
        assert _names(db) == []


def test_queued_writes_are_visible_to_reads(tmp_path: Path) -> None:
    with RunDb.create(tmp_path / "run.db") as db:
        db.write_later(_keep("later"))
        assert _names(db) == ["later"]
        db.write_later(_keep("at the end"))
    with RunDb.open(tmp_path / "run.db") as db:
        assert _names(db) == ["at the end", "later"]


def test_failed_commit_reaches_waiters_and_keeps_queued_writes(tmp_path: Path) -> None:
    with RunDb.create(tmp_path / "run.db") as db:
        db.write_later(_keep("later"))
        with pytest.raises(RunStopped, match=r"cannot write .*run\.db: UNIQUE constraint failed: tally\.chunks"):
            db.write(lambda connection: [_keep("twice")(connection) for _ in range(2)])
        assert _names(db) == ["later"]
