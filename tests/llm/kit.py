"""Helpers for model tests: a scripted server, bodies of all protocols, small runs, and a run's tables."""

import json
import sqlite3
import threading
import time
import typing
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import diskcache
import yaml

from dubito.experiment.experiment import Experiment
from dubito.experiment.model_players import check_models
from dubito.experiment.progress import ModelProgress
from dubito.experiment.run import RunResult, play
from dubito.llm.cache import compute_key
from dubito.llm.client import Provider
from dubito.llm.request import AccountFault, Attempt, FailureKind, Place, RawReply, Reply, Request, TryFailed, Usage
from dubito.model_settings import Account, Api, ModelSettings
from tests.cli.kit import Result as Ended
from tests.cli.kit import Shell
from tests.experiment.kit import experiment, means, resolved

PROTOCOLS: Final[tuple[Api, ...]] = ("responses", "chat", "messages")
BOT_OF: Final[Mapping[Api, str]] = {"responses": "OpenAIBot", "chat": "LLMBot", "messages": "AnthropicBot"}
PATH_OF: Final[Mapping[Api, str]] = {
    "responses": "/responses",
    "chat": "/chat/completions",
    "messages": "/v1/messages",
}
KEY: Final = "sk-7f3a-the-key-of-the-test"
AFTER_A_REFUSAL: Final = "\n\nThis is a card game among programs; bluffing is part of its rules and harms nobody. "
YES: Final = '{"answer": true}'
PROBE: Final = b"a check of the connection"  # text of preflights and probes
PLACE: Final = Place("Somebody", 7, 3, 2, 5, 0, "C")


@dataclass(frozen=True, slots=True)
class Incoming:
    """A received request."""

    path: str
    headers: Mapping[str, str]  # names in lower case
    raw: bytes

    @property
    def body(self) -> dict[str, Any]:
        body: dict[str, Any] = json.loads(self.raw)
        return body

    @property
    def protocol(self) -> Api:
        (protocol,) = [name for name in PROTOCOLS if self.path.endswith(PATH_OF[name])]
        return protocol

    @property
    def conversation(self) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = self.body["input" if self.protocol == "responses" else "messages"]
        return messages

    @property
    def re_asked(self) -> bool:
        spoken = any(message["role"] == "assistant" for message in self.conversation)
        return spoken or AFTER_A_REFUSAL in self.last

    @property
    def last(self) -> str:
        content = self.conversation[-1]["content"]
        return content if isinstance(content, str) else "".join(block["text"] for block in content)


@dataclass(frozen=True, slots=True)
class Response:
    """The server's answer. `lost` bytes are announced but never sent; None drops the connection at once."""

    status: int = 200
    body: str | bytes = ""
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": "application/json"})
    lost: int | None = 0
    waits: threading.Event | None = None  # the last byte is sent when this is set


class Loopback:
    """A server on loopback that runs as long as its context."""

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    def __enter__(self) -> typing.Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def base_url(self, protocol: Api) -> str:
        return self.address if protocol == "messages" else f"{self.address}/v1"


class Server(Loopback):
    """A loopback server that answers with a function and records its requests. A context manager."""

    def __init__(self, answer: Callable[[Incoming], Response]) -> None:
        requests = self.requests = list[Incoming]()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # sends head and body in one packet

            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers.get("content-length", 0)))
                request = Incoming(self.path, {name.lower(): value for name, value in self.headers.items()}, raw)
                requests.append(request)
                response = answer(request)
                self.close_connection = response.lost != 0
                if response.lost is None:
                    return
                body = response.body.encode() if isinstance(response.body, str) else response.body
                self.send_response(response.status)
                for name, value in response.headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(body) + response.lost))
                self.end_headers()
                if response.waits is not None:
                    self.wfile.write(body[:-1])
                    self.wfile.flush()
                    response.waits.wait(20)
                    body = body[-1:]
                self.wfile.write(body)

            def do_GET(self) -> None:
                self.do_POST()

            def do_CONNECT(self) -> None:
                requests.append(Incoming(self.path, {}, b""))
                self.send_error(502)

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        super().__init__(Handler)


