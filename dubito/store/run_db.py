"""`run.db`: the games of a run, chunk by chunk, one packed row each. One writer; SQLite in WAL mode.

A chunk's games, its digest and the sums over everything so far are committed together, so that a run
that is cut off at any moment stands exactly at the end of a chunk. What models were asked and said is
written beside it as it happens (`model_log.py`): threads share the one connection under a lock.
"""

import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from dubito.errors import RunStopped, UsageError

_FORMAT: Final = 1  # of the tables below; kept in SQLite's user_version
_SCHEMA: Final = """
CREATE TABLE games (game INTEGER PRIMARY KEY, outcome BLOB NOT NULL, record TEXT);
CREATE TABLE chunks (chunk INTEGER PRIMARY KEY, deals INTEGER NOT NULL, games INTEGER NOT NULL, digest BLOB NOT NULL);
CREATE TABLE tally (id INTEGER PRIMARY KEY CHECK (id = 1), sums TEXT NOT NULL);
CREATE TABLE texts (digest TEXT PRIMARY KEY, text BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE decisions (
    game INTEGER, seat INTEGER, decision INTEGER, turn INTEGER NOT NULL, node TEXT NOT NULL,
    answer INTEGER NOT NULL, outcome TEXT NOT NULL, PRIMARY KEY (game, seat, decision)
) WITHOUT ROWID;
CREATE TABLE attempts (
    game INTEGER, seat INTEGER, decision INTEGER, attempt INTEGER, player TEXT NOT NULL, request TEXT NOT NULL,
    draw TEXT NOT NULL, reply TEXT, cause TEXT, origin TEXT NOT NULL,
    input INTEGER, cached INTEGER, cache_write INTEGER, output INTEGER, reasoning INTEGER,
    PRIMARY KEY (game, seat, decision, attempt)
) WITHOUT ROWID;
CREATE TABLE tries (
    game INTEGER, seat INTEGER, decision INTEGER, attempt INTEGER, try INTEGER, account TEXT NOT NULL,
    reserved TEXT NOT NULL, state TEXT NOT NULL, status INTEGER, raw TEXT, headers TEXT, error TEXT, usage TEXT,
    PRIMARY KEY (game, seat, decision, attempt, try)
) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some consecutive deals of a run, finished."""

    number: int
    deals: int
    first_game: int
    outcomes: Sequence[bytes]
    decisions: Sequence[bytes] = ()  # for games with model players: a digest of each game's decisions
    records: Sequence[str] = ()  # for games with model players: each game's deal and outputs

    @property
    def digest(self) -> bytes:
        """A hash over the rows; each states its own length, so none can borrow from the next."""
        return sha256(b"".join((*self.outcomes, *self.decisions))).digest()


class RunDb:
    """The open file; use it as a context manager."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._lock = threading.RLock()
        self.path = path

    def __enter__(self) -> "RunDb":
        return self

    def __exit__(self, *exc: object) -> None:
        self._connection.close()

    @staticmethod
    def create(path: Path) -> "RunDb":
        """A new, empty file; raises UsageError if it cannot be written."""
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.executescript(f"BEGIN;{_SCHEMA}PRAGMA user_version={_FORMAT};COMMIT;")
        except sqlite3.Error as error:
            connection.close()
            raise UsageError(f"{path.name}: {error}") from None
        return RunDb(connection, path)

    @staticmethod
    def open(path: Path) -> "RunDb":
        """An existing file, to read; raises UsageError if it is none of this format."""
        try:
            connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            connection.execute("SELECT count(*) FROM chunks").fetchone()
        except sqlite3.Error as error:
            raise UsageError(f"{path} is damaged or no run store: {error}") from None
        if version != _FORMAT:
            connection.close()
            raise UsageError(f"{path} has format {version}; this version of Dubito reads format {_FORMAT}")
        return RunDb(connection, path)

    def add_chunk(self, chunk: Chunk, sums: str) -> None:
        """Commit a chunk with the sums up to and including it; raises RunStopped, nothing half written."""
        numbers = range(chunk.first_game, chunk.first_game + len(chunk.outcomes))
        with self.writing() as connection:
            if chunk.records:
                rows = zip(numbers, chunk.outcomes, chunk.records, strict=True)
                connection.executemany("INSERT INTO games VALUES (?, ?, ?)", rows)
            else:
                connection.executemany(
                    "INSERT INTO games (game, outcome) VALUES (?, ?)", zip(numbers, chunk.outcomes, strict=True)
                )
            row = (chunk.number, chunk.deals, len(chunk.outcomes), chunk.digest)
            connection.execute("INSERT INTO chunks VALUES (?, ?, ?, ?)", row)
            connection.execute("INSERT OR REPLACE INTO tally VALUES (1, ?)", (sums,))

    @contextmanager
    def writing(self, paid: bool = False) -> Iterator[sqlite3.Connection]:
        """One transaction, of one thread at a time; raises RunStopped, nothing half written.

        It survives the death of the process; what was `paid` for, and all before it, a loss of power too.
        """
        with self._lock:
            try:
                self._connection.execute(f"PRAGMA synchronous={'FULL' if paid else 'NORMAL'}")
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
        """All rows of a query."""
        with self._lock:
            return self._connection.execute(query, values).fetchall()

    def games(self) -> int:
        """How many games are kept."""
        return int(self._connection.execute("SELECT coalesce(sum(games), 0) FROM chunks").fetchone()[0])

    def sums(self) -> str | None:
        """The sums over all games kept; None before the first chunk."""
        row = self._connection.execute("SELECT sums FROM tally").fetchone()
        return None if row is None else str(row[0])

    def outcomes(self) -> Iterator[bytes]:
        """The packed games, in their order."""
        for (row,) in self._connection.execute("SELECT outcome FROM games ORDER BY game"):
            yield row

    def results_digest(self) -> str:
        """The results digest of the games kept."""
        rows = self._connection.execute("SELECT digest FROM chunks ORDER BY chunk")
        return results_digest(row[0] for row in rows)


def results_digest(chunk_digests: Iterable[bytes]) -> str:
    """One hash over the chunks' in their order, as hex."""
    return sha256(b"".join(chunk_digests)).hexdigest()
