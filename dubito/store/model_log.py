"""What models were asked and said, in `run.db`: decisions, their attempts, the attempts' tries.

A try's row is committed before it is sent, and its body before it is used. Texts (requests, raw bodies)
are kept once, by digest, compressed.
"""

import json
import sqlite3
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from dubito.store.run_db import RunDb

Key = tuple[int, ...]  # game, seat, decision; then the attempt; then the try


@dataclass(frozen=True, slots=True)
class PlayerLog:
    """What one model player's attempts add up to in a run."""

    decisions: int
    outcomes: dict[str, int]  # `model`, `model_after_reask`, `fallback:<cause>`
    reasks: int
    calls: int
    cached: int  # attempts answered from the cache
    attempts: int
    tokens: dict[str, int]  # input, cached, output, reasoning; of live replies


class ModelLog:
    """Writes and reads the model tables of an open run."""

    def __init__(self, db: RunDb) -> None:
        self._db = db

    def try_opens(self, key: Key, account: str, reserved: Mapping[str, int]) -> None:
        """A try is about to be sent; `reserved` is the most it can cost."""
        with self._db.writing() as connection:
            row = (*key, account, json.dumps(dict(reserved)), "open")
            connection.execute(
                "INSERT INTO tries (game, seat, decision, attempt, try, account, reserved, state) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                row,
            )

    def try_received(self, key: Key, status: int, raw: str, headers: Mapping[str, str], usage: Any) -> None:
        """A complete 2xx body came in; `usage` is what it says it cost, or None."""
        with self._db.writing(paid=True) as connection:
            digest = _keep_text(connection, raw)
            row = ("received", status, digest, json.dumps(dict(headers)), usage and json.dumps(usage), *key)
            connection.execute(
                "UPDATE tries SET state = ?, status = ?, raw = ?, headers = ?, usage = ? "
                "WHERE (game, seat, decision, attempt, try) = (?, ?, ?, ?, ?)",
                row,
            )

    def try_failed(self, key: Key, error: str) -> None:
        """A try gave no body."""
        with self._db.writing() as connection:
            connection.execute(
                "UPDATE tries SET state = 'failed', error = ? "
                "WHERE (game, seat, decision, attempt, try) = (?, ?, ?, ?, ?)",
                (error, *key),
            )

    def attempt(
        self,
        key: Key,
        *,
        player: str,
        request: str,
        draw: str,
        reply: str | None,
        cause: str | None,
        origin: str,
        usage: tuple[int, ...] | None,
    ) -> None:
        """An attempt ended: with a reply (its digest) or with a cause; `request` is the canonical text."""
        with self._db.writing() as connection:
            digest = _keep_text(connection, request)
            row = (*key, player, digest, draw, reply, cause, origin, *(usage or (None,) * 5))
            connection.execute(f"INSERT INTO attempts VALUES ({', '.join('?' * len(row))})", row)  # noqa: S608

    def decision(self, key: Key, turn: int, node: str, answer: bool, outcome: str) -> None:
        """A decision was taken."""
        with self._db.writing() as connection:
            connection.execute(
                "INSERT INTO decisions VALUES (?, ?, ?, ?, ?, ?, ?)", (*key, turn, node, answer, outcome)
            )

    def text(self, digest: str) -> str:
        """A kept text; raises KeyError."""
        rows = self._db.read("SELECT text FROM texts WHERE digest = ?", (digest,))
        if not rows:
            raise KeyError(digest)
        return zlib.decompress(rows[0][0]).decode("utf-8", "surrogatepass")

    def player(self, name: str) -> PlayerLog:
        """What a player's attempts add up to."""
        read = self._db.read
        joined = (
            "FROM decisions d JOIN (SELECT DISTINCT game, seat, decision FROM attempts WHERE player = ?) a "
            "USING (game, seat, decision)"
        )
        outcomes = dict(read(f"SELECT d.outcome, count(*) {joined} GROUP BY d.outcome", (name,)))
        ((attempts, reasks, cached),) = read(
            "SELECT count(*), coalesce(sum(attempt > 0), 0), coalesce(sum(origin = 'cache'), 0) "
            "FROM attempts WHERE player = ?",
            (name,),
        )
        ((calls,),) = read(
            "SELECT count(*) FROM tries JOIN attempts USING (game, seat, decision, attempt) WHERE player = ?", (name,)
        )
        columns = ("input", "cached", "output", "reasoning")
        sums = ", ".join(f"coalesce(sum({column}), 0)" for column in columns)
        (tokens,) = read(f"SELECT {sums} FROM attempts WHERE player = ? AND origin = 'live'", (name,))  # noqa: S608
        return PlayerLog(
            sum(outcomes.values()),
            outcomes,
            reasks,
            calls,
            cached,
            attempts,
            dict(zip(columns, tokens, strict=True)),
        )


def _keep_text(connection: sqlite3.Connection, text: str) -> str:
    data = text.encode("utf-8", "surrogatepass")
    digest = sha256(data).hexdigest()
    connection.execute("INSERT OR IGNORE INTO texts VALUES (?, ?)", (digest, zlib.compress(data)))
    return digest