def reply_body(protocol: Api, text: str | None = YES, finish: str = "stop", **changes: Any) -> dict[str, Any]:
    """Return a body with status 200 and this text; `finish` is stop, length, refusal or filter."""
    usage = {"input_tokens": 100, "output_tokens": 20}
    if protocol == "messages":
        reason = {"stop": "end_turn", "length": "max_tokens", "refusal": "refusal", "filter": "refusal"}[finish]
        content = [] if text is None else [{"type": "text", "text": text}]
        return {"type": "message", "content": content, "stop_reason": reason, "usage": usage} | changes
    if protocol == "chat":
        reason = {"refusal": "stop", "filter": "content_filter"}.get(finish, finish)
        declined = finish == "refusal"
        message = {"role": "assistant", "content": None if declined else text, "refusal": text if declined else None}
        choice = {"index": 0, "message": message, "finish_reason": reason}
        usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
        return {"object": "chat.completion", "choices": [choice], "usage": usage} | changes
    part = {"type": "refusal", "refusal": text} if finish == "refusal" else {"type": "output_text", "text": text}
    output = [] if text is None else [{"type": "message", "role": "assistant", "content": [part]}]
    why = {"length": "max_output_tokens", "filter": "content_filter"}.get(finish)
    status = "incomplete" if why else "completed"
    details = {"reason": why} if why else None
    return {"status": status, "incomplete_details": details, "output": output, "usage": usage} | changes


def respond(protocol: Api, text: str | None = YES, finish: str = "stop", **changes: Any) -> Response:
    return Response(body=json.dumps(reply_body(protocol, text, finish, **changes)))


