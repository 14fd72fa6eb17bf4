"""The log of a run's model players in `run.db`: decisions, their attempts, and the tries of each attempt.

A try is one HTTP call. Its row is committed before the call is sent, and the body of its reply before it is used. Texts
(requests and bodies) are stored once, by digest, compressed.

A try's `tokens` and `picodollars` count against the budget. If its cost is unknown, the try is `assumed`: these columns
contain its maximum cost, and `likely` its probable cost in picodollars. Otherwise, `likely` is NULL.
"""

import json
import re
import sqlite3
import zlib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, Final
from urllib.parse import unquote

from dubito.errors import RunStopped
from dubito.store.run_db import OF_PLAYER, PROGRAM_SERVER, RunDb
from dubito.store.spend import TOKENS, PlayerLog, Spend


@dataclass(frozen=True, slots=True)
class Decision:
    """A player's answer at one node of a turn. The fields are the table's columns."""

    game: int
    seat: int
    number: int  # number of the decision, among the player's in this game
    turn: int  # the seat's own turn, from 1
    node: str
    answer: Any  # an answer of the node's kind, in JSON form
    outcome: str  # `model`, `model_after_reask`, `fallback:<cause>`
    stated: float | None = None  # the probability that the model stated, if any


def attempt_keys(
    decisions: Iterable[tuple[int, int]], attempts: Mapping[tuple[int, int], Sequence["StoredAttempt"]]
) -> dict[tuple[int, int], int]:
    """Map each decision of a game, by seat and number, to the decision that has its attempts.

    If one request asks for several decisions, this is the first of them. Otherwise, it is the decision itself.
    """
    keys: dict[tuple[int, int], int] = {}
    for seat, number in decisions:
        has_attempts = attempts.get((seat, number)) or (seat, number - 1) not in keys
        keys[seat, number] = number if has_attempts else keys[seat, number - 1]
    return keys


def describe_answer(answer: Any) -> str:
    if isinstance(answer, bool):
        return "yes" if answer else "no"
    return answer if isinstance(answer, str) else json.dumps(answer)


def serialize_answer(answer: Any) -> int | bytes:
    return int(answer) if isinstance(answer, bool) else json.dumps(answer, separators=(",", ":")).encode()


@dataclass(frozen=True, slots=True)
class DealTotals:
    """The totals of a player's attempts in one deal. Token counts are as in Usage."""

    attempts: int = 0
    input: int = 0
    cached: int = 0
    cache_write: int = 0
    output: int = 0


@dataclass(frozen=True, slots=True)
class RecordedAttempt:
    """A finished attempt, with a reply or a cause of failure. The fields are columns."""

    usage: tuple[int | None, ...]  # by TOKENS
    request: str  # digest
    draw: str
    reply: str | None  # digest
    raw: str | None  # digest of the reply's body
    cause: str | None
    player: str
    model: str | None


@dataclass(frozen=True, slots=True)
class StoredAttempt:
    """An attempt in a game and the totals of its tries. The first fields are the table's columns."""

    seat: int
    decision: int
    player: str
    request: str  # digest
    raw: str | None  # digest of the reply's body
    cause: str | None
    origin: str
    input: int | None  # tokens
    cached: int | None
    output: int | None
    tries: int
    seconds: float | None
    picodollars: int
    priced: bool  # whether the price of every try is known


def requested_model(path: str, body: Mapping[str, Any]) -> str | None:
    """Return the model that a request names in its body or, in Gemini's protocol, in its path."""
    named = _MODEL_IN_PATH.search(path)
    model = unquote(named[1]) if named else body.get("model")
    return model if isinstance(model, str) else None


@dataclass(frozen=True, slots=True)
class RawReply:
    """A complete 2xx answer, byte for byte."""

    status: int
    raw: str  # the body, with undecodable bytes replaced
    headers: Mapping[str, str] = field(default_factory=dict)  # only allow-listed headers


@dataclass(frozen=True, slots=True)
class StoredRequest:
    digest: str
    text: str
    server: str
    draw: str


