"""What models were asked and said, in `run.db`: decisions, their attempts, the attempts' tries.

A try's row is committed before it is sent, and its body before it is used. Texts (requests, raw bodies)
are kept once, by digest, compressed.

A try's `tokens` and `picodollars` count against the budget. Where nobody knows what it cost it is `assumed`: they are
the most that it can have cost, and `likely` are the picodollars that it probably did; else `likely` is NULL.

What stands in the model tables of `run.db`, as values.
"""

import json
import sqlite3
import zlib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from dubito.errors import RunStopped
from dubito.store.run_db import RunDb

TOKENS: Final = ("input", "cached", "cache_write", "output", "reasoning")  # as in Usage


@dataclass(frozen=True, slots=True)
class Decision:
    """One node asked of one player at one turn, and what came of it; the fields are the table's columns."""

    game: int
    seat: int
    number: int  # of the player's decisions in this game
    turn: int  # the seat's own, from 1
    node: str
    answer: Any  # of the node's kind, as JSON has it
    outcome: str  # `model`, `model_after_reask`, `fallback:<cause>`
    stated: float | None = None  # the probability that was stated with it, if any


def attempt_keys(
    decisions: Iterable[tuple[int, int]], attempts: Mapping[tuple[int, int], Sequence["StoredAttempt"]]
) -> dict[tuple[int, int], int]:
    """By seat and number of a game's decisions, in their order: the number of the one under which the attempts stand
    that were made for it. It is its own, or of several that one request asked the first one's."""
    under: dict[tuple[int, int], int] = {}
    for seat, number in decisions:
        own = attempts.get((seat, number)) or (seat, number - 1) not in under
        under[seat, number] = number if own else under[seat, number - 1]
    return under


def answer_in_words(answer: Any) -> str:
    if isinstance(answer, bool):
        return "yes" if answer else "no"
    return answer if isinstance(answer, str) else json.dumps(answer)


def stored_answer(answer: Any) -> int | bytes:
    return int(answer) if isinstance(answer, bool) else json.dumps(answer, separators=(",", ":")).encode()


@dataclass(frozen=True, slots=True)
class Spend:
    calls: int = 0
    tokens: int = 0  # input, cached input included, and output
    usd: int = 0  # picodollars

    def __add__(self, other: "Spend") -> "Spend":
        return Spend(self.calls + other.calls, self.tokens + other.tokens, self.usd + other.usd)

    def __sub__(self, other: "Spend") -> "Spend":
        return Spend(self.calls - other.calls, self.tokens - other.tokens, self.usd - other.usd)


@dataclass(frozen=True, slots=True)
class PlayerLog:
    """What one model player's attempts add up to in a run."""

    decisions: int
    games: int  # in which it was asked
    outcomes: dict[str, int]  # `model`, `model_after_reask`, `fallback:<cause>`
    reasks: int
    calls: int  # tries, those of the preflight too
    cached: int  # attempts answered from the cache
    attempts: int
    tokens: dict[str, int]  # by TOKENS, of the replies received in this run
    picodollars: int | None  # what the tries cost, as billed or assumed; None if one of them had no price
    likely: int  # of these, what is assumed: what tries probably cost whose cost is not known
    at_worst: int  # what such tries count against a budget: the most that they can have cost
    saved: int  # picodollars that the provider's own cache saved
    assumed: int  # tries whose cost is not known
    deadlines: int  # tries cut off by the deadline: such a run is not repeatable
    beyond: int  # tries that used more than was reserved for them, which may pass a budget's cap
    first_beyond: str | None  # how the first of them did
    ids: dict[str, int] = field(default_factory=dict)  # by whom its replies say that they are, with how many of them
    asked: str | None = None  # the model that was asked for

    @property
    def under_other_names(self) -> bool:
        return self.asked is not None and bool(self.ids) and [*self.ids] != [self.asked]

    @property
    def billed(self) -> int | None:
        return None if self.picodollars is None else self.picodollars - self.likely


@dataclass(frozen=True, slots=True)
class DealTotals:
    """What a player's attempts took in one deal; tokens as in Usage."""

    attempts: int = 0
    input: int = 0
    cached: int = 0
    output: int = 0


@dataclass(frozen=True, slots=True)
class RecordedAttempt:
    """A finished attempt: a reply, or a cause why there is none; the fields are columns."""

    usage: tuple[int | None, ...]  # by TOKENS
    request: str  # digest
    draw: str
    reply: str | None  # digest
    raw: str | None  # digest of the body it was read from
    cause: str | None
    player: str
    model: str | None


