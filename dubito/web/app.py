"""The server of the pages for playing."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from os import fsencode
from urllib.parse import unquote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route as Address

from dubito.errors import one_line
from dubito.llm.request import DuplicateKey
from dubito.show.person import MAX_NAME
from dubito.web.guard import build_site, read_body
from dubito.web.site import PlaySite, Route, refuse
from dubito.web.tables import BROKEN, LIFE, Tables
from dubito.web.visit import PageAnswer, Visit


def make_app(tables: Tables, host: str, allowed: Sequence[str] = ()) -> Starlette:
    """Build the site, which accepts requests for `host` and the names in `allowed`."""
    # Browsers send a host's cookies to all of its ports. A cookie name per folder keeps servers separate.
    folder = sha256(fsencode(tables.folder.resolve())).hexdigest()[:8]
    server = _Server(PlaySite(tables), f"dubito-{folder}")
    return build_site(
        host,
        [Address(one.path, partial(server.serve, one), methods=[one.method]) for one in server.site.routes],
        {
            HTTPException: server.handle_refusal,
            DuplicateKey: server.handle_refusal,
            ClientDisconnect: server.handle_disconnect,
            Exception: server.handle_crash,
        },
        allowed,
    )


@dataclass(frozen=True, slots=True)
class _Server:
    """Carries visits to the site. Each is answered in a thread."""

    site: PlaySite
    cookie: str  # name of the cookie

    async def serve(self, route: Route, request: Request) -> Response:
        visit = Visit(
            _path(request),
            request.query_params,
            request.path_params.get("name", ""),
            await read_body(request) if route.method == "POST" else b"",
            request.cookies.get(self.cookie),
            # The name that the person entered in the lobby is stored in a cookie.
            one_line(unquote(request.cookies.get("dubito-name", "")), MAX_NAME).strip(),
        )
        return self._respond(await run_in_threadpool(self.site.answer, route, visit))

    def _respond(self, answer: PageAnswer) -> Response:
        response = Response(answer.text, answer.status, answer.headers, answer.kind)
        if answer.secret is not None:
            response.set_cookie(self.cookie, answer.secret, max_age=LIFE, httponly=True, samesite="strict")
        return response

    def handle_refusal(self, request: Request, error: Exception) -> Response:
        if isinstance(error, HTTPException):
            static = error.status_code == 405 and error.headers is None
            headers = {"Allow": "GET, HEAD"} if static else error.headers
            return self._respond(refuse(_path(request), error.status_code, error.detail, headers))
        return self._respond(refuse(_path(request), 400, f"invalid request: {error}"))

    def handle_disconnect(self, request: Request, error: Exception) -> Response:
        return Response(status_code=499)

    def handle_crash(self, request: Request, error: Exception) -> Response:
        return self._respond(refuse(_path(request), 500, BROKEN))


def _path(request: Request) -> str:
    """Return the path as the browser sees it, with its escapes, which relative addresses start from."""
    raw: bytes = request.scope["raw_path"]
    return raw.decode("ascii")
