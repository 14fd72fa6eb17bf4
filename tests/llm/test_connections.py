"""Connections that servers close while idle cost nothing, and endless bodies are rejected."""

import gzip
import socket
import struct
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any, Final

import httpcore2
import httpx2
import pytest

from dubito.llm.client import Provider
from dubito.llm.connections import Deadline
from dubito.llm.request import RawReply, TryFailed
from dubito.model_settings import Account
from tests.llm.kit import ask
from tests.llm.raw_server import BODY, Answer, RawServer, answer

MOST: Final = 8 * 2**20


@contextmanager
def asked_at(answers: Answer, patience: float | None = None) -> Iterator[tuple[Callable[[], RawReply], RawServer]]:
    """Return a function that calls a server with this answer."""
    with RawServer(answers, patience) as server:
        address = server.base_url("responses")
        with closing(Provider(Account("responses", address, None), address, "no-key-needed", 4)) as provider:
            yield lambda: provider.send(ask(), 1, 20), server


def test_connection_is_reused() -> None:
    with asked_at(lambda connection, number: answer()) as (call, server):
        assert [call().status for _ in range(3)] == [200] * 3
    assert server.requests == [1, 1, 1]


@pytest.mark.parametrize("many", [False, True])
def test_connection_closed_before_the_request_is_a_connect_error(many: bool) -> None:
    """The end of the request may or may not have been written."""
    with Line() as line:
        line.exchange()
        line.theirs.close()
        line.send(many)
        with pytest.raises(httpcore2.ConnectError):
            line.ours.read(9)
        assert line.deadline.pop_stale()
        assert not line.deadline.pop_stale(), "the flag is reset"
        assert line.deadline.max_idle < 1, "connections may no longer be idle for that long"


@pytest.mark.parametrize("reset", [False, True])
def test_connection_closed_after_the_request_loses_the_answer(reset: bool) -> None:
    with Line() as line:
        line.exchange()
        line.send(many=False)
        assert line.theirs.recv(9) == b"again"
        if reset:
            line.theirs.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        line.theirs.close()
        try:
            assert line.ours.read(9) == b""
        except httpcore2.ReadError:
            assert reset
        assert not line.deadline.pop_stale()


class Line:
    """A client's connection with the server's end."""

    def __enter__(self) -> "Line":
        self._listener = socket.create_server(("127.0.0.1", 0))
        client = httpx2.Client()
        self.deadline = Deadline(client)
        transport: Any = client._transport
        self.ours = transport._pool._network_backend.connect_tcp(*self._listener.getsockname())
        self.theirs, _ = self._listener.accept()
        client.close()
        return self

    def __exit__(self, *_: object) -> None:
        for end in (self.ours, self.theirs, self._listener):
            end.close()

    def exchange(self) -> None:
        """Send a request and return its answer."""
        self.ours.write(b"first")
        assert self.theirs.recv(9) == b"first"
        self.theirs.sendall(b"answer")
        assert self.ours.read(9) == b"answer"

    def send(self, many: bool) -> None:
        with suppress(httpcore2.WriteError):
            for _ in range(100 if many else 1):
                self.ours.write(b"again")


def test_server_that_closes_idle_connections_costs_nothing() -> None:
    """The next request is sent after the close: no try is lost and no cost is assumed."""
    with asked_at(lambda connection, number: answer(), patience=0.03) as (call, server):
        for _ in range(20):
            assert call().raw == BODY.decode()
            server.left.wait(20)
            server.left.clear()
    assert len(server.requests) == 20


def test_a_new_connection_that_is_closed_may_have_been_billed() -> None:
    with asked_at(lambda connection, number: None) as (call, server):
        with pytest.raises(TryFailed) as failed:
            call()
        assert (failed.value.kind, failed.value.billed) == ("connection", True)
    assert server.requests == [1], "the request is not repeated at this level"


def test_a_used_connection_closed_when_asked_may_be_billed() -> None:
    with asked_at(lambda connection, number: answer() if number == 1 else None) as (call, server):
        assert call().status == 200
        with pytest.raises(TryFailed) as failed:
            call()
        assert (failed.value.kind, failed.value.billed) == ("connection", True)
    assert server.requests == [1, 1]


def test_an_answer_broken_off_on_a_used_connection_may_be_billed() -> None:
    def broken(connection: int, number: int) -> Iterator[bytes] | None:
        return answer() if number == 1 else cut()

    def cut() -> Iterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\n"
        raise OSError

    with asked_at(broken) as (call, server):
        assert call().status == 200
        with pytest.raises(TryFailed) as failed:
            call()
        assert (failed.value.kind, failed.value.billed) == ("connection", True)
    assert server.requests == [1, 1]


def test_keep_alive_header_is_respected() -> None:
    with asked_at(lambda connection, number: answer(BODY, "keep-alive: timeout=0, max=100")) as (call, server):
        assert [call().status for _ in range(3)] == [200] * 3
    assert server.requests == [1, 2, 3]


def zeros(packed: bytes) -> Iterator[bytes]:
    """Return this answer, or an endless one."""
    if not packed:
        yield b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
        while True:
            yield b"10000\r\n" + bytes(2**16) + b"\r\n"
    yield from answer(packed, "content-encoding: gzip")


@pytest.mark.parametrize("packed", [False, True])
def test_body_over_the_limit_is_not_a_reply(packed: bool) -> None:
    """For a compressed body, the limit of 64 MB applies to the decompressed size."""
    body = gzip.compress(bytes(2**26), 1) if packed else b""
    with asked_at(lambda connection, number: zeros(body) if number == 1 else None) as (call, _):
        tracemalloc.start()
        try:
            with pytest.raises(TryFailed, match=r"^a body of more than 8 MB with status 200$") as failed:
                call()
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert most < 4 * MOST
    assert (failed.value.kind, failed.value.billed) == ("server", True)


def test_body_at_the_limit_is_stored() -> None:
    with asked_at(lambda connection, number: answer(BODY.ljust(MOST))) as (call, _):
        assert len(call().raw) == MOST


def test_connection_opened_during_close_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C also aborts calls that are just connecting, which the connection pool does not know yet."""
    opened = list[socket.socket]()
    connect = socket.create_connection
    with RawServer(lambda connection, number: answer()) as server:
        address = server.base_url("responses")
        provider = Provider(Account("responses", address, None), address, "no-key-needed", 4)

        def close_meanwhile(*args: Any, **options: Any) -> socket.socket:
            opened.append(connect(*args, **options))
            provider.close()
            return opened[-1]

        monkeypatch.setattr(socket, "create_connection", close_meanwhile)
        with pytest.raises(TryFailed):
            provider.send(ask(), 1, 20)
    assert [connection.fileno() for connection in opened] == [-1]


def test_call_after_close_opens_no_connection() -> None:
    with RawServer(lambda connection, number: answer()) as server:
        address = server.base_url("responses")
        provider = Provider(Account("responses", address, None), address, "no-key-needed", 4)
        provider.close()
        with pytest.raises(TryFailed):
            provider.send(ask(), 1, 20)
    assert server.requests == []