_MIN_DIGEST_DIGITS: Final = 8  # minimum length of a digest prefix with which a request can be looked up
_MAX_TEXT_BYTES: Final = 64 << 20  # a reply has at most an eighth of this
# A text that is stored as a difference begins with this byte and the other text's digest.
_MODEL_IN_PATH: Final = re.compile(r"/models/([^/:]+):")
_DELTA: Final = b"\0"
_DELTA_HEAD: Final = 33  # size of both in bytes
_WINDOW: Final = 32_000  # number of bytes of a text to compare other texts with
_MAX_DELTAS: Final = 32  # maximum length of a chain of differences
_DELTA_COMPRESSION: Final = 3  # twice as fast as the default, at the price of 80 bytes per call
_MAX_DIGITS: Final = 15  # digits of a number that SQLite can store
_REPLY_SAMPLE: Final = 1000  # maximum number of replies from which a player's costs are estimated
_BEYOND: Final = "beyond"  # the kind of a try that used more than was reserved for it
# An account is stored as its server, followed by its key's variable in parentheses.
IS_AT_SERVER: Final = "instr(account, ? || ' (') = 1"
_TOTAL: Final = "SELECT count(*), coalesce(sum(tokens), 0), coalesce(sum(picodollars), 0) FROM tries"
PlaceKey = tuple[int, ...]  # game, seat, decision; then the attempt; then the try


