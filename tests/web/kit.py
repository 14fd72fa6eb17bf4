"""Helpers for web tests: a real server on loopback, and a browser's part of HTTP."""

import http.client
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from dubito.cli.opponents import open_opponents
from dubito.experiment.config import parse_config
from dubito.game.find import Registry, find_bots
from dubito.serve import listen, make_server
from dubito.show.opponents import FamilyGames, Opponents, build_company
from dubito.web.app import make_app
from dubito.web.tables import MAX_TABLES, Tables
from tests.llm.kit import Response, Server, player_at

FIRST: Final = 1_700_000_000_000  # the number of the first game
BOTS = ["ClaudeBot", "StefaBot", "MrDoubt"]


@dataclass(slots=True)
class Clock:
    """A clock that only the test advances."""

    now: float = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@dataclass(frozen=True, slots=True)
class Answer:
    """A response."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)


@dataclass(slots=True)
class Browser:
    """An HTTP client that keeps its cookie and sends a browser's headers."""

    port: int
    cookie: str | None = None  # including its name
    turn: int = 0
    answers: list[Any] = field(default_factory=list)

    def __call__(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        sent = {"Content-Type": "application/json"} if body is not None else {}
        if self.cookie is not None:
            sent["Cookie"] = self.cookie
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, sent | dict(headers or {}))
            got = connection.getresponse()
            answer = Answer(got.status, {k.casefold(): v for k, v in got.getheaders()}, got.read().decode())
        finally:
            connection.close()
        if "set-cookie" in answer.headers:
            self.cookie = answer.headers["set-cookie"].partition(";")[0]
        return answer

    def post(self, path: str, content: Any, headers: Mapping[str, str] | None = None) -> Answer:
        return self("POST", path, json.dumps(content).encode(), headers)

    def sit(self, bots: list[str] | None = None, seed: int = 1, seat: int | None = None, **more: Any) -> Any:
        """Start a new game. `more` are its rules, except `game`."""
        game = {"game": more.pop("game")} if "game" in more else {}
        asked = {"bots": bots or BOTS, "seed": seed, "seat": seat, "rules": more}
        answer = self.post("/api/table", asked | game)
        assert answer.status == 201, answer
        return self._seen(answer)

    def play(self, move: Any) -> Any:
        answer = self.post("/api/moves", {"turn": self.turn, "answer": move})
        assert answer.status == 200, answer
        return self._seen(answer)

    def view(self) -> Any:
        return self("GET", "/api/table").json

    def at_rest(self) -> Any:
        return self._seen(self("GET", "/api/table"))

    def again(self) -> Any:
        return self._seen(self.post("/api/again", {}))

    def to_the_end(self, view: Any) -> Any:
        while not view["over"]:
            view = self.play(a_move(view["frames"][-1]))
        return view

    def _seen(self, answer: Answer) -> Any:
        """Return the page's state once the game is at rest. A model can take longer than a request waits."""
        view = answer.json
        self.answers.append(view)
        while not (view["asked"] or view["over"] or view["trouble"]):
            more = self("GET", f"/api/table?since={view['turn'] + 1}").json
            self.answers.append(more)
            view = more | {"first": view["first"], "frames": view["frames"] + more["frames"]}
        self.turn = view["turn"]
        return view


def hidden_until_over(frame: Mapping[str, Any]) -> bool:
    """Return whether a frame shows no cards of other seats and of the pile, except those that everyone has seen."""
    plays = [play for board in frame["boards"] for play in board["plays"] if not play["shown"]]
    is_hidden = not frame["truth"] and all((play["cards"], play["lie"]) == ([], None) for play in plays)
    return is_hidden or frame["to_move"] is None


def a_move(frame: Mapping[str, Any]) -> dict[str, Any]:
    """Return an honest move if possible, and sometimes a doubt."""
    question = frame["question"]
    hand, claims = [*question["options"]], question["claims"]
    if len(claims) > 1:
        best = max(hand, key=hand.count)
        return {"cards": [card for card in hand if card == best][:3], "number": best or 7}
    _, number = claims[0]["honest"]
    if number in hand:
        return {"cards": [card for card in hand if card == number][:3]}
    if question["others"] and frame["turn"] % 3:
        return {"doubt": True}
    return {"cards": hand[:1]}


@dataclass(slots=True)
class WebServer:
    """A running server with its tables, their clock, and their folder."""

    tables: Tables
    clock: Clock
    folder: Path
    port: int = 0

    def browser(self) -> Browser:
        return Browser(self.port)


def guests_of(registry: Registry, **rules: Any) -> Opponents:
    config = parse_config({"game": registry.game.name, "rules": rules}, "the tests")
    return Opponents(build_company(config, registry), settled=rules)


@contextmanager
def serve(
    folder: Path,
    registry: Registry | None = None,
    most: int = MAX_TABLES,
    clock: Clock | None = None,
    opponents: Opponents | None = None,
    others: Sequence[Opponents] = (),
    family: Callable[[], FamilyGames | None] = lambda: None,
) -> Iterator[WebServer]:
    """Serve the web table on a free port, with these opponents or a registry's bots. `others` are for other games."""
    clock = clock or Clock()
    those = opponents or guests_of(registry or find_bots(folder))
    tables = Tables(folder, {one.game.name: one for one in (those, *others)}, clock, most, family)
    listener = listen("127.0.0.1", 0)
    server = make_server(make_app(tables, "127.0.0.1"))
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    try:
        yield WebServer(tables, clock, folder, listener.getsockname()[1])
    finally:
        server.should_exit = True
        thread.join()
        tables.close()
        listener.close()


@contextmanager
def table_with(home: Path, *players: Mapping[str, Any], first: int = FIRST, **config: Any) -> Iterator[WebServer]:
    """Serve a config with these players; its games are saved in `games`."""
    file = home / "c.yaml"
    file.write_text(yaml.safe_dump(({"bots": list(players)} if players else {}) | config))
    stop = threading.Event()
    with (
        open_opponents(file, None, home / "games", first, stop.is_set) as opponents,
        serve(home / "games", opponents=opponents) as server,
    ):
        yield server
        stop.set()


def in_events(
    reply: Mapping[str, Any], reported: int, then: threading.Event, error: Mapping[str, Any] | None = None
) -> Response:
    """Stream a chat completion.

    The first `reported` characters are sent at once; the rest is delayed, or replaced by an error.
    """
    text = json.dumps(reply)
    cut = text.index(": ") + 3 + reported
    rest = {"choices": [{"index": 0, "delta": {"content": text[cut:]}, "finish_reason": "stop"}]}
    events = [{"choices": [{"index": 0, "delta": {"content": text[:cut]}}]}, error or rest]
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
    return Response(body=body, headers={"content-type": "text/event-stream"}, waits=then)


def model_at(server: Server, name: str = "asker", **more: Any) -> dict[str, Any]:
    return player_at(server, name=name, api_key_env="SOME_KEY", tries=1, **more)
