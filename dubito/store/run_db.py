"""`run.db`: the games of a run, in chunks, with one packed row per game.

The file has a single writer and uses SQLite in WAL mode. A chunk's games, its digest and the sums of all games so far
are committed together. The last chunk of an unfinished run may be incomplete. It is written again when more of its
deals are finished, so the sums without this chunk are stored as well. The model log (`model_log.py`) is written while
games are played, with threads sharing a connection under a lock. `merge_into` copies the rows of several `run.db` files
into one within SQLite, without passing them through Python.
"""

import os
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Literal

from dubito.errors import RunStopped, UsageError, one_line
from dubito.files import check_format, check_is_file
from dubito.store.guarded import (
    GuardedConnection,
    SchemaObject,
    check_database_schema,
    is_in_readonly_folder,
    open_guarded,
    read_database_schema,
    readonly_uri,
    wal_path,
)

# The decisions of a player. They are matched by game and seat, since only the first decision of a request has attempts.
OF_PLAYER: Final = (
    "FROM decisions d JOIN (SELECT DISTINCT game, seat FROM attempts WHERE player = ?) USING (game, seat)"
)
PROGRAM_SERVER: Final = "program"  # stored instead of a server for attempts by programs
FORMAT: Final = 4  # version of a run folder, stored in its manifest and in SQLite's user_version
_MAX_VALUE_BYTES: Final = 64 << 20  # the longest values are the sums of a run with 500 bots
# The smallest valid numbers, if not -1: the game of a probe, and savings, which cache writes can make negative.
_MIN_NUMBERS: Final = {"game": -2, "saved": -(1 << 60)}
_MAX_NUMBER: Final = 1 << 60  # prevents sums from overflowing
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS games (game INTEGER PRIMARY KEY, outcome BLOB NOT NULL, decisions BLOB, record TEXT);
CREATE TABLE IF NOT EXISTS chunks (
    chunk INTEGER PRIMARY KEY, deals INTEGER NOT NULL, games INTEGER NOT NULL, digest BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS tally (chunks TEXT PRIMARY KEY, sums TEXT NOT NULL, seal BLOB) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS texts (digest TEXT PRIMARY KEY, text BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS prompts (
    digest TEXT, file TEXT, text TEXT NOT NULL, PRIMARY KEY (digest, file)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS decisions (
    game INTEGER, seat INTEGER, decision INTEGER, turn INTEGER NOT NULL, node TEXT NOT NULL,
    answer INTEGER NOT NULL, outcome TEXT NOT NULL, p_bluff REAL, PRIMARY KEY (game, seat, decision)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS attempts (
    game INTEGER, seat INTEGER, decision INTEGER, attempt INTEGER, player TEXT NOT NULL, server TEXT NOT NULL,
    request TEXT NOT NULL, draw TEXT NOT NULL, reply TEXT, raw TEXT, cause TEXT, origin TEXT NOT NULL,
    input INTEGER, cached INTEGER, cache_write INTEGER, output INTEGER, reasoning INTEGER, model TEXT, seal BLOB,
    PRIMARY KEY (game, seat, decision, attempt)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS tries (
    game INTEGER, seat INTEGER, decision INTEGER, attempt INTEGER, try INTEGER,
    player TEXT NOT NULL, account TEXT NOT NULL, request TEXT NOT NULL, draw TEXT NOT NULL,
    state TEXT NOT NULL, kind TEXT, error TEXT, seconds REAL,
    status INTEGER, raw TEXT, headers TEXT, usage TEXT,
    tokens INTEGER NOT NULL, picodollars INTEGER, assumed INTEGER NOT NULL, saved INTEGER NOT NULL, likely INTEGER,
    seal BLOB, PRIMARY KEY (game, seat, decision, attempt, try)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS ended (game INTEGER PRIMARY KEY);
CREATE INDEX IF NOT EXISTS paid ON tries (request, draw) WHERE state = 'received';
CREATE TABLE IF NOT EXISTS awaited (
    account TEXT, request TEXT, draw TEXT, player TEXT NOT NULL, game INTEGER NOT NULL, deal INTEGER NOT NULL,
    seat INTEGER NOT NULL, decision INTEGER NOT NULL, attempt INTEGER NOT NULL, node TEXT NOT NULL,
    try INTEGER NOT NULL, failures INTEGER NOT NULL, batch TEXT, cause TEXT, detail TEXT, body TEXT NOT NULL,
    seal BLOB, PRIMARY KEY (account, request, draw)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS batches (
    name TEXT PRIMARY KEY, wave INTEGER NOT NULL, account TEXT NOT NULL, entries INTEGER NOT NULL, since REAL NOT NULL,
    id TEXT, expires REAL, ended INTEGER NOT NULL, seal BLOB
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS together ON awaited (batch);
CREATE INDEX IF NOT EXISTS asked ON awaited (request, draw);
"""
_SEALED: Final = ("tally", "attempts", "tries", "awaited", "batches")
# Columns that a replay cannot verify: clock times, durations, servers' ids and headers.
UNPROVEN: Final = frozenset(
    {("tries", "seconds"), ("tries", "headers"), ("batches", "id"), ("batches", "since"), ("batches", "expires")}
)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A sequence of consecutive, finished deals of a run."""

    number: int
    deals: int
    first_game: int
    outcomes: Sequence[bytes]
    decision_digests: Sequence[bytes] = ()  # digests for each game with model players
    records: Sequence[str] = ()  # deal and outputs of each game with model players

    @property
    def digest(self) -> bytes:
        return _digest(self.outcomes, self.decision_digests)


Write = Callable[[sqlite3.Connection], object]  # a write, as part of a transaction


class _PendingWrite:
    """A write that a thread waits for. `done` can be acquired once it was committed or failed."""

    __slots__ = ("done", "failure", "write")

    def __init__(self, write: Write) -> None:
        self.write = write
        self.done = threading.Lock()
        self.done.acquire()
        self.failure: BaseException | None = None


@dataclass(eq=False, slots=True)
class RunDb:
    """The open file, to be used as a context manager."""

    _connection: sqlite3.Connection
    path: Path
    _writes: bool = False
    is_shared: bool = False
    rollbacks: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _syncing: threading.Lock = field(default_factory=threading.Lock)
    _writer: int | None = None  # the thread that is in a transaction
    _pending: deque[_PendingWrite] = field(default_factory=deque)
    _later: deque[Write] = field(default_factory=deque)
    _commits: int = 0
    _synced: int = 0  # how many of the commits are surely on disk
    _journal: int | None = None  # opened at the first paid write

    def __enter__(self) -> "RunDb":
        return self

    def __exit__(self, *exc: object) -> None:
        if self._writes:
            with suppress(RunStopped), self._exclusive():
                pass
        # Abandoned threads may still try to write, and will find it closed.
        with self._lock:
            if self._writes:
                # If another process reads the file, closing it would leave the journal behind. On a full disk this
                # fails, and the journal stays.
                with suppress(sqlite3.Error):
                    self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._connection.close()
        self._commit_if_free()
        with self._syncing:
            if self._journal is not None:
                os.close(self._journal)
                self._journal = None

    @staticmethod
    def create(path: Path, shared: bool = False) -> "RunDb":
        """Open or create a file for writing. Raises UsageError if it is not writable.

        If the file is `shared` with other processes, no writes are postponed.
        """
        connection = None
        try:
            connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, factory=GuardedConnection)
            connection.allow_steps_for(path)
            ((version,),) = connection.execute("PRAGMA user_version")
            if version:
                check_format(version, FORMAT, one_line(str(path)))
            if version or read_database_schema(connection):
                check_database_schema(connection, *_expected_schema())
            connection.execute("PRAGMA journal_mode=WAL")
            # `_sync` does what FULL would do, without blocking other threads.
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.executescript(f"BEGIN IMMEDIATE;{_SCHEMA}PRAGMA user_version={FORMAT};COMMIT;")
            _seal_on_write(connection)
        except (sqlite3.Error, UsageError) as error:
            if connection is not None:
                connection.close()
            raise error if isinstance(error, UsageError) else UsageError(f"{path.name}: {error}") from None
        return RunDb(connection, path, _writes=True, is_shared=shared)

    @staticmethod
    def open(path: Path) -> "RunDb":
        """Open an existing file for reading. Raises UsageError if the file is damaged or has another format."""
        try:
            connection = open_readonly(path)
            _check_rows(connection)
        except sqlite3.Error as error:
            if is_in_readonly_folder(path) and wal_path(path).exists():
                problem = f"{path} has a journal, which cannot be read in a folder without write access"
                raise UsageError(problem, hint="copy the folder to another place") from None
            if path.with_name(f"{path.name}-journal").exists():
                problem = f"{path} has an unfinished change in {path.name}-journal, which Dubito does not write"
                raise UsageError(problem, hint="delete the journal if the run is yours, or get another copy") from None
            raise UsageError(f"{path} is damaged or not a run store: {error}") from None
        return RunDb(connection, path)

    def check(self, first_game: int = 0) -> None:
        """Raise UsageError if the file is damaged. This checks the structure, not every game.

        `first_game` is the number of the run's first game, which is 0 except in a shard.
        """
        try:
            ((status, *_), *_) = self._connection.execute("PRAGMA quick_check(1)").fetchall()
            if status == "ok" and not self._is_consistent(first_game):
                status = "games, chunks and sums do not match"
        except sqlite3.Error as error:
            status = str(error)
        if status != "ok":
            raise UsageError(
                f"{self.path} is damaged ({one_line(status)}): nothing was changed; choose another --output"
            )

    def _is_consistent(self, first_game: int) -> bool:
        """Return whether the chunks are consecutive and match their games and sums."""
        chunks = self._connection.execute("SELECT chunk, games FROM chunks ORDER BY chunk").fetchall()
        games = self._connection.execute("SELECT count(*), min(game), max(game) FROM games").fetchone()
        sums = self._connection.execute("SELECT count(*) FROM tally WHERE chunks = 'all'").fetchone()[0]
        count = sum(count for _, count in chunks)
        if not count:
            return not chunks and not sums and games == (0, None, None)
        first = chunks[0][0] if first_game else 0
        is_consecutive = [number for number, _ in chunks] == [*range(first, first + len(chunks))]
        return is_consecutive and sums == 1 and games == (count, first_game, first_game + count - 1)

    def add_chunk(self, chunk: Chunk, sums: str, complete: bool) -> None:
        """Commit a chunk with the sums up to and including it. If this raises RunStopped, nothing is written.

        A chunk is `complete` if a longer run would not add deals to it.
        """
        numbers = range(chunk.first_game, chunk.first_game + len(chunk.outcomes))
        nulls: Sequence[None] = [None] * len(numbers)
        rows = zip(numbers, chunk.outcomes, chunk.decision_digests or nulls, chunk.records or nulls, strict=True)
        with self.writing() as connection:
            query = "SELECT (SELECT min(game) FROM games) + sum(games) FROM chunks WHERE chunk < ?"
            ((first,),) = connection.execute(query, (chunk.number,))
            assert first in (None, chunk.first_game), "chunks are consecutive"
            connection.executemany("INSERT OR REPLACE INTO games VALUES (?, ?, ?, ?)", rows)
            row = (chunk.number, chunk.deals, len(chunk.outcomes), chunk.digest)
            connection.execute("INSERT OR REPLACE INTO chunks VALUES (?, ?, ?, ?)", row)
            connection.execute("INSERT OR REPLACE INTO tally VALUES ('all', ?, NULL)", (sums,))
            if complete:
                connection.execute("INSERT OR REPLACE INTO tally VALUES ('complete', ?, NULL)", (sums,))

    @contextmanager
    def writing(self, paid: bool = False) -> Iterator[sqlite3.Connection]:
        """Run a transaction, for one thread at a time. A nested transaction is part of the outer one.

        If this raises RunStopped, nothing is written. A transaction survives the end of the process. If it was `paid`
        for, it and all earlier ones also survive a power failure.
        """
        if self._writer == threading.get_ident():
            yield self._connection
            return
        with self._exclusive(), self._transaction():
            yield self._connection
        if paid:
            self._sync()

    def write(self, write: Write, paid: bool = False) -> None:
        """Write as in `writing`, in one transaction with the pending writes of other threads.

        The thread that gets the connection commits for all of them, so that many threads need only a few commits.
        """
        if self._writer == threading.get_ident():
            write(self._connection)
            return
        pending = _PendingWrite(write)
        self._pending.append(pending)
        self._commit_if_free()
        pending.done.acquire()
        if pending.failure is not None:
            raise pending.failure
        if paid:
            self._sync()

    def write_later(self, write: Write) -> None:
        """Queue a write, which is executed in any thread's next transaction or before the next read.

        Use this only for data that a resumed run can recompute.
        """
        if self.is_shared:
            self.write(write)
        else:
            self._later.append(write)

    def flush_later(self) -> None:
        """Execute queued writes, or drop them if writing fails, since a resumed run recomputes them."""
        try:
            with self._exclusive():
                pass
        except RunStopped:
            self._later.clear()

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Give this thread the connection after committing pending writes. Its own transaction continues."""
        if self._writer == threading.get_ident():
            yield
            return
        try:
            with self._lock:
                self._commit_waiting()
                yield
        finally:
            self._commit_if_free()

    def _commit_if_free(self) -> None:
        """Commit pending writes, unless the thread that has the connection will commit them when it is done."""
        while self._pending and self._lock.acquire(blocking=False):
            try:
                # The waiting threads receive the exception.
                with suppress(Exception):
                    self._commit_waiting()
            finally:
                self._lock.release()

    def _commit_waiting(self) -> None:
        """Commit pending and queued writes. If the commit fails, queued writes remain queued."""
        later, pending = [*self._later], [*self._pending]
        if not later and not pending:
            return
        failure: BaseException | None = None
        try:
            with self._transaction() as connection:
                for write in (*later, *(each.write for each in pending)):
                    write(connection)
            for _ in later:
                self._later.popleft()
        except BaseException as error:
            failure = error
            raise
        finally:
            for each in pending:
                self._pending.popleft()
                each.failure = failure
                each.done.release()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        self._writer = threading.get_ident()
        try:
            # Do not defer: a transaction that starts with a read cannot write after another process has written.
            self._connection.execute("BEGIN IMMEDIATE")
            yield self._connection
            self._connection.execute("COMMIT")
            self._commits += 1
        except BaseException as error:
            self.rollbacks += 1
            # This fails if the file cannot be written at all.
            with suppress(sqlite3.Error):
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
            if isinstance(error, sqlite3.Error):
                raise RunStopped(f"cannot write {self.path}: {error}; is the disk full?") from None
            raise
        finally:
            self._writer = None

    def _sync(self) -> None:
        """Wait until this thread's commits are on disk.

        Other threads can write during that time, and wait for the same sync.
        """
        wanted = self._commits
        with self._syncing:
            if self._synced >= wanted:
                return
            commits = self._commits
            try:
                if self._journal is None:
                    self._journal = os.open(wal_path(self.path), os.O_RDWR)
                os.fsync(self._journal)
            except OSError as error:
                raise RunStopped(f"cannot write {self.path}: {error.strerror}") from None
            self._synced = commits

    def read(self, query: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a query. Raises RunStopped if the file cannot be read."""
        try:
            with self._exclusive():
                return self._connection.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise RunStopped(f"cannot read {self.path}: {one_line(str(error))}") from None

    def game_count(self) -> int:
        return int(self.read("SELECT coalesce(sum(games), 0) FROM chunks")[0][0])

    def reply_count(self) -> int:
        """Return the number of replies from models in games."""
        where = f"game >= 0 AND reply IS NOT NULL AND server != '{PROGRAM_SERVER}'"
        return int(self.read(f"SELECT count(*) FROM attempts WHERE {where}")[0][0])  # noqa: S608

    def deals_by_chunk(self) -> list[int]:
        return [deals for (deals,) in self.read("SELECT deals FROM chunks ORDER BY chunk")]

    def sums_json(self, chunks: Literal["all", "complete"] = "all") -> str:
        rows = self.read("SELECT sums FROM tally WHERE chunks = ?", (chunks,))
        return str(rows[0][0]) if rows else "{}"

    def outcomes(self) -> Iterator[bytes]:
        """Yield the packed games in order. Raises RunStopped if they do not match their chunk's digest."""
        first = self.read("SELECT min(game) FROM games")[0][0]
        for games, digest in self.read("SELECT games, digest FROM chunks ORDER BY chunk"):
            query = "SELECT outcome, decisions FROM games WHERE game >= ? AND game < ? ORDER BY game"
            rows = self.read(query, (first, first + games))
            outcomes, digests = [row for row, _ in rows], [row for _, row in rows if row is not None]
            if not all(type(row) is bytes for row in outcomes + digests) or _digest(outcomes, digests) != digest:
                raise RunStopped(f"{self.path}: games {first} to {first + games - 1} were changed or are damaged")
            yield from outcomes
            first += games

    def has_changed_sums(self) -> bool:
        return bool(self.read(f"SELECT 1 FROM tally WHERE seal IS NOT {_seal_call('tally')}"))  # noqa: S608

    def find_broken_seal(self) -> tuple[str, tuple[Any, ...]] | None:
        """Return the table and key of a row that was changed after it was written, or None."""
        for table in _SEALED:
            keys = self.read("SELECT name FROM pragma_table_info(?, 'main') WHERE pk ORDER BY pk", (table,))
            key = ", ".join(name for (name,) in keys)
            is_changed = f"seal IS NOT {_seal_call(table)}"
            for row in self.read(f"SELECT {key} FROM {table} WHERE {is_changed} LIMIT 1"):  # noqa: S608
                return table, row
        return None

    def results_digest(self) -> str:
        return results_digest(digest for (digest,) in self.read("SELECT digest FROM chunks ORDER BY chunk"))


def _seal(*values: object) -> bytes:
    return sha256(repr(values).encode("utf-8", "surrogatepass")).digest()[:8]


@cache
def _sealed_columns(table: str) -> tuple[str, ...]:
    columns = _expected_schema()[1][table]
    return tuple(name for name in columns if name != "seal" and (table, name) not in UNPROVEN)


def _seal_call(table: str, **replaced: str) -> str:
    return f"row_seal({', '.join(replaced.get(name, name) for name in _sealed_columns(table))})"


def _seal_on_write(connection: sqlite3.Connection) -> None:
    """Make SQLite seal every row that this connection writes.

    The triggers are temporary and exist only for this connection, so a row that anything else changes keeps its old
    seal.
    """
    connection.create_function("row_seal", -1, _seal, deterministic=True)
    for table in _SEALED:
        seals = f"UPDATE {table} SET seal = {_seal_call(table)}"  # noqa: S608
        keys = [name for (name,) in connection.execute("SELECT name FROM pragma_table_info(?) WHERE pk", (table,))]
        this_row = " AND ".join(f"{name} = NEW.{name}" for name in keys)
        for event in ("INSERT", f"UPDATE OF {', '.join(_sealed_columns(table))}"):
            connection.execute(
                f"CREATE TEMP TRIGGER IF NOT EXISTS seal_{table}_{event[:6]} AFTER {event} ON main.{table} "
                f"BEGIN {seals} WHERE {this_row}; END"
            )


def has_no_tables(path: Path) -> bool:
    """Return whether a run was killed after it created this file and before it created its tables."""
    check_is_file(path)
    with suppress(sqlite3.Error), closing(open_guarded(path)) as connection:
        return not read_database_schema(connection)
    return False


def open_readonly(path: Path) -> GuardedConnection:
    """Open a file from an unknown source without writing to it.

    Raises sqlite3.Error if the file is not a run store, and UsageError if it has another format.
    """
    check_is_file(path)
    connection = open_guarded(path)
    try:
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE_BYTES)
        connection.create_function("row_seal", -1, _seal, deterministic=True)
        ((version,),) = connection.execute("PRAGMA user_version")
        # Without a version, the tables are not a run store's, which is found next.
        if version:
            check_format(version, FORMAT, one_line(str(path)))
        check_database_schema(connection, *_expected_schema())
    except UnicodeDecodeError:
        connection.close()
        raise sqlite3.DatabaseError("its schema is not text") from None
    except (sqlite3.Error, UsageError):
        connection.close()
        raise
    return connection


@cache
def _expected_schema() -> tuple[dict[str, SchemaObject], dict[str, dict[str, tuple[str, bool]]]]:
    """Return a run store's schema, and the type and nullability of each column by table."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(_SCHEMA)
        names = read_database_schema(connection)
        columns: dict[str, dict[str, tuple[str, bool]]] = {}
        query = 'SELECT t.name, c.name, c.type, NOT (c."notnull" OR c.pk) FROM sqlite_master t, '
        for table, column, kind, null in connection.execute(
            f"{query} pragma_table_info(t.name) c WHERE t.type = 'table'"
        ):
            columns.setdefault(table, {})[column] = kind, bool(null)
    return names, columns


def _check_rows(connection: sqlite3.Connection) -> None:
    """Raise sqlite3.DatabaseError if a row has a value of the wrong type or out of bounds."""
    for table, columns in _expected_schema()[1].items():
        cases = " ".join(
            f"WHEN {_invalid_condition(table, name, *column)} THEN '{name}'" for name, column in columns.items()
        )
        query = f"SELECT bad FROM (SELECT CASE {cases} END AS bad FROM {table}) WHERE bad IS NOT NULL"  # noqa: S608
        bad = connection.execute(query).fetchone()
        if bad is not None:
            raise sqlite3.DatabaseError(f"invalid value of {bad[0]} in {table}")
    # Use a single query, since another process could add games between two.
    query = "SELECT (SELECT coalesce(sum(games), 0) FROM chunks), count(*) FROM games"
    ((expected, count),) = connection.execute(query)
    if expected > count:
        raise sqlite3.DatabaseError(f"its chunks have {expected:,} games, but only {count:,} are stored")


def _invalid_condition(table: str, column: str, kind: str, null: bool) -> str:
    """Return the SQL condition that matches values of the wrong type for their column."""
    smallest = _MIN_NUMBERS.get(column, -1)
    valid = {
        "INTEGER": f"typeof({column}) = 'integer' AND {column} BETWEEN {smallest} AND {_MAX_NUMBER}",
        "REAL": f"typeof({column}) IN ('real', 'integer') AND abs({column}) < 1e300",
        "TEXT": f"typeof({column}) = 'text'",
        "BLOB": f"typeof({column}) = 'blob'",
    }[kind]
    if (table, column) == ("decisions", "answer"):
        # An answer other than yes or no is JSON, in bytes.
        valid += f" OR typeof({column}) = 'blob'"
    return f"NOT ({valid}{f' OR {column} IS NULL' if null else ''})"


def _digest(outcomes: Sequence[bytes], decision_digests: Sequence[bytes]) -> bytes:
    return sha256(b"".join((*outcomes, *decision_digests))).digest()


def results_digest(chunk_digests: Iterable[bytes]) -> str:
    return sha256(b"".join(chunk_digests)).hexdigest()


# The tables that are copied from each part, with their orders.
_COPIED_ROWS: Final = {
    "games": "ORDER BY game",
    "chunks": "ORDER BY chunk",
    "decisions": "ORDER BY game, seat, decision",
    "attempts": "ORDER BY game, seat, decision, attempt",
    "ended": "ORDER BY game",
    "texts": "ORDER BY digest",
    "prompts": "ORDER BY digest, file",
}
# Before its games, each part asked each model once under the same keys, so these tries are renumbered.
_COPY_TRIES: Final = """
INSERT INTO tries ({columns})
SELECT game, seat, decision, attempt, number, {rest}
FROM (SELECT *, try + iif(game >= 0, 0, coalesce((
    SELECT max(try) FROM main.tries t
    WHERE (t.game, t.seat, t.decision, t.attempt) = (p.game, p.seat, p.decision, p.attempt)
), 0)) AS number FROM part.tries p) ORDER BY game, seat, decision, attempt, try
"""
_SHARED: Final = ("attempts", "texts", "prompts")  # tables in which parts may have the same row


def merge_into(path: Path, parts: Iterable[Path], sums: Mapping[str, str]) -> None:
    """Merge the `run.db` files of a run's parts, in order, into a new one. `sums` are the rows of its tally.

    Raises UsageError or RunStopped if the new file cannot be written or a part cannot be read.
    """
    RunDb.create(path).__exit__()
    try:
        with closing(sqlite3.connect(path.resolve().as_uri(), uri=True, isolation_level=None)) as connection:
            # The folder is moved into place only when it is complete.
            connection.execute("PRAGMA synchronous=OFF")
            connection.create_function("row_seal", -1, _seal, deterministic=True)
            for part in parts:
                _copy_rows(connection, part)
            connection.executemany("INSERT INTO tally VALUES (?, ?, NULL)", sums.items())
            connection.execute(f"UPDATE tally SET seal = {_seal_call('tally')}")  # noqa: S608
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.IntegrityError as error:
        raise RunStopped(f"two shards contain the same game: {error}; nothing was merged") from None
    except sqlite3.Error as error:
        raise RunStopped(f"cannot write {path.parent}: {error}; is the disk full?") from None


def _copy_rows(connection: sqlite3.Connection, part: Path) -> None:
    connection.execute("ATTACH ? AS part", (readonly_uri(part),))
    connection.execute("BEGIN")
    schema = _expected_schema()[1]
    for table, order in _COPIED_ROWS.items():
        verb, names = "INSERT OR IGNORE" if table in _SHARED else "INSERT", ", ".join(schema[table])
        connection.execute(f"{verb} INTO {table} ({names}) SELECT {names} FROM part.{table} {order}")  # noqa: S608
    columns = [*schema["tries"]]
    # A row that was changed in its part keeps its wrong seal.
    seal = f"iif(seal IS {_seal_call('tries')}, {_seal_call('tries', **{'try': 'number'})}, seal)"
    rest = ", ".join([*columns[5:-1], seal])
    connection.execute(_COPY_TRIES.format(columns=", ".join(columns), rest=rest))
    connection.execute("COMMIT")
    connection.execute("DETACH part")
