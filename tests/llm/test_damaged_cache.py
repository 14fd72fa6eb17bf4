"""A cache that was emptied, is incomplete or has changed settings is rejected and not treated as new."""

import os
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from dubito.errors import UsageError
from dubito.llm.cache import ReplyCache
from tests.llm.test_cache import GOOD, PARTS, change, says

DELETED = "DELETE FROM Settings WHERE key = ?"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.mark.parametrize("left", ["", "-wal"])
def test_emptied_cache_is_not_treated_as_new(folder: Path, left: str) -> None:
    with closing(ReplyCache(folder)) as cache:
        cache.get_or_ask(*PARTS, says(GOOD))
    (folder / "cache.db").write_bytes(b"")
    if left:
        (folder / "locks").unlink()
        (folder / "cache.db-wal").write_bytes(b"something")
    with pytest.raises(UsageError, match=r"cache\.db was emptied, and its replies are lost"):
        ReplyCache(folder)
    assert (folder / "cache.db").read_bytes() == b""


def test_cache_without_its_database_is_not_treated_as_new(folder: Path) -> None:
    ReplyCache(folder).close()
    (folder / "cache.db").unlink()
    with pytest.raises(UsageError, match=r"has lost its cache\.db: choose another --cache"):
        ReplyCache(folder)


@pytest.mark.parametrize("table", ["Cache", "Settings"])
def test_a_cache_that_lost_a_table_is_refused(folder: Path, table: str) -> None:
    ReplyCache(folder).close()
    with closing(sqlite3.connect(folder / "cache.db")) as connection, connection:
        connection.execute(f"DROP TABLE {table}")
    with pytest.raises(UsageError, match="has lost its tables and replies"):
        ReplyCache(folder)


@pytest.mark.parametrize("name", ["count", "disk_min_file_size", "tag_index"])
@pytest.mark.parametrize("statement", ["UPDATE Settings SET value = 'much' WHERE key = ?", DELETED])
def test_settings_that_were_changed_by_hand_are_refused(folder: Path, name: str, statement: str) -> None:
    ReplyCache(folder).close()
    change(folder, statement, name)
    with pytest.raises(UsageError, match=rf"the settings of the cache .* were changed or are damaged \({name}\)"):
        ReplyCache(folder)


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("CREATE TRIGGER spy AFTER INSERT ON Cache BEGIN DELETE FROM Cache; END", "unexpected trigger 'spy'"),
        ("CREATE VIEW spy AS SELECT 1", "unexpected view 'spy'"),
        ("CREATE INDEX spy ON Cache (hex(value))", "unexpected index 'spy'"),
        ("CREATE TABLE spy (x)", "unexpected table 'spy'"),
        ("DROP INDEX Cache_key_raw", "no index 'Cache_key_raw'"),
        (
            "ALTER TABLE Cache ADD COLUMN spy AS (hex(value))",
            "unexpected definition of table 'Cache': spy AS (hex(value))",
        ),
    ],
)
def test_schema_that_was_changed_by_hand_is_refused(folder: Path, statement: str, problem: str) -> None:
    ReplyCache(folder).close()
    ReplyCache(folder).close()
    with closing(sqlite3.connect(folder / "cache.db")) as connection, connection:
        connection.execute(statement)
    with pytest.raises(UsageError, match=f"^cannot use the cache .*: {re.escape(problem)}; choose another --cache"):
        ReplyCache(folder)


def test_pipe_instead_of_the_locks_is_not_waited_for(folder: Path) -> None:
    ReplyCache(folder).close()
    (folder / "locks").unlink()
    os.mkfifo(folder / "locks")
    with pytest.raises(UsageError, match="locks: it is a pipe or a device"):
        ReplyCache(folder)
