"""The web app for playing: its pages, its API, and the saved games in its folder."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from hashlib import sha256
from os import fsencode
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar
from urllib.parse import unquote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from pydantic import Field, TypeAdapter, ValidationError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from dubito.errors import DubitoError, UsageError, join_names, one_line
from dubito.files import describe_fault
from dubito.game import Game, PlayerKind
from dubito.game.words import Option, choose_picture
from dubito.llm.request import DuplicateKey
from dubito.report.render import Renderer, Site, Viewer, escape_text, escape_values
from dubito.report.share import page_of_file, shared_file, shared_page
from dubito.show.opponents import Opponent, as_sentence
from dubito.show.person import MAX_NAME, SEEDS
from dubito.web.guard import VIEWER, build_site, read_body
from dubito.web.saved import Summaries, Summary, deal_time, saved_files
from dubito.web.tables import BROKEN, LIFE, Move, NewTable, Tables

PAGES: Final = (("/", "Play"), ("/games", "Saved games"), ("/rules", "Rules"))
_SITE: Final = Site("", PAGES, f"{VIEWER}/", "/static/icon.svg", served=True)


@dataclass(frozen=True, slots=True)
class SavedLine:
    name: str
    when: str  # time of the deal in this machine's time zone
    summary: Summary


def saved_games(summaries: Summaries) -> list[SavedLine]:
    dealt = sorted(((deal_time(name, one), name, one) for name, one in summaries().items()), reverse=True)
    return [SavedLine(name, f"{at.day} {at:%b %Y, %H:%M}", one) for at, name, one in dealt]


def page(folder: Path, name: str) -> str:
    path = _saved(folder, name)
    return _viewer()(page_of_file(path, f"/games/{name}", f"{path.relative_to(folder.parent)}"))


def _saved(folder: Path, name: str) -> Path:
    path = saved_files(folder).get(name)
    if path is None:
        raise HTTPException(404, "Game not found.")
    return path


@cache
def _viewer() -> Viewer:
    return Viewer(Renderer(_SITE), "/games")


_HERE: Final = Path(__file__).parent
_NEW_TABLE: Final = TypeAdapter(NewTable)
_MOVE: Final = TypeAdapter(Move)
_EMPTY_BODY: Final = TypeAdapter(Annotated[dict[str, Any], Field(max_length=0)])
T = TypeVar("T")


def make_app(tables: Tables, host: str, allowed: Sequence[str] = ()) -> Starlette:
    """Build the site, which accepts requests for `host` and the names in `allowed`."""
    # Browsers send a host's cookies to all of its ports. A cookie name per folder keeps servers separate.
    folder = sha256(fsencode(tables.folder.resolve())).hexdigest()[:8]
    pages = _Pages(tables, f"dubito-{folder}")
    return build_site(
        host,
        [
            Route("/", pages.lobby),
            Route("/table", pages.table),
            Route("/rules", pages.rules),
            Route("/games", pages.games),
            Route("/games/{name}", pages.game),
            Route("/games/{name}/share", pages.share),
            Route("/api/table", pages.open, methods=["POST"]),
            Route("/api/table", pages.view),
            Route("/api/moves", pages.move, methods=["POST"]),
            Route("/api/again", pages.again, methods=["POST"]),
            Route("/api/rematch", pages.rematch, methods=["POST"]),
        ],
        {
            HTTPException: pages.handle_refusal,
            DubitoError: pages.handle_refusal,
            DuplicateKey: pages.handle_refusal,
            ClientDisconnect: pages.handle_disconnect,
            Exception: pages.handle_crash,
        },
        allowed,
    )


@dataclass(frozen=True, slots=True)
class _Tile:
    """A game as shown in the lobby."""

    name: str
    display: str
    title: str
    lead: str
    levels: dict[str, list[str]]  # opponents by level, for a game that starts with one click
    faces: list[list[str]]


@dataclass(frozen=True, slots=True)
class _Pages:
    """The route handlers. Those that play or use the disk run in a thread."""

    tables: Tables
    cookie: str  # name of the cookie

    def _secret(self, request: Request) -> str | None:
        return request.cookies.get(self.cookie)

    def lobby(self, request: Request) -> Response:
        game, unfinished = self._game(request), self.tables.unfinished(self._secret(request))
        words, choices, (least, most) = game.words, self.tables.choices(game.name), self._sizes(game)
        bots = [choice.name for choice in choices if not choice.asks]
        return _page(
            "lobby",
            game=game,
            person=_person(request),
            hero=(hero := self._tile(game)),
            usual_level=next(level for level in ("models", "medium", *hero.levels) if level in hero.levels),
            tiles=[self._tile(one) for one in self.tables.games if one.name != game.name],
            more=self.tables.more_games,
            lead=words.LEAD,
            groups=_groups(choices),
            hard=words.HARD,
            first=[*(choice.name for choice in choices if choice.asks), *words.default_bots(bots)],
            sizes=range(least, most + 1),
            usual=min(max(4, least), most),
            options=self.tables.options(game),
            digits=len(str(SEEDS - 1)),
            goes_on=unfinished is not None,
            invited="seed" in request.query_params,  # lobby.js then sets the focus
            unfinished="" if unfinished is None else self.tables.game(unfinished.game).words.TITLE,
            rivals="" if unfinished is None else join_names(unfinished.bots),
            fared=self.tables.summaries.records_against(game.name),
        )

    def _sizes(self, game: Game) -> tuple[int, int]:
        return game.seat_range(self.tables.rules(game, {}))

    def _tile(self, game: Game) -> "_Tile":
        words, choices, (least, most) = game.words, self.tables.choices(game.name), self._sizes(game)
        others = min(max(4, least), most) - 1
        models, names = ([choice.name for choice in choices if bool(choice.asks) is asks] for asks in (True, False))
        levels = words.strengths([choice.name for choice in choices]) or [("medium", words.default_bots(names))]
        levels = [("models", models), *levels] if models else levels
        bots = {level: [names[place % len(names)] for place in range(others)] for level, names in levels}
        return _Tile(game.name, words.TITLE, words.SLOGAN or words.TITLE, words.LEAD, bots, choose_picture(words))

    def table(self, request: Request) -> Response:
        return _page("table", person=_person(request))

    def rules(self, request: Request) -> Response:
        game = self._game(request)
        (least, most), options = self._sizes(game), self.tables.options(game)
        players = _number(request, "players", min(max(4, least), most))
        if not least <= players <= most:
            raise UsageError(f"players: {game.name} needs {least} to {most} players, not {players}")
        rules = self.tables.rules(game, _rules(request, options))
        words = game.words
        return _page(
            "rules",
            games=self.tables.games,
            game=game,
            told=words.rules(rules, players),
            in_short=words.summarize_rules(rules),
            sizes=range(least, most + 1),
            players=players,
            rules=rules.model_dump(),
            options=options,
        )

    def _game(self, request: Request) -> Game:
        return self.tables.game(request.query_params.get("game", self.tables.games[0].name))

    def games(self, request: Request) -> Response:
        return _page(
            "games", games=saved_games(self.tables.summaries), zone=datetime.now().astimezone().tzname() or "local time"
        )

    def game(self, request: Request) -> Response:
        return HTMLResponse(page(self.tables.folder, request.path_params["name"]))

    def share(self, request: Request) -> Response:
        text = shared_page(shared_file(_saved(self.tables.folder, request.path_params["name"]), _person(request)))
        return HTMLResponse(text, headers={"Content-Disposition": 'attachment; filename="game.html"'})

    def view(self, request: Request) -> Response:
        since = _number(request, "since", 0)
        return JSONResponse(escape_values(self.tables.view(self._secret(request), max(0, since))))

    async def open(self, request: Request) -> Response:
        asked = _checked_body(_NEW_TABLE, await read_body(request))
        return self._with_cookie(*await run_in_threadpool(self.tables.open, asked, self._secret(request)))

    async def rematch(self, request: Request) -> Response:
        _checked_body(_EMPTY_BODY, await read_body(request))
        return self._with_cookie(*await run_in_threadpool(self.tables.rematch, self._secret(request)))

    def _with_cookie(self, secret: str, view: dict[str, Any]) -> Response:
        response = JSONResponse(escape_values(view), 201)
        response.set_cookie(self.cookie, secret, max_age=LIFE, httponly=True, samesite="strict")
        return response

    async def move(self, request: Request) -> Response:
        move = _checked_body(_MOVE, await read_body(request))
        return JSONResponse(escape_values(await run_in_threadpool(self.tables.move, self._secret(request), move)))

    async def again(self, request: Request) -> Response:
        _checked_body(_EMPTY_BODY, await read_body(request))
        return JSONResponse(escape_values(await run_in_threadpool(self.tables.again, self._secret(request))))

    def handle_refusal(self, request: Request, error: Exception) -> Response:
        """Report an error in one sentence, as JSON for scripts and as a page for people."""
        status, headers = 400, None
        sentence = as_sentence(str(error))
        if isinstance(error, DuplicateKey):
            sentence = as_sentence(f"invalid request: {error}")
        if isinstance(error, HTTPException):
            status, headers = error.status_code, error.headers
            if status == 405 and headers is None:
                headers = {"Allow": "GET, HEAD"}  # static files
            sentence = as_sentence(error.detail)
        return _error_response(request, status, sentence, headers)

    def handle_disconnect(self, request: Request, error: Exception) -> Response:
        return Response(status_code=499)

    def handle_crash(self, request: Request, error: Exception) -> Response:
        return _error_response(request, 500, as_sentence(BROKEN), None)


_ENVIRONMENT: Final = Environment(
    loader=FileSystemLoader(_HERE / "pages"),
    autoescape=True,
    finalize=escape_text,
    undefined=StrictUndefined,
    trim_blocks=True,
)
_ENVIRONMENT.globals |= {"pages": PAGES, "look": VIEWER}


def _page(template: str, status: int = 200, **values: Any) -> Response:
    return HTMLResponse(_ENVIRONMENT.get_template(f"{template}.html").render(values), status)


def _groups(choices: Sequence[Opponent]) -> list[tuple[str, list[Opponent]]]:
    """Group the possible opponents by kind. Each group has a title. Empty groups are omitted."""
    kinds: list[tuple[PlayerKind, str]] = [
        ("model", "Models"),
        ("fake model", "Fake models"),
        ("program", "Programs"),
        ("hand-written", "Hand-written"),
    ]
    titled = [(title, [one for one in choices if one.kind == kind]) for kind, title in kinds]
    return [(title, group) for title, group in titled if group]


def _error_response(request: Request, status: int, sentence: str, headers: Any) -> Response:
    if request.url.path.startswith("/api/"):
        return JSONResponse({"error": sentence}, status, headers)
    page = _page("refused", status, sentence=sentence)
    page.headers.update(headers or {})
    return page


def _checked_body(kind: TypeAdapter[T], body: bytes) -> T:
    try:
        return kind.validate_json(body)
    except ValidationError as error:
        raise UsageError(f"invalid request: {describe_fault(error, 'the body')}") from None


def _rules(request: Request, options: Sequence[Option]) -> dict[str, Any]:
    """Parse the rules in a URL's query. Raises UsageError if they are invalid."""
    chosen: dict[str, Any] = {}
    for option in options:
        values = {str(value): value for value, _ in option.values}
        if (text := request.query_params.get(option.rule)) is not None:
            if text not in values:
                raise UsageError(f"{option.rule} must be one of {', '.join(values)}, not {one_line(repr(text), 60)}")
            chosen[option.rule] = values[text]
    return chosen


def _person(request: Request) -> str:
    """Return the name that the person entered in the lobby, or an empty string. It is stored in a cookie."""
    return one_line(unquote(request.cookies.get("dubito-name", "")), MAX_NAME).strip()


def _number(request: Request, name: str, default: int) -> int:
    text = request.query_params.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) < 6):
        raise UsageError(f"{name} must be a whole number")
    return int(text)
