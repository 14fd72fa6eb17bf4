"""`run.db`: the games of a run, chunk by chunk, one packed row each. One writer; SQLite in WAL mode.

A chunk's games, its digest and the sums over everything so far are committed together. The last chunk of a run
that was cut off, or is to be lengthened, may hold some of its deals only; it is written again when more of
them are there, and the sums over all chunks before it are kept for that. What models were asked and said is
written beside it as it happens (`model_log.py`): threads share the one connection under a lock.
"""

import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Literal

from dubito.errors import RunStopped, UsageError, one_line

_FORMAT: Final = 3  # of the tables below; kept in SQLite's user_version
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS games (game INTEGER PRIMARY KEY, outcome BLOB NOT NULL, decisions BLOB, record TEXT);
CREATE TABLE IF NOT EXISTS chunks (
    chunk INTEGER PRIMARY KEY, deals INTEGER NOT NULL, games INTEGER NOT NULL, digest BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS tally (chunks TEXT PRIMARY KEY, sums TEXT NOT NULL) WITHOUT ROWID;
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
    input INTEGER, cached INTEGER, cache_write INTEGER, output INTEGER, reasoning INTEGER,
    PRIMARY KEY (game, seat, decision, attempt)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS tries (
    game INTEGER, seat INTEGER, decision INTEGER, attempt INTEGER, try INTEGER,
    player TEXT NOT NULL, account TEXT NOT NULL, request TEXT NOT NULL, draw TEXT NOT NULL,
    state TEXT NOT NULL, kind TEXT, error TEXT, seconds REAL,
    status INTEGER, raw TEXT, headers TEXT, usage TEXT,
    tokens INTEGER NOT NULL, picodollars INTEGER, assumed INTEGER NOT NULL, saved INTEGER NOT NULL, likely INTEGER,
    PRIMARY KEY (game, seat, decision, attempt, try)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS ended (game INTEGER PRIMARY KEY);
CREATE INDEX IF NOT EXISTS paid ON tries (request, draw) WHERE state = 'received';
"""


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
        """A hash over the rows; each states its own length, so none can borrow from the next."""
        return _digest(self.outcomes, self.decision_digests)


class RunDb:
    """The open file; use it as a context manager."""

    def __init__(self, connection: sqlite3.Connection, path: Path, writes: bool = False) -> None:
        self._connection, self._writes = connection, writes
        self._lock = threading.RLock()
        self._paid: bool | None = None  # how the last transaction was synchronised
        self.path = path

    def __enter__(self) -> "RunDb":
        return self

    def __exit__(self, *exc: object) -> None:
        if self._writes:
            # While somebody else reads, closing alone would leave the journal behind; fold it into the file.
            with suppress(sqlite3.Error):  # a full disk keeps it
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._connection.close()

    @staticmethod
    def create(path: Path) -> "RunDb":
        """The file to write into, new and empty or as it is; raises UsageError if it cannot be written."""
        connection = None
        try:
            connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            connection.execute("PRAGMA journal_mode=WAL")
            connection.executescript(f"BEGIN;{_SCHEMA}PRAGMA user_version={_FORMAT};COMMIT;")
            if not _has_likely(connection):
                connection.execute("ALTER TABLE tries ADD COLUMN likely INTEGER")
        except sqlite3.Error as error:
            if connection is not None:
                connection.close()
            raise UsageError(f"{path.name}: {error}") from None
        return RunDb(connection, path, writes=True)

    @staticmethod
    def open(path: Path) -> "RunDb":
        """An existing file, to read; raises UsageError if it is not of this format."""
        try:
            connection = reading(path)
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            connection.execute("SELECT count(*) FROM chunks").fetchone()
        except sqlite3.Error as error:
            if _cannot_have_a_journal(path) and _journal(path).exists():
                hint = "copy its folder to where it can be written"
                raise UsageError(f"{path} has a journal that cannot be read where it lies: {hint}") from None
            raise UsageError(f"{path} is damaged or not a run store: {error}") from None
        if version != _FORMAT:
            connection.close()
            raise UsageError(f"{path} has format {version}; this version of Dubito reads format {_FORMAT}")
        if not _has_likely(connection):
            connection.execute("CREATE TEMP VIEW tries AS SELECT *, NULL AS likely FROM main.tries")
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
            connection.execute("INSERT OR REPLACE INTO tally VALUES ('all', ?)", (sums,))
            if complete:
                connection.execute("INSERT OR REPLACE INTO tally VALUES ('complete', ?)", (sums,))

    @contextmanager
    def writing(self, paid: bool = False) -> Iterator[sqlite3.Connection]:
        """One transaction, of one thread at a time; raises RunStopped, nothing half written.

        It survives the death of the process; what was `paid` for, and all before it, a loss of power too.
        """
        with self._lock:
            try:
                if paid != self._paid:
                    self._connection.execute(f"PRAGMA synchronous={'FULL' if paid else 'NORMAL'}")
                    self._paid = paid
                self._connection.execute("BEGIN")
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException as error:
                self._roll_back()
                if isinstance(error, sqlite3.Error):
                    raise RunStopped(f"cannot write {self.path}: {error}; is the disk full?") from None
                raise

    def _roll_back(self) -> None:
        with suppress(sqlite3.Error):  # where the file cannot be written at all, what was committed stands
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def read(self, query: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """All rows of a query; raises RunStopped where the file cannot be read."""
        try:
            with self._lock:
                return self._connection.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise RunStopped(f"cannot read {self.path}: {one_line(str(error))}") from None

    def game_count(self) -> int:
        """How many games are kept."""
        return int(self._connection.execute("SELECT coalesce(sum(games), 0) FROM chunks").fetchone()[0])

    def deals_by_chunk(self) -> list[int]:
        """How many deals each chunk holds."""
        return [deals for (deals,) in self._connection.execute("SELECT deals FROM chunks ORDER BY chunk")]

    def sums_json(self, chunks: Literal["all", "complete"] = "all") -> str:
        """The sums over all games kept, or over those of complete chunks; `{}` where there is none."""
        row = self._connection.execute("SELECT sums FROM tally WHERE chunks = ?", (chunks,)).fetchone()
        return "{}" if row is None else str(row[0])

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

    def results_digest(self) -> str:
        """The results digest of the games kept."""
        rows = self._connection.execute("SELECT digest FROM chunks ORDER BY chunk")
        return results_digest(row[0] for row in rows)


def _has_likely(connection: sqlite3.Connection) -> bool:
    """Whether the file has the column, which those of before lack."""
    return any(name == "likely" for (name,) in connection.execute("SELECT name FROM pragma_table_info('tries')"))


def reading(path: Path) -> sqlite3.Connection:
    """A connection that writes nothing; raises sqlite3.Error."""
    connection = sqlite3.connect(readable(path), uri=True, check_same_thread=False)
    try:
        connection.execute("PRAGMA user_version").fetchone()
    except sqlite3.Error:
        connection.close()
        raise
    return connection


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
    """One hash over the chunks' in their order, as hex."""
    return sha256(b"".join(chunk_digests)).hexdigest()
