"""What a run waits for, in `run.db`: requests that go out together, the batches that they went with.

A request is awaited once, whoever asks it: by its account, its digest and its draw. It is there before anything is
sent; its try, and the batch that it goes with, are there before the batch is handed in.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from typing import Final

from dubito.store.model_log import IS_AT_SERVER, ModelLog, PlaceKey, Spend

_COLUMNS: Final = (
    "account, request, draw, player, game, deal, seat, decision, attempt, node, try, failures, batch, cause, detail, "
    "body"
)


@dataclass(frozen=True, slots=True)
class Awaited:
    """A request that waits for its reply; the fields are the table's columns."""

    account: str
    request: str  # digest
    draw: str
    player: str  # who asked first, and where
    game: int
    deal: int
    seat: int
    decision: int
    attempt: int
    node: str
    number: int = 0  # of its last try
    failures: int = 0  # of tries, in a row
    batch: str | None = None  # the name of the one that it is under way with; None: it goes out with the next wave
    cause: str | None = None  # why no reply will come
    detail: str | None = None
    body: str = "{}"  # what is sent, as JSON with its keys in their order

    @property
    def key(self) -> PlaceKey:
        return (self.game, self.seat, self.decision, self.attempt, self.number)


@dataclass(frozen=True, slots=True)
class SentBatch:
    """A batch, from shortly before it is handed in; the fields are the table's columns. Times in seconds since 1970."""

    name: str  # ours, by which it is found again
    wave: int
    account: str
    entries: int
    since: float
    id: str | None = None  # the server's; None: nobody knows whether it has it
    expires: float | None = None
    ended: int = 0


class WaveLog:
    """Writes and reads what an open run waits for."""

    def __init__(self, log: ModelLog) -> None:
        self._log, self._db = log, log.db

    def wants(self, entry: Awaited, request: str) -> None:
        """It is to go out with the next wave, if it is not awaited already; `request` is its canonical text."""
        with self._db.writing() as connection:
            self._log.keep_request(request, entry.player, entry.seat)
            marks = ", ".join("?" * len(astuple(entry)))
            connection.execute(f"INSERT OR IGNORE INTO awaited VALUES ({marks}, NULL)", astuple(entry))  # noqa: S608

    def entry(self, server: str, request: str, draw: str) -> Awaited | None:
        """Return what is awaited of a server, whatever variable held the key when it was asked."""
        where = f"(request, draw) = (?, ?) AND {IS_AT_SERVER}"
        found = self._entries(where, (request, draw, server))
        return next(iter(found), None)

    def open(self) -> list[Awaited]:
        return self._entries("batch IS NULL AND cause IS NULL")

    def within(self, batch: str) -> list[Awaited]:
        return self._entries("batch = ?", (batch,))

    def _entries(self, where: str, values: Sequence[object] = ()) -> list[Awaited]:
        order = "game, seat, decision, attempt, request, draw"
        rows = self._db.read(f"SELECT {_COLUMNS} FROM awaited WHERE {where} ORDER BY {order}", values)  # noqa: S608
        return [Awaited(*row) for row in rows]

    def batches(self, *, ended: bool = False) -> list[SentBatch]:
        columns = ", ".join(SentBatch.__slots__)
        rows = self._db.read(f"SELECT {columns} FROM batches WHERE ended = ? ORDER BY since, name", (ended,))  # noqa: S608
        return [SentBatch(*row) for row in rows]

    def begins(self, batch: SentBatch, entries: Iterable[Awaited]) -> None:
        """A batch is about to be handed in, with these tries."""
        with self._db.writing() as connection:
            marks = ", ".join("?" * len(astuple(batch)))
            connection.execute(f"INSERT INTO batches VALUES ({marks}, NULL)", astuple(batch))  # noqa: S608, no value in it
            for entry in entries:
                self._update(entry, batch=batch.name, number=entry.number)

    def is_there(self, name: str, id: str, expires: float | None) -> None:
        with self._db.writing(paid=True) as connection:
            connection.execute("UPDATE batches SET id = ?, expires = ? WHERE name = ?", (id, expires, name))

    def ends(self, name: str) -> None:
        with self._db.writing() as connection:
            connection.execute("UPDATE batches SET ended = 1 WHERE name = ?", (name,))

    def answered(self, entry: Awaited) -> None:
        with self._db.writing() as connection:
            key = (entry.account, entry.request, entry.draw)
            connection.execute("DELETE FROM awaited WHERE (account, request, draw) = (?, ?, ?)", key)

    def again(self, entry: Awaited, failures: int) -> None:
        self._update(entry, batch=None, failures=failures)

    def gives_up(self, entry: Awaited, cause: str, detail: str) -> None:
        self._update(entry, batch=None, cause=cause, detail=detail)

    def _update(self, entry: Awaited, **columns: object) -> None:
        sets = ", ".join(f"{'try' if name == 'number' else name} = ?" for name in columns)
        with self._db.writing() as connection:
            connection.execute(
                f"UPDATE awaited SET {sets} WHERE (account, request, draw) = (?, ?, ?)",  # noqa: S608, names of ours
                (*columns.values(), entry.account, entry.request, entry.draw),
            )

    def reserved(self) -> Spend:
        """What is reserved for the tries that are under way with a batch."""
        ((calls, tokens, usd),) = self._db.read(
            "SELECT count(*), coalesce(sum(tokens), 0), coalesce(sum(picodollars), 0) FROM tries t JOIN awaited a "
            "USING (game, seat, decision, attempt, try) WHERE a.batch IS NOT NULL AND t.state = 'open'"
        )
        return Spend(calls, tokens, usd)

    def wave(self) -> int:
        ((last,),) = self._db.read("SELECT coalesce(max(wave), 0) FROM batches")
        return int(last)

    @contextmanager
    def together(self) -> Iterator[None]:
        with self._db.writing(paid=True):
            yield
