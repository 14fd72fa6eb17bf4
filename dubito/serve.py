"""What the servers of this project share: their socket, and how they speak HTTP."""

import os
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import uvicorn
from starlette.types import ASGIApp

from dubito.errors import UsageError, one_line

_BACKLOG: Final = 2048
_GRACE: Final = 2  # seconds that a request half sent may hold up the end


def listen(host: str, port: int) -> socket.socket:
    """A listening socket, its port known; raises UsageError, one sentence, where there can be none."""
    if not 0 <= port <= 65535:
        raise UsageError(f"port is a number from 0 to 65535, not {port}")
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        # The protocol is named because asyncio turns Nagle's algorithm off only where it is: else 40 ms an answer.
        listener = socket.socket(family, kind, socket.IPPROTO_TCP)
    except (OSError, UnicodeError) as error:
        raise UsageError(f"cannot listen on {one_line(host)}: {_reason(error)}") from None
    try:
        if os.name == "posix":  # elsewhere it would let two programs have one port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        where = f"{one_line(host)} port {port} ({_reason(error)})"
        raise UsageError(f"cannot listen on {where}: choose another port, or 0 for a free one") from None
    return listener


def _reason(error: Exception) -> str:
    return (getattr(error, "strerror", None) or str(error)).lower()


def plain_http(app: ASGIApp, **more: Any) -> uvicorn.Config:
    """Nothing but HTTP: no access log, no websockets, no lifespan; a bug's traceback still reaches standard error."""
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
    """Where a browser finds what listens there."""
    return f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}/"


def make_server(app: ASGIApp, serves: Callable[[], None] = lambda: None) -> uvicorn.Server:
    """A server for `run([listener])`.

    `serves` is called once it serves; from then on it can be ended cleanly.
    """
    return _Server(plain_http(app, http="h11", timeout_graceful_shutdown=_GRACE), serves)


def serve(app: ASGIApp, host: str, listener: socket.socket, announce: Callable[[str], None]) -> None:
    """Serve until Ctrl-C; `announce` is told the address once it serves."""
    with suppress(KeyboardInterrupt):
        make_server(app, lambda: announce(address(host, listener))).run([listener])


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, serves: Callable[[], None]) -> None:
        super().__init__(config)
        self._serves = serves

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._serves()