@dataclass(frozen=True, slots=True)
class StoredAttempt:
    """An attempt of a game, and what its tries took; the first fields are the table's columns."""

    seat: int
    decision: int
    player: str
    request: str  # digest
    raw: str | None  # digest of the body that its reply was read from
    cause: str | None
    origin: str
    input: int | None  # tokens
    cached: int | None
    output: int | None
    tries: int
    seconds: float | None
    picodollars: int
    priced: bool  # whether the price of every try is known


@dataclass(frozen=True, slots=True)
class RawReply:
    """A complete 2xx answer as it came in: what was paid for."""

    status: int
    raw: str  # the body, undecodable bytes replaced
    headers: Mapping[str, str] = field(default_factory=dict)  # allow-listed ones only


@dataclass(frozen=True, slots=True)
class StoredRequest:
    digest: str
    text: str
    server: str
    draw: str


_PREFIX: Final = 8  # digits of a digest that are enough to ask for it
_LONGEST: Final = 64 << 20  # bytes of a text; a reply has at most an eighth of it
_LIKE: Final = b"\0"  # begins a text of which only the difference from another one is kept, whose digest follows
_HEAD: Final = 33  # bytes of both
_WINDOW: Final = 32_000  # bytes of a text that others are compared with
_BESIDE: Final = 32  # texts, one beside the next, that are looked through for one
_QUICK: Final = 3  # level of packing beside another text: twice as fast as the usual, for 80 bytes a call more
_DIGITS: Final = 15  # of a number that SQLite can hold
_SAMPLE: Final = 1000  # replies that tell what a player's calls usually take
_BEYOND: Final = "beyond"  # the kind of a try that was received, and used more than was reserved for it
OF_PLAYER: Final = (  # the decisions of a player: of those that one request asked, only the first has attempts
    "FROM decisions d JOIN (SELECT DISTINCT game, seat FROM attempts WHERE player = ?) USING (game, seat)"
)
IS_AT_SERVER: Final = "instr(account, ? || ' (') = 1"  # of an account: behind its server is the variable of the key
_TOTAL: Final = "SELECT count(*), coalesce(sum(tokens), 0), coalesce(sum(picodollars), 0) FROM tries"
PlaceKey = tuple[int, ...]  # game, seat, decision; then the attempt; then the try


