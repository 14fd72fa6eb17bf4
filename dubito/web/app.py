"""The pages of the web table, and the requests that they make."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from pydantic import TypeAdapter, ValidationError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from dubito.errors import DubitoError, UsageError
from dubito.human import GOOD_BOTS, as_sentence
from dubito.record import first_fault, load
from dubito.rule_text import objective, rule_sentences, scoring
from dubito.rules import MAX_JOKERS, MAX_PLAYERS, MIN_PLAYERS, Rules, check_players
from dubito.web.frames import opened
from dubito.web.guard import Guard, body_of
from dubito.web.tables import LIFE, Move, NewTable, Tables

_HERE: Final = Path(__file__).parent
_COOKIE: Final = "dubito"
_NEW_TABLE: Final = TypeAdapter(NewTable)
_MOVE: Final = TypeAdapter(Move)
T = TypeVar("T")


def make_app(tables: Tables, host: str) -> Starlette:
    """The whole site, as it is served at that host."""
    pages = _Pages(tables)
    return Starlette(
        routes=[
            Route("/", pages.lobby),
            Route("/table", pages.table),
            Route("/rules", pages.rules),
            Route("/games", pages.games),
            Route("/games/{name}", pages.game),
            Route("/api/table", pages.open, methods=["POST"]),
            Route("/api/table", pages.view),
            Route("/api/moves", pages.move, methods=["POST"]),
            Route("/api/games/{name}", pages.record),
            Mount("/static", StaticFiles(directory=_HERE / "static")),
        ],
        middleware=[Middleware(Guard, host=host)],
        exception_handlers={
            HTTPException: pages.refused,
            DubitoError: pages.refused,
            ClientDisconnect: pages.left,
            Exception: pages.broken,
        },
    )


@dataclass(frozen=True, slots=True)
class _Pages:
    """One method a route. Whatever plays or touches the disk runs in a thread."""

    tables: Tables

    def lobby(self, request: Request) -> Response:
        return _page(
            "lobby",
            bots=self.tables.bots(),
            good=GOOD_BOTS,
            sizes=range(MIN_PLAYERS, MAX_PLAYERS + 1),
            jokers=range(MAX_JOKERS, -1, -1),
            goes_on=self.tables.has(request.cookies.get(_COOKIE)),
        )

    def table(self, request: Request) -> Response:
        return _page("table")

    def rules(self, request: Request) -> Response:
        players = _number(request, "players", 4)
        check_players(players)
        win_rule = request.query_params.get("win_rule", "immediate")
        rules = Rules(_number(request, "jokers", 2), win_rule)  # type: ignore[arg-type]  # it checks that itself
        told = [objective(players), *rule_sentences(rules, players), scoring()]
        return _page("rules", told=told, players=players, rules=rules)

    def games(self, request: Request) -> Response:
        return _page("games", names=self._saved())

    def game(self, request: Request) -> Response:
        return _page("watch", name=self._known(request).stem)

    def record(self, request: Request) -> Response:
        try:
            text = self._known(request).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            raise HTTPException(400, "This file cannot be read.") from None
        return JSONResponse(opened(load(text)))

    def view(self, request: Request) -> Response:
        since = _number(request, "since", 0)
        return JSONResponse(self.tables.view(request.cookies.get(_COOKIE), max(0, since)))

    async def open(self, request: Request) -> Response:
        asked = _read(_NEW_TABLE, await body_of(request))
        secret, view = await run_in_threadpool(self.tables.open, asked, request.cookies.get(_COOKIE))
        response = JSONResponse(view, 201)
        response.set_cookie(_COOKIE, secret, max_age=LIFE, httponly=True, samesite="strict")
        return response

    async def move(self, request: Request) -> Response:
        move = _read(_MOVE, await body_of(request))
        return JSONResponse(await run_in_threadpool(self.tables.move, request.cookies.get(_COOKIE), move))

    def refused(self, request: Request, error: Exception) -> Response:
        """One sentence: as JSON to a script, as a page to a reader."""
        status, headers = 400, None
        sentence = as_sentence(str(error))
        if isinstance(error, HTTPException):
            status, headers = error.status_code, error.headers
            sentence = as_sentence(error.detail)
        return _said(request, status, sentence, headers)

    def left(self, request: Request, error: Exception) -> Response:
        """The client went before its request was whole; nobody reads this."""
        return Response(status_code=499)

    def broken(self, request: Request, error: Exception) -> Response:
        """A bug of ours; its traceback goes to standard error."""
        return _said(request, 500, "Something is broken here: the terminal that serves this page says what.", None)

    def _saved(self) -> list[str]:
        """Finished games, the newest first: their names begin with the time."""
        return sorted((path.stem for path in self.tables.folder.glob("*.json")), reverse=True)

    def _known(self, request: Request) -> Path:
        """The file of the game that is named; only what a listing of the folder gives."""
        name = request.path_params["name"]
        if name not in self._saved():
            raise HTTPException(404, "There is no such game.")
        return self.tables.folder / f"{name}.json"


_ENVIRONMENT: Final = Environment(
    loader=FileSystemLoader(_HERE / "pages"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
)


def _page(template: str, status: int = 200, **values: Any) -> Response:
    return HTMLResponse(_ENVIRONMENT.get_template(f"{template}.html").render(values), status)


def _said(request: Request, status: int, sentence: str, headers: Any) -> Response:
    if request.url.path.startswith("/api/"):
        return JSONResponse({"error": sentence}, status, headers)
    return _page("refused", status, sentence=sentence)


def _read(kind: TypeAdapter[T], body: bytes) -> T:
    try:
        return kind.validate_json(body)
    except ValidationError as error:
        raise UsageError(f"this request cannot be read: {first_fault(error)}") from None


def _number(request: Request, name: str, default: int) -> int:
    text = request.query_params.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) < 6):
        raise UsageError(f"{name} is a whole number")
    return int(text)
