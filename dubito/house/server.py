"""The built-in model server, which runs in a thread of this process.

`with House() as house:` serves until the block ends. Answers with a delivery fault are written directly to the
connection, bypassing the HTTP server.
"""

import asyncio
import os
import socket
import struct
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
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
from dubito.hooks import find_batch_sender
from dubito.house.core import Call, CallLog, Core, Policy, ServerAnswer, house_policy
from dubito.house.decisions import DecisionsWire
from dubito.house.events import EVENTS
from dubito.house.faults import Delivery, Faults
from dubito.house.gemini import GeminiWire
from dubito.house.request import HouseRequest, Refusal, RefusalKind
from dubito.house.wires import AnthropicWire, ChatWire, ResponsesWire, Wire
from dubito.model_settings import Api
from dubito.serve import listen, plain_http

TRANSPORT: Final = "transport"  # the key of the connection in a request's state
_NO_LINGER: Final = struct.pack("hh" if os.name == "nt" else "ii", 1, 0)


class FaultyResponse(Response):
    """An answer that is sent with a delivery fault. The connection is always closed afterwards."""

    def __init__(self, answer: ServerAnswer, delivery: Delivery, log: CallLog, closing: asyncio.Event) -> None:
        super().__init__(answer.content, answer.status, {**answer.headers, "connection": "close"}, answer.media)
        self._answer, self._delivery, self._log, self._closing = answer, delivery, log, closing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        transport: asyncio.Transport = scope["state"][TRANSPORT]
        # A closing server does not wait for clients on hold.
        closing = asyncio.create_task(self._closing.wait())
        closing.add_done_callback(lambda _: transport.abort())
        try:
            if self._delivery.part == "all":
                await self._trickle(transport, receive)
            else:
                self._log.add(self._answer.call.without_response())
                transport.write(self._bytes())
            # The client may have closed the connection first.
            if self._delivery.end == "reset" and not transport.is_closing():
                transport.get_extra_info("socket").setsockopt(SOL_SOCKET, SO_LINGER, _NO_LINGER)
                transport.abort()
            elif self._delivery.end == "close":
                transport.close()
            await _wait_for_disconnect(receive)
        finally:
            closing.cancel()

    async def _trickle(self, transport: asyncio.Transport, receive: Receive) -> None:
        """Send the answer byte by byte. Log it before sending the last byte."""
        content = self._bytes()
        for place in range(len(content) - 1):
            transport.write(content[place : place + 1])
            if await _wait_for_disconnect(receive, self._delivery.interval):
                self._log.add(self._answer.call.without_response())
                return
        self._log.add(self._answer.call)
        transport.write(content[-1:])

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


async def _wait_for_disconnect(receive: Receive, seconds: float | None = None) -> bool:
    """Wait up to this many seconds, or forever. Return whether the client has disconnected."""
    try:
        async with asyncio.timeout(seconds):
            while (await receive())["type"] != "http.disconnect":
                pass
    except TimeoutError:
        return False
    return True


_HOST: Final = "127.0.0.1"
_CONTEXT_TOKENS: Final = 200_000
_KEEP_ALIVE: Final = 3600  # seconds; long enough that no client reuses a connection that is being closed
_SHUTDOWN_SECONDS: Final = 2  # seconds to wait for incomplete requests
_SHUTDOWN_ROUNDS: Final = 10  # iterations of the event loop in which earlier calls are still accepted
_POLL_SECONDS: Final = 0.005  # seconds between checks for open connections at shutdown

_RESPONSES: Final = ResponsesWire()
_CHAT: Final = ChatWire()
_MESSAGES: Final = AnthropicWire()
_GEMINI: Final = GeminiWire()
_GEMINI_PATH: Final = "/v1beta/models"
_PATHS: Final[Mapping[str, Wire]] = {
    "/v1/responses": _RESPONSES,
    "/v1/chat/completions": _CHAT,
    "/v1/messages": _MESSAGES,
    "/v1/decisions": DecisionsWire(),
}
_EVENT_SEPARATOR: Final = b"\n\n"
_BASES: Final[Mapping[Api, str]] = {wire.name: wire.base for wire in (*_PATHS.values(), _GEMINI)}


@dataclass(frozen=True, slots=True)
class _Endpoints:
    """The models' endpoints. They read requests, log calls and add the latency."""

    core: Core
    log: CallLog
    latency: float  # seconds
    closing: asyncio.Event

    async def create(self, request: Request) -> Response:
        wire = _find_wire(request)
        incoming = await _read_request(wire, request)
        answer = self.core.create(wire, incoming, request.headers)
        response = self._respond(answer)
        if answer.media == EVENTS and answer.delivery is None and self.latency:
            return StreamingResponse(self._stream(answer.content), answer.status, answer.headers, EVENTS)
        await self._wait(self.latency)
        return response

    async def _stream(self, events: bytes) -> AsyncIterator[bytes]:
        """Yield the events one by one, spread over the latency."""
        single = [event + _EVENT_SEPARATOR for event in events.split(_EVENT_SEPARATOR) if event]
        for event in single:
            await self._wait(self.latency / len(single))
            yield event

    async def _wait(self, seconds: float) -> None:
        """Wait, unless the server closes."""
        if seconds:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self.closing.wait()

    async def models(self, request: Request) -> Response:
        wire = _find_wire(request)
        incoming = await _read_request(wire, request)
        return self._respond(self.core.models(wire, incoming, request.headers, request.path_params.get("name")))

    async def refuse_unknown(self, request: Request, error: Exception) -> Response:
        is_wrong_method = isinstance(error, HTTPException) and error.status_code == 405
        kind: RefusalKind = "wrong_method" if is_wrong_method else "unknown_path"
        wire = _find_wire(request)
        refusal = Refusal(kind, method=request.method, path=request.url.path)
        return self._respond(self.core.refuse(wire, await _read_request(wire, request), refusal))

    async def handle_disconnect(self, request: Request, error: Exception) -> Response:
        return Response(status_code=499)

    def _respond(self, answer: ServerAnswer) -> Response:
        """Log the call, then return the response, so that no client gets an unlogged answer."""
        if answer.delivery is not None:
            return FaultyResponse(answer, answer.delivery, self.log, self.closing)
        self.log.add(answer.call)
        return Response(answer.content, answer.status, answer.headers, media_type=answer.media)


