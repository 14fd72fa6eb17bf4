"""`run.db`: what is committed together, what is refused, what stands after a failure."""

import sqlite3
from hashlib import sha256
from pathlib import Path

import pytest

from dubito.errors import RunStopped, UsageError
from dubito.store.run_db import Chunk, RunDb, results_digest

FIRST = Chunk(0, 2, 0, [b"\x01a", b"\x01b"])
SECOND = Chunk(1, 1, 2, [b"\x01c"])


def test_chunks_come_back_in_order_with_their_sums_and_digest(tmp_path: Path) -> None:
    with RunDb.create(tmp_path / "run.db") as db:
        db.add_chunk(FIRST, "first")
        db.add_chunk(SECOND, "both")
    with RunDb.open(tmp_path / "run.db") as db:
        assert list(db.outcomes()) == [b"\x01a", b"\x01b", b"\x01c"]
        assert (db.games(), db.sums()) == (3, "both")
        digests = [sha256(b"\x01a\x01b").digest(), sha256(b"\x01c").digest()]
        assert db.results_digest() == sha256(b"".join(digests)).hexdigest() == results_digest(digests)


def test_an_empty_run_has_no_games(tmp_path: Path) -> None:
    with RunDb.create(tmp_path / "run.db") as db:
        assert (db.games(), db.sums(), list(db.outcomes())) == (0, None, [])


def test_a_chunk_that_cannot_be_written_leaves_what_was_there(tmp_path: Path) -> None:
    with RunDb.create(tmp_path / "run.db") as db:
        db.add_chunk(FIRST, "first")
        with pytest.raises(RunStopped, match="cannot write"):
            db.add_chunk(Chunk(1, 1, 1, [b"\x01x"]), "game 1 is taken")
        assert (db.games(), db.sums()) == (2, "first")
        db.add_chunk(SECOND, "both")
        assert list(db.outcomes()) == [b"\x01a", b"\x01b", b"\x01c"]


@pytest.mark.parametrize("content", [b"", b"no database at all, only words" * 99])
def test_a_file_that_is_no_run_store_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "run.db").write_bytes(content)
    with pytest.raises(UsageError, match=r"run\.db is damaged or no run store"):
        RunDb.open(tmp_path / "run.db")


def test_a_store_of_another_format_is_refused(tmp_path: Path) -> None:
    RunDb.create(tmp_path / "run.db").__exit__()
    connection = sqlite3.connect(tmp_path / "run.db")
    connection.execute("PRAGMA user_version=7")
    connection.close()
    with pytest.raises(UsageError, match="has format 7; this version of Dubito reads format 1"):
        RunDb.open(tmp_path / "run.db")
