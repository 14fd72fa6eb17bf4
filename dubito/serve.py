"""Code shared by Dubito's servers: sockets, the HTTP protocol, and time limits for visitors."""

import asyncio
import errno
import os
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import Any, Final

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from dubito.errors import UsageError, one_line

DEFAULT_PORT: Final = 8765
_BACKLOG: Final = 2048
_ACCEPTED_AT_ONCE: Final = 16  # connections; asyncio reports each one that finds no descriptor
_REQUEST_SECONDS: Final = 10.0  # seconds for a request to arrive completely
# Key of a request's scope, set by an app that recognises the visitor. Its connection keeps its slot.
KNOWN_VISITOR: Final = "known_visitor"
MAX_CONNECTIONS: Final = 500
_SPARE_DESCRIPTORS: Final = 64  # descriptors reserved for files and models
_BUSY: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nConnection: close\r\n"
    b"Content-Type: text/plain\r\nContent-Length: 33\r\n\r\nToo many visitors: try again soon"
)
_GRACE: Final = 2  # seconds by which an incomplete request can delay the shutdown


def listen(host: str, port: int | None) -> socket.socket:
    """Return a socket that listens on a port (0 for any free port). Raises UsageError on failure.

    If the port is None, use `DEFAULT_PORT`, or any free port if another program is using it.
    """
    wanted = DEFAULT_PORT if port is None else port
    if not 0 <= wanted <= 65535:
        raise UsageError(f"port must be a number from 0 to 65535, not {wanted}")
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, wanted, type=socket.SOCK_STREAM)[0]
        # If the protocol is set, asyncio turns off Nagle's algorithm, which costs 40 ms per answer.
        listener = socket.socket(family, kind, socket.IPPROTO_TCP)
    except (OSError, UnicodeError) as error:
        raise UsageError(f"cannot listen on {one_line(host)}: {_reason(error)}") from None
    try:
        if os.name == "posix":  # on Windows, this would let two programs share a port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        if port is None and error.errno == errno.EADDRINUSE:
            return listen(host, 0)
        where = f"{one_line(host)} port {wanted} ({_reason(error)})"
        raise UsageError(f"cannot listen on {where}: choose another port, or 0 for a free one") from None
    return listener


def _reason(error: Exception) -> str:
    return ((isinstance(error, OSError) and error.strerror) or str(error)).lower()


def plain_http(app: ASGIApp, **more: Any) -> uvicorn.Config:
    """Configure a server for plain HTTP: no access log, websockets or lifespan. Tracebacks go to standard error."""
    return uvicorn.Config(
        app,
        log_config=None,
        log_level="error",
        access_log=False,
        lifespan="off",
        ws="none",
        proxy_headers=False,
        server_header=False,
        date_header=False,
        **more,
    )


def address(host: str, listener: socket.socket) -> str:
    return f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}/"


def make_server(
    app: ASGIApp, serves: Callable[[], None] = lambda: None, *, spares_known: bool = False
) -> uvicorn.Server:
    """Return a server for `run([listener])`.

    `serves` is called once the server accepts requests. From then on, the server can be stopped cleanly. With
    `spares_known`, visitors whom the app marks (`KNOWN_VISITOR`) are served even if strangers use all connections.
    """
    protocol = _KnownFirstProtocol if spares_known else _Protocol
    config = plain_http(app, http=protocol, timeout_graceful_shutdown=_GRACE, backlog=_ACCEPTED_AT_ONCE)
    return _Server(config, serves)


def serve(app: ASGIApp, host: str, listener: socket.socket, announce: Callable[[str], None]) -> None:
    with suppress(KeyboardInterrupt):
        make_server(app, lambda: announce(address(host, listener))).run([listener])


@contextmanager
def serve_in_thread(app: ASGIApp, listener: socket.socket) -> Iterator[None]:
    """Serve requests in a thread until the context ends. The app marks known visitors."""
    started = Event()
    server = make_server(app, started.set, spares_known=True)
    thread = Thread(target=server.run, args=([listener],), name="server", daemon=True)
    thread.start()
    started.wait()
    try:
        yield
    finally:
        server.should_exit = True
        thread.join()


def max_connections() -> int:
    """Return how many connections can be open at once, given how many files this process can open."""
    if sys.platform == "win32":
        return MAX_CONNECTIONS
    import resource

    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    bounded = limit != resource.RLIM_INFINITY
    return max(1, min(MAX_CONNECTIONS, limit - _SPARE_DESCRIPTORS)) if bounded else MAX_CONNECTIONS


class _Protocol(H11Protocol):
    """HTTP for visitors who may be slow, disconnect halfway or exceed the connection limit."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > max_connections() and not self._make_room():
            transport.write(_BUSY)
            transport.close()
        else:
            self._timer = self.loop.call_later(_REQUEST_SECONDS, self._end_if_slow)

    def _make_room(self) -> bool:
        """Return whether this connection can have the slot of another one."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if self._timer is None:
            self._timer = self.loop.call_later(_REQUEST_SECONDS, self._end_if_slow)
        super().data_received(data)

    def _end_if_slow(self) -> None:
        """End the connection unless a whole request has arrived, without part of another one."""
        self._timer = None
        idle = self.cycle is not None and self.cycle.response_complete and not self.conn.trailing_data[0]
        if not idle and (self.cycle is None or self.cycle.response_complete or self.cycle.more_body):
            self.transport.abort()


class _KnownFirstProtocol(_Protocol):
    """HTTP for visitors who log in, whom strangers must not keep out by opening connections.

    A new connection above the limit gets the slot of the oldest stranger's one that has nothing to do.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._made = self.loop.time()
        super().connection_made(transport)

    def _make_room(self) -> bool:
        all_others = (one for one in self.connections if isinstance(one, _KnownFirstProtocol) and one is not self)
        others = [one for one in all_others if one._is_idle_stranger()]
        if others:
            oldest = min(others, key=lambda one: one._made)
            # The loop forgets the connection later, perhaps after it has accepted more of them.
            self.connections.discard(oldest)
            oldest.transport.abort()
        return bool(others)

    def _is_idle_stranger(self) -> bool:
        """Return whether this connection waits for a stranger to send a request, or to read the response."""
        if self.transport.is_closing() or (self.scope is not None and KNOWN_VISITOR in self.scope):
            return False
        is_busy = self.cycle is not None and not self.cycle.response_complete and not self.cycle.more_body
        return not is_busy or self.transport.get_write_buffer_size() > 0


def _report_loop_fault(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    error = context.get("exception")
    if not (isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE)):
        loop.default_exception_handler(context)


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, serves: Callable[[], None]) -> None:
        super().__init__(config)
        self._serves = serves

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        asyncio.get_running_loop().set_exception_handler(_report_loop_fault)
        await super().startup(sockets)
        for listener in sockets or []:
            # asyncio has shortened the queue to the number of connections that it accepts at once.
            listener.listen(_BACKLOG)
        self._serves()
