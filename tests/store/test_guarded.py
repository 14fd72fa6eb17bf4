"""Foreign databases: any change of the schema is refused, and statements have limits."""

import os
import signal
import sqlite3
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from shutil import copytree

import pytest

from dubito.errors import StopSignal, UsageError
from dubito.store import guarded
from dubito.store.guarded import GuardedConnection
from dubito.store.run_db import RunDb
from tests.cli.kit import Shell
from tests.store.test_foreign_files import FINISHED

SLOW = "length(replace(hex(zeroblob(9999999)), '0', 'ab')) > 0"
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"


def define(path: Path, name: str, old: str, new: str) -> None:
    """Replace a part of a definition in the schema."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript("PRAGMA writable_schema=ON")
        count = connection.execute(
            "UPDATE sqlite_master SET sql = replace(sql, ?, ?) WHERE name = ? AND instr(sql, ?)", (old, new, name, old)
        ).rowcount
    assert count == 1


DEFINITIONS = {
    "CHECK of a table": ("games", "record TEXT)", f"record TEXT, CHECK ({SLOW}))", "CHECK (length("),
    "CHECK of a column": (
        "chunks",
        "deals INTEGER NOT NULL",
        f"deals INTEGER NOT NULL CHECK ({SLOW})",
        "CHECK (length(",
    ),
    "a named CHECK": ("ended", "KEY)", "KEY CONSTRAINT evil CHECK (game))", "CONSTRAINT evil CHECK (game)"),
    "CHECK with a function of Dubito": (
        "games",
        "record TEXT)",
        "record TEXT, CHECK (row_seal(game)))",
        "CHECK (row_seal(",
    ),
    "DEFAULT": ("tally", "seal BLOB", f"seal BLOB DEFAULT ({SLOW})", "DEFAULT (length("),
    "STRICT": ("games", "record TEXT)", "record TEXT) STRICT", "STRICT"),
    "a collation": ("texts", "digest TEXT", "digest TEXT COLLATE NOCASE", "COLLATE NOCASE"),
    "a foreign key": ("ended", "KEY)", "KEY REFERENCES games (game) ON DELETE CASCADE)", "REFERENCES games"),
    "ON CONFLICT": ("chunks", "digest BLOB NOT NULL", "digest BLOB NOT NULL ON CONFLICT IGNORE", "ON CONFLICT IGNORE"),
    "a comment": ("ended", "KEY)", "KEY /* hello */)", "/* hello */"),
    "another type": ("games", "record TEXT", "record ANY", "ANY"),
    "a missing constraint": ("games", "BLOB NOT NULL", "BLOB", "without NOT NULL"),
}


@pytest.mark.parametrize("case", DEFINITIONS)
def test_changed_definition_is_refused(shell: Shell, case: str) -> None:
    name, old, new, shown = DEFINITIONS[case]
    copytree(FINISHED, "theirs")
    define(Path("theirs/run.db"), name, old, new)
    refused = shell("replay", "theirs")
    assert (refused.code, refused.out, refused.err.count("\n")) == (2, "", 1), refused
    assert f"theirs/run.db is damaged or not a run store: unexpected definition of table '{name}': " in refused.err
    assert shown in refused.err
    with pytest.raises(UsageError, match=f"unexpected definition of table '{name}'"):
        RunDb.create(Path("theirs/run.db"))


def test_check_is_not_executed_by_a_resume(shell: Shell) -> None:
    words = ("--bots", "StefaBot,UsualBot", "--games", "2", "--table-sizes", "3", "--output", "theirs")
    assert shell("run", *words).code == 0
    define(Path("theirs/run.db"), "games", "record TEXT)", "record TEXT, CHECK (game < 2))")
    refused = shell("run", "theirs", "--games", "4")
    assert (refused.code, refused.out, refused.err.count("\n")) == (2, "", 1), refused
    assert "unexpected definition of table 'games': CHECK (game < 2)" in refused.err


def test_rollback_journal_is_not_applied(shell: Shell) -> None:
    copytree(FINISHED, "theirs")
    Path("theirs/run.db-journal").write_bytes(b"x" * 600)
    refused = shell("replay", "theirs")
    assert (refused.code, refused.out, refused.err.count("\n")) == (2, "", 1), refused
    assert "theirs/run.db has an unfinished change in run.db-journal, which Dubito does not write" in refused.err
    assert Path("theirs/run.db-journal").exists()


def repeat_page(path: Path, levels: int) -> None:
    """Give `games` a tree whose inner pages point to the same page below, again and again."""
    with closing(sqlite3.connect(path)) as connection:
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'games'").fetchone()
    data = bytearray(path.read_bytes())
    pages = [bytes(data[(root - 1) * size : root * size])]
    for _ in range(levels):
        child, cells = len(data) // size + len(pages), range(300)
        content = b"".join(struct.pack(">IB", child, 1) for _ in cells)
        pointers = b"".join(struct.pack(">H", size - 5 * (cell + 1)) for cell in cells)
        head = struct.pack(">BHHHBI", 5, 0, len(cells), size - len(content), 0, child)
        pages.append((head + pointers).ljust(size - len(content), b"\0") + content)
    data[(root - 1) * size : root * size] = pages.pop()
    data += b"".join(pages)
    data[28:32] = struct.pack(">I", len(data) // size)
    data[24:28] = data[92:96]
    path.write_bytes(data)


def test_tree_that_repeats_a_page_is_not_read_forever(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guarded, "_MIN_STEPS", 2 * guarded._STEPS_PER_TICK)
    monkeypatch.setattr(guarded, "_STEPS_PER_BYTE", 1)
    copytree(FINISHED, "theirs")
    repeat_page(Path("theirs/run.db"), 6)
    for words in (("replay", "theirs"), ("report", "theirs")):
        refused = shell(*words)
        assert (refused.code, refused.err.count("\n")) == (2, 1), refused
        assert (
            "theirs/run.db is damaged or not a run store: a query takes too long for a file of its size" in refused.err
        )


@pytest.fixture
def connection() -> Iterator[GuardedConnection]:
    with closing(sqlite3.connect(":memory:", factory=GuardedConnection)) as opened:
        yield opened


def test_each_statement_has_its_own_limit(connection: GuardedConnection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_ticks", 2)
    for _ in range(4):
        assert connection.execute("SELECT 1").fetchall() == [(1,)]
        with pytest.raises(sqlite3.DatabaseError, match="a query takes too long"):
            connection.execute(ENDLESS).fetchall()


@pytest.mark.parametrize("fetch", [lambda rows: rows.fetchall(), lambda rows: [rows.fetchone(), rows.fetchone()], list])
def test_steps_of_fetching_rows_count(
    connection: GuardedConnection, monkeypatch: pytest.MonkeyPatch, fetch: Callable[[sqlite3.Cursor], object]
) -> None:
    monkeypatch.setattr(connection, "_ticks", 1)
    rows = connection.execute(ENDLESS.replace("SELECT max(i)", "SELECT 1 UNION ALL SELECT max(i)"))
    with pytest.raises(sqlite3.DatabaseError, match="a query takes too long"):
        fetch(rows)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_ends_a_statement(connection: GuardedConnection, number: signal.Signals) -> None:
    def stop(number: int, frame: object) -> None:
        raise StopSignal(number)

    previous = signal.signal(number, stop)
    sender = threading.Timer(0.1, os.kill, (os.getpid(), number))
    sender.start()
    try:
        with pytest.raises(StopSignal) as stopped:
            connection.execute(ENDLESS).fetchall()
    finally:
        sender.join()
        signal.signal(number, previous)
    assert stopped.value.number == number
    assert connection.execute("SELECT 1").fetchall() == [(1,)]


def test_schema_cannot_use_functions_of_dubito(connection: GuardedConnection) -> None:
    connection.create_function("spy", 0, lambda: 1)
    connection.execute("CREATE VIEW v AS SELECT spy()")
    with pytest.raises(sqlite3.OperationalError, match="unsafe use of spy"):
        connection.execute("SELECT * FROM v")