class ModelLog:
    """Writes and reads the model tables of an open run."""

    def __init__(self, db: RunDb) -> None:
        self._db = self.db = db
        self._whole = set[bytes]()  # digests of first ones that stand alone
        self._undone = 0  # transactions, when that was found
        self._first: dict[object, tuple[bytes, bytes]] = {}  # of each kind of text: the first one's digest and end

    @property
    def folder(self) -> Path:
        return self._db.path.parent

    @property
    def is_shared(self) -> bool:
        return self._db.is_shared

    def try_opens(
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
        """A try of that request's digest is about to be sent; `worst` is assumed until its cost is known, if ever.

        `check` receives the total cost with this try and may raise, which cancels it: in a shared store nothing else
        knows what other processes spend.
        """
        usd = worst.usd if priced else None
        row = (*key, player, account, request, draw, "open", worst.tokens, usd, True, 0, likely)
        query = (
            "INSERT INTO tries (game, seat, decision, attempt, try, player, account, request, draw, state, "
            "tokens, picodollars, assumed, saved, likely) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        )
        if check is None:
            self._write(query, row)
            return
        with self._db.writing() as connection:
            connection.execute(query, row)
            check(Spend(*connection.execute(_TOTAL).fetchone()))

    def try_received(
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
        beyond: str | None = None,
        failed: tuple[str, str] | None = None,
    ) -> None:
        """A complete 2xx body came in; `usage` is what it says it cost, None if it does not, then `spent` is assumed.

        `seconds`: how long it took; `saved`: picodollars that the provider's own cache saved; `beyond`: how it used
        more than was reserved for it; `failed`: the kind (as of `try_failed`) and words of the error that it holds.
        """
        state, kind, error = ("failed", *failed) if failed else ("received", beyond and _BEYOND, beyond)
        assumed = usage is None and spent.tokens > 0
        said, counts = json.dumps(dict(headers)), usage and json.dumps(usage)

        def write(connection: sqlite3.Connection) -> None:
            row = (status, self._keep_text(connection, raw, "reply"), said, counts)
            connection.execute(
                "UPDATE tries SET state = ?, status = ?, raw = ?, headers = ?, usage = ?, "
                "tokens = ?, picodollars = iif(picodollars IS NULL, NULL, ?), assumed = ?, saved = ?, seconds = ?, "
                "kind = ?, error = ?, likely = iif(?, likely, NULL) "
                "WHERE (game, seat, decision, attempt, try) = (?, ?, ?, ?, ?)",
                (state, *row, spent.tokens, spent.usd, assumed, saved, seconds, kind, error, assumed, *key),
            )

        self._db.write(write, paid=True)

    def try_failed(self, key: PlaceKey, kind: str, error: str, spent: Spend, seconds: float) -> None:
        """A try gave no body; `kind` is that of TryFailed, or `account`. What it may have cost is assumed."""
        query = (
            "UPDATE tries SET state = 'failed', kind = ?, error = ?, tokens = ?, "
            "picodollars = iif(picodollars IS NULL, NULL, ?), assumed = ?, seconds = ?, "
            "likely = iif(?, likely, NULL) WHERE (game, seat, decision, attempt, try) = (?, ?, ?, ?, ?)"
        )
        self._write(query, (kind, error, spent.tokens, spent.usd, spent.tokens > 0, seconds, spent.tokens > 0, *key))

    def _write(self, query: str, values: tuple[object, ...]) -> None:
        self._db.write(lambda connection: connection.execute(query, values))

    def replies_of(self, player: str) -> list[tuple[int, tuple[int, ...], int]]:
        """Of a player's replies, or many of them: the request's length, the usage, and the picodollars."""
        rows = self._db.read(
            "SELECT t.request, t.usage, t.picodollars FROM tries t JOIN texts x ON x.digest = t.request "
            "WHERE player = ? AND NOT assumed AND t.usage IS NOT NULL AND picodollars IS NOT NULL "
            "ORDER BY game DESC LIMIT ?",
            (player, _SAMPLE),
        )
        return [(len(self.text(request)), tuple(self._usage(usage)), cost) for request, usage, cost in rows]

    def assume(self, player: str, output: int, a_byte: float, besides: int) -> None:
        """What the tries of a player probably cost whose cost is not known: so much a byte of the request, and besides.

        `output`: the tokens that are reserved for a reply, beside one for each byte of the request.
        """
        with self._db.writing() as connection:
            connection.execute(
                "UPDATE tries SET likely = min(picodollars, CAST((tokens - ?) * ? AS INTEGER) + ?) "
                "WHERE player = ? AND assumed AND picodollars IS NOT NULL",
                (output, a_byte, besides, player),
            )

    def finished_attempt(self, key: PlaceKey) -> RecordedAttempt | None:
        return self._finished("(game, seat, decision, attempt) = (?, ?, ?, ?)", key).get(key)

    def finished_attempts(self, game: int) -> dict[PlaceKey, RecordedAttempt]:
        return self._finished("game = ?", (game,))

    def _finished(self, where: str, values: tuple[int, ...]) -> dict[PlaceKey, RecordedAttempt]:
        columns = f"game, seat, decision, attempt, {', '.join(TOKENS)}, request, draw, reply, raw, cause, player, model"
        query = f"SELECT {columns} FROM attempts WHERE {where}"  # noqa: S608, a text of ours
        rows = self._db.read(f"{query} AND (reply IS NOT NULL OR cause IS NOT NULL)", values)
        return {row[:4]: RecordedAttempt(row[4:9], *row[9:]) for row in rows}

    def paid_reply(self, server: str, request: str, draw: str) -> RawReply | None:
        """The first complete reply of a server to this request and draw, which may never have reached the cache."""
        which = f"request = ? AND draw = ? AND {IS_AT_SERVER} AND (kind IS NULL OR kind = ?)"
        query = f"SELECT status, raw, headers FROM tries WHERE state = 'received' AND {which}"  # noqa: S608, texts of ours
        order = "ORDER BY game, seat, decision, attempt, try LIMIT 1"
        rows = self._db.read(f"{query} {order}", (request, draw, server, _BEYOND))
        return next((RawReply(status, self.text(raw), self._from_json(headers)) for status, raw, headers in rows), None)

    def decisions(self, game: int) -> dict[tuple[int, int], Decision]:
        """What was decided in a game, by seat and number, in their order."""
        query = (
            "SELECT game, seat, decision, turn, node, answer, outcome, p_bluff FROM decisions WHERE game = ? "
            "ORDER BY seat, decision"
        )
        found = [Decision(*row) for row in self._db.read(query, (game,))]
        return {(one.seat, one.number): replace(one, answer=self._answer(one.answer)) for one in found}

    def attempts(self, game: int) -> defaultdict[tuple[int, int], list[StoredAttempt]]:
        """The attempts of a game by seat and number of their decision, in their order."""
        rows = self._db.read(
            "SELECT a.seat, a.decision, a.player, a.request, a.raw, a.cause, a.origin, a.input, a.cached, a.output, "
            "count(t.try), sum(t.seconds), coalesce(sum(coalesce(t.likely, t.picodollars)), 0), "
            "count(t.picodollars) = count(t.try) "
            "FROM attempts a LEFT JOIN tries t USING (game, seat, decision, attempt) WHERE a.game = ? "
            "GROUP BY a.seat, a.decision, a.attempt ORDER BY a.seat, a.decision, a.attempt",
            (game,),
        )
        found = defaultdict[tuple[int, int], list[StoredAttempt]](list)
        for row in rows:
            found[row[:2]].append(StoredAttempt(*row))
        return found

    def keep_prompt(self, digest: str, sources: Mapping[str, str]) -> None:
        with self._db.writing() as connection:
            rows = [(digest, name, text) for name, text in sources.items()]
            connection.executemany("INSERT OR IGNORE INTO prompts VALUES (?, ?, ?)", rows)

    def prompt(self, digest: str) -> dict[str, str]:
        return dict(self._db.read("SELECT file, text FROM prompts WHERE digest = ?", (digest,)))

    def begun(self) -> bool:
        return bool(self._db.read("SELECT 1 FROM attempts UNION ALL SELECT 1 FROM tries LIMIT 1"))

    def tries(self, key: PlaceKey) -> int:
        """How many tries of an attempt there were: the number of the last."""
        ((last,),) = self._db.read(
            "SELECT coalesce(max(try), 0) FROM tries WHERE (game, seat, decision, attempt) = (?, ?, ?, ?)", key
        )
        return int(last)

    def reopen(self, games: Collection[int]) -> None:
        """Put these games back: nothing of them is decided, all is asked anew (what was replied is in the cache).

        A game in which nobody could be reached at one question may take another course from there on.
        """
        with self._db.writing() as connection:
            for table in ("attempts", "decisions", "ended"):
                connection.executemany(f"DELETE FROM {table} WHERE game = ?", [(game,) for game in games])  # noqa: S608

    def game_ended(self, game: int) -> None:
        with self._db.writing() as connection:
            connection.execute("INSERT OR IGNORE INTO ended VALUES (?)", (game,))

    def ended(self) -> dict[int, int]:
        query = "SELECT game, (SELECT count(*) FROM attempts a WHERE a.game = ended.game) FROM ended"
        return dict(self._db.read(query))

    def replies(self) -> int:
        return int(self._db.read("SELECT count(*) FROM attempts WHERE game >= 0 AND reply IS NOT NULL")[0][0])

    def in_games(self) -> tuple[int, Spend]:
        """How many replies to questions of games were paid for, and what all ended tries of games took."""
        ((replies, *amounts),) = self._db.read(
            "SELECT coalesce(sum(state = 'received'), 0), count(*), coalesce(sum(tokens), 0), "
            "coalesce(sum(picodollars), 0) FROM tries WHERE game >= 0 AND state <> 'open'"
        )
        return replies, Spend(*amounts)

    def spent(self, *, assumed: bool = False) -> Spend:
        ((calls, tokens, usd),) = self._db.read(f"{_TOTAL} WHERE assumed OR NOT ?", (assumed,))
        return Spend(calls, tokens, usd)

    def attempt(
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
        """An attempt ended: with a reply (its digest) or with a cause; with neither it is open, and asked again.

        `request` is the canonical text, `raw` the body that the reply was read from, `model` who it says that it is of.
        It is written with whatever is written next: its tries say already what was paid for.
        """

        def write(connection: sqlite3.Connection) -> None:
            digest = self._keep_text(connection, request, (player, key[1]))
            body = None if raw is None else self._keep_text(connection, raw, "reply")
            bought = origin == "cache" and key[0] >= 0 and _was_received(connection, key, body)
            counts = usage or (None,) * len(TOKENS)
            row = (*key, player, server, digest, draw, reply, body, cause, "live" if bought else origin, *counts, model)
            marks = ", ".join("?" * len(row))
            connection.execute(f"INSERT OR REPLACE INTO attempts VALUES ({marks}, NULL)", row)  # noqa: S608, no value in it

        self._db.later(write)

    def decision(self, decision: Decision) -> None:
        """Keep it. An answer in JSON is stored as bytes, which the column does not turn into a number.

        It is written with whatever is written next: its attempts, if they are kept, lead to it again.
        """
        stored = stored_answer(decision.answer)
        at = (decision.game, decision.seat, decision.number)
        query = (
            "INSERT OR REPLACE INTO decisions (game, seat, decision, turn, node, answer, outcome, p_bluff) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
        )
        row = (*at, decision.turn, decision.node, stored, decision.outcome, decision.stated)
        self._db.later(lambda connection: connection.execute(query, row))

    def _from_json(self, text: str | bytes) -> Any:
        """What a row has as JSON; raises RunStopped where it is none."""
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            raise RunStopped(f"{self._db.path} is damaged: a row holds something that is no JSON") from None

    def _usage(self, text: str) -> list[int]:
        """The tokens that a row has, by TOKENS."""
        counts = self._from_json(text)
        if not isinstance(counts, list) or [type(count) for count in counts] != [int] * len(TOKENS):
            raise RunStopped(f"{self._db.path} is damaged: a row holds no counts of tokens")
        return counts

    def _answer(self, stored: int | bytes) -> Any:
        answer = bool(stored) if isinstance(stored, int) else self._from_json(stored)
        if stored_answer(answer) != stored:
            raise RunStopped(f"{self._db.path} is damaged: a decision holds no answer")
        return answer

    def text(self, digest: str) -> str:
        """A kept text; raises RunStopped if it is missing, or was changed or damaged."""
        try:
            data = self._text(digest)
        except (IndexError, TypeError, RecursionError, zlib.error):
            data = b""
        if sha256(data).hexdigest() != digest:
            raise RunStopped(f"text {digest[:16]} in {self._db.path} is missing or was changed or damaged")
        return data.decode("utf-8", "surrogatepass")

    def _text(self, digest: str, beside: int = 0) -> bytes:
        """What is kept as that text, which may be no more than what differs from another one."""
        if beside > _BESIDE:
            raise RecursionError(digest)
        packed = self._db.read("SELECT text FROM texts WHERE digest = ?", (digest,))[0][0]
        if packed[:1] != _LIKE:
            return inflated(packed)
        return inflated(packed[_HEAD:], self._text(packed[1:_HEAD].hex(), beside + 1)[-_WINDOW:])

    def keep_request(self, text: str, player: str, seat: int) -> None:
        with self._db.writing() as connection:
            self._keep_text(connection, text, (player, seat))

    def _keep_text(self, connection: sqlite3.Connection, text: str, kind: object) -> str:
        """Keep a text and return its digest. Of the second of a kind on, only what differs from the first is packed:
        rules and history are said again and again."""
        data = text.encode("utf-8", "surrogatepass")
        digest = sha256(data).digest()
        if _first_byte(connection, digest) is None:
            first = self._first.setdefault(kind, (digest, data[-_WINDOW:]))
            if self._undone != self._db.undone:  # they may have gone with a transaction
                self._whole, self._undone = set(), self._db.undone
            whole = first[0] in self._whole
            if not whole and _first_byte(connection, first[0]) not in (None, _LIKE):  # it is there, and needs no other
                self._whole.add(first[0])
                whole = True
            packed = _packed_beside(data, *first) if whole else zlib.compress(data)
            connection.execute("INSERT INTO texts VALUES (?, ?)", (digest.hex(), packed))
        return digest.hex()

    def by_deal(self, player: str, games_per_deal: int) -> dict[int, DealTotals]:
        """What each deal took in which a player was asked."""
        rows = self._db.read(
            "SELECT game / ?, count(*), coalesce(sum(input), 0), coalesce(sum(cached), 0), coalesce(sum(output), 0) "
            "FROM attempts WHERE player = ? AND game >= 0 GROUP BY 1",
            (games_per_deal, player),
        )
        return {deal: DealTotals(*totals) for deal, *totals in rows}

    def seconds(self, player: str) -> float | None:
        query = "SELECT avg(seconds) FROM tries WHERE player = ? AND state = 'received'"
        ((mean,),) = self._db.read(query, (player,))
        return None if mean is None else float(mean)

    def find(self, what: str) -> StoredRequest | None:
        """The request of a decision, `GAME.SEAT.DECISION[.ATTEMPT]`, or the only one whose digest begins so."""
        parts = what.split(".")
        query, values = "request GLOB ?", tuple[object, ...]((f"{what}*",))
        if len(parts) in (3, 4) and all(part.isdecimal() and len(part) <= _DIGITS for part in parts):
            query = (
                "(game, seat, attempt, decision) = (?1, ?2, ?4, coalesce((SELECT max(a.decision) FROM attempts a "
                "JOIN decisions d ON (d.game, d.seat, d.decision) = (?1, ?2, ?3) "
                "WHERE (a.game, a.seat) = (?1, ?2) AND a.decision <= ?3), ?3))"
            )
            values = (*map(int, parts), 0)[:4]
        elif len(what) < _PREFIX or not what.isalnum():
            return None
        rows = self._db.read(f"SELECT DISTINCT request, server, draw FROM attempts WHERE {query}", values)  # noqa: S608, a text of ours
        if len({request for request, _, _ in rows}) != 1:
            return None
        request, server, draw = rows[0]
        return StoredRequest(request, self.text(request), server, draw)

    def yeses(self, nodes: Iterable[str], before: int) -> dict[str, int]:
        """By player: how often the answer at these nodes was yes, in the games before this one."""
        query = (
            "SELECT a.player, sum(d.answer = 1) FROM decisions d "
            "JOIN (SELECT DISTINCT player, game, seat FROM attempts) a USING (game, seat) "
            "WHERE d.node IN (SELECT value FROM json_each(?)) AND d.game < ? GROUP BY 1"
        )
        return dict(self._db.read(query, (json.dumps([*nodes]), before)))

    def answered(self, name: str) -> bool:
        return bool(self._db.read(f"SELECT 1 {OF_PLAYER} WHERE outcome LIKE 'model%' LIMIT 1", (name,)))

    def players(self) -> list[str]:
        rows = self._db.read("SELECT player FROM attempts UNION SELECT player FROM tries ORDER BY player")
        return [name for (name,) in rows]

    def _who(self, name: str) -> dict[str, Any]:
        """Return which models answered a player, by what the replies state, and which model was asked."""
        query = "SELECT model, count(*), min(request) FROM attempts WHERE player = ? AND model IS NOT NULL GROUP BY 1"
        rows = self._db.read(f"{query} ORDER BY 1", (name,))
        asked = None
        with suppress(RunStopped):  # a damaged text is no reason to show nothing at all
            asked = self._from_json(self.text(rows[0][2])) if rows else None
        body = asked.get("body") if isinstance(asked, dict) else None
        model = body.get("model") if isinstance(body, dict) else None
        return {"ids": {model: count for model, count, _ in rows}, "asked": model if isinstance(model, str) else None}

    def failures(self) -> dict[str, int]:
        return dict(self._db.read("SELECT kind, count(*) FROM tries WHERE state = 'failed' GROUP BY kind"))

    def player(self, name: str) -> PlayerLog:
        """What a player's decisions, attempts and tries add up to."""
        read = self._db.read
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
        over = "SELECT error FROM tries WHERE player = ? AND kind = ? ORDER BY game, seat, decision, attempt, try"
        beyond = read(over, (name, _BEYOND))
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
            **self._who(name),
        )


def _was_received(connection: sqlite3.Connection, key: PlaceKey, raw: str | None) -> bool:
    query = "SELECT 1 FROM tries WHERE (game, seat, decision, attempt, state, raw) = (?, ?, ?, ?, 'received', ?)"
    return connection.execute(query, (*key, raw)).fetchone() is not None


def _first_byte(connection: sqlite3.Connection, digest: bytes) -> bytes | None:
    rows = connection.execute("SELECT substr(text, 1, 1) FROM texts WHERE digest = ?", (digest.hex(),)).fetchall()
    return bytes(rows[0][0]) if rows else None


def _packed_beside(data: bytes, digest: bytes, like: bytes) -> bytes:
    stream = zlib.compressobj(_QUICK, zdict=like)
    return _LIKE + digest + stream.compress(data) + stream.flush()


def inflated(packed: bytes, like: bytes = b"") -> bytes:
    """What was packed by zlib; raises zlib.error where it is cut, or longer than anything that was ever kept so.

    `like` is the text beside which it was packed, if it was.
    """
    stream = zlib.decompressobj(zdict=like) if like else zlib.decompressobj()
    data = stream.decompress(packed, _LONGEST)
    if not stream.eof:
        raise zlib.error("it is cut short, or too long")
    return data
