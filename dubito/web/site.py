"""The pages for playing: their handlers, and the saved games in the tables' folder."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from pydantic import Field, TypeAdapter, ValidationError

from dubito.errors import DubitoError, UsageError, join_names, one_line
from dubito.files import describe_fault
from dubito.game import Game, PlayerKind
from dubito.game.record import Strict
from dubito.game.words import list_faces
from dubito.report.render import Renderer, Site, Viewer, escape_text
from dubito.report.share import page_of_file, saved_record, shared_file, shared_page
from dubito.show.opponents import Opponent, as_sentence
from dubito.show.person import SEEDS, set_up_saved
from dubito.web.saved import Summary, deal_time, saved_files
from dubito.web.tables import Move, NewTable, Tables
from dubito.web.visit import VIEWER, PageAnswer, Refused, Visit

PAGES: Final = (("./", "Play"), ("games", "Saved games"), ("rules", "Rules"))
_MAX_PICTURED: Final = 3  # cards
_SITE: Final = Site("", PAGES, f"{VIEWER}/", "../static/icon.svg", served=True)


@dataclass(frozen=True, slots=True)
class SavedMoment(Strict):
    """The turn and seat of a saved game that a person plays on from."""

    turn: int
    seat: Annotated[int, Field(ge=0)]


@dataclass(frozen=True, slots=True)
class SavedLine:
    name: str
    when: str  # time of the deal in this machine's time zone
    summary: Summary


def page(folder: Path, name: str, goes_on: bool) -> str:
    """Return a saved game's page. `goes_on` is whether its reader has an unfinished game."""
    path = _saved(folder, name)
    shown = page_of_file(path, f"games/{name}", f"{path.relative_to(folder.parent)}")
    return _viewer()(replace(shown, story={**shown.story, "play_on": {"saved": name, "goes_on": goes_on}}))


def _saved(folder: Path, name: str) -> Path:
    path = saved_files(folder).get(name)
    if path is None:
        raise Refused(404, "Game not found.")
    return path


@cache
def _viewer() -> Viewer:
    return Viewer(Renderer(_SITE), "games")


