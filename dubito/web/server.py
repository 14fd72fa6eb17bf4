"""The web table on its socket."""

import socket
from collections.abc import Callable
from typing import Final

import uvicorn
from starlette.types import ASGIApp

from dubito.http_server import plain_http

_GRACE: Final = 2  # seconds that a request half sent may hold up the end


def address(host: str, listener: socket.socket) -> str:
    """Where a browser finds what listens there."""
    return f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}/"


def make_server(app: ASGIApp, serves: Callable[[], None] = lambda: None) -> uvicorn.Server:
    """A server for `run([listener])`.

    `serves` is called once it serves; from then on it can be ended cleanly.
    """
    return _Server(plain_http(app, http="h11", timeout_graceful_shutdown=_GRACE), serves)


class _Server(uvicorn.Server):
    """Says when it serves."""

    def __init__(self, config: uvicorn.Config, serves: Callable[[], None]) -> None:
        super().__init__(config)
        self._serves = serves

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._serves()
