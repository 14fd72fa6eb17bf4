"""Watch games in the browser: a live game, a run's games, or a saved game.

The pages look like the pages of saved games, and poll for updates: moves, model calls, the end, a newer game.
"""

import secrets
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from dubito.errors import DubitoError, UsageError
from dubito.game.moves import output_of
from dubito.report.render import Renderer, Site, Viewer, escape_values
from dubito.report.share import page_of_file
from dubito.report.tables import GamePage
from dubito.show.moment import play_on
from dubito.show.opponents import Thought, as_sentence
from dubito.show.run import FollowedRun
from dubito.show.session import BotsGame, Session, session_of_outputs
from dubito.show.story import ModelDecisions, Texts, game_in_short, page_title, story_of_game, winners_of_ending
from dubito.store.run_db import RunDb
from dubito.web.guard import build_site
from dubito.web.visit import VIEWER

NEWS: Final = "/api/news"  # URL that pages poll
# lists that a page extends with new items
_GROWING_LISTS: Final = ("turns", "story", "decisions", "pieces", "shared", "faces", "plays")
_SITE: Final = Site("", (("./", "Game"),), f"{VIEWER}/", "../static/icon.svg", served=True)


class GameSource:
    """Games for pages, by number. Methods can be called from any thread."""

    opens = ""  # URL fragment of a new page: empty for the newest turn, `#play` to play from the deal

    def on_page_open(self) -> None:
        """Handle a page that was opened. A live game may wait for this."""

    def newest(self) -> int:
        return 0

    def has_ended(self) -> bool:
        return True

    def data(self, game: int) -> dict[str, Any]:
        raise NotImplementedError


class LiveGame(GameSource):
    """A game in progress, played by one thread and read by others."""

    def __init__(self, game: BotsGame, database: RunDb | None = None) -> None:
        """Prepare the game. Model calls are read from `database`."""
        self._game = game
        self.followed = threading.Event()  # set when the first page is open
        self.trouble: str | None = None  # the reason why the game does not continue
        self._outputs: list[Any] = []  # outputs so far, in the format of records
        self._faults: list[str] = []  # bot errors, in sentences
        self._thinks: int | None = None  # seat of the model that is thinking
        self._words = ""  # that model's text so far
        self._lock, self._texts = threading.Lock(), Texts()
        self._asked = None if database is None else ModelDecisions(database, game.game)

    def play(self, wait: Callable[[], None], stop: threading.Event) -> Session:
        """Play the game to its end, calling `wait` before each turn."""
        session, begun = self._game.start(self._on_decision, self._on_text), -1  # the turn that the page waited for
        while not (session.over or stop.is_set()):
            seat, turns = session.state.seat, session.state.turns_played
            self._thinks, self._words = seat if session.thinks(seat) else None, ""
            if turns > begun:
                begun = turns
                wait()
            self._faults += next(session).faults  # before the outputs: a page that has the last move stops polling
            self._outputs.append(session.outputs[-1])
        return session

    def _on_text(self, seat: int, words: str) -> None:
        self._words = words

    def _on_decision(self, thought: Thought) -> None:
        self._words = ""  # the text is now part of the decision

    def on_page_open(self) -> None:
        self.followed.set()

    def data(self, game: int) -> dict[str, Any]:
        trouble = self.trouble  # read before the moves: after trouble, no more moves come
        live, state = self._game, self._game.deal_state()
        names = live.reader.names(len(live.names))
        outputs = [output_of(live.game, kept) for kept in self._outputs]
        asked: dict[str, Any] = {"decisions": [], "pieces": [], "shared": []}
        with self._lock:
            whole = story_of_game(session_of_outputs(live.game, state, outputs, live.reader), names)
            if self._asked is not None:
                asked = self._asked.describe_game(live.number or 0, whole, self._texts, len(whole["turns"]) + 1)
        won = winners_of_ending(live.game.results, state.ending()) if state.over else None
        final = None if won is None else page_title("The game", names, won)
        over = state.over or trouble is not None
        thinks = not over and self._thinks == state.seat
        moves_now = {"to_move": None if over else state.seat, "thinks": thinks, "words": self._words if thinks else ""}
        warnings = [*self._faults, *([trouble] if trouble else [])]
        about = game_in_short(live.game, live.rules, live.deal, live.seed)
        framed = _page_fields(names, final, about, over, warnings) | {"kinds": live.kinds, "winners": won}
        return whole | asked | framed | moves_now


