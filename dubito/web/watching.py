"""Games that nobody sits at, for the report's viewer in a browser: one that is being played, or those of a run.

Pages are those of a saved game, and ask what is new: moves, what models were asked, the end, a newer game.
"""

import secrets
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from dubito.errors import DubitoError, UsageError
from dubito.game.record import output_of
from dubito.report.render import Renderer, Site, Viewer, shown_values
from dubito.report.share import page_of_file
from dubito.report.tables import GamePage
from dubito.show.company import Thought, as_sentence
from dubito.show.run import FollowedRun
from dubito.show.session import BotsGame, Session, of_outputs
from dubito.show.story import ModelDecisions, Texts, game_in_short, story_of_game, title_of, won_by
from dubito.store.run_db import RunDb
from dubito.web.guard import VIEWER, site_at

NEWS: Final = "/api/news"  # what a page asks
_GROWS: Final = ("turns", "story", "decisions", "pieces", "shared")  # lists of which a page has the beginning
_SITE: Final = Site("", (), (("/", "Now"),), f"{VIEWER}/", "/static/icon.svg", served=True)


class GameSource:
    """Games for pages, by number; whoever asks does so from any thread."""

    opens = ""  # where a page begins: at the newest turn, or `#play`, playing from the deal

    def begin(self) -> None:
        """A page of ours follows: what waits for that begins."""

    def newest(self) -> int:
        return 0

    def ended(self) -> bool:
        return True

    def data(self, game: int) -> dict[str, Any]:
        raise NotImplementedError


class LiveGame(GameSource):
    """A game that is being played: one thread plays it, others look."""

    def __init__(self, game: BotsGame, database: RunDb | None = None) -> None:
        """What models are asked is kept in the `database`."""
        self._game = game
        self.followed = threading.Event()  # by a page, for the first time
        self.trouble: str | None = None  # why it does not go on
        self._outputs: list[Any] = []  # so far, as a record has them
        self._faults: list[str] = []  # of bots, in sentences
        self._thinks: int | None = None  # the seat of a model that was asked last
        self._words = ""  # of it, so far
        self._lock, self._texts = threading.Lock(), Texts()
        self._asked = None if database is None else ModelDecisions(database, game.game)

    def play(self, wait: Callable[[], None], stop: threading.Event) -> Session:
        """Play the game to its end; `wait` lets the time before a turn pass."""
        session, begun = self._game.begin(self._decided, self._speaks), -1  # the turn that was waited for
        while not (session.over or stop.is_set()):
            seat, turns = session.state.seat, session.state.turns_played
            self._thinks, self._words = seat if session.thinks(seat) else None, ""
            if turns > begun:
                begun = turns
                wait()
            self._faults += next(session).faults  # first: whoever sees the last move asks no more
            self._outputs.append(session.outputs[-1])
        return session

    def _speaks(self, seat: int, words: str) -> None:
        self._words = words

    def _decided(self, thought: Thought) -> None:
        self._words = ""  # they stand with the decision now

    def begin(self) -> None:
        self.followed.set()

    def data(self, game: int) -> dict[str, Any]:
        trouble = self.trouble  # before the moves: with it, no other is coming
        live, state = self._game, self._game.dealt()
        names = [live.label(seat) for seat in range(len(live.names))]
        outputs = [output_of(live.game, kept) for kept in self._outputs]
        asked: dict[str, Any] = {"decisions": [], "pieces": [], "shared": []}
        with self._lock:
            whole = story_of_game(of_outputs(live.game, state, outputs, live.label), names)
            if self._asked is not None:
                asked = self._asked.of_game(live.number or 0, whole, self._texts, len(whole["turns"]) + 1)
        final = title_of("The game", names, won_by(live.game.results, state.ending())) if state.over else None
        over = state.over or trouble is not None
        thinks = not over and self._thinks == state.seat
        moves_now = {"to_move": None if over else state.seat, "thinks": thinks, "words": self._words if thinks else ""}
        warnings = [*self._faults, *([trouble] if trouble else [])]
        about = game_in_short(live.game, live.rules, live.deal, live.seed)
        framed = _framed(names, final, about, over, warnings) | {"kinds": live.kinds}
        return whole | asked | framed | moves_now


