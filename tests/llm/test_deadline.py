"""The deadline of a try holds for any server, and does not affect the next try."""

import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from dubito.llm.client import Provider
from dubito.llm.request import TryFailed
from dubito.model_settings import Account, Api
from tests.cli.kit import Shell
from tests.llm.kit import KEY, PROTOCOLS, player_at, rows, run_cli, run_games, small
from tests.llm.raw_server import RawServer, answer
from tests.llm.test_providers import build_attempt

SHORT: Final = 0.3  # seconds
PATIENCE: Final = 20.0  # seconds after which the server gives up and the test fails
Manner = Callable[[], Iterator[bytes]]


def slowly(start: bytes, step: bytes = b"x") -> Manner:
    """Send one piece every hundredth of a second until the client disconnects."""

    def written() -> Iterator[bytes]:
        yield start
        for _ in range(int(PATIENCE * 100)):
            threading.Event().wait(0.01)
            yield step

    return written


HEAD: Final = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
SLOW: Final[Mapping[str, Manner]] = {
    "silent": lambda: iter(()),
    "trickles its head": slowly(b"HTTP/1.1 200 OK\r\nx-padding: "),
    "trickles its body": slowly(HEAD + b"content-length: 1000000\r\n\r\n"),
    "goes on for ever": slowly(HEAD + b"transfer-encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
}


def dawdler(*manners: str) -> RawServer:
    left = list(manners)
    return RawServer(lambda *_: SLOW.get(left.pop(0) if len(left) > 1 else left[0], answer)())


def provider(server: RawServer, protocol: Api) -> Provider:
    address = server.base_url(protocol)
    return Provider(Account(protocol, address, "SOME_KEY"), address, KEY, 4)


def late(call: Provider, protocol: Api) -> TryFailed:
    with pytest.raises(TryFailed) as failed:
        call.send(build_attempt(protocol), 1, SHORT)
    return failed.value


@pytest.mark.parametrize(("protocol", "manner"), [(PROTOCOLS[place % 3], manner) for place, manner in enumerate(SLOW)])
def test_slow_server_is_abandoned_at_the_deadline(protocol: Api, manner: str) -> None:
    with dawdler(manner) as server, closing(provider(server, protocol)) as call:
        error = late(call, protocol)
        assert server.left.wait(PATIENCE / 2), "the server must notice the disconnect"
    assert (error.kind, error.billed, error.retry_after) == ("deadline", True, None)
    assert str(error) == "no complete answer within the deadline of 0.3 s"


@pytest.mark.parametrize("manner", SLOW)
def test_connection_is_not_reused_after_a_deadline(manner: str) -> None:
    with dawdler("at once", manner, "at once") as server, closing(provider(server, "responses")) as call:
        assert call.send(build_attempt("responses"), 1, PATIENCE).status == 200
        assert late(call, "responses").kind == "deadline"
        for number in (3, 4):
            assert call.send(build_attempt("responses"), number, PATIENCE).status == 200
        assert server.requests == [1, 1, 2, 2], "good connections are reused, but not the slow one"


def test_deadline_applies_only_to_its_call() -> None:
    """While one call exceeds its deadline, other calls of the same client keep their own."""
    with dawdler("silent", "at once") as server, closing(provider(server, "responses")) as call:
        failed = list[TryFailed]()
        thread = threading.Thread(target=lambda: failed.append(late(call, "responses")))
        thread.start()
        assert server.asked.wait(PATIENCE), "the slow call must arrive first"
        for number in range(5):
            assert call.send(build_attempt("responses"), number, PATIENCE).status == 200
        thread.join(PATIENCE)
        assert [error.kind for error in failed] == ["deadline"]
        assert call.send(build_attempt("responses"), 9, PATIENCE).status == 200


def test_server_that_accepts_no_connection_is_abandoned() -> None:
    """With a full backlog, the connection is never established, or nothing reads the request."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with closing(Provider(Account("messages", address, None), address, KEY, 4)) as call:
            for _ in range(3):
                assert late(call, "messages").kind == "deadline"


def test_run_with_deadlines_is_marked_as_not_repeatable(shell: Shell) -> None:
    with dawdler("trickles its body", "at once") as server:
        who = player_at(server, deadline=1.0, tries=2)
        ended = run_cli(shell, who, games=1, flags=["--no-preflight"])
    assert ended.code == 0
    assert "Not repeatable: 1 call by asker hit the deadline." in ended.out.splitlines()
    tries = rows(Path("r"), "SELECT state, kind, error, assumed FROM tries WHERE try = 1 AND state = 'failed'")
    assert tries == [("failed", "deadline", "no complete answer within the deadline of 1 s", 1)]
    status = shell("status", "r").out.splitlines()
    assert "failed calls, deadline: 1" in status
    assert rows(Path("r"), "SELECT DISTINCT outcome FROM decisions") == [("model",)]


def test_run_stops_if_all_calls_pass_their_deadline(tmp_path: Path) -> None:
    with dawdler("trickles its head") as server:
        who = player_at(server, deadline=SHORT, tries=1)
        run = run_games(small(who, games=1, turns=3), tmp_path / "run", patience=5)
    log = run.models["asker"]
    assert "cannot be reached" in str(run.failure), "no call was answered"
    assert log.deadlines == log.calls == log.assumed > 0