@dataclass(eq=False)
class RunGames(GameSource):
    """The games of a run that may still be in progress."""

    opens = "#play"

    followed: FollowedRun
    given: str  # how the user named the run
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def newest(self) -> int:
        with self._lock:
            return max(self.followed.finished())

    def has_ended(self) -> bool:
        return not self.followed.is_playing

    def data(self, game: int) -> dict[str, Any]:
        with self._lock:
            self.followed.reload()
            if game not in self.followed.finished():
                raise UsageError(f"game {game} of the run is not finished")
            whole = self.followed.games.play(game)
            asked = self.followed.questions(game, whole)
        final = page_title(f"Game {game}", whole["names"], whole["winners"])
        about = f"Game {game} of the run {self.followed.source.folder.name}."
        on = play_on(self.given, game, whole["kinds"])
        return whole | asked | on | _page_fields(whole["names"], final, about, True, [])


class SavedGame(GameSource):
    opens = "#play"

    def __init__(self, path: Path) -> None:
        self._page = page_of_file(path, "/games/", path.name)

    def data(self, game: int) -> dict[str, Any]:
        page = self._page
        return {**page.story, "truths": []} | _page_fields(
            page.story["names"], page.title, page.about, True, page.warnings
        )


def _page_fields(
    names: Sequence[str], final: str | None, about: str, over: bool, warnings: Sequence[str]
) -> dict[str, Any]:
    return {"title": " · ".join(names), "final": final, "about": about, "over": over, "warnings": warnings}


def watching_app(shown: GameSource, host: str, allowed: Sequence[str] = ()) -> Starlette:
    pages = _Pages(shown)
    routes = [Route("/", pages.first), Route("/games/{game:int}", pages.game), Route(NEWS, pages.news)]
    return build_site(host, routes, {DubitoError: _error_response}, allowed)


@dataclass(eq=False)
class _Pages:
    """The route handlers, each run in a thread."""

    shown: GameSource
    viewer: Viewer = field(default_factory=lambda: Viewer(Renderer(_SITE), "games"))
    # Identifies this server's pages, since a page of an earlier game may still be open.
    mark: str = field(default_factory=lambda: secrets.token_hex(8))

    def first(self, request: Request) -> Response:
        return RedirectResponse(f"/games/{self.shown.newest()}{self.shown.opens}")

    def game(self, request: Request) -> Response:
        game: int = request.path_params["game"]
        data = self.shown.data(game)
        title, about, warnings = data.pop("title"), data.pop("about"), data.pop("warnings")
        del data["truths"]
        live = {"game": game, "news": NEWS, "mark": self.mark}
        return HTMLResponse(self.viewer(GamePage("/games/", title, about, data | {"live": live}, "", warnings)))

    def news(self, request: Request) -> Response:
        """Return the items that a page does not have yet. The page sends the number of items that it has."""
        query = request.query_params
        try:
            game, has = int(query["game"]), {key: max(0, int(query[key])) for key in _GROWING_LISTS if key in query}
        except (KeyError, ValueError):
            raise HTTPException(
                400, "The request must name the game and the number of items that the page has."
            ) from None
        if query.get("mark") != self.mark:
            raise UsageError("this server now shows another game; reload the page")
        self.shown.on_page_open()
        newest, ended = self.shown.newest(), self.shown.has_ended()
        news: dict[str, Any] = {"newest": newest, "ended": ended}
        if has:
            data = self.shown.data(game)
            del data["truths"]
            news |= data | {key: data[key][number:] for key, number in has.items()}
        return JSONResponse(escape_values(news))


def _error_response(request: Request, error: Exception) -> Response:
    sentence = as_sentence(str(error))
    if request.url.path == NEWS:
        return JSONResponse({"error": sentence}, 400)
    return PlainTextResponse(sentence, 400)
