"""A deadline for a whole HTTP call, kept on the socket, since a synchronous call cannot be cancelled.

An HTTP client's timeouts are per socket operation: a server that trickles a byte a second never meets one. Here every
connect, read and write gets no more time than the calling thread's deadline leaves.
"""

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from ssl import SSLContext
from time import monotonic
from typing import Any

import httpcore2
import httpx2


class Deadline:
    """The deadlines of the threads that use one client."""

    def __init__(self, client: httpx2.Client) -> None:
        """Bind the client's connections: all that it will make keep to the deadlines."""
        self._thread = threading.local()
        for transport in (client._transport, *client._mounts.values()):  # httpx2 has no public way to say it
            if isinstance(transport, httpx2.HTTPTransport):
                pool: Any = transport._pool
                pool._network_backend = _Backend(pool._network_backend, self)

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """What this thread does on the network in here has so many seconds."""
        self._thread.until = monotonic() + seconds
        try:
            yield
        finally:
            self._thread.until = None

    @property
    def passed(self) -> bool:
        """Whether the time of this thread's call is over; False outside of one."""
        until: float | None = getattr(self._thread, "until", None)
        return until is not None and monotonic() >= until

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

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._deadline.left(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._deadline.left(timeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        stream = self._stream.start_tls(ssl_context, server_hostname, self._deadline.left(timeout))
        return _Stream(stream, self._deadline)

    def get_extra_info(self, info: str) -> Any:
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