def house_app(endpoints: _Endpoints, batch_routes: Sequence[Route]) -> Starlette:
    app = Starlette(
        routes=[
            *batch_routes,
            *(Route(path, endpoints.create, methods=["POST"]) for path in _PATHS),
            Route(f"{_GEMINI_PATH}/{{name}}:generateContent", endpoints.create, methods=["POST"]),
            *(Route(path, endpoints.models, methods=["GET"]) for path in ("/v1/models", _GEMINI_PATH)),
            *(Route(f"{path}/{{name}}", endpoints.models, methods=["GET"]) for path in ("/v1/models", _GEMINI_PATH)),
        ],
        exception_handlers={
            404: endpoints.refuse_unknown,
            405: endpoints.refuse_unknown,
            ClientDisconnect: endpoints.handle_disconnect,
        },
    )
    app.router.redirect_slashes = False
    return app


def _find_wire(request: Request) -> Wire:
    path = request.url.path
    wire = _GEMINI if path.startswith(_GEMINI_PATH) else _PATHS.get(path)
    is_anthropic = "anthropic-version" in request.headers or "x-api-key" in request.headers
    return wire or (_MESSAGES if is_anthropic else _RESPONSES)


async def _read_request(wire: Wire, request: Request) -> HouseRequest:
    return HouseRequest.parse(wire.name, wire.base, request.url.path, request.headers, await request.body())


class _Protocol(H11Protocol):
    """Adds the connection to a request's state, for faults below the HTTP layer."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.app_state = {**self.app_state, TRANSPORT: transport}


class _Server(uvicorn.Server):
    """A server that reports when it is ready and stops as soon as it is idle, which uvicorn rarely checks."""

    def __init__(self, config: uvicorn.Config, closing: asyncio.Event) -> None:
        super().__init__(config)
        self.ready = threading.Event()
        self._closing = closing

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._loop = asyncio.get_running_loop()
        self.ready.set()

    def end(self) -> None:
        # The event loop may have ended.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._closing.set)

    async def main_loop(self) -> None:
        await self._closing.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        state = self.server_state
        for _ in range(_SHUTDOWN_ROUNDS):
            await asyncio.sleep(0)
        for server in self.servers:
            server.close()
        for connection in list(state.connections):
            connection.shutdown()
        with suppress(TimeoutError):
            async with asyncio.timeout(_SHUTDOWN_SECONDS):
                while state.connections or state.tasks:
                    await asyncio.sleep(_POLL_SECONDS)


class House:
    """The server as a context manager.

    Args:
        port: The port, or 0 for a free one.
        latency: Delay of each answer, in seconds.
        faults: Which calls fail and how.
        log: A file to which every call is appended.
        policy: The models, by default those of all games.
        context: The maximum number of tokens in a prompt.

    Raises UsageError if the port is in use, the log is not writable, or a number is out of range.
    """

    def __init__(
        self,
        port: int = 0,
        *,
        latency: float = 0.0,
        faults: Faults | None = None,
        log: Path | None = None,
        policy: Policy | None = None,
        context: int = _CONTEXT_TOKENS,
    ) -> None:
        if not (isfinite(latency) and latency >= 0):
            raise UsageError(f"latency must be a non-negative number of seconds, not {latency}")
        self.port = port
        self._latency = latency
        self._core = Core(policy or house_policy(find_games(Path())), faults or Faults(), context)
        self._file = log
        self._log = CallLog()

    @property
    def models(self) -> tuple[str, ...]:
        return tuple(self._core.policy.models)

    def base_url(self, api: Api) -> str:
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
        endpoints = _Endpoints(self._core, self._log, self._latency, closing)
        sender = find_batch_sender("batch")
        app = house_app(endpoints, sender.house_routes(self._core, self._log, _PATHS) if sender else ())
        self._server = _Server(plain_http(app, http=_Protocol, timeout_keep_alive=_KEEP_ALIVE), closing)
        self._thread = threading.Thread(target=self._serve, args=(listener,), name="dubito-house", daemon=True)
        self._thread.start()
        self._server.ready.wait()
        if not self._server.started:
            # The server's thread has printed the reason.
            raise RuntimeError("the built-in model server did not start")
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
            # Otherwise, __enter__ would wait forever for a server that did not start.
            self._server.ready.set()