_HERE: Final = Path(__file__).parent
_NEW_TABLE: Final = TypeAdapter(NewTable)
_MOVE: Final = TypeAdapter(Move)
_SAVED_MOMENT: Final = TypeAdapter(SavedMoment)
_EMPTY_BODY: Final = TypeAdapter(Annotated[dict[str, Any], Field(max_length=0)])
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Route:
    """The handler of a method at a path, in which `{name}` stands for a saved game."""

    method: str
    path: str
    handle: Callable[[Visit], PageAnswer]


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
class PlaySite:
    """The pages, the API of their scripts, and the answers to visits. Some play games, and may take minutes."""

    tables: Tables
    play_url: str = ""  # the address of this site, if others can open it too

    @property
    def routes(self) -> list[Route]:
        return [
            Route("GET", "/", self.lobby),
            Route("GET", "/table", self.table),
            Route("GET", "/rules", self.rules),
            Route("GET", "/games", self.games),
            Route("GET", "/games/{name}", self.game),
            Route("GET", "/games/{name}/share", self.share),
            Route("POST", "/api/table", self.open),
            Route("GET", "/api/table", self.view),
            Route("POST", "/api/moment", self.open_moment),
            Route("POST", "/api/games/{name}/moment", self.open_saved),
            Route("POST", "/api/moves", self.move),
            Route("POST", "/api/again", self.again),
            Route("POST", "/api/rematch", self.rematch),
        ]

    def answer(self, route: Route, visit: Visit) -> PageAnswer:
        try:
            return route.handle(visit)
        except Refused as refusal:
            return refuse(visit.path, refusal.status, refusal.sentence, refusal.headers)
        except DubitoError as error:
            return refuse(visit.path, 400, str(error))

    def lobby(self, visit: Visit) -> PageAnswer:
        game, unfinished = self._game(visit), self.tables.unfinished(visit.secret)
        words, choices, (least, most) = game.words, self.tables.opponents_of(game.name).choices(), self._sizes(game)
        bots, moment = [choice.name for choice in choices if not choice.asks], self.tables.moment
        return _page(
            "lobby",
            game=game,
            person=visit.person,
            hero=(hero := self._tile(game)),
            usual_level=next(level for level in ("models", "medium", *reversed(hero.levels)) if level in hero.levels),
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
            invited="seed" in visit.query,  # lobby.js then sets the focus
            moment=moment.moment.rsplit(":", 2) if moment else None,
            others=join_names(moment.bots) if moment else "",
            taken=moment.seat if moment else None,
            unfinished="" if unfinished is None else self.tables.opponents_of(unfinished.game).game.words.TITLE,
            rivals="" if unfinished is None else join_names(unfinished.bots),
            fared=self.tables.summaries.records_against(game.name),
        )

    def _sizes(self, game: Game) -> tuple[int, int]:
        return game.seat_range(self.tables.rules(game, {}))

    def _tile(self, game: Game) -> "_Tile":
        words, choices, (least, most) = game.words, self.tables.opponents_of(game.name).choices(), self._sizes(game)
        others = min(max(4, least), most) - 1
        models, names = ([choice.name for choice in choices if bool(choice.asks) is asks] for asks in (True, False))
        levels = words.strengths([choice.name for choice in choices]) or [("medium", words.default_bots(names))]
        levels = [("models", models), *levels] if models else levels
        bots = {level: [names[place % len(names)] for place in range(others)] for level, names in levels}
        # A game without a picture is illustrated by some of its faces.
        step = max(1, len(words.FACES) // _MAX_PICTURED)
        picture = [[*card] for card in words.PICTURE] or list_faces(words, [*words.FACES][::step][:_MAX_PICTURED])
        return _Tile(game.name, words.TITLE, words.SLOGAN or words.TITLE, words.LEAD, bots, picture)

    def table(self, visit: Visit) -> PageAnswer:
        return _page("table", person=visit.person)

    def rules(self, visit: Visit) -> PageAnswer:
        game = self._game(visit)
        (least, most), options = self._sizes(game), self.tables.options(game)
        players = _number(visit, "players", min(max(4, least), most))
        if not least <= players <= most:
            raise UsageError(f"players: {game.name} needs {least} to {most} players, not {players}")
        chosen: dict[str, Any] = {}
        for option in options:
            values = {str(value): value for value, _ in option.values}
            if (text := visit.query.get(option.rule)) is not None:
                if text not in values:
                    raise UsageError(
                        f"{option.rule} must be one of {', '.join(values)}, not {one_line(repr(text), 60)}"
                    )
                chosen[option.rule] = values[text]
        rules = self.tables.rules(game, chosen)
        words = game.words
        return _page(
            "rules",
            games=self.tables.games,
            game=game,
            lines=words.rules(rules, players),
            in_short=words.summarize_rules(rules),
            sizes=range(least, most + 1),
            players=players,
            rules=rules.model_dump(),
            options=options,
        )

    def _game(self, visit: Visit) -> Game:
        return self.tables.opponents_of(visit.query.get("game", self.tables.games[0].name)).game

    def games(self, visit: Visit) -> PageAnswer:
        dealt = [(deal_time(name, one), name, one) for name, one in self.tables.summaries().items()]
        newest = sorted(dealt, reverse=True)
        lines = [SavedLine(name, f"{at.day} {at:%b %Y, %H:%M}", one) for at, name, one in newest]
        return _page("games", games=lines, zone=datetime.now().astimezone().tzname() or "local time")

    def game(self, visit: Visit) -> PageAnswer:
        return PageAnswer(page(self.tables.folder, visit.name, self.tables.unfinished(visit.secret) is not None))

    def share(self, visit: Visit) -> PageAnswer:
        text = shared_page(shared_file(_saved(self.tables.folder, visit.name), visit.person, self.play_url))
        return PageAnswer(text, headers={"Content-Disposition": 'attachment; filename="game.html"'})

    def view(self, visit: Visit) -> PageAnswer:
        since = _number(visit, "since", 0)
        return PageAnswer(self.tables.view(visit.secret, max(0, since)))

    def open(self, visit: Visit) -> PageAnswer:
        asked = _checked_body(_NEW_TABLE, visit.body)
        secret, view = self.tables.open(asked, visit.secret)
        return PageAnswer(view, 201, secret=secret)

    def open_moment(self, visit: Visit) -> PageAnswer:
        _checked_body(_EMPTY_BODY, visit.body)
        secret, view = self.tables.open_moment(visit.secret)
        return PageAnswer(view, 201, secret=secret)

    def open_saved(self, visit: Visit) -> PageAnswer:
        chosen = _checked_body(_SAVED_MOMENT, visit.body)
        game, record = saved_record(_saved(self.tables.folder, visit.name))
        secret, view = self.tables.open_saved(set_up_saved(game, record, chosen.turn, chosen.seat), visit.secret)
        return PageAnswer(view, 201, secret=secret)

    def rematch(self, visit: Visit) -> PageAnswer:
        _checked_body(_EMPTY_BODY, visit.body)
        secret, view = self.tables.rematch(visit.secret)
        return PageAnswer(view, 201, secret=secret)

    def move(self, visit: Visit) -> PageAnswer:
        move = _checked_body(_MOVE, visit.body)
        return PageAnswer(self.tables.move(visit.secret, move))

    def again(self, visit: Visit) -> PageAnswer:
        _checked_body(_EMPTY_BODY, visit.body)
        return PageAnswer(self.tables.again(visit.secret))


_ENVIRONMENT: Final = Environment(
    loader=FileSystemLoader(_HERE / "pages"),
    autoescape=True,
    finalize=escape_text,
    undefined=StrictUndefined,
    trim_blocks=True,
)
_ENVIRONMENT.globals |= {"pages": PAGES, "look": VIEWER, "root": ""}


def _page(template: str, **values: Any) -> PageAnswer:
    return PageAnswer(_ENVIRONMENT.get_template(f"{template}.html").render(values))


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


def refuse(path: str, status: int, sentence: str, headers: Mapping[str, str] | None = None) -> PageAnswer:
    """Report an error in one sentence, as JSON for scripts and as a page for people."""
    sentence = as_sentence(sentence)
    if path.startswith("/api/"):
        return PageAnswer({"error": sentence}, status, headers or {})
    page = _page("refused", sentence=sentence, root="../" * (path.count("/") - 1))
    return replace(page, status=status, headers=headers or {})


def _checked_body(kind: TypeAdapter[T], body: bytes) -> T:
    try:
        return kind.validate_json(body)
    except ValidationError as error:
        raise UsageError(f"invalid request: {describe_fault(error, 'the body')}") from None


def _number(visit: Visit, name: str, default: int) -> int:
    text = visit.query.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) < 6):
        raise UsageError(f"{name} must be a whole number")
    return int(text)
