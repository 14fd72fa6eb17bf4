"""`run.db`: the games of a run, chunk by chunk, one packed row each. One writer; SQLite in WAL mode.

A chunk's games, its digest and the sums over everything so far are committed together. The last chunk of a run
that was cut off, or is to be lengthened, may hold some of its deals only; it is written again when more of
them are there, and the sums over all chunks before it are kept for that. What models were asked and said is
written beside it as it happens (`model_log.py`): threads share the one connection under a lock.

The rows of several `run.db` in one, table by table within SQLite: none of them passes through Python.
"""

import os
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Literal

from dubito.errors import RunStopped, UsageError, one_line
from dubito.files import check_format, check_is_file

FORMAT: Final = 4  # of a run folder: of its manifest, and of the tables below in SQLite's user_version
_LONGEST: Final = 64 << 20  # bytes of a value that is read; the sums of a run with 500 bots are the longest
_LEAST: Final = {"game": -2, "saved": -(1 << 60)}  # a probe's; what writing to a cache may cost; any other: -1
_LARGEST: Final = 1 << 60  # a whole number that is read: sums of many of them may not overflow where few do
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
# What a replay neither recomputes nor compares: clock times, durations, ids and headers of servers.
UNPROVEN: Final = frozenset(
    {("tries", "seconds"), ("tries", "headers"), ("batches", "id"), ("batches", "since"), ("batches", "expires")}
)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some consecutive deals of a run, finished."""

    number: int
    deals: int
    first_game: int
    outcomes: Sequence[bytes]
    decision_digests: Sequence[bytes] = ()  # of each game with model players
    records: Sequence[str] = ()  # for games with model players: each game's deal and outputs

    @property
    def digest(self) -> bytes:
        return _digest(self.outcomes, self.decision_digests)


Write = Callable[[sqlite3.Connection], object]  # a part of a transaction


class _Part:
    """What a thread writes and waits for: `over` can be taken when it is committed, or has failed."""

    __slots__ = ("failure", "over", "write")

    def __init__(self, write: Write) -> None:
        self.write = write
        self.over = threading.Lock()
        self.over.acquire()
        self.failure: BaseException | None = None


class RunDb:
    """The open file; use it as a context manager."""

    def __init__(self, connection: sqlite3.Connection, path: Path, writes: bool = False, shared: bool = False) -> None:
        self._connection, self._writes, self.is_shared = connection, writes, shared
        self._lock, self._syncing = threading.Lock(), threading.Lock()
        self._writer: int | None = None  # the thread within a transaction
        self._parts, self._later = deque[_Part](), deque[Write]()
        self._commits = self._synced = 0  # how many there were, and how many the disk has for certain
        self.undone = 0  # transactions
        self._journal: int | None = None  # open, once something was paid for
        self.path = path

    def __enter__(self) -> "RunDb":
        return self

    def __exit__(self, *exc: object) -> None:
        if self._writes:
            with suppress(RunStopped), self._alone():
                pass
        # Threads that were given up may still want to write: they find it closed.
        with self._lock:
            if self._writes:
                # While somebody else reads, closing alone would leave the journal behind; fold it into the file.
                with suppress(sqlite3.Error):  # a full disk keeps it
                    self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._connection.close()
        self._commit_for_all()
        with self._syncing:
            if self._journal is not None:
                os.close(self._journal)
                self._journal = None

    @staticmethod
    def create(path: Path, shared: bool = False) -> "RunDb":
        """The file to write into, new and empty or as it is; raises UsageError if it cannot be written.

        `shared`: other processes read and write it meanwhile, so no write is left for later.
        """
        connection = None
        try:
            connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            ((version,),) = connection.execute("PRAGMA user_version")
            if version:
                check_format(version, FORMAT, one_line(str(path)))
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")  # `_sync` does what FULL does, and holds nobody up
            connection.executescript(f"BEGIN IMMEDIATE;{_SCHEMA}PRAGMA user_version={FORMAT};COMMIT;")
            _seal_on_write(connection)
        except (sqlite3.Error, UsageError) as error:
            if connection is not None:
                connection.close()
            raise error if isinstance(error, UsageError) else UsageError(f"{path.name}: {error}") from None
        return RunDb(connection, path, writes=True, shared=shared)

    @staticmethod
    def open(path: Path) -> "RunDb":
        """Open an existing file to read. Raises UsageError if it is damaged or has another format."""
        try:
            connection = reading(path)
            _check_rows(connection)
        except sqlite3.Error as error:
            if _cannot_have_a_journal(path) and _journal(path).exists():
                hint = "copy its folder to where it can be written"
                raise UsageError(f"{path} has a journal that cannot be read where it lies: {hint}") from None
            raise UsageError(f"{path} is damaged or not a run store: {error}") from None
        return RunDb(connection, path)

    def check(self, first_game: int = 0) -> None:
        """Raise UsageError if the file is damaged; reads its structure, not every game.

        `first_game` is where the run begins: 0 but for a shard.
        """
        try:
            ((found, *_), *_) = self._connection.execute("PRAGMA quick_check(1)").fetchall()
            if found == "ok" and not self._belongs_together(first_game):
                found = "games, chunks and sums do not match"
        except sqlite3.Error as error:
            found = str(error)
        if found != "ok":
            raise UsageError(
                f"{self.path} is damaged ({one_line(found)}): nothing was changed; choose another --output"
            )

    def _belongs_together(self, first_game: int) -> bool:
        """Whether chunks stand in a row, with just their games and the sums of them."""
        chunks = self._connection.execute("SELECT chunk, games FROM chunks ORDER BY chunk").fetchall()
        games = self._connection.execute("SELECT count(*), min(game), max(game) FROM games").fetchone()
        sums = self._connection.execute("SELECT count(*) FROM tally WHERE chunks = 'all'").fetchone()[0]
        count = sum(count for _, count in chunks)
        if not count:
            return not chunks and not sums and games == (0, None, None)
        begin = chunks[0][0] if first_game else 0
        in_a_row = [number for number, _ in chunks] == [*range(begin, begin + len(chunks))]
        return in_a_row and sums == 1 and games == (count, first_game, first_game + count - 1)

    def add_chunk(self, chunk: Chunk, sums: str, complete: bool) -> None:
        """Commit a chunk with the sums up to and including it; raises RunStopped, nothing half written.

        `complete`: no longer run can add deals to it.
        """
        numbers = range(chunk.first_game, chunk.first_game + len(chunk.outcomes))
        none: Sequence[None] = [None] * len(numbers)
        rows = zip(numbers, chunk.outcomes, chunk.decision_digests or none, chunk.records or none, strict=True)
        with self.writing() as connection:
            query = "SELECT (SELECT min(game) FROM games) + sum(games) FROM chunks WHERE chunk < ?"
            ((begin,),) = connection.execute(query, (chunk.number,))
            assert begin in (None, chunk.first_game), "chunks stand in a row"
            connection.executemany("INSERT OR REPLACE INTO games VALUES (?, ?, ?, ?)", rows)
            row = (chunk.number, chunk.deals, len(chunk.outcomes), chunk.digest)
            connection.execute("INSERT OR REPLACE INTO chunks VALUES (?, ?, ?, ?)", row)
            connection.execute("INSERT OR REPLACE INTO tally VALUES ('all', ?, NULL)", (sums,))
            if complete:
                connection.execute("INSERT OR REPLACE INTO tally VALUES ('complete', ?, NULL)", (sums,))

    @contextmanager
    def writing(self, paid: bool = False) -> Iterator[sqlite3.Connection]:
        """One transaction, of one thread at a time; raises RunStopped, nothing half written. One within another is part
        of it.

        It survives the death of the process; what was `paid` for, and all before it, a loss of power too.
        """
        if self._writer == threading.get_ident():
            yield self._connection
            return
        with self._alone(), self._transaction():
            yield self._connection
        if paid:
            self._sync()

    def write(self, write: Write, paid: bool = False) -> None:
        """Write as within `writing`, in one transaction with what other threads write just now.

        Whoever finds the connection free commits for all who wait; so many threads wait for few commits.
        """
        if self._writer == threading.get_ident():
            write(self._connection)
            return
        part = _Part(write)
        self._parts.append(part)
        self._commit_for_all()
        part.over.acquire()
        if part.failure is not None:
            raise part.failure
        if paid:
            self._sync()

    def later(self, write: Write) -> None:
        """Write with the next transaction, whoever's, and before anything is read: for what follows from what is kept
        already, and is found again if the process dies before."""
        if self.is_shared:
            self.write(write)
        else:
            self._later.append(write)

    def settle_later(self) -> None:
        """Write what was left for later, or drop it if nothing can be written: a resumed run finds it again."""
        try:
            with self._alone():
                pass
        except RunStopped:
            self._later.clear()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Within, the connection is this thread's, and what waited is written; its own transaction just goes on."""
        if self._writer == threading.get_ident():
            yield
            return
        try:
            with self._lock:
                self._commit_waiting()
                yield
        finally:
            self._commit_for_all()

    def _commit_for_all(self) -> None:
        """Commit the parts that wait, if no other thread has the connection: it does so when it gives it back."""
        while self._parts and self._lock.acquire(blocking=False):
            try:
                with suppress(Exception):  # whoever waits for a part has it
                    self._commit_waiting()
            finally:
                self._lock.release()

    def _commit_waiting(self) -> None:
        """Commit what waits; what nobody waits for goes on waiting if it fails."""
        later, parts = [*self._later], [*self._parts]
        if not later and not parts:
            return
        failure: BaseException | None = None
        try:
            with self._transaction() as connection:
                for write in (*later, *(part.write for part in parts)):
                    write(connection)
            for _ in later:
                self._later.popleft()
        except BaseException as error:
            failure = error
            raise
        finally:
            for part in parts:
                self._parts.popleft()
                part.failure = failure
                part.over.release()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        self._writer = threading.get_ident()
        try:
            # Not deferred: a transaction that reads first could not write once another process has written.
            self._connection.execute("BEGIN IMMEDIATE")
            yield self._connection
            self._connection.execute("COMMIT")
            self._commits += 1
        except BaseException as error:
            self.undone += 1
            self._roll_back()
            if isinstance(error, sqlite3.Error):
                raise RunStopped(f"cannot write {self.path}: {error}; is the disk full?") from None
            raise
        finally:
            self._writer = None

    def _sync(self) -> None:
        """Wait until the disk has what was committed. Others write meanwhile, and one wait serves all before it."""
        mine = self._commits
        with self._syncing:
            if self._synced >= mine:
                return
            reached = self._commits
            try:
                if self._journal is None:
                    self._journal = os.open(_journal(self.path), os.O_RDWR)
                os.fsync(self._journal)
            except OSError as error:
                raise RunStopped(f"cannot write {self.path}: {error.strerror}") from None
            self._synced = reached

    def _roll_back(self) -> None:
        with suppress(sqlite3.Error):  # where the file cannot be written at all, what was committed stands
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def read(self, query: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """All rows of a query; raises RunStopped where the file cannot be read."""
        try:
            with self._alone():
                return self._connection.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise RunStopped(f"cannot read {self.path}: {one_line(str(error))}") from None

    def game_count(self) -> int:
        return int(self.read("SELECT coalesce(sum(games), 0) FROM chunks")[0][0])

    def deals_by_chunk(self) -> list[int]:
        return [deals for (deals,) in self.read("SELECT deals FROM chunks ORDER BY chunk")]

    def sums_json(self, chunks: Literal["all", "complete"] = "all") -> str:
        rows = self.read("SELECT sums FROM tally WHERE chunks = ?", (chunks,))
        return str(rows[0][0]) if rows else "{}"

    def outcomes(self) -> Iterator[bytes]:
        """The packed games, in their order; raises RunStopped where they are not those of their chunk's digest."""
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
        """Return the table and the key of a row that was changed after it was written; None if there is none."""
        for table in _SEALED:
            keys = self.read("SELECT name FROM pragma_table_info(?, 'main') WHERE pk ORDER BY pk", (table,))
            key = ", ".join(name for (name,) in keys)
            wrong = f"seal IS NOT {_seal_call(table)}"
            for row in self.read(f"SELECT {key} FROM {table} WHERE {wrong} LIMIT 1"):  # noqa: S608
                return table, row
        return None

    def results_digest(self) -> str:
        return results_digest(digest for (digest,) in self.read("SELECT digest FROM chunks ORDER BY chunk"))


def _seal(*values: object) -> bytes:
    return sha256(repr(values).encode("utf-8", "surrogatepass")).digest()[:8]


@cache
def _sealed_columns(table: str) -> tuple[str, ...]:
    columns = _known()[1][table]
    return tuple(name for name in columns if name != "seal" and (table, name) not in UNPROVEN)


def _seal_call(table: str, **replaced: str) -> str:
    return f"row_seal({', '.join(replaced.get(name, name) for name in _sealed_columns(table))})"


def _seal_on_write(connection: sqlite3.Connection) -> None:
    """Have SQLite seal every row that this connection writes.

    The triggers are temporary: other connections have none, so a row that anything else changes keeps its old seal.
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


def reading(path: Path) -> sqlite3.Connection:
    """Open a file that may be anybody's without writing to it.

    Raises sqlite3.Error if it is not a run store, UsageError if it is one of another format.
    """
    check_is_file(path)
    connection = sqlite3.connect(readable(path), uri=True, check_same_thread=False)
    try:
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
        connection.create_function("row_seal", -1, _seal, deterministic=True)
        connection.execute("PRAGMA trusted_schema=OFF")
        connection.execute("PRAGMA cell_size_check=ON")
        ((version,),) = connection.execute("PRAGMA user_version")
        # Without a version it is no store of any version.
        if version:
            check_format(version, FORMAT, one_line(str(path)))
        _check_tables(connection)
    except UnicodeDecodeError:
        connection.close()
        raise sqlite3.DatabaseError("what it says of its tables is no text") from None
    except (sqlite3.Error, UsageError):
        connection.close()
        raise
    return connection


@cache
def _known() -> tuple[dict[str, str | None], dict[str, dict[str, tuple[str, bool]]]]:
    """What a run store has: the SQL of all that has a name; and of each table's columns the type, and whether it may be
    NULL."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(_SCHEMA)
        names = dict(connection.execute("SELECT name, sql FROM sqlite_master"))
        columns: dict[str, dict[str, tuple[str, bool]]] = {}
        query = 'SELECT t.name, c.name, c.type, NOT (c."notnull" OR c.pk) FROM sqlite_master t, '
        for table, column, kind, null in connection.execute(
            f"{query} pragma_table_info(t.name) c WHERE t.type = 'table'"
        ):
            columns.setdefault(table, {})[column] = kind, bool(null)
    return names, columns


def _check_tables(connection: sqlite3.Connection) -> None:
    """Raise sqlite3.DatabaseError before any other query if the tables are not those of a run store.

    Views, triggers and computed columns could run code of whoever made the file.
    """
    names, columns = _known()
    for kind, name, sql in connection.execute("SELECT type, name, sql FROM sqlite_master"):
        a_table = kind == "table" and name in columns and not str(sql).upper().startswith("CREATE VIRTUAL")
        if not a_table and not (kind == "index" and (sql is None or names.get(name) == sql)):
            raise sqlite3.DatabaseError(f"it has the {kind} {one_line(str(name), 60)!r}, which no run has")
    query = "SELECT t.name, c.name, c.hidden FROM sqlite_master t, pragma_table_xinfo(t.name) c WHERE t.type = 'table'"
    missing = {(table, column) for table, names_of in columns.items() for column in names_of}
    for table, column, hidden in connection.execute(query):
        if hidden or column not in columns[table]:
            raise sqlite3.DatabaseError(f"its {table} have the column {one_line(column, 60)!r}, which no run has")
        missing.discard((table, column))
    if missing:
        table, column = min(missing)
        raise sqlite3.DatabaseError(f"its {table} have no column {column!r}")


def _check_rows(connection: sqlite3.Connection) -> None:
    """Raise sqlite3.DatabaseError if a row holds a value of another type than its column has, or beyond all bounds."""
    for table, columns in _known()[1].items():
        cases = " ".join(f"WHEN {_is_odd(table, name, *column)} THEN '{name}'" for name, column in columns.items())
        odd = connection.execute(
            f"SELECT odd FROM (SELECT CASE {cases} END AS odd FROM {table}) WHERE odd IS NOT NULL"  # noqa: S608, names of ours
        ).fetchone()
        if odd is not None:
            raise sqlite3.DatabaseError(f"its {table} hold something that no run writes as {odd[0]}")
    query = "SELECT (SELECT coalesce(sum(games), 0) FROM chunks), count(*) FROM games"  # both as of the same moment
    ((said, there),) = connection.execute(query)
    if said > there:
        raise sqlite3.DatabaseError(f"its chunks are of {said:,} games, and it has {there:,}")


def _is_odd(table: str, column: str, kind: str, null: bool) -> str:
    """The condition that a value is none of its column's; an answer that is neither yes nor no is JSON, in bytes."""
    right = {
        "INTEGER": f"typeof({column}) = 'integer' AND {column} BETWEEN {_LEAST.get(column, -1)} AND {_LARGEST}",
        "REAL": f"typeof({column}) IN ('real', 'integer') AND abs({column}) < 1e300",
        "TEXT": f"typeof({column}) = 'text'",
        "BLOB": f"typeof({column}) = 'blob'",
    }[kind]
    if (table, column) == ("decisions", "answer"):
        right += f" OR typeof({column}) = 'blob'"
    return f"NOT ({right}{f' OR {column} IS NULL' if null else ''})"


def readable(path: Path) -> str:
    """The file as the address of a database that is only read.

    In a folder that cannot be written SQLite can make no journal, which it wants even to read; without one nobody is
    writing, and the file is read as it stands.
    """
    alone = _cannot_have_a_journal(path) and not _journal(path).exists()
    return f"{path.resolve().as_uri()}?{'immutable=1' if alone else 'mode=ro'}"


def _journal(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def _cannot_have_a_journal(path: Path) -> bool:
    return path.exists() and not os.access(path.parent, os.W_OK)


def _digest(outcomes: Sequence[bytes], decision_digests: Sequence[bytes]) -> bytes:
    return sha256(b"".join((*outcomes, *decision_digests))).digest()


def results_digest(chunk_digests: Iterable[bytes]) -> str:
    return sha256(b"".join(chunk_digests)).hexdigest()


_ROWS: Final = {  # of each table: what is taken of a part, and in which order
    "games": "ORDER BY game",
    "chunks": "ORDER BY chunk",
    "decisions": "ORDER BY game, seat, decision",
    "attempts": "ORDER BY game, seat, decision, attempt",
    "ended": "ORDER BY game",
    "texts": "ORDER BY digest",
    "prompts": "ORDER BY digest, file",
}
# Before its games each part asked each model once, at the same places: these tries are numbered on.
_TRIES: Final = """
INSERT INTO tries ({columns})
SELECT game, seat, decision, attempt, number, {rest}
FROM (SELECT *, try + iif(game >= 0, 0, coalesce((
    SELECT max(try) FROM main.tries t
    WHERE (t.game, t.seat, t.decision, t.attempt) = (p.game, p.seat, p.decision, p.attempt)
), 0)) AS number FROM part.tries p) ORDER BY game, seat, decision, attempt, try
"""
_SHARED: Final = ("attempts", "texts", "prompts")  # where parts may have the same row: a preflight's, a text


def merge_into(path: Path, parts: Iterable[Path], sums: Mapping[str, str]) -> None:
    """Make the `run.db` of a whole run from those of its parts, in their order; `sums` are its tally's rows.

    Raises UsageError or RunStopped where it cannot be written, or a part cannot be read.
    """
    RunDb.create(path).__exit__()
    try:
        with closing(sqlite3.connect(path.resolve().as_uri(), uri=True, isolation_level=None)) as connection:
            connection.execute("PRAGMA synchronous=OFF")  # whoever finds the folder finds it whole
            connection.create_function("row_seal", -1, _seal, deterministic=True)
            for part in parts:
                _add(connection, part)
            connection.executemany("INSERT INTO tally VALUES (?, ?, NULL)", sums.items())
            connection.execute(f"UPDATE tally SET seal = {_seal_call('tally')}")  # noqa: S608
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.IntegrityError as error:
        raise RunStopped(f"the shards keep something of the same game twice: {error}; nothing was merged") from None
    except sqlite3.Error as error:
        raise RunStopped(f"cannot write {path.parent}: {error}; is the disk full?") from None


def _add(connection: sqlite3.Connection, part: Path) -> None:
    connection.execute("ATTACH ? AS part", (readable(part),))
    connection.execute("BEGIN")
    known = _known()[1]
    for table, order in _ROWS.items():
        verb, names = "INSERT OR IGNORE" if table in _SHARED else "INSERT", ", ".join(known[table])
        connection.execute(f"{verb} INTO {table} ({names}) SELECT {names} FROM part.{table} {order}")  # noqa: S608
    columns = [*known["tries"]]
    # A row that was changed in its part stays recognizable.
    seal = f"iif(seal IS {_seal_call('tries')}, {_seal_call('tries', **{'try': 'number'})}, seal)"
    rest = ", ".join([*columns[5:-1], seal])
    connection.execute(_TRIES.format(columns=", ".join(columns), rest=rest))
    connection.execute("COMMIT")
    connection.execute("DETACH part")
