"""`dubito seat` in this process, with an agent in a thread."""

import json
import os
import re
import signal
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from dubito.cli.output import say
from tests.cli.kit import Result, Shell


@dataclass(slots=True)
class Connection:
    """The connection details that `dubito seat` prints for an agent."""

    url: str
    tokens: dict[str, str]
    lines: list[str] = field(default_factory=list)

    def request(
        self, path: str, body: Any = None, token: str | None = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, Any]:
        """Send a request, and return its status and the JSON in the response."""
        sent = {"Content-Type": "application/json", **(headers or {})}
        if token != "":
            sent["Authorization"] = f"Bearer {token or next(iter(self.tokens.values()))}"
        content = None if body is None else body.encode() if isinstance(body, str) else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, content, sent)  # noqa: S310, on this machine
        try:
            with urllib.request.urlopen(request, timeout=60) as response:  # noqa: S310
                return response.status, json.load(response)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)


Agent = Callable[[Connection], object]


def play_agent(connection: Connection, token: str | None = None) -> list[dict[str, Any]]:
    """Answer all questions honestly until the run is over, and return the messages."""
    messages = list[dict[str, Any]]()
    while (seen := connection.request("observe", token=token)[1])["state"] != "over":
        if seen["state"] == "decide":
            messages += seen["messages"]
            body = {"question": seen["question"], "answer": honest_answer(seen["messages"][-1])}
            assert connection.request("act", body, token) == (200, {"accepted": True, "question": seen["question"]})
    return [*messages, *seen["messages"]]


def honest_answer(message: Mapping[str, Any]) -> Any:
    """Answer like examples/programs/honest.py. In other games, give the first legal answer or the first card held."""
    if message["node"] in ("A", "B", "C", "D", "E"):
        return message["facts"]["prev_about_to_win"] if message["node"] == "C" else message["node"] in ("B", "E")
    return message["legal"][0] if message["legal"] else [int(next(iter(message["facts"]["hand"])))]


def serve_agent(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, agent: Agent, *words: str, tokens: int = 1
) -> tuple[Result, Connection]:
    """Run `dubito seat` with an agent, which starts once the address and the tokens are printed."""
    connection, errors = Connection("", {}), list[BaseException]()

    def run_agent() -> None:
        try:
            agent(connection)
        except BaseException as error:
            errors.append(error)
            # Otherwise the run would wait for the next answer.
            os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=run_agent)

    def read_line(line: str) -> None:
        say(line)
        connection.lines.append(line)
        if found := re.match(r"HTTP: (\S+)", line):
            connection.url = found[1]
        if found := re.match(r"Token of (.+): (\S+)", line):
            connection.tokens[found[1]] = found[2]
        if line.startswith("Waiting"):
            assert len(connection.tokens) == tokens
            thread.start()

    with monkeypatch.context() as patch:
        patch.setattr("dubito.cli.seat.say", read_line)
        result = shell("seat", "--listen", "127.0.0.1:0", *words)
    if connection.url:
        thread.join()
    if errors:
        raise errors[0]
    return result, connection