@dataclass(eq=False, slots=True)
class ModelLog:
    """Writes and reads the model tables of an open run."""

    db: RunDb
    # Digests of the first texts, which are stored in full, valid for this number of rollbacks.
    _full_texts: set[bytes] = field(default_factory=set)
    _rollbacks: int = 0
    # The digest and end of the first text of each kind.
    _first: dict[object, tuple[bytes, bytes]] = field(default_factory=dict)

    def open_try(
        self,
        key: PlaceKey,
        player: str,
        account: str,
        request: str,
        draw: str,
        worst: Spend,
        *,
        priced: bool,
        likely: int | None = None,
        check: Callable[[Spend], None] | None = None,
    ) -> None:
        """Log a try that is about to be sent. `worst` is assumed until its cost is known.

        `check` receives the total cost including this try, and can raise to cancel the try. Only the store shows what
        other processes spend.
        """
        usd = worst.usd if priced else None
        row = (*key, player, account, request, draw, "open", worst.tokens, usd, True, 0, likely)
        query = (
            "INSERT INTO tries (game, seat, decision, attempt, try, player, account, request, draw, state, "
            "tokens, picodollars, assumed, saved, likely) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        )
        if check is None:
            self.db.write(lambda connection: connection.execute(query, row))
            return
        with self.db.writing() as connection:
            connection.execute(query, row)
            check(Spend(*connection.execute(_TOTAL).fetchone()))

    def receive_try(
        self,
        key: PlaceKey,
        status: int,
        raw: str,
        headers: Mapping[str, str],
        *,
        usage: tuple[int, ...] | None,
        spent: Spend,
        saved: int,
        seconds: float,
        excess: str | None = None,
        failed: tuple[str, str] | None = None,
    ) -> None:
        """Log a complete 2xx body.

        Args:
            key: The try.
            status: The HTTP status.
            raw: The body.
            headers: The allow-listed headers.
            usage: Its token counts; without them, `spent` is assumed.
            spent: Its cost.
            saved: Picodollars that the provider's own cache saved.
            seconds: How long it took.
            excess: A description of its use beyond the reservation, if any.
            failed: The kind (as in `fail_try`) and message of the error in the body, if any.
        """
        state, kind, error = ("failed", *failed) if failed else ("received", excess and _BEYOND, excess)
        assumed = usage is None and spent.tokens > 0
        headers_text, counts = json.dumps(dict(headers)), usage and json.dumps(usage)

        def write(connection: sqlite3.Connection) -> None:
            row = (status, self._save_text(connection, raw, "reply"), headers_text, counts)
            connection.execute(
                "UPDATE tries SET state = ?, status = ?, raw = ?, headers = ?, usage = ?, "
                "tokens = ?, picodollars = iif(picodollars IS NULL, NULL, ?), assumed = ?, saved = ?, seconds = ?, "
                "kind = ?, error = ?, likely = iif(?, likely, NULL) "
                "WHERE (game, seat, decision, attempt, try) = (?, ?, ?, ?, ?)",
                (state, *row, spent.tokens, spent.usd, assumed, saved, seconds, kind, error, assumed, *key),
            )

        self.db.write(write, paid=True)

    def fail_try(self, key: PlaceKey, kind: str, error: str, spent: Spend, seconds: float) -> None:
        """Log a try without a body. `kind` is a kind of TryFailed, or `account`. Any cost is assumed."""
        query = (
            "UPDATE tries SET state = 'failed', kind = ?, error = ?, tokens = ?, "
            "picodollars = iif(picodollars IS NULL, NULL, ?), assumed = ?, seconds = ?, "
            "likely = iif(?, likely, NULL) WHERE (game, seat, decision, attempt, try) = (?, ?, ?, ?, ?)"
        )
        row = (kind, error, spent.tokens, spent.usd, spent.tokens > 0, seconds, spent.tokens > 0, *key)
        self.db.write(lambda connection: connection.execute(query, row))

    def sample_replies(self, player: str) -> list[tuple[int, tuple[int, ...], int]]:
        """Return the request length, usage and picodollars of up to a thousand of a player's replies."""
        rows = self.db.read(
            "SELECT t.request, t.usage, t.picodollars FROM tries t JOIN texts x ON x.digest = t.request "
            "WHERE player = ? AND NOT assumed AND t.usage IS NOT NULL AND picodollars IS NOT NULL "
            "ORDER BY game DESC LIMIT ?",
            (player, _REPLY_SAMPLE),
        )
        return [(len(self.text(request)), tuple(self._usage(usage)), cost) for request, usage, cost in rows]

    def estimate_unknown_costs(self, player: str, max_output: int, per_byte: float, output_cost: int) -> None:
        """Log the probable cost of a player's tries whose cost is unknown.

        Args:
            player: The player.
            max_output: The tokens reserved for a reply; the rest of a try's tokens are one per byte of its request.
            per_byte: The picodollars per byte of a request.
            output_cost: The picodollars of a reply.
        """
        with self.db.writing() as connection:
            connection.execute(
                "UPDATE tries SET likely = min(picodollars, CAST((tokens - ?) * ? AS INTEGER) + ?) "
                "WHERE player = ? AND assumed AND picodollars IS NOT NULL",
                (max_output, per_byte, output_cost, player),
            )

    def finished_attempts(self, *place: int) -> dict[PlaceKey, RecordedAttempt]:
        """Return the finished attempts at a place: a game, or the beginning or whole of an attempt's key."""
        key = ("game", "seat", "decision", "attempt")
        columns = f"{', '.join((*key, *TOKENS))}, request, draw, reply, raw, cause, player, model"
        where = " AND ".join(f"{name} = ?" for name in key[: len(place)])
        query = f"SELECT {columns} FROM attempts WHERE {where}"  # noqa: S608, our own text
        rows = self.db.read(f"{query} AND (reply IS NOT NULL OR cause IS NOT NULL)", place)
        return {row[:4]: RecordedAttempt(row[4:9], *row[9:]) for row in rows}

    def find_paid_reply(self, server: str, request: str, draw: str) -> RawReply | None:
        """Find a server's first reply to this request and draw, which may be missing from the cache."""
        condition = f"request = ? AND draw = ? AND {IS_AT_SERVER} AND (kind IS NULL OR kind = ?)"
        query = f"SELECT status, raw, headers FROM tries WHERE state = 'received' AND {condition}"  # noqa: S608, our own text
        order = "ORDER BY game, seat, decision, attempt, try LIMIT 1"
        rows = self.db.read(f"{query} {order}", (request, draw, server, _BEYOND))
        return next((RawReply(status, self.text(raw), self._from_json(headers)) for status, raw, headers in rows), None)

    def decisions(self, game: int) -> dict[tuple[int, int], Decision]:
        """Return a game's decisions, ordered by seat and number."""
        query = (
            "SELECT game, seat, decision, turn, node, answer, outcome, p_bluff FROM decisions WHERE game = ? "
            "ORDER BY seat, decision"
        )
        decisions = [Decision(*row) for row in self.db.read(query, (game,))]
        return {(one.seat, one.number): replace(one, answer=self._answer(one.answer)) for one in decisions}

    def attempts(self, game: int) -> defaultdict[tuple[int, int], list[StoredAttempt]]:
        """Return a game's attempts, ordered by their decision's seat and number."""
        rows = self.db.read(
            "SELECT a.seat, a.decision, a.player, a.request, a.raw, a.cause, a.origin, a.input, a.cached, a.output, "
            "count(t.try), sum(t.seconds), coalesce(sum(coalesce(t.likely, t.picodollars)), 0), "
            "count(t.picodollars) = count(t.try) "
            "FROM attempts a LEFT JOIN tries t USING (game, seat, decision, attempt) WHERE a.game = ? "
            "GROUP BY a.seat, a.decision, a.attempt ORDER BY a.seat, a.decision, a.attempt",
            (game,),
        )
        attempts = defaultdict[tuple[int, int], list[StoredAttempt]](list)
        for row in rows:
            attempts[row[:2]].append(StoredAttempt(*row))
        return attempts

    def save_prompt(self, digest: str, sources: Mapping[str, str]) -> None:
        with self.db.writing() as connection:
            rows = [(digest, name, text) for name, text in sources.items()]
            connection.executemany("INSERT OR IGNORE INTO prompts VALUES (?, ?, ?)", rows)

    def prompt(self, digest: str) -> dict[str, str]:
        return dict(self.db.read("SELECT file, text FROM prompts WHERE digest = ?", (digest,)))

    def has_begun(self) -> bool:
        return bool(self.db.read("SELECT 1 FROM attempts UNION ALL SELECT 1 FROM tries LIMIT 1"))

    def count_tries(self, key: PlaceKey) -> int:
        ((last,),) = self.db.read(
            "SELECT coalesce(max(try), 0) FROM tries WHERE (game, seat, decision, attempt) = (?, ?, ?, ?)", key
        )
        return int(last)

    def reopen(self, games: Collection[int]) -> None:
        """Delete the decisions and attempts of these games, so that they are played again with cached replies.

        A game in which a model was unreachable may continue differently from that question on.
        """
        with self.db.writing() as connection:
            for table in ("attempts", "decisions", "ended"):
                connection.executemany(f"DELETE FROM {table} WHERE game = ?", [(game,) for game in games])  # noqa: S608

    def end_game(self, game: int) -> None:
        with self.db.writing() as connection:
            connection.execute("INSERT OR IGNORE INTO ended VALUES (?)", (game,))

    def ended_games(self) -> dict[int, int]:
        """Return the finished games with their numbers of attempts."""
        return dict(self.db.read("SELECT game, (SELECT count(*) FROM attempts a WHERE a.game = e.game) FROM ended e"))

    def cost_of_games(self) -> tuple[int, Spend]:
        """Return the number of paid replies in games, and the cost of all finished tries in games."""
        ((replies, *amounts),) = self.db.read(
            "SELECT coalesce(sum(state = 'received'), 0), count(*), coalesce(sum(tokens), 0), "
            "coalesce(sum(picodollars), 0) FROM tries WHERE game >= 0 AND state <> 'open'"
        )
        return replies, Spend(*amounts)

    def spent(self, *, assumed: bool = False) -> Spend:
        ((calls, tokens, usd),) = self.db.read(f"{_TOTAL} WHERE assumed OR NOT ?", (assumed,))
        return Spend(calls, tokens, usd)

    def reserved_spend(self) -> Spend:
        """Return the part of `spent` that is reserved for the tries in open batches."""
        ((calls, tokens, usd),) = self.db.read(
            f"{_TOTAL} JOIN awaited a USING (game, seat, decision, attempt, try) "
            "WHERE a.batch IS NOT NULL AND state = 'open'"
        )
        return Spend(calls, tokens, usd)

    def record_attempt(
        self,
        key: PlaceKey,
        *,
        player: str,
        server: str,
        request: str,
        draw: str,
        reply: str | None,
        raw: str | None,
        cause: str | None,
        origin: str,
        usage: tuple[int, ...] | None,
        model: str | None = None,
    ) -> None:
        """Record how an attempt ended: with a reply, with a cause, or with neither if it must be repeated.

        The attempt is written with the next transaction, since its tries are already logged.

        Args:
            key: The attempt.
            player: The player.
            server: The account's server.
            request: The request's canonical text.
            draw: The sample of the request.
            reply: The digest of the reply.
            raw: The body of the reply.
            cause: Why there is no reply.
            origin: The origin of the reply: `live` or `cache`.
            usage: Its tokens.
            model: The model named in the reply.
        """

        def write(connection: sqlite3.Connection) -> None:
            digest = self._save_text(connection, request, (player, key[1]))
            body = None if raw is None else self._save_text(connection, raw, "reply")
            source = origin
            # If the run was stopped after it had paid for this reply, it is cached now, but it still counts as live.
            if origin == "cache" and key[0] >= 0:
                place = "(game, seat, decision, attempt, state, raw) = (?, ?, ?, ?, 'received', ?)"
                paid = connection.execute(f"SELECT 1 FROM tries WHERE {place}", (*key, body))  # noqa: S608, no value in it
                source = "cache" if paid.fetchone() is None else "live"
            counts = usage or (None,) * len(TOKENS)
            row = (*key, player, server, digest, draw, reply, body, cause, source, *counts, model)
            marks = ", ".join("?" * len(row))
            connection.execute(f"INSERT OR REPLACE INTO attempts VALUES ({marks}, NULL)", row)  # noqa: S608, no value in it

        self.db.write_later(write)

    def decision(self, decision: Decision) -> None:
        """Log a decision with the next transaction. A resumed run can reconstruct it from its attempts.

        JSON answers are stored as bytes, so that the column does not convert them to numbers.
        """
        stored = serialize_answer(decision.answer)
        key = (decision.game, decision.seat, decision.number)
        query = (
            "INSERT OR REPLACE INTO decisions (game, seat, decision, turn, node, answer, outcome, p_bluff) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
        )
        row = (*key, decision.turn, decision.node, stored, decision.outcome, decision.stated)
        self.db.write_later(lambda connection: connection.execute(query, row))

    def _from_json(self, text: str | bytes) -> Any:
        """Parse the JSON in a row. Raises RunStopped if the JSON is damaged."""
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            raise RunStopped(f"{self.db.path} is damaged: a row contains invalid JSON") from None

    def _usage(self, text: str) -> list[int]:
        """Parse the token counts in a row, in the order of TOKENS."""
        counts = self._from_json(text)
        if not isinstance(counts, list) or [type(count) for count in counts] != [int] * len(TOKENS):
            raise RunStopped(f"{self.db.path} is damaged: a row has invalid token counts")
        return counts

    def _answer(self, stored: int | bytes) -> Any:
        answer = bool(stored) if isinstance(stored, int) else self._from_json(stored)
        if serialize_answer(answer) != stored:
            raise RunStopped(f"{self.db.path} is damaged: a decision has an invalid answer")
        return answer

    def text(self, digest: str) -> str:
        """Return a stored text. Raises RunStopped if the text is missing, changed or damaged."""
        try:
            data = self._text(digest)
        except (IndexError, TypeError, RecursionError, zlib.error):
            data = b""
        if sha256(data).hexdigest() != digest:
            raise RunStopped(f"text {digest[:16]} in {self.db.path} is missing, changed or damaged")
        return data.decode("utf-8", "surrogatepass")

    def _text(self, digest: str, depth: int = 0) -> bytes:
        """Return a stored text, which may be stored as a difference to another text."""
        if depth > _MAX_DELTAS:
            raise RecursionError(digest)
        packed = self.db.read("SELECT text FROM texts WHERE digest = ?", (digest,))[0][0]
        if packed[:1] != _DELTA:
            return decompress(packed)
        base = self._text(packed[1:_DELTA_HEAD].hex(), depth + 1)
        return decompress(packed[_DELTA_HEAD:], base[-_WINDOW:])

    def save_request(self, text: str, player: str, seat: int) -> None:
        with self.db.writing() as connection:
            self._save_text(connection, text, (player, seat))

    def _save_text(self, connection: sqlite3.Connection, text: str, kind: object) -> str:
        """Store a text and return its digest.

        From the second text of a kind on, only the difference to the first is stored, because requests repeat the rules
        and the history.
        """
        data = text.encode("utf-8", "surrogatepass")
        digest = sha256(data).digest()
        if _first_byte(connection, digest) is None:
            first = self._first.setdefault(kind, (digest, data[-_WINDOW:]))
            # A rollback may have removed the first texts.
            if self._rollbacks != self.db.rollbacks:
                self._full_texts, self._rollbacks = set(), self.db.rollbacks
            has_base = first[0] in self._full_texts
            if not has_base and _first_byte(connection, first[0]) not in (None, _DELTA):
                self._full_texts.add(first[0])
                has_base = True
            if has_base:
                stream = zlib.compressobj(_DELTA_COMPRESSION, zdict=first[1])
                packed = _DELTA + first[0] + stream.compress(data) + stream.flush()
            else:
                packed = zlib.compress(data)
            connection.execute("INSERT INTO texts VALUES (?, ?)", (digest.hex(), packed))
        return digest.hex()

    def totals_by_deal(self, player: str, games_per_deal: int) -> dict[int, DealTotals]:
        """Return the totals of each deal in which the player was asked."""
        rows = self.db.read(
            "SELECT game / ?, count(*), coalesce(sum(input), 0), coalesce(sum(cached), 0), "
            "coalesce(sum(cache_write), 0), coalesce(sum(output), 0) "
            "FROM attempts WHERE player = ? AND game >= 0 GROUP BY 1",
            (games_per_deal, player),
        )
        return {deal: DealTotals(*totals) for deal, *totals in rows}

    def mean_seconds(self, player: str) -> float | None:
        query = "SELECT avg(seconds) FROM tries WHERE player = ? AND state = 'received'"
        ((mean,),) = self.db.read(query, (player,))
        return None if mean is None else float(mean)

    def find(self, name: str) -> StoredRequest | None:
        """Find a request by its decision, `GAME.SEAT.DECISION[.ATTEMPT]`, or by the beginning of its digest."""
        parts = name.split(".")
        query, values = "request GLOB ?", tuple[object, ...]((f"{name}*",))
        if len(parts) in (3, 4) and all(part.isdecimal() and len(part) <= _MAX_DIGITS for part in parts):
            query = (
                "(game, seat, attempt, decision) = (?1, ?2, ?4, coalesce((SELECT max(a.decision) FROM attempts a "
                "JOIN decisions d ON (d.game, d.seat, d.decision) = (?1, ?2, ?3) "
                "WHERE (a.game, a.seat) = (?1, ?2) AND a.decision <= ?3), ?3))"
            )
            values = (*map(int, parts), 0)[:4]
        elif len(name) < _MIN_DIGEST_DIGITS or not name.isalnum():
            return None
        rows = self.db.read(f"SELECT DISTINCT request, server, draw FROM attempts WHERE {query}", values)  # noqa: S608, our own text
        if len({request for request, _, _ in rows}) != 1:
            return None
        request, server, draw = rows[0]
        return StoredRequest(request, self.text(request), server, draw)

    def replies_at(self, player: str, game: int, seat: int, decision: int) -> list[tuple[StoredRequest, str]]:
        """Return the requests for a player's decision with their replies, or nothing if one lacks a reply."""
        rows = self.db.read(
            "SELECT request, server, draw, raw FROM attempts WHERE (player, game, seat, decision) = (?, ?, ?, ?) "
            "ORDER BY attempt",
            (player, game, seat, decision),
        )
        if any(raw is None for *_, raw in rows):
            return []
        return [
            (StoredRequest(request, self.text(request), server, draw), self.text(raw))
            for request, server, draw, raw in rows
        ]

    def find_unanswered(self) -> StoredRequest | None:
        """Return a request in a game that has no reply."""
        rows = self.db.read("SELECT request, server, draw FROM attempts WHERE raw IS NULL AND game >= 0 LIMIT 1")
        return next((StoredRequest(digest, self.text(digest), server, draw) for digest, server, draw in rows), None)

    def count_yes(self, nodes: Iterable[str], before: int) -> dict[str, int]:
        """Return how often each player answered yes at these nodes, in games numbered below `before`."""
        query = (
            "SELECT a.player, sum(d.answer = 1) FROM decisions d "
            "JOIN (SELECT DISTINCT player, game, seat FROM attempts) a USING (game, seat) "
            "WHERE d.node IN (SELECT value FROM json_each(?)) AND d.game < ? GROUP BY 1"
        )
        return dict(self.db.read(query, (json.dumps([*nodes]), before)))

    def has_answer(self, name: str) -> bool:
        return bool(self.db.read(f"SELECT 1 {OF_PLAYER} WHERE outcome LIKE 'model%' LIMIT 1", (name,)))

    def players(self) -> list[str]:
        query = "SELECT player FROM attempts WHERE server != ? UNION SELECT player FROM tries ORDER BY player"
        return [name for (name,) in self.db.read(query, (PROGRAM_SERVER,))]

    def _read_models(self, name: str) -> dict[str, Any]:
        """Return which models answered a player, according to the replies, and which model it requested."""
        query = "SELECT model, count(*), min(request) FROM attempts WHERE player = ? AND model IS NOT NULL GROUP BY 1"
        rows = self.db.read(f"{query} ORDER BY 1", (name,))
        request = None
        # Even if this text is damaged, the rest of the player's log can be shown.
        with suppress(RunStopped):
            request = self._from_json(self.text(rows[0][2])) if rows else None
        fields = request if isinstance(request, dict) else {}
        asked = requested_model(str(fields.get("path")), body) if isinstance(body := fields.get("body"), dict) else None
        return {"ids": {model: count for model, count, _ in rows}, "asked": asked}

    def count_failures(self) -> dict[str, int]:
        return dict(self.db.read("SELECT kind, count(*) FROM tries WHERE state = 'failed' GROUP BY kind"))

    def player(self, name: str) -> PlayerLog:
        """Return the totals of a player's decisions, attempts and tries."""
        read = self.db.read
        outcomes = dict(read(f"SELECT d.outcome, count(*) {OF_PLAYER} GROUP BY d.outcome", (name,)))
        ((attempts, reasks, cached, games),) = read(
            "SELECT count(*), coalesce(sum(attempt > 0), 0), coalesce(sum(origin = 'cache'), 0), count(DISTINCT game) "
            "FROM attempts WHERE player = ? AND game >= 0 AND (reply IS NOT NULL OR cause IS NOT NULL)",
            (name,),
        )
        ((calls, priced, billed, likely, at_worst, saved, assumed, deadlines),) = read(
            "SELECT count(*), count(picodollars), coalesce(sum(picodollars) FILTER (WHERE NOT assumed), 0), "
            "coalesce(sum(coalesce(likely, picodollars)) FILTER (WHERE assumed), 0), "
            "coalesce(sum(picodollars) FILTER (WHERE assumed), 0), coalesce(sum(saved), 0), "
            "coalesce(sum(assumed), 0), coalesce(sum(kind = 'deadline'), 0) FROM tries WHERE player = ?",
            (name,),
        )
        query = "SELECT error FROM tries WHERE player = ? AND kind = ? ORDER BY game, seat, decision, attempt, try"
        beyond = read(query, (name, _BEYOND))
        usages = read("SELECT usage FROM tries WHERE player = ? AND usage IS NOT NULL", (name,))
        sums = [sum(counts) for counts in zip(*(self._usage(usage) for (usage,) in usages), strict=True)]
        return PlayerLog(
            decisions=sum(outcomes.values()),
            games=games,
            outcomes=outcomes,
            reasks=reasks,
            calls=calls,
            cached=cached,
            attempts=attempts,
            tokens=dict(zip(TOKENS, sums or [0] * len(TOKENS), strict=True)),
            picodollars=billed + likely if priced == calls else None,
            likely=likely,
            at_worst=at_worst,
            saved=saved,
            assumed=assumed,
            deadlines=deadlines,
            beyond=len(beyond),
            first_beyond=beyond[0][0] if beyond else None,
            **self._read_models(name),
        )


def _first_byte(connection: sqlite3.Connection, digest: bytes) -> bytes | None:
    rows = connection.execute("SELECT substr(text, 1, 1) FROM texts WHERE digest = ?", (digest.hex(),)).fetchall()
    return bytes(rows[0][0]) if rows else None


def decompress(packed: bytes, base: bytes = b"") -> bytes:
    """Decompress a text, using `base` as the dictionary. Raises zlib.error if the text is truncated or too long."""
    stream = zlib.decompressobj(zdict=base) if base else zlib.decompressobj()
    data = stream.decompress(packed, _MAX_TEXT_BYTES)
    if not stream.eof:
        raise zlib.error("truncated, or too long")
    return data
