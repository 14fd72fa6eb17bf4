"""A client's connections: they enforce a deadline for whole calls, and avoid connections that the server has closed.

A synchronous call cannot be cancelled. An HTTP client's timeouts apply to single socket operations, so a server that
sends one byte per second never triggers one. Here, every connect, read and write gets only the time left until the
thread's deadline.

Servers close idle connections, and a call that is sent at that moment is lost. Connections are therefore reused only if
they were idle for less time than servers are known to wait. If one turns out to be closed anyway, a TCP reset proves
that the request was never read, since a machine sends a reset only for unread data.
"""

import errno
import select
import socket
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from ssl import SSLContext
from time import monotonic
from typing import Any, Final

import httpcore2
import httpx2

_MAX_IDLE_SECONDS: Final = 4.0  # seconds; common servers wait 5 or more
_RESET_MILLISECONDS: Final = 200  # seconds within which a reset arrives


class _Thread(threading.local):
    until: float | None = None  # the deadline of the operation in progress
    was_stale = False  # whether the last call used a closed connection


class Deadline:
    """The deadlines of the threads that use a client, and how long its connections can stay idle."""

    def __init__(self, client: httpx2.Client) -> None:
        """Replace the client's way of opening connections."""
        self._thread = _Thread()
        self.max_idle = _MAX_IDLE_SECONDS
        self._longest_survived = 0.0
        self._connections, self._lock, self._refuses = set["_Connection"](), threading.Lock(), False
        # httpx2 has no public way to replace the backend.
        for transport in (client._transport, *client._mounts.values()):
            if isinstance(transport, httpx2.HTTPTransport):
                pool: Any = transport._pool
                pool._network_backend = _Backend(pool._network_backend, self)

    def keep_open(self, connection: "_Connection") -> None:
        """Keep track of an opened connection. If the client is already closed, raise ConnectError."""
        with self._lock:
            if not self._refuses:
                self._connections.add(connection)
                return
        connection.close()
        raise httpcore2.ConnectError("the client was closed")

    def forget(self, connection: "_Connection") -> None:
        with self._lock:
            self._connections.discard(connection)

    def refuse_connections(self) -> None:
        """Close all open connections and any opened later, which httpcore2's pool would miss."""
        with self._lock:
            self._refuses, connections = True, list(self._connections)
        for connection in connections:
            connection.close()

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Set a deadline for this thread's network operations inside the context."""
        self._thread.until = monotonic() + seconds
        self._thread.was_stale = False
        try:
            yield
        finally:
            self._thread.until = None

    @property
    def has_passed(self) -> bool:
        until = self._thread.until
        return until is not None and monotonic() >= until

    def pop_stale(self) -> bool:
        """Return whether this thread's last call used a closed connection, and clear the flag."""
        was_stale, self._thread.was_stale = self._thread.was_stale, False
        return was_stale

    def record_lost(self, idle: float, is_stale: bool) -> None:
        """Record that a connection failed after being idle for this long."""
        self._thread.was_stale = is_stale
        if is_stale or idle > self._longest_survived:
            self.limit_idle(idle)

    def record_survived(self, idle: float) -> None:
        self._longest_survived = max(self._longest_survived, idle)

    def limit_idle(self, seconds: float) -> None:
        """Reuse connections only if they have been idle for less than half of this time."""
        self.max_idle = min(self.max_idle, seconds / 2)

    def remaining_seconds(self, timeout: float | None) -> float | None:
        """Return how long an operation can take. Raises ReadTimeout if no time is left."""
        until = self._thread.until
        if until is None:
            return timeout
        left = until - monotonic()
        if left <= 0:
            raise httpcore2.ReadTimeout("the deadline has passed")
        return left if timeout is None else min(left, timeout)


class _Connection(httpcore2.NetworkStream):
    def __init__(self, stream: httpcore2.NetworkStream, deadline: Deadline) -> None:
        self._stream, self._deadline = stream, deadline
        # When the last bytes were received, or 0.
        self._last_read = 0.0
        # Seconds for which the connection was idle before this request; None once the answer has begun.
        self._idle_before: float | None = None
        self._write_failed = False
        deadline.keep_open(self)

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        try:
            data = self._stream.read(max_bytes, self._deadline.remaining_seconds(timeout))
        except httpcore2.ReadError:
            self._end(self._write_failed)
            raise
        if not data:
            self._end(self._idle_before is not None and (self._write_failed or self._was_reset()))
        elif self._idle_before is not None:
            self._deadline.record_survived(self._idle_before)
        self._last_read, self._idle_before = monotonic(), None
        return data

    def _end(self, is_stale: bool) -> None:
        """Record a connection without an answer.

        Raises ConnectError if the server closed it before the request was sent.
        """
        if self._idle_before is not None:
            self._deadline.record_lost(self._idle_before, is_stale)
            if is_stale:
                raise httpcore2.ConnectError("the server closed the connection before the request was sent") from None

    def _was_reset(self) -> bool:
        """Return whether a reset arrived after the server closed; False on systems that do not report it."""
        connection = self._stream.get_extra_info("socket")
        if not isinstance(connection, socket.socket) or not hasattr(select, "poll"):
            return False
        poll = select.poll()
        # Without events, poll reports only errors.
        poll.register(connection, 0)
        poll.poll(_RESET_MILLISECONDS)
        return connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == errno.EPIPE

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        if self._last_read and self._idle_before is None:
            self._idle_before = monotonic() - self._last_read
        try:
            self._stream.write(buffer, self._deadline.remaining_seconds(timeout))
        except httpcore2.WriteError:
            self._write_failed = True
            raise

    def close(self) -> None:
        self._deadline.forget(self)
        self._stream.close()

    def start_tls(
        self, ssl_context: SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        stream = self._stream.start_tls(ssl_context, server_hostname, self._deadline.remaining_seconds(timeout))
        # The encrypted stream owns the socket now.
        self._deadline.forget(self)
        return _Connection(stream, self._deadline)

    def get_extra_info(self, info: str) -> Any:
        # httpcore2 checks only idle connections, and drops those with unread data.
        if info == "is_readable" and self._last_read and monotonic() - self._last_read > self._deadline.max_idle:
            return True
        return self._stream.get_extra_info(info)


@dataclass(eq=False)
class _Backend(httpcore2.NetworkBackend):
    backend: httpcore2.NetworkBackend
    deadline: Deadline

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        timeout = self.deadline.remaining_seconds(timeout)
        stream = self.backend.connect_tcp(host, port, timeout, local_address, socket_options)
        return _Connection(stream, self.deadline)