class RunGames(GameSource):
    """The games of a run that somebody may be playing."""

    opens = "#play"

    def __init__(self, followed: FollowedRun) -> None:
        self._followed, self._lock = followed, threading.Lock()

    def newest(self) -> int:
        with self._lock:
            return max(self._followed.finished())

    def ended(self) -> bool:
        return not self._followed.is_playing

    def data(self, game: int) -> dict[str, Any]:
        with self._lock:
            self._followed.read_again()
            if game not in self._followed.finished():
                raise UsageError(f"the run has no finished game {game}")
            whole = self._followed.games.play(game)
            asked = self._followed.questions(game, whole)
        final = title_of(f"Game {game}", whole["names"], whole["winners"])
        about = f"Game {game} of the run {self._followed.source.folder.name}."
        return whole | asked | _framed(whole["names"], final, about, True, [])


class SavedGame(GameSource):
    """A game that somebody has saved."""

    opens = "#play"

    def __init__(self, path: Path) -> None:
        self._page = page_of_file(path, "/games/", path.name)

    def data(self, game: int) -> dict[str, Any]:
        page = self._page
        return {**page.told, "truths": []} | _framed(page.told["names"], page.title, page.about, True, page.warnings)


def _framed(names: Sequence[str], final: str | None, about: str, over: bool, warnings: Sequence[str]) -> dict[str, Any]:
    return {"title": " · ".join(names), "final": final, "about": about, "over": over, "warnings": warnings}


def watching_app(shown: GameSource, host: str, allowed: Sequence[str] = ()) -> Starlette:
    pages = _Pages(shown)
    routes = [Route("/", pages.first), Route("/games/{game:int}", pages.game), Route(NEWS, pages.news)]
    return site_at(host, routes, {DubitoError: _refused}, allowed)


class _Pages:
    """One method a route, each in a thread."""

    def __init__(self, shown: GameSource) -> None:
        self._shown, self._viewer = shown, Viewer(Renderer(_SITE), "/games")
        self._mark = secrets.token_hex(8)  # of our pages: that of another game may still be open

    def first(self, request: Request) -> Response:
        return RedirectResponse(f"/games/{self._shown.newest()}{self._shown.opens}")

    def game(self, request: Request) -> Response:
        game: int = request.path_params["game"]
        data = self._shown.data(game)
        title, about, warnings = data.pop("title"), data.pop("about"), data.pop("warnings")
        del data["truths"]
        live = {"game": game, "news": NEWS, "mark": self._mark}
        return HTMLResponse(self._viewer(GamePage("/games/", title, about, data | {"live": live}, "", warnings)))

    def news(self, request: Request) -> Response:
        """What a page does not have yet; it says how many of each it has."""
        query = request.query_params
        try:
            game, has = int(query["game"]), {key: max(0, int(query[key])) for key in _GROWS if key in query}
        except (KeyError, ValueError):
            raise HTTPException(400, "A page says which game it shows, and how much of it it has.") from None
        if query.get("mark") != self._mark:
            raise UsageError("this server now shows another game: reload the page")
        self._shown.begin()
        newest, ended = self._shown.newest(), self._shown.ended()
        news: dict[str, Any] = {"newest": newest, "ended": ended}
        if has:
            data = self._shown.data(game)
            del data["truths"]
            news |= data | {key: data[key][number:] for key, number in has.items()}
        return JSONResponse(shown_values(news))


def _refused(request: Request, error: Exception) -> Response:
    sentence = as_sentence(str(error))
    if request.url.path == NEWS:
        return JSONResponse({"error": sentence}, 400)
    return PlainTextResponse(sentence, 400)
