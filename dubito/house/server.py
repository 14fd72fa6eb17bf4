"""The house on loopback: `with House() as house:` serves in a thread until the block ends.

Answers that do not arrive as they should: written past the HTTP server, to the connection itself.
"""

import asyncio
import os
import socket
import struct
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from math import isfinite
from pathlib import Path
from socket import SO_LINGER, SOL_SOCKET
from types import TracebackType
from typing import Final

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from dubito.errors import UsageError
from dubito.game.find import find_games
from dubito.house.batches import BatchDesk
from dubito.house.core import Call, CallLog, Core, Policy, ServerAnswer, house_policy
from dubito.house.decisions import DecisionsWire
from dubito.house.events import EVENTS
from dubito.house.faults import Delivery, Faults
from dubito.house.request import HeardRequest, Refusal, RefusalKind
from dubito.house.wires import AnthropicWire, ChatWire, ResponsesWire, Wire, WireName
from dubito.serve import listen, plain_http

TRANSPORT: Final = "transport"  # under this name the connection stands in a request's state
_NO_LINGER: Final = struct.pack("hh" if os.name == "nt" else "ii", 1, 0)


class Delivered(Response):
    """An answer, sent as its delivery says; the connection is closed afterwards in any case."""

    def __init__(self, answer: ServerAnswer, delivery: Delivery, log: CallLog, closing: asyncio.Event) -> None:
        super().__init__(answer.content, answer.status, {**answer.headers, "connection": "close"}, answer.media)
        self._answer, self._delivery, self._log, self._closing = answer, delivery, log, closing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        transport: asyncio.Transport = scope["state"][TRANSPORT]
        closing = asyncio.create_task(self._closing.wait())  # the end of the house does not wait for a held client
        closing.add_done_callback(lambda _: transport.abort())
        try:
            await self._send(transport, receive)
            await _gone(receive)
        finally:
            closing.cancel()

    async def _send(self, transport: asyncio.Transport, receive: Receive) -> None:
        if self._delivery.part == "all":
            await self._trickle(transport, receive)
        else:
            self._log.add(self._answer.call.unsent())
            transport.write(self._bytes())
        if transport.is_closing():
            return  # the client was faster
        if self._delivery.end == "reset":
            transport.get_extra_info("socket").setsockopt(SOL_SOCKET, SO_LINGER, _NO_LINGER)
            transport.abort()
        elif self._delivery.end == "close":
            transport.close()

    async def _trickle(self, transport: asyncio.Transport, receive: Receive) -> None:
        """Byte by byte. It is an answer once its last byte is under way; the log has it before."""
        everything = self._bytes()
        for place in range(len(everything) - 1):
            transport.write(everything[place : place + 1])
            if await _gone(receive, self._delivery.interval):
                self._log.add(self._answer.call.unsent())
                return
        self._log.add(self._answer.call)
        transport.write(everything[-1:])

    def _bytes(self) -> bytes:
        lines = [f"HTTP/1.1 {self.status_code} ".encode(), *(b": ".join(header) for header in self.raw_headers)]
        head = b"\r\n".join([*lines, b"", b""])
        ends = {
            "nothing": 0,
            "half the head": len(head) // 2,
            "half the body": len(head) + len(self.body) // 2,
            "all": len(head) + len(self.body),
        }
        return (head + bytes(self.body))[: ends[self._delivery.part]]


async def _gone(receive: Receive, seconds: float | None = None) -> bool:
    """Wait for so long, or for ever; whether the client has gone."""
    try:
        async with asyncio.timeout(seconds):
            while (await receive())["type"] != "http.disconnect":
                pass
    except TimeoutError:
        return False
    return True


_HOST: Final = "127.0.0.1"
_CONTEXT: Final = 200_000  # tokens
_KEEP_ALIVE: Final = 3600  # seconds: no client should meet a connection that closes as it is reused
_GRACE: Final = 2  # seconds that a request half sent may hold up the end
_ROUNDS: Final = 10  # turns of the loop in which calls that came before the end are still heard
_TICK: Final = 0.005  # seconds between two looks whether anybody is left at the end

_RESPONSES: Final = ResponsesWire()
_CHAT: Final = ChatWire()
_MESSAGES: Final = AnthropicWire()
_PATHS: Final[Mapping[str, Wire]] = {
    "/v1/responses": _RESPONSES,
    "/v1/chat/completions": _CHAT,
    "/v1/messages": _MESSAGES,
    "/v1/decisions": DecisionsWire(),
}
_BETWEEN: Final = b"\n\n"  # events
_BASES: Final[Mapping[WireName, str]] = {wire.name: wire.base for wire in _PATHS.values()}


