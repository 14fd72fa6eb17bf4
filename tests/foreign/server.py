"""A scriptable server that behaves like providers: limits, headers, and bursts of errors.

It is written from the providers' documents, not from the client. Time runs `scale` times as fast, so that a minute's
limit is reached within a second. The server is a thread with an event loop, and keeps every connection alive.
"""

import asyncio
import json
import math
import random
import socket
import struct
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from hashlib import sha256
from typing import Any, Final, Literal

from dubito.model_settings import Api
from tests.foreign.limits import Limiter
from tests.llm.kit import PATH_OF, PROTOCOLS, error_body, reply_body

Failure = Literal["502", "reset", "silence"]  # a gateway error, a reset connection, no answer
RetryAfter = Literal["ms", "exact", "whole", "date"] | None
Style = Literal["openai", "anthropic"] | None
OUTPUT_LIMITS = ("max_output_tokens", "max_completion_tokens", "max_tokens")


@dataclass(frozen=True)
class Habits:
    """The behaviour of a server. Times are in its own, accelerated seconds."""

    requests: Sequence[Limiter] = ()
    tokens: Sequence[Limiter] = ()  # a call uses its input tokens and its `max_output`
    headers: Style = None
    retry_after: RetryAfter = None
    latency: tuple[float, float] = (1.0, 3.0)
    overloaded: tuple[int, float] | None = None  # first call, and seconds during which it answers 529
    quota: str | None = None  # text of a 429 instead of a rate limit's
    at_once: int | None = None  # limit of concurrent calls; more are refused
    crowded: "Answer | None" = None  # the refusal; None: as for a rate limit
    sick: float = 0.0  # share of calls that fail at random
    failures: Sequence[Failure] = ("502",)  # kinds of failure, equally likely
    scale: float = 1.0


@dataclass
class LoggedRequest:
    """A received call: its time, its body, and the status of the answer."""

    at: float
    body: dict[str, Any]
    status: int


@dataclass
class Answer:
    """A response."""

    status: int
    body: str
    headers: dict[str, str] = field(default_factory=dict)


LOST: Final = {"reset": Answer(0, ""), "silence": Answer(-1, "")}  # failures without a status
BAD_GATEWAY: Final = Answer(502, "<html><body><h1>502 Bad Gateway</h1></body></html>")
Reply = Callable[[Api, dict[str, Any]], dict[str, Any] | Answer]


def by_the_question(protocol: Api, body: dict[str, Any]) -> dict[str, Any]:
    digest = sha256(json.dumps(body, sort_keys=True).encode()).digest()
    return reply_body(protocol, json.dumps({"answer": digest[0] % 2 == 0}))


