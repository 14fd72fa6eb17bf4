"""The deadline of a try: no server holds one longer, however it sends; the next try is not the worse for it."""

import json
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import BinaryIO, Final, Literal

import pytest

from dubito.llm.client import Provider
from dubito.llm.request import Api, TryFailed
from dubito.llm.settings import Account
from tests.cli.kit import Shell
from tests.conftest import cases
from tests.llm.kit import KEY, PROTOCOLS, asker, played, ran, reply_body, rows, small
from tests.llm.test_providers import asked

Manner = Literal["at once", "silent", "trickles its head", "trickles its body", "goes on for ever"]
SLOW: Final[Sequence[Manner]] = ("silent", "trickles its head", "trickles its body", "goes on for ever")
SHORT: Final = 0.3  # seconds
PATIENCE: Final = 20.0  # seconds after which the server itself gives up, and a test has failed


class Dawdler:
    """A server on a raw socket that answers each request in the next manner of a list, the last one for ever after.

    It never ends a slow answer by itself, unless its patience ends: the client must.
    """

    def __init__(self, *manners: Manner, protocol: Api = "responses") -> None:
        self._manners, self._protocol = list(manners), protocol
        self.requests: list[int] = []  # the connection of each
        self.asked = threading.Event()  # somebody has
        self.ends: list[str] = []  # of each connection: `the client left`, or `out of patience`
        self._connections = 0
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._start(self._accept)

    def __enter__(self) -> "Dawdler":
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(PATIENCE)

    def base_url(self, protocol: Api) -> str:
        """The base URL for that protocol's SDK."""
        address = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        return address if protocol == "messages" else f"{address}/v1"

    def _start(self, work: Callable[..., None], *of: object) -> None:
        thread = threading.Thread(target=work, args=of, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._connections += 1
            self._start(self._serve, connection, self._connections)

    def _serve(self, connection: socket.socket, number: int) -> None:
        with connection, connection.makefile("rb") as incoming:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                while self._request(incoming):
                    with self._lock:
                        self.requests.append(number)
                        manner = self._manners.pop(0) if len(self._manners) > 1 else self._manners[0]
                    self.asked.set()
                    if not self._answer(connection, manner):
                        self.ends.append("out of patience")
                        return
            except OSError:
                pass
            self.ends.append("the client left")

    def _request(self, incoming: BinaryIO) -> bool:
        """Read a request; False if the client has gone."""
        length = 0
        while line := incoming.readline().strip():
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        return length > 0 and len(incoming.read(length)) == length

    def _answer(self, connection: socket.socket, manner: Manner) -> bool:
        """Answer in this manner until the client leaves (an OSError); False when the patience is out."""
        body = json.dumps(reply_body(self._protocol)).encode()
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
        whole = head + b"content-length: %d\r\n\r\n" % len(body) + body
        match manner:
            case "at once":
                connection.sendall(whole)
                return True
            case "silent":
                return self._until_left(connection)
            case "trickles its head":
                return self._trickle(connection, b"HTTP/1.1 200 OK\r\nx-padding: ")
            case "trickles its body":
                return self._trickle(connection, head + b"content-length: 1000000\r\n\r\n")
            case "goes on for ever":
                return self._trickle(connection, head + b"transfer-encoding: chunked\r\n\r\n", b"1\r\nx\r\n")

    def _until_left(self, connection: socket.socket) -> bool:
        connection.settimeout(PATIENCE)
        try:
            if not connection.recv(1):
                raise ConnectionError
        except TimeoutError:
            pass
        return False

    def _trickle(self, connection: socket.socket, start: bytes, step: bytes = b"x") -> bool:
        """A step every hundredth of a second."""
        connection.sendall(start)
        for _ in range(int(PATIENCE * 100)):
            if self._over.wait(0.01):
                break
            connection.sendall(step)
        return False


def provider(server: Dawdler, protocol: Api) -> Provider:
    address = server.base_url(protocol)
    return Provider(Account(protocol, address, "SOME_KEY"), address, KEY, 4)


def late(call: Provider, protocol: Api) -> TryFailed:
    """What a try with a short deadline raises."""
    with pytest.raises(TryFailed) as failed:
        call(asked(protocol), 1, SHORT)
    return failed.value


@cases(("protocol", "manner"), [(PROTOCOLS[place % 3], manner) for place, manner in enumerate(SLOW)])
def test_a_server_that_dawdles_is_left_at_the_deadline(protocol: Api, manner: Manner) -> None:
    with Dawdler(manner, protocol=protocol) as server:
        with closing(provider(server, protocol)) as call:
            error = late(call, protocol)
        for thread in server._threads[1:]:
            thread.join(PATIENCE)
        assert server.ends == ["the client left"], "it would have gone on"
    assert (error.kind, error.billed, error.retry_after) == ("deadline", True, None)
    assert str(error) == "no complete answer within the deadline of 0.3 s"


@cases("manner", SLOW)
def test_the_connection_is_not_used_again_and_the_next_call_works(manner: Manner) -> None:
    with Dawdler("at once", manner, "at once") as server, closing(provider(server, "responses")) as call:
        assert call(asked("responses"), 1, PATIENCE).status == 200
        assert late(call, "responses").kind == "deadline"
        for number in (3, 4):
            assert call(asked("responses"), number, PATIENCE).status == 200
        assert server.requests == [1, 1, 2, 2], "good connections are used again, the slow one is not"


def test_a_deadline_is_of_its_own_call_only() -> None:
    """While one call runs into its deadline, others of the same client have theirs."""
    with Dawdler("silent", "at once") as server, closing(provider(server, "responses")) as call:
        failed = list[TryFailed]()
        thread = threading.Thread(target=lambda: failed.append(late(call, "responses")))
        thread.start()
        assert server.asked.wait(PATIENCE), "the slow one is to come first"
        for number in range(5):
            assert call(asked("responses"), number, PATIENCE).status == 200
        thread.join(PATIENCE)
        assert [error.kind for error in failed] == ["deadline"]
        assert call(asked("responses"), 9, PATIENCE).status == 200


def test_a_server_that_accepts_nobody_is_left_too() -> None:
    """A full backlog: the connection itself never comes about, or nothing ever reads what was sent."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with closing(Provider(Account("messages", address, None), address, KEY, 4)) as call:
            for _ in range(3):
                assert late(call, "messages").kind == "deadline"


def test_a_run_with_deadlines_says_that_it_is_not_repeatable(shell: Shell) -> None:
    with Dawdler("trickles its body", "at once") as server:
        who = asker(server, deadline=1.0, tries=2)
        ended = played(shell, who, games=1, flags=["--no-preflight"])
    assert ended.code == 0
    assert "Not repeatable: 1 calls of asker were cut off by their deadline." in ended.out.splitlines()
    tries = rows(Path("r"), "SELECT state, kind, error, assumed FROM tries WHERE try = 1 AND state = 'failed'")
    assert tries == [("failed", "deadline", "no complete answer within the deadline of 1 s", 1)]
    status = shell("status", "r").out.splitlines()
    assert "failed calls, deadline: 1" in status
    assert rows(Path("r"), "SELECT DISTINCT outcome FROM decisions") == [("model",)]


def test_an_account_of_nothing_but_deadlines_stops_the_run(tmp_path: Path) -> None:
    with Dawdler("trickles its head") as server:
        who = asker(server, deadline=SHORT, tries=1)
        run = ran(small(who, games=1, turns=3), tmp_path / "run", patience=5)
    log = run.models["asker"]
    assert "cannot be reached" in str(run.failure), "nobody is answered"
    assert log.deadlines == log.calls == log.assumed > 0