class _Desk:
    """Between starlette and the core: reads requests, keeps the log, waits out the latency."""

    def __init__(self, core: Core, log: CallLog, latency: float, closing: asyncio.Event) -> None:
        self._core, self._log, self._latency, self._closing = core, log, latency, closing

    async def create(self, request: Request) -> Response:
        wire = _PATHS[request.url.path]
        asked = await _asked(wire, request)
        answer = self._core.create(wire, asked, request.headers)
        sent = self._sent(answer)
        if answer.media == EVENTS and answer.delivery is None and self._latency:
            return StreamingResponse(self._in_time(answer.content), answer.status, answer.headers, EVENTS)
        await self._wait(self._latency)
        return sent

    async def _in_time(self, events: bytes) -> AsyncIterator[bytes]:
        """The events, one by one, over the time of the latency."""
        single = [event + _BETWEEN for event in events.split(_BETWEEN) if event]
        for event in single:
            await self._wait(self._latency / len(single))
            yield event

    async def _wait(self, seconds: float) -> None:
        """Let the time pass; the end of the house does not wait for its own latency."""
        if seconds:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._closing.wait()

    async def models(self, request: Request) -> Response:
        wire = _speaks(request)
        asked = await _asked(wire, request)
        return self._sent(self._core.models(wire, asked, request.headers, request.path_params.get("name")))

    async def astray(self, request: Request, error: Exception) -> Response:
        missed = isinstance(error, HTTPException) and error.status_code == 405
        kind: RefusalKind = "wrong_method" if missed else "unknown_path"
        wire = _speaks(request)
        refusal = Refusal(kind, method=request.method, path=request.url.path)
        return self._sent(self._core.refuse(wire, await _asked(wire, request), refusal))

    async def left(self, request: Request, error: Exception) -> Response:
        return Response(status_code=499)

    def _sent(self, answer: ServerAnswer) -> Response:
        """The answer for starlette. It is logged before it leaves: no client has an answer that the log lacks."""
        if answer.delivery is not None:
            return Delivered(answer, answer.delivery, self._log, self._closing)
        self._log.add(answer.call)
        return Response(answer.content, answer.status, answer.headers, media_type=answer.media)


def house_app(desk: _Desk, batches: BatchDesk) -> Starlette:
    app = Starlette(
        routes=[
            *batches.routes,
            *(Route(path, desk.create, methods=["POST"]) for path in _PATHS),
            Route("/v1/models", desk.models, methods=["GET"]),
            Route("/v1/models/{name}", desk.models, methods=["GET"]),
        ],
        exception_handlers={404: desk.astray, 405: desk.astray, ClientDisconnect: desk.left},
    )
    app.router.redirect_slashes = False
    return app


def _speaks(request: Request) -> Wire:
    known = _PATHS.get(request.url.path)
    anthropic = "anthropic-version" in request.headers or "x-api-key" in request.headers
    return known or (_MESSAGES if anthropic else _RESPONSES)


async def _asked(wire: Wire, request: Request) -> HeardRequest:
    return HeardRequest.of(wire.name, wire.base, request.url.path, request.headers, await request.body())


class _Protocol(H11Protocol):
    """Shows a request its connection, for the faults that HTTP has no words for."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self.app_state = {**self.app_state, TRANSPORT: transport}


class _Server(uvicorn.Server):
    """Says when it serves, and ends as soon as it is told to and nobody is left; uvicorn's own looks now and then."""

    def __init__(self, config: uvicorn.Config, closing: asyncio.Event) -> None:
        super().__init__(config)
        self.ready = threading.Event()
        self._closing = closing

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._loop = asyncio.get_running_loop()
        self.ready.set()

    def end(self) -> None:
        with suppress(RuntimeError):  # it has ended
            self._loop.call_soon_threadsafe(self._closing.set)

    async def main_loop(self) -> None:
        await self._closing.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        state = self.server_state
        for _ in range(_ROUNDS):
            await asyncio.sleep(0)
        for server in self.servers:
            server.close()
        for connection in list(state.connections):
            connection.shutdown()
        with suppress(TimeoutError):
            async with asyncio.timeout(_GRACE):
                while state.connections or state.tasks:
                    await asyncio.sleep(_TICK)


class House:
    """The server as a context manager: ready when entered, gone when left.

    Port 0 takes a free one; `latency` is in seconds; `log` is a file that every call is appended to;
    `context` is how many tokens a prompt may have. Raises UsageError for a port in use, a log that
    cannot be written, or a number out of its range.
    """

    def __init__(
        self,
        port: int = 0,
        *,
        latency: float = 0.0,
        faults: Faults | None = None,
        log: Path | None = None,
        policy: Policy | None = None,
        context: int = _CONTEXT,
    ) -> None:
        if not (isfinite(latency) and latency >= 0):
            raise UsageError(f"latency is a number of seconds from 0, not {latency}")
        self.port = port
        self._latency = latency
        self._core = Core(policy or house_policy(find_games(Path())), faults or Faults(), context)
        self._file = log
        self._log = CallLog()

    @property
    def models(self) -> tuple[str, ...]:
        return tuple(self._core.policy.models)

    def base_url(self, api: WireName) -> str:
        return f"http://{_HOST}:{self.port}{_BASES[api]}"

    @property
    def openai_base_url(self) -> str:
        return self.base_url("responses")

    @property
    def anthropic_base_url(self) -> str:
        return self.base_url("messages")

    @property
    def calls(self) -> list[Call]:
        return self._log.calls()

    def __enter__(self) -> "House":
        listener = listen(_HOST, self.port)
        try:
            self._log = CallLog(self._file)
        except UsageError:
            listener.close()
            raise
        self.port = listener.getsockname()[1]
        closing = asyncio.Event()
        desk = _Desk(self._core, self._log, self._latency, closing)
        app = house_app(desk, BatchDesk(self._core, self._log, _PATHS))
        self._server = _Server(plain_http(app, http=_Protocol, timeout_keep_alive=_KEEP_ALIVE), closing)
        self._thread = threading.Thread(target=self._serve, args=(listener,), name="dubito-house", daemon=True)
        self._thread.start()
        self._server.ready.wait()
        if not self._server.started:
            raise RuntimeError("the house did not come up")  # its thread has said why
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._server.end()
        self._thread.join()
        self._log.close()

    def _serve(self, listener: socket.socket) -> None:
        try:
            self._server.run([listener])
        finally:
            listener.close()
            self._server.ready.set()  # or its caller would wait for a server that never came up