class Foreign:
    """The server, as a context manager."""

    def __init__(self, habits: Habits, reply: Reply = by_the_question) -> None:
        self.habits, self._reply = habits, reply
        self.requests: list[LoggedRequest] = []
        self.under_way = self.most = 0
        self._start: float | None = None
        self._burst: float | None = None  # start of the burst
        self._chance = random.Random(5)
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    def __enter__(self) -> "Foreign":
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    def base_url(self, protocol: Api) -> str:
        address = f"http://127.0.0.1:{self._port}"
        return address if protocol == "messages" else f"{address}/v1"

    def count(self, status: int) -> int:
        return sum(request.status == status for request in self.requests)

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._talk, "127.0.0.1", 0, backlog=2048)
        self._port = server.sockets[0].getsockname()[1]
        self._ready.set()
        async with server:
            await self._stop.wait()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                path = head.split(" ", 2)[1]
                size = next(int(line[15:]) for line in head.split("\r\n") if line.lower().startswith("content-length:"))
                answer = await self._answer(path, json.loads(await reader.readexactly(size)))
                if answer in LOST.values():
                    break
                payload = answer.body.encode()
                lines = [f"HTTP/1.1 {answer.status} -", f"content-length: {len(payload)}"]
                lines += [f"{name}: {value}" for name, value in answer.headers.items()]
                writer.write(("\r\n".join(lines) + "\r\ncontent-type: application/json\r\n\r\n").encode() + payload)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            linger = struct.pack("ii", 1, 0)  # closing then sends a reset
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            writer.close()

    async def _answer(self, path: str, body: dict[str, Any]) -> Answer:
        if self._start is None:
            self._start = time.monotonic()
        now = (time.monotonic() - self._start) * self.habits.scale
        (protocol,) = [name for name in PROTOCOLS if path.endswith(PATH_OF[name])]
        answer = self._failed() or self._refused(protocol, body, now)
        if answer is None:
            response = self._reply(protocol, body)
            answer = (
                response
                if isinstance(response, Answer)
                else Answer(200, json.dumps(response), self._limit_headers(now))
            )
        self.requests.append(LoggedRequest(now, body, answer.status))
        if answer is LOST["silence"]:
            await self._stop.wait()
        if answer.status == 200:
            self.under_way += 1
            self.most = max(self.most, self.under_way)
            await asyncio.sleep(self._chance.uniform(*self.habits.latency) / self.habits.scale)
            self.under_way -= 1
        return answer

    def _failed(self) -> Answer | None:
        """Return how a call fails at random, if it does."""
        if self._chance.random() >= self.habits.sick:
            return None
        how = self._chance.choice(self.habits.failures)
        return BAD_GATEWAY if how == "502" else LOST[how]

    def _refused(self, protocol: Api, body: dict[str, Any], now: float) -> Answer | None:
        if self._is_overloaded(now):
            return Answer(529, error_body(protocol, "overloaded_error", "Overloaded"))
        if self.habits.at_once is not None and self.under_way >= self.habits.at_once:
            return self.habits.crowded or Answer(429, "Too Many Requests")
        tokens = len(json.dumps(body)) / 4 + next(body[name] for name in OUTPUT_LIMITS if name in body)
        wanted = [(limit, 1.0) for limit in self.habits.requests] + [(limit, tokens) for limit in self.habits.tokens]
        for limit, _ in wanted:
            limit.refresh(now)
        if all(limit.left >= amount for limit, amount in wanted):
            for limit, amount in wanted:
                limit.take(amount)
            return None
        seconds = max(limit.wait(amount) for limit, amount in wanted)
        words = self.habits.quota or "Rate limit reached"
        kind = "insufficient_quota" if self.habits.quota else "rate_limit_error"
        return Answer(429, error_body(protocol, kind, words), self._limit_headers(now) | self._retry_after(seconds))

    def _is_overloaded(self, now: float) -> bool:
        """Return whether the burst of errors is in progress.

        It starts with a call, so it hits one at any time scale.
        """
        if self.habits.overloaded is None:
            return False
        first, seconds = self.habits.overloaded
        if self._burst is None and len(self.requests) >= first:
            self._burst = now
        return self._burst is not None and now < self._burst + seconds

    def _retry_after(self, seconds: float) -> dict[str, str]:
        match self.habits.retry_after:
            case "ms":
                return {"retry-after-ms": f"{1000 * seconds:.0f}"}
            case "exact":
                return {"retry-after": f"{seconds:.3f}"}
            case "whole":
                return {"retry-after": str(math.ceil(seconds))}
            case "date":
                moment = datetime.fromtimestamp(time.time() + math.ceil(seconds), UTC)
                return {"retry-after": format_datetime(moment, usegmt=True)}
        return {}

    def _limit_headers(self, now: float) -> dict[str, str]:
        headers = {}
        for kind, limits in (("requests", self.habits.requests), ("tokens", self.habits.tokens)):
            if not limits or self.habits.headers is None:
                continue
            limit = min(limits, key=lambda limit: limit.left / limit.limit)
            limit.refresh(now)
            left, whole = str(math.floor(limit.left)), limit.whole()
            if self.habits.headers == "openai":
                headers[f"x-ratelimit-limit-{kind}"] = f"{limit.limit:.0f}"
                headers[f"x-ratelimit-remaining-{kind}"] = left
                headers[f"x-ratelimit-reset-{kind}"] = f"{whole:.3f}s" if whole >= 1 else f"{1000 * whole:.0f}ms"
            else:
                moment = datetime.fromtimestamp(math.ceil(time.time() + whole), UTC)
                headers[f"anthropic-ratelimit-{kind}-limit"] = f"{limit.limit:.0f}"
                headers[f"anthropic-ratelimit-{kind}-remaining"] = left
                headers[f"anthropic-ratelimit-{kind}-reset"] = moment.isoformat().replace("+00:00", "Z")
        return headers
