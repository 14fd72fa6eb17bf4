"""SQLite connections to files from an unknown source.

A file's schema must be exactly the one that Dubito creates, since constraints, defaults, indexes, triggers and views
contain code. Every statement ends after a number of steps that depends on the file's size, because a damaged tree can
repeat a page without end. Ctrl-C and SIGTERM end a statement too.
"""

import os
import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, Final, NamedTuple, ParamSpec, TypeVar

from dubito.errors import one_line

_STEPS_PER_TICK: Final = 1_000_000  # SQLite's virtual machine takes about a hundredth of a second for them
_MIN_STEPS: Final = 200_000_000
_STEPS_PER_BYTE: Final = 100  # reading every value of a row takes about ten
_SHOWN: Final = 60  # characters of a foreign definition
Columns = Mapping[str, Collection[str]]  # names by table
P = ParamSpec("P")
R = TypeVar("R")


class SchemaObject(NamedTuple):
    """A row of a database's schema: a table, index, view or trigger."""

    kind: str
    name: str
    table: str
    sql: str | None  # None for an index that SQLite creates by itself


class GuardedConnection(sqlite3.Connection):
    """A connection whose statements have limits, for `sqlite3.connect(..., factory=GuardedConnection)`."""

    def __init__(self, database: Any, *args: Any, **options: Any) -> None:
        super().__init__(database, *args, **options)
        self._ticks_left = self._ticks = _MIN_STEPS // _STEPS_PER_TICK
        self._stopped_by: BaseException | None = None
        watch = self._watch()
        next(watch)
        self.set_progress_handler(watch.__next__, _STEPS_PER_TICK)
        # Functions that can be used outside of a schema are refused in it, as is a cell that exceeds its page.
        self.execute("PRAGMA trusted_schema=OFF")
        self.execute("PRAGMA cell_size_check=ON")

    def execute(self, sql: str, parameters: Any = (), /) -> "_GuardedCursor":
        return _GuardedCursor(self).execute(sql, parameters)

    def executemany(self, sql: str, parameters: Any, /) -> "_GuardedCursor":
        return _GuardedCursor(self).executemany(sql, parameters)

    def allow_steps_for(self, path: Path) -> None:
        """Allow as many steps per statement as reading the whole file takes."""
        self._ticks = (_MIN_STEPS + _STEPS_PER_BYTE * path.stat().st_size) // _STEPS_PER_TICK

    def begin_statement(self) -> None:
        self._ticks_left = self._ticks

    def _watch(self) -> Iterator[bool]:
        """Yield after each tick whether to end the statement.

        This is a generator because a function that SQLite calls can be interrupted by a signal before its first line.
        SQLite would drop the exception.
        """
        stop = False
        while True:
            try:
                yield stop
                self._ticks_left -= 1
                stop = self._ticks_left < 0
            except GeneratorExit:
                raise
            except BaseException as error:
                self._stopped_by, stop = error, True

    def explain_end(self, error: sqlite3.OperationalError) -> BaseException:
        """Return the signal's exception or the limit that ended a statement, or the error of another cause."""
        stopped_by, self._stopped_by = self._stopped_by, None
        if stopped_by is None and self._ticks_left < 0:
            return sqlite3.DatabaseError("a query takes too long for a file of its size")
        return stopped_by or error


def _explains_end(method: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], R]:
    @wraps(method)
    def explained(self: Any, /, *args: P.args, **options: P.kwargs) -> R:
        try:
            return method(self, *args, **options)
        except sqlite3.OperationalError as error:
            raise self.connection.explain_end(error) from None

    return explained


class _GuardedCursor(sqlite3.Cursor):
    connection: GuardedConnection

    @_explains_end
    def execute(self, sql: str, parameters: Any = (), /) -> "_GuardedCursor":
        self.connection.begin_statement()
        super().execute(sql, parameters)
        return self

    @_explains_end
    def executemany(self, sql: str, parameters: Any, /) -> "_GuardedCursor":
        self.connection.begin_statement()
        super().executemany(sql, parameters)
        return self

    fetchone = _explains_end(sqlite3.Cursor.fetchone)
    fetchall = _explains_end(sqlite3.Cursor.fetchall)
    __next__ = _explains_end(sqlite3.Cursor.__next__)


def open_guarded(path: Path) -> GuardedConnection:
    """Open a file for reading. Raises sqlite3.Error."""
    connection = sqlite3.connect(readonly_uri(path), uri=True, check_same_thread=False, factory=GuardedConnection)
    connection.allow_steps_for(path)
    return connection


def readonly_uri(path: Path) -> str:
    """Return the URI with which SQLite opens a file only for reading.

    SQLite creates a journal even for reading, which is impossible in a read-only folder. Without a journal, no
    process is writing, and the file can be read as it is.
    """
    has_no_writer = is_in_readonly_folder(path) and not wal_path(path).exists()
    return f"{path.resolve().as_uri()}?{'immutable=1' if has_no_writer else 'mode=ro'}"


def wal_path(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def is_in_readonly_folder(path: Path) -> bool:
    return path.exists() and not os.access(path.parent, os.W_OK)


def read_database_schema(connection: sqlite3.Connection) -> dict[str, SchemaObject]:
    rows = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall()
    return {row[1]: SchemaObject(*row) for row in rows}


def check_database_schema(
    connection: sqlite3.Connection, expected: Mapping[str, SchemaObject], columns: Columns | None = None
) -> None:
    """Raise sqlite3.DatabaseError unless the schema is the expected one, to the letter.

    `columns` lists the columns of the expected tables, to name the one that differs.
    """
    actual = read_database_schema(connection)
    for name, found in actual.items():
        is_virtual = found.kind == "table" and str(found.sql).upper().startswith("CREATE VIRTUAL")
        if is_virtual or name not in expected or found[:3] != expected[name][:3]:
            raise sqlite3.DatabaseError(f"unexpected {found.kind} {one_line(str(name), _SHOWN)!r}")
    if columns is not None:
        query = (
            "SELECT t.name, c.name, c.hidden FROM sqlite_master t, pragma_table_xinfo(t.name) c WHERE t.type = 'table'"
        )
        missing = {(table, column) for table, names in columns.items() for column in names}
        for table, column, hidden in connection.execute(query):
            if hidden or (table, column) not in missing:
                raise sqlite3.DatabaseError(f"unexpected column {one_line(column, _SHOWN)!r} in {table}")
            missing.remove((table, column))
        if missing:
            table, column = min(missing)
            raise sqlite3.DatabaseError(f"no column {column!r} in {table}")
    for name, wanted in expected.items():
        if name not in actual:
            raise sqlite3.DatabaseError(f"no {wanted.kind} {name!r}")
        if (sql := actual[name].sql) != wanted.sql:
            problem = f"unexpected definition of {wanted.kind} {name!r}"
            raise sqlite3.DatabaseError(f"{problem}: {_describe_difference(str(sql), str(wanted.sql))}")


def _describe_difference(sql: str, wanted: str) -> str:
    """Return the part of a definition that is not in the wanted one."""
    start = _count_equal(sql, wanted)
    end = len(sql) - _count_equal(sql[start:][::-1], wanted[start:][::-1])
    return one_line(sql[start:end].strip(" ,"), _SHOWN) or f"without {one_line(wanted[start:].strip(), _SHOWN)}"


def _count_equal(one: str, other: str) -> int:
    """Return with how many equal characters two texts start."""
    pairs = zip(one, other, strict=False)
    return next((place for place, (left, right) in enumerate(pairs) if left != right), min(len(one), len(other)))
