"""The server of `dubito seat` against strangers, and against requests that can be read in two ways."""

import re
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from threading import Thread
from typing import Any

import pytest

from dubito.cli.file_limit import raise_file_limit
from dubito.seats.remote import AgentSeat
from dubito.serve import MAX_CONNECTIONS, listen, serve_in_thread
from dubito.web.agent import ENDPOINTS, build_openapi, make_agent_app
from tests.seats.kit import Connection

HALF_REQUESTS = (b"", b"GET /observe HT", b"POST /act HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{")


@pytest.fixture
def served() -> Iterator[tuple[AgentSeat, Connection, int]]:
    seat = AgentSeat("agent", 1, 60)
    with listen("127.0.0.1", 0) as listener, serve_in_thread(make_agent_app([seat], "127.0.0.1", (), {}), listener):
        port = listener.getsockname()[1]
        yield seat, Connection(f"http://127.0.0.1:{port}/", {"agent": seat.token}), port


def test_strangers_connections_do_not_keep_the_agent_out(served: tuple[AgentSeat, Connection, int]) -> None:
    raise_file_limit(4 * MAX_CONNECTIONS)
    seat, connection, port = served
    polls = list[Any]()
    poll = Thread(target=lambda: polls.append(connection.request("observe?wait=60")))
    poll.start()
    with ExitStack() as strangers:
        asked = 0
        for number in range(MAX_CONNECTIONS + 100):
            stranger = strangers.enter_context(socket.create_connection(("127.0.0.1", port), 60))
            with suppress(ConnectionError):
                stranger.sendall(HALF_REQUESTS[number % len(HALF_REQUESTS)])
            if number % 20 == 0 or number > MAX_CONNECTIONS + 80:
                assert connection.request("observe?wait=0")[0] == 200
                asked += 1
        assert asked > 40
        seat.end_run("finished")
        poll.join()
    assert polls[0][1]["state"] == "over"


def test_visitor_above_the_limit_is_refused_if_all_connections_have_a_token(
    served: tuple[AgentSeat, Connection, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    seat, _, port = served
    monkeypatch.setattr("dubito.serve.max_connections", lambda: 1)
    with socket.create_connection(("127.0.0.1", port), 60) as known:
        known.sendall(_request(seat, "GET /result"))
        assert known.recv(9999).startswith(b"HTTP/1.1 200")
        with socket.create_connection(("127.0.0.1", port), 60) as stranger:
            assert stranger.recv(9999).startswith(b"HTTP/1.1 503")


def _request(seat: AgentSeat, start: str, headers: str = "", body: str = "") -> bytes:
    return (f"{start} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {seat.token}\r\n{headers}\r\n{body}").encode(
        "latin-1"
    )


def _send(port: int, data: bytes) -> tuple[list[int], bytes]:
    """Return the statuses of all responses, and what was received until the server closed the connection."""
    received = b""
    with socket.create_connection(("127.0.0.1", port), 60) as sent, suppress(ConnectionError):
        sent.sendall(data)
        while part := sent.recv(9999):
            received += part
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d+)", received)], received


BODY = '{"question": 9, "answer": true}'
CHUNKED = f"{len(BODY):x}\r\n{BODY}\r\n0\r\n\r\n"
CLOSE = "Connection: close\r\n"
JSON = "Content-Type: application/json\r\n"
LENGTH = f"Content-Length: {len(BODY)}\r\n"
AMBIGUOUS = {
    "length and chunks": ("Transfer-Encoding: chunked\r\n" + LENGTH, CHUNKED),
    "chunks and length": (LENGTH + "Transfer-Encoding: chunked\r\n", CHUNKED),
    "folded chunks and length": (LENGTH + "Transfer-Encoding:\r\n chunked\r\n", CHUNKED),
    "two lengths": (LENGTH + "Content-Length: 5\r\n", BODY),
    "a list of lengths": (f"Content-Length: {len(BODY)}, 5\r\n", BODY),
    "a length with a sign": (f"Content-Length: +{len(BODY)}\r\n", BODY),
    "a hexadecimal length": (f"Content-Length: {len(BODY):#x}\r\n", BODY),
    "a space before the colon": (f"Content-Length : {len(BODY)}\r\n", BODY),
    "another encoding": ("Transfer-Encoding: xchunked\r\n", CHUNKED),
    "two encodings": ("Transfer-Encoding: chunked, identity\r\n", CHUNKED),
    "an encoding twice": ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", CHUNKED),
    "a vertical tab": ("Transfer-Encoding: \x0bchunked\r\n", CHUNKED),
    "a line feed in a chunk": ("Transfer-Encoding: chunked\r\n", CHUNKED.replace("\r\n", "\n", 1)),
    "a chunk with a sign": ("Transfer-Encoding: chunked\r\n", f"-{CHUNKED}"),
    "a chunk without an end": ("Transfer-Encoding: chunked\r\n", CHUNKED.replace("}\r\n", "}XX")),
    "a carriage return in a header": (f"X: a\rTransfer-Encoding: chunked\r\n{LENGTH}", BODY),
    "a null byte in a header": (f"X: a\0b\r\n{LENGTH}", BODY),
    "two hosts": (f"Host: evil.example\r\n{LENGTH}", BODY),
    "two tokens": (f"Authorization: Bearer x\r\n{LENGTH}", BODY),
    "two types": (f"Content-Type: text/plain\r\n{LENGTH}", BODY),
}


@pytest.mark.parametrize("case", AMBIGUOUS)
def test_ambiguous_request_ends_the_connection(served: tuple[AgentSeat, Connection, int], case: str) -> None:
    seat, _, port = served
    headers, body = AMBIGUOUS[case]
    smuggled = _request(seat, "GET /result", CLOSE)
    statuses, received = _send(port, _request(seat, "POST /act", JSON + headers, body) + smuggled)
    assert statuses == [400], received


def test_description_lists_every_status(served: tuple[AgentSeat, Connection, int]) -> None:
    seat, _, port = served
    document, seen = build_openapi(), set[int]()
    heads = ("", JSON, "Origin: http://evil.example\r\n", "Transfer-Encoding: chunked\r\n", "Accept: text/html\r\n")
    bodies = ("", BODY, "{", '{"question": 9, "question": 9, "answer": 1}', "[" * 4000, "x" * 5000)
    for name, endpoint in ENDPOINTS.items():
        described = document["paths"][f"/{name}"][endpoint.method.lower()]["responses"].keys()
        for method in ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "FOO"):
            for head in heads:
                for body in bodies:
                    length = f"Content-Length: {len(body)}\r\n" if body else ""
                    start = f"{method} /{name}?wait={'0' if body else 'x'}"
                    data = _request(seat, start, CLOSE + head + length, body)
                    if head == heads[-1]:
                        data = data.replace(seat.token.encode(), b"x")
                    statuses, received = _send(port, data)
                    assert {*map(str, statuses)} <= {*described}, (data, received)
                    seen |= {*statuses}
                    assert (405 in statuses) == (b"\r\nallow: " in received), (data, received)
    statuses, received = _send(port, _request(seat, "GET /result", CLOSE).replace(b"127.0.0.1", b"evil.example"))
    assert seen | {*statuses} == {200, 400, 401, 403, 405, 409, 413, 415, 421, 422}