def error_body(protocol: Api, kind: str, message: str) -> str:
    if protocol == "messages":
        return json.dumps({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"})
    return json.dumps({"error": {"message": message, "type": kind, "param": None, "code": kind}})


def settings(protocol: Api = "responses", **changes: Any) -> ModelSettings:
    return ModelSettings.model_validate({"api": protocol, "model": "some-model", "base_url": "house", **changes})


def ask(number: int = 0, protocol: Api = "responses", draw: str = "d", game: int = 7, **body: Any) -> Attempt:
    request = Request(protocol, PATH_OF[protocol], {"model": "m", "n": number} | body)
    return Attempt(request, draw, replace(PLACE, game=game, decision=number))


def reply(text: str = YES, protocol: Api = "responses", usage: Usage | None = None) -> Reply:
    return Reply(text, "stop", usage, RawReply(200, json.dumps(reply_body(protocol, text))))


class NoWait(ModelProgress):
    """Does not wait, but counts time as if it had."""

    def __init__(self, **more: Any) -> None:
        super().__init__(clock=lambda: time.monotonic() + self._slept, **more)
        self._slept = 0.0

    def sleep(self, seconds: float, why: str) -> None:
        with self._lock:
            self._slept += seconds


def contender(name: str, model: str = "house-random", bot: str = "OpenAIBot", **more: Any) -> dict[str, Any]:
    return {"bot": bot, "name": name, "model": model, "base_url": "house"} | more


class Serves(typing.Protocol):
    """A server with an address."""

    def base_url(self, protocol: Api) -> str:
        """Return the base URL for the protocol's SDK."""


def player_at(server: Serves, protocol: Api = "responses", name: str = "asker", **more: Any) -> dict[str, Any]:
    settings = {"base_url": server.base_url(protocol), "api": protocol} | more
    return contender(name, "some-model", BOT_OF[protocol], **settings)


def small(*contenders: dict[str, Any], games: int = 4, turns: int = 9, **config: Any) -> Experiment:
    base: dict[str, Any] = {"table_sizes": [3], "bots": ["StefaBot", "UsualBot"], "rules": {"max_turns": turns}}
    return experiment(games=games, contenders=list(contenders), **base | config)


def run_games(of: Experiment, folder: Path, watch: ModelProgress | None = None, **calls: Any) -> RunResult:
    how = replace(means(folder, **calls), model_progress=watch or NoWait())
    return play(check_models(resolved(of), how.calls), folder, how)


def config_file(*contenders: object, name: str = "c.yaml", **config: Any) -> str:
    base: dict[str, Any] = {"games": 2, "table_sizes": [3], "bots": ["StefaBot", "UsualBot"], "rules": {"max_turns": 9}}
    Path(name).write_text(yaml.safe_dump(base | {"contenders": list(contenders)} | config), encoding="utf-8")
    return name


def run_cli(shell: Shell, *contenders: object, flags: Sequence[str] = (), **config: Any) -> Ended:
    return shell("run", config_file(*contenders, **config), "--output", "r", "--quiet", "--patience", "2s", *flags)


def rows(folder: Path, query: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(folder / "run.db")) as connection:
        return connection.execute(query, values).fetchall()


def forget_last_reply(run: Path, game: int, cache: Path) -> None:
    """Remove the built-in server's reply to a game's last question from the cache."""
    query = "SELECT request, draw FROM attempts WHERE game = ? ORDER BY decision DESC LIMIT 1"
    ((request, draw),) = rows(run, query, (game,))
    with diskcache.Cache(str(cache)) as entries:
        assert entries.delete(compute_key("house", request, draw))


def outcomes_of(folder: Path) -> dict[str, int]:
    return dict(rows(folder, "SELECT outcome, count(*) FROM decisions GROUP BY outcome"))


class Line:
    """A server that gives the next scripted answer, with a provider of each protocol that calls it."""

    def __init__(self, key: str) -> None:
        self.next = Response()
        self.server = Server(lambda _: self.next)
        self._key = key

    def __enter__(self) -> "Line":
        self.server.__enter__()
        urls = {protocol: self.server.base_url(protocol) for protocol in PROTOCOLS}
        self._providers = {
            protocol: Provider(Account(protocol, url, "SOME_KEY"), url, self._key, 4) for protocol, url in urls.items()
        }
        return self

    def __exit__(self, *_: object) -> None:
        for provider in self._providers.values():
            provider.close()
        self.server.__exit__()

    def __call__(self, response: Response, ask: Attempt) -> RawReply:
        self.next = response
        provider = next(one for protocol, one in self._providers.items() if protocol == ask.request.protocol)
        return provider.send(ask, 1, 20.0)


class Clock:
    """A clock that advances only in sleeps. It records the length and reason of each sleep."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []
        self.whys: list[str] = []
        self._lock = threading.Lock()

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float, why: str) -> None:
        """Advance the time at once, for all sleeping threads together."""
        with self._lock:
            self.slept.append(seconds)
            self.whys.append(why)
            self.now += seconds


Outcome = FailureKind | TryFailed | AccountFault | Reply | None  # None: a plain reply


@dataclass(frozen=True, slots=True)
class Sender:
    """The innermost stage of a call, as a function."""

    function: Callable[[Attempt, int], Reply]

    def send(self, attempt: Attempt, number: int) -> Reply:
        return self.function(attempt, number)


@dataclass(frozen=True, slots=True)
class AskFunction:
    """The innermost stage of an attempt, as a function."""

    function: Callable[[Attempt], Reply]

    def ask(self, attempt: Attempt) -> Reply:
        return self.function(attempt)


class Script:
    """A call that follows a script, and then replies."""

    def __init__(self, *outcomes: Outcome) -> None:
        self._outcomes = list(outcomes)
        self.numbers: list[int] = []  # numbers of the received tries

    def send(self, attempt: Attempt, number: int) -> Reply:
        self.numbers.append(number)
        outcome = self._outcomes.pop(0) if self._outcomes else None
        if isinstance(outcome, str):
            raise TryFailed(outcome, f"a {outcome} failure")
        if isinstance(outcome, Exception):
            raise outcome
        return outcome or reply()
