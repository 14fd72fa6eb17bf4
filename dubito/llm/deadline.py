"""A deadline for a whole HTTP call, kept on the socket, since a synchronous call cannot be cancelled.

An HTTP client's timeouts are per socket operation: a server that trickles a byte a second never meets one. Here every
connect, read and write gets no more time than the calling thread's deadline leaves.

Servers close idle connections, and a call that is sent just then is lost. So a connection is used again only if it
was idle for less than servers are known to wait. One that turns out closed all the same can be told from a lost
answer: the server's machine answers a request that nobody reads with a reset, and one that was read without.
"""

import errno
import select
import socket
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from ssl import SSLContext
from time import monotonic
from typing import Any, Final

import httpcore2
import httpx2

_IDLE: Final = 4.0  # seconds; common servers wait 5 and more
_RESET: Final = 200  # milliseconds in which such a reset comes


class Deadline:
    """The deadlines of the threads that use one client, and how long its connections may idle."""

    def __init__(self, client: httpx2.Client) -> None:
        """Bind the client's connections: all that it will make keep to the deadlines."""
        self._thread = threading.local()
        self.idle = _IDLE
        self._worked = 0.0
        for transport in (client._transport, *client._mounts.values()):  # httpx2 has no public way to say it
            if isinstance(transport, httpx2.HTTPTransport):
                pool: Any = transport._pool
                pool._network_backend = _Backend(pool._network_backend, self)

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Give this thread so many seconds for what it does on the network within."""
        self._thread.until = monotonic() + seconds
        self._thread.stale = False
        try:
            yield
        finally:
            self._thread.until = None

    @property
    def passed(self) -> bool:
        """Whether the time of this thread's call is over; False outside of one."""
        until: float | None = getattr(self._thread, "until", None)
        return until is not None and monotonic() >= until

    @property
    def stale(self) -> bool:
        """Whether the last call of this thread was lost to a connection that its server had closed while it idled."""
        found, self._thread.stale = getattr(self._thread, "stale", False), False
        return bool(found)

    def lost_after(self, idle: float, stale: bool) -> None:
        """A connection ended without an answer after it idled for so many seconds; `stale` if surely before that."""
        self._thread.stale = stale
        if stale or idle > self._worked:
            self.idle_below(idle)

    def worked_after(self, idle: float) -> None:
        """A connection that idled for so many seconds brought an answer."""
        self._worked = max(self._worked, idle)

    def idle_below(self, seconds: float) -> None:
        """The server closes connections that idle for so many seconds: keep well below."""
        self.idle = min(self.idle, seconds / 2)

    def left(self, timeout: float | None) -> float | None:
        """The seconds an operation may take; raises ReadTimeout when there are none."""
        until = getattr(self._thread, "until", None)
        if until is None:
            return timeout
        left: float = until - monotonic()
        if left <= 0:
            raise httpcore2.ReadTimeout("the deadline has passed")
        return left if timeout is None else min(left, timeout)


class _Stream(httpcore2.NetworkStream):
    def __init__(self, stream: httpcore2.NetworkStream, deadline: Deadline) -> None:
        self._stream, self._deadline = stream, deadline
        self._read = 0.0  # when bytes came last; 0: never
        self._idled: float | None = None  # seconds before a request that has no byte of an answer yet
        self._unsent = False  # the end of a request

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        try:
            data = self._stream.read(max_bytes, self._deadline.left(timeout))
        except httpcore2.ReadError:
            self._lost(self._unsent)
            raise
        if not data:
            self._lost(self._idled is not None and (self._unsent or self._was_reset()))
        elif self._idled is not None:
            self._deadline.worked_after(self._idled)
        self._read, self._idled = monotonic(), None
        return data

    def _lost(self, stale: bool) -> None:
        """No byte came. Raises ConnectError if the connection had served before, and was closed before it was asked."""
        if self._idled is not None:
            self._deadline.lost_after(self._idled, stale)
            if stale:
                raise httpcore2.ConnectError("the server had closed the connection before it was asked") from None

    def _was_reset(self) -> bool:
        """Whether a reset came after the server had closed the connection; False on systems that do not tell."""
        connection = self._stream.get_extra_info("socket")
        if not isinstance(connection, socket.socket) or not hasattr(select, "poll"):
            return False
        poll = select.poll()
        poll.register(connection, 0)  # only for errors
        poll.poll(_RESET)
        return connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == errno.EPIPE

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        if self._read and self._idled is None:
            self._idled = monotonic() - self._read
        try:
            self._stream.write(buffer, self._deadline.left(timeout))
        except httpcore2.WriteError:
            self._unsent = True
            raise

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        stream = self._stream.start_tls(ssl_context, server_hostname, self._deadline.left(timeout))
        return _Stream(stream, self._deadline)

    def get_extra_info(self, info: str) -> Any:
        if info == "is_readable" and self._read and monotonic() - self._read > self._deadline.idle:
            return True  # so httpcore2, which asks this only of idle connections, takes it as ended
        return self._stream.get_extra_info(info)


class _Backend(httpcore2.NetworkBackend):
    def __init__(self, backend: httpcore2.NetworkBackend, deadline: Deadline) -> None:
        self._backend, self._deadline = backend, deadline

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        stream = self._backend.connect_tcp(host, port, self._deadline.left(timeout), local_address, socket_options)
        return _Stream(stream, self._deadline)
