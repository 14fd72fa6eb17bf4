"""What the tests of the web table share: a real server on loopback, and a browser's part of HTTP."""

import http.client
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dubito.registry import Registry, find_bots
from dubito.web.app import make_app
from dubito.web.server import listen, make_server
from dubito.web.tables import MOST_TABLES, Tables

BOTS = ["ClaudeBot", "StefaBot", "MrDoubt"]


@dataclass(slots=True)
class Clock:
    """A clock that only a test moves."""

    now: float = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)


@dataclass(slots=True)
class Browser:
    """Keeps its cookie, and says what a browser says."""

    port: int
    cookie: str | None = None
    turn: int = 0
    answers: list[Any] = field(default_factory=list)

    def __call__(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        sent = {"Content-Type": "application/json"} if body is not None else {}
        if self.cookie is not None:
            sent["Cookie"] = f"dubito={self.cookie}"
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, sent | dict(headers or {}))
            got = connection.getresponse()
            answer = Answer(got.status, {k.casefold(): v for k, v in got.getheaders()}, got.read().decode())
        finally:
            connection.close()
        if "set-cookie" in answer.headers:
            self.cookie = answer.headers["set-cookie"].partition(";")[0].partition("=")[2]
        return answer

    def post(self, path: str, content: Any, headers: Mapping[str, str] | None = None) -> Answer:
        return self("POST", path, json.dumps(content).encode(), headers)

    def sit(self, bots: list[str] | None = None, seed: int = 1, **more: Any) -> Any:
        """A new game."""
        answer = self.post("/api/table", {"bots": bots or BOTS, "seed": seed, **more})
        assert answer.status == 201, answer
        return self._seen(answer)

    def play(self, move: Mapping[str, Any]) -> Any:
        """A legal move."""
        answer = self.post("/api/moves", {"turn": self.turn, **move})
        assert answer.status == 200, answer
        return self._seen(answer)

    def view(self) -> Any:
        return self("GET", "/api/table").json

    def to_the_end(self, view: Any) -> Any:
        """Play the game in a simple way."""
        while not view["over"]:
            view = self.play(a_move(view["frames"][-1]))
        return view

    def _seen(self, answer: Answer) -> Any:
        self.answers.append(answer.json)
        self.turn = answer.json["turn"]
        return answer.json


def a_move(frame: Mapping[str, Any]) -> dict[str, Any]:
    """Honest where possible; now and then a doubt."""
    hand, number = frame["hand"], frame["number"]
    if not number:
        best = max(hand, key=hand.count)
        return {"cards": [card for card in hand if card == best][:3], "number": best or 7}
    if number in hand:
        return {"cards": [card for card in hand if card == number][:3]}
    if frame["can_doubt"] and frame["turn"] % 3:
        return {"doubt": True}
    return {"cards": hand[:1]}


@dataclass(slots=True)
class Served:
    """A server that runs: its tables, their clock, and their folder."""

    tables: Tables
    clock: Clock
    folder: Path
    port: int = 0

    def browser(self) -> Browser:
        return Browser(self.port)


@contextmanager
def served(
    folder: Path, registry: Registry | None = None, most: int = MOST_TABLES, clock: Clock | None = None
) -> Iterator[Served]:
    """The web table on a free port."""
    clock = clock or Clock()
    tables = Tables(folder, registry or find_bots(folder), clock, most)
    listener = listen("127.0.0.1", 0)
    server = make_server(make_app(tables, "127.0.0.1"))
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    try:
        yield Served(tables, clock, folder, listener.getsockname()[1])
    finally:
        server.should_exit = True
        thread.join()
        listener.close()
