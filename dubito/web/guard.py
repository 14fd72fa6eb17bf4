"""Check that every request comes from one of this site's pages, or from no page, and can be read in only one way."""

import json
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

from dubito.llm.request import DuplicateKey, refuse_duplicate_keys
from dubito.web.visit import POLICY, VIEWER

_MAX_BODY_BYTES: Final = 4096  # size limit of a body
# Bytes to read and discard, so that the sender can read the refusal.
_MAX_DRAINED_BYTES: Final = 1 << 20
_OTHER_HOST: Final = (
    "This server does not recognise the host name in the request. If the name is yours, start the server with "
    "--allow-host NAME."
)
_SECURITY_HEADERS: Final = {
    "content-security-policy": f"{POLICY}; frame-ancestors 'none'",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
}
_ONCE: Final = ("authorization", "content-type", "host")  # headers that a proxy and this server must agree on


def build_site(
    host: str, routes: Sequence[BaseRoute], handlers: Mapping[Any, ExceptionHandler], allowed: Sequence[str] = ()
) -> Starlette:
    """Build a site with these routes and the static files of all pages.

    It accepts requests for `host` and the names in `allowed`.
    """
    files = [
        Mount("/static", StaticFiles(directory=Path(__file__).parent / "static")),
        Mount(f"/{VIEWER}", StaticFiles(packages=[("dubito.report", "static")])),
    ]
    guard = Middleware(Guard, host=host, allowed=allowed)
    app = Starlette(routes=[*routes, *files], middleware=[guard], exception_handlers=handlers)
    app.router.redirect_slashes = False  # so that each page has exactly one URL
    return app


class Guard:
    """Middleware that rejects requests from other sites and adds security headers."""

    def __init__(self, app: ASGIApp, host: str, allowed: Sequence[str] = ()) -> None:
        self._app, self._host = app, host.casefold()
        self._allowed = frozenset(name.casefold() for name in allowed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_SECURITY_HEADERS)
            await send(message)

        headers = Headers(scope=scope)
        if sentence := _find_ambiguity(headers, scope["http_version"]):
            # What follows on this connection may be a part of the request, or another one.
            response = JSONResponse({"error": sentence}, 400, {"Connection": "close"})
            await response(scope, receive, send_with_headers)
            return
        refusal = self._refusal(scope["method"], headers, scope["path"])
        if refusal is None:
            await self._app(scope, receive, send_with_headers)
            return
        status, sentence = refusal
        await JSONResponse({"error": sentence}, status)(scope, receive, send_with_headers)

    def _refusal(self, method: str, headers: Headers, path: str) -> tuple[int, str] | None:
        host = headers.get("host", "")
        if not self._is_own_host(host):
            return 421, _OTHER_HOST
        acts = method not in ("GET", "HEAD")
        if not acts and not path.startswith("/api/"):
            return None  # pages contain no secrets, and links to them are allowed
        site = headers.get("sec-fetch-site", "none")
        origins = [origin.partition("://")[2] for origin in headers.getlist("origin")]
        is_foreign = any(one != host and one.partition(":")[0].casefold() not in self._allowed for one in origins)
        if is_foreign or site not in ("same-origin", "none"):
            return 403, "Requests from other sites are not allowed."
        return None

    def _is_own_host(self, host: str) -> bool:
        """Return whether a Host header names this server.

        A domain name that an attacker points here (DNS rebinding) is refused. IP addresses cannot be forged this way.
        """
        try:
            parts = urlsplit(f"//{host}")
            name, _ = (parts.hostname or "").casefold(), parts.port  # an invalid port also raises ValueError
        except ValueError:
            return False
        if parts.netloc != host or "@" in host:
            return False
        if name in ("localhost", self._host) or name in self._allowed:
            return True
        return _is_address(name) and (not is_loopback(self._host) or is_loopback(name))


def _find_ambiguity(headers: Headers, version: str) -> str:
    """Return why a proxy could read another request in these bytes (request smuggling), or an empty string."""
    if "transfer-encoding" in headers and ("content-length" in headers or version == "1.0"):
        return "The length of the body is ambiguous. Send only Content-Length or only Transfer-Encoding."
    twice = next((name for name in _ONCE if len(headers.getlist(name)) > 1), None)
    return f"The header {twice.title()} is given twice. Send it once." if twice else ""


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    return host == "localhost" or (_is_address(host) and ip_address(host).is_loopback)


async def read_body(request: Request) -> bytes:
    """Return the request's body. Raises HTTPException if it is too long or not JSON, and DuplicateKey."""
    if request.headers.get("content-type", "").partition(";")[0].strip().casefold() != "application/json":
        raise HTTPException(415, "The body must be application/json.")
    body, size = b"", 0
    async for chunk in request.stream():
        size += len(chunk)
        body = body + chunk if size <= _MAX_BODY_BYTES else b""
        if size > _MAX_DRAINED_BYTES:
            break
    if size > _MAX_BODY_BYTES:
        raise HTTPException(413, f"The body is longer than {_MAX_BODY_BYTES:,} bytes.")
    try:
        json.loads(body, object_pairs_hook=refuse_duplicate_keys)
    except DuplicateKey:
        raise
    except (ValueError, RecursionError):
        pass  # the caller's model explains what is wrong
    return body
