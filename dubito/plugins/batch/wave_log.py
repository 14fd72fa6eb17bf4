"""The requests and batches that a run waits for, in `run.db`.

Each pair of a request and a draw is logged once per account, before anything is sent. Its try and its batch are logged
before the batch is submitted.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from typing import Final

from dubito.store.model_log import IS_AT_SERVER, ModelLog, PlaceKey

_COLUMNS: Final = (
    "account, request, draw, player, game, deal, seat, decision, attempt, node, try, failures, batch, cause, detail, "
    "body"
)


@dataclass(frozen=True, slots=True)
class Awaited:
    """A request that has no reply yet. The fields are the table's columns."""

    account: str
    request: str  # digest
    draw: str
    # The first player that asked, and where.
    player: str
    game: int
    deal: int
    seat: int
    decision: int
    attempt: int
    node: str
    number: int = 0  # number of its last try
    failures: int = 0  # number of consecutive failures
    batch: str | None = None  # its batch's name; None if the request is sent with the next wave
    cause: str | None = None  # why there will be no reply
    detail: str | None = None
    body: str = "{}"  # as JSON, with the keys in the order in which they are sent

    @property
    def key(self) -> PlaceKey:
        return (self.game, self.seat, self.decision, self.attempt, self.number)


@dataclass(frozen=True, slots=True)
class SentBatch:
    """A submitted batch, or one about to be submitted. The fields are the table's columns.

    Times are in seconds since 1970.
    """

    name: str  # our name for the batch, by which a resumed run finds it
    wave: int
    account: str
    entries: int
    since: float
    id: str | None = None  # the server's id; None if unknown or not submitted yet
    expires: float | None = None
    ended: int = 0


class WaveLog:
    """The log of an open run's requests and batches."""

    def __init__(self, log: ModelLog) -> None:
        self._log, self._db = log, log.db

    def add(self, entry: Awaited, request: str) -> None:
        """Log a request for the next wave unless it is already logged. `request` is its canonical text."""
        with self._db.writing() as connection:
            self._log.save_request(request, entry.player, entry.seat)
            marks = ", ".join("?" * len(astuple(entry)))
            connection.execute(f"INSERT OR IGNORE INTO awaited VALUES ({marks}, NULL)", astuple(entry))  # noqa: S608

    def find(self, server: str, request: str, draw: str) -> Awaited | None:
        """Find a request to a server, regardless of the key with which it was sent."""
        where = f"(request, draw) = (?, ?) AND {IS_AT_SERVER}"
        return next(iter(self._entries(where, (request, draw, server))), None)

    def unsent_entries(self) -> list[Awaited]:
        return self._entries("batch IS NULL AND cause IS NULL")

    def batch_entries(self, batch: str) -> list[Awaited]:
        return self._entries("batch = ?", (batch,))

    def _entries(self, where: str, values: Sequence[object] = ()) -> list[Awaited]:
        order = "game, seat, decision, attempt, request, draw"
        rows = self._db.read(f"SELECT {_COLUMNS} FROM awaited WHERE {where} ORDER BY {order}", values)  # noqa: S608
        return [Awaited(*row) for row in rows]

    def batches(self, *, ended: bool = False) -> list[SentBatch]:
        columns = ", ".join(SentBatch.__slots__)
        rows = self._db.read(f"SELECT {columns} FROM batches WHERE ended = ? ORDER BY since, name", (ended,))  # noqa: S608
        return [SentBatch(*row) for row in rows]

    def add_batch(self, batch: SentBatch, entries: Iterable[Awaited]) -> None:
        """Log a batch that is about to be submitted, with the tries of its entries."""
        with self._db.writing() as connection:
            marks = ", ".join("?" * len(astuple(batch)))
            connection.execute(f"INSERT INTO batches VALUES ({marks}, NULL)", astuple(batch))  # noqa: S608, no value in it
            for entry in entries:
                self._update(entry, batch=batch.name, number=entry.number)

    def set_id(self, name: str, id: str, expires: float | None) -> None:
        with self._db.writing(paid=True) as connection:
            connection.execute("UPDATE batches SET id = ?, expires = ? WHERE name = ?", (id, expires, name))

    def end_batch(self, name: str) -> None:
        with self._db.writing() as connection:
            connection.execute("UPDATE batches SET ended = 1 WHERE name = ?", (name,))

    def remove(self, entry: Awaited) -> None:
        with self._db.writing() as connection:
            key = (entry.account, entry.request, entry.draw)
            connection.execute("DELETE FROM awaited WHERE (account, request, draw) = (?, ?, ?)", key)

    def send_again(self, entry: Awaited, failures: int) -> None:
        self._update(entry, batch=None, failures=failures)

    def give_up(self, entry: Awaited, cause: str, detail: str) -> None:
        self._update(entry, batch=None, cause=cause, detail=detail)

    def _update(self, entry: Awaited, **columns: object) -> None:
        sets = ", ".join(f"{'try' if name == 'number' else name} = ?" for name in columns)
        with self._db.writing() as connection:
            connection.execute(
                f"UPDATE awaited SET {sets} WHERE (account, request, draw) = (?, ?, ?)",  # noqa: S608, our own names
                (*columns.values(), entry.account, entry.request, entry.draw),
            )

    def last_wave(self) -> int:
        ((last,),) = self._db.read("SELECT coalesce(max(wave), 0) FROM batches")
        return int(last)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with self._db.writing(paid=True):
            yield
