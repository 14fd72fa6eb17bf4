"""What every request has to be, whatever it asks for: from this site's own pages, or from no page at all."""

from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Mount
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, ExceptionHandler, Message, Receive, Scope, Send

VIEWER: Final = "/viewer"  # where the report's static files are served
_MOST_BYTES: Final = 4096  # of a body
_DRAINED: Final = 1 << 20  # bytes read and thrown away, so that whoever sends them reads the refusal
_OTHER_HOST: Final = (
    "This server is not called what the request calls it (Host). If the name is yours, start `dubito web` with "
    "--allow-host NAME."
)
_SAFE: Final = {
    "content-security-policy": (
        "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"
    ),
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
}


def site_at(
    host: str, routes: Sequence[BaseRoute], handlers: Mapping[Any, ExceptionHandler], allowed: Sequence[str] = ()
) -> Starlette:
    """Build a site as it is served at that host, and by these other names: its routes, and the files of all pages."""
    files = [
        Mount("/static", StaticFiles(directory=Path(__file__).parent / "static")),
        Mount(VIEWER, StaticFiles(packages=[("dubito.report", "static")])),
    ]
    guard = Middleware(Guard, host=host, allowed=allowed)
    app = Starlette(routes=[*routes, *files], middleware=[guard], exception_handlers=handlers)
    app.router.redirect_slashes = False  # an address has one form
    return app


class Guard:
    """Refuses foreign requests before anything reads them, and puts the safety headers on every answer."""

    def __init__(self, app: ASGIApp, host: str, allowed: Sequence[str] = ()) -> None:
        self._app, self._host = app, host.casefold()
        self._allowed = frozenset(name.casefold() for name in allowed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return

        async def safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_SAFE)
            await send(message)

        refusal = self._refusal(scope["method"], Headers(scope=scope), scope["path"])
        if refusal is None:
            await self._app(scope, receive, safely)
            return
        status, sentence = refusal
        await JSONResponse({"error": sentence}, status)(scope, receive, safely)

    def _refusal(self, method: str, headers: Headers, path: str) -> tuple[int, str] | None:
        host = headers.get("host", "")
        if not self._is_mine(host):
            return 421, _OTHER_HOST
        acts = method not in ("GET", "HEAD")
        if not acts and not path.startswith("/api/"):
            return None  # a page holds no secret, and may be linked to
        site = headers.get("sec-fetch-site", "none")
        foreign = not all(self._is_own(origin.partition("://")[2], host) for origin in headers.getlist("origin"))
        if foreign or site not in ("same-origin", "none"):
            return 403, "Requests from other sites are not answered."
        if acts and headers.get("content-type", "").partition(";")[0].strip().casefold() != "application/json":
            return 415, "The body has to be application/json."
        return None

    def _is_own(self, origin: str, host: str) -> bool:
        return origin == host or origin.partition(":")[0].casefold() in self._allowed

    def _is_mine(self, host: str) -> bool:
        """Whether a Host is ours. A name that somebody points here (DNS rebinding) is not; an address cannot be."""
        try:
            parts = urlsplit(f"//{host}")
            name, _ = (parts.hostname or "").casefold(), parts.port  # a port that cannot be raises as well
        except ValueError:
            return False
        if parts.netloc != host or "@" in host:
            return False
        if name in ("localhost", self._host) or name in self._allowed:
            return True
        return _is_address(name) and (not is_loopback(self._host) or is_loopback(name))


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    return host == "localhost" or (_is_address(host) and ip_address(host).is_loopback)


async def body_of(request: Request) -> bytes:
    """The request's body; one that is too long is refused."""
    body, size = b"", 0
    async for chunk in request.stream():
        size += len(chunk)
        body = body + chunk if size <= _MOST_BYTES else b""
        if size > _DRAINED:
            break
    if size > _MOST_BYTES:
        raise HTTPException(413, f"The body is longer than {_MOST_BYTES:,} bytes.")
    return body
