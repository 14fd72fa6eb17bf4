"""Each transport fault through the SDKs, or through a raw socket if the SDKs would wait."""

import gc
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import anthropic
import openai
import pytest

from dubito.house.faults import Faults
from dubito.house.server import House
from tests.house.kit import POLICY, PROTOCOLS, Asker, anthropic_at, bare, openai_at, rest, usage_in, wait_for_calls

CONNECTION = ("reset", "dropped", "cut_headers", "cut_body")


@contextmanager
def struck(**faults: float) -> Iterator[House]:
    with House(policy=POLICY, faults=Faults(**faults)) as house:
        yield house


def ask_once(house: House, protocol: str) -> None:
    messages: Any = [{"role": "user", "content": "?"}]
    if protocol == "messages":
        with anthropic_at(house) as other:
            other.messages.create(model="house-random", max_tokens=9, messages=messages)
        return
    with openai_at(house) as client:
        if protocol == "chat":
            client.chat.completions.create(model="house-random", messages=messages)
        else:
            client.responses.create(model="house-random", input="?")


def error_of(house: House, protocol: str) -> Any:
    with pytest.raises((openai.APIError, anthropic.APIError)) as caught:
        ask_once(house, protocol)
    return caught.value


STATUSES = [
    ("server_error", 500, openai.InternalServerError, anthropic.InternalServerError),
    ("bad_gateway", 502, openai.InternalServerError, anthropic.InternalServerError),
    ("unavailable", 503, openai.InternalServerError, anthropic.ServiceUnavailableError),
    ("overloaded", 529, openai.InternalServerError, anthropic.OverloadedError),
    ("rate_limit", 429, openai.RateLimitError, anthropic.RateLimitError),
]


@pytest.mark.parametrize(("name", "status", "of_openai", "of_anthropic"), STATUSES)
def test_errors_have_their_class_and_one_record(name: str, status: int, of_openai: type, of_anthropic: type) -> None:
    with struck(**{name: 1}) as house:
        for protocol in PROTOCOLS:
            error = error_of(house, protocol)
            assert (error.status_code, str(error.request_id)[:4]) == (status, "req_")
            assert type(error) is (of_anthropic if protocol == "messages" else of_openai)
        calls = house.calls
    assert [call.protocol for call in calls] == list(PROTOCOLS)
    for call in calls:
        assert (call.fault, call.status, call.input_tokens, call.output_tokens) == (name, status, 0, 0)
        assert call.model == "house-random"


def test_errors_follow_the_protocol_and_gateways_send_html() -> None:
    with struck(overloaded=1) as house:
        assert error_of(house, "messages").type == "overloaded_error"
        assert error_of(house, "chat").type == "service_unavailable_error"
    with struck(bad_gateway=1) as house:
        response = error_of(house, "chat").response
    assert response.headers["content-type"].startswith("text/html")
    assert response.text.startswith("<!DOCTYPE html>")


WAITS: list[tuple[str, dict[str, float], dict[str, str]]] = [
    ("rate_limit", {"retry_after": 0.02}, {"retry-after": "0.02"}),
    ("rate_limit", {"retry_after": 3.0}, {"retry-after": "3"}),
    ("rate_limit_bare", {}, {}),
    ("rate_limit_ms", {"retry_after": 0.0125}, {"retry-after-ms": "12.5"}),
    ("rate_limit_date", {}, {"retry-after": "Thu, 01 Jan 2026 00:00:00 GMT"}),
]


@pytest.mark.parametrize(("name", "parameters", "headers"), WAITS)
def test_a_rate_limit_names_its_wait(name: str, parameters: dict[str, float], headers: dict[str, str]) -> None:
    with struck(**{name: 1}, **parameters) as house:
        for protocol in PROTOCOLS:
            sent = error_of(house, protocol).response.headers
            assert {name: value for name, value in sent.items() if name.startswith("retry-after")} == headers
            limits = "anthropic-ratelimit-requests-remaining", "x-ratelimit-remaining-requests"
            assert sent[limits[protocol != "messages"]] == "0"


def waits(name: str) -> set[str]:
    """Return the wait headers of many answers."""
    lines: list[str] = []
    with struck(**{name: 1}) as house:
        for draw in range(40):
            with bare(house, draw) as connection:
                lines += (rest(connection) or b"").decode().splitlines()
    return {line for line in lines if line.startswith("retry-after")}


def test_waits_may_be_garbled_or_absurd() -> None:
    text = {f"retry-after: {value}" for value in ("soon", "", "-1", "nan", "1,5", "0x10")}
    assert waits("rate_limit_garbled") == text | {"retry-after: Thu, 32 Foo 2026 25:61:00 GMT"}
    text = {f"retry-after: {value}" for value in ("7200", "1e12", "inf", "9" * 400, "Fri, 31 Dec 9999 23:59:59 GMT")}
    assert waits("rate_limit_long") == text | {"retry-after-ms: 7200000.5"}


@pytest.mark.parametrize("name", CONNECTION)
def test_a_broken_connection_is_a_connection_error(name: str) -> None:
    with struck(**{name: 1}) as house:
        for protocol in PROTOCOLS:
            kind = type(error_of(house, protocol))
            assert kind in (openai.APIConnectionError, anthropic.APIConnectionError), (
                "it is not the subclass for timeouts"
            )
        calls = house.calls
    assert [call.protocol for call in calls] == list(PROTOCOLS)
    for call in calls:
        assert (call.fault, call.status, call.input_tokens, call.output_tokens) == (name, 0, 0, 0)


def test_data_before_a_broken_connection() -> None:
    received: dict[str, bytes | None] = {}
    for name in CONNECTION:
        with struck(**{name: 1}) as house, bare(house) as connection:
            received[name] = rest(connection)
    assert received["reset"] is None
    assert received["dropped"] == b""
    head, body = received["cut_headers"], received["cut_body"]
    assert head is not None
    assert head.startswith(b"HTTP/1.1 200 \r\n")
    assert b"\r\n\r\n" not in head
    assert body is not None
    start, _, half = body.partition(b"\r\n\r\n")
    length = int(start.lower().partition(b"content-length: ")[2].split()[0])
    assert len(half) == length // 2


def assert_silent(house: House, connection: socket.socket) -> None:
    """Check that this connection receives neither a byte nor an end while others are served."""
    with openai_at(house) as other:
        assert other.models.list().data
    connection.setblocking(False)
    with pytest.raises(BlockingIOError):
        connection.recv(1)
    connection.setblocking(True)


def test_client_can_leave_a_stalled_answer(caplog: pytest.LogCaptureFixture) -> None:
    with struck(stall=1) as house:
        for place in (0, 2):
            with bare(house) as connection:
                call = wait_for_calls(house, place + 1)[place]
                assert_silent(house, connection)
            assert (call.fault, call.status, call.input_tokens) == ("stall", 0, 0)
    assert not caplog.records


def test_client_that_disconnects_before_a_fault_causes_no_error(caplog: pytest.LogCaptureFixture) -> None:
    with House(policy=POLICY, faults=Faults(reset=0.5, cut_body=0.5), latency=600) as house:
        for draw in range(8):
            with bare(house, draw):
                pass
        with bare(house, 8) as connection:
            house.__exit__(None, None, None)
            rest(connection)
        assert {call.fault for call in wait_for_calls(house, 9)} == {"reset", "cut_body"}
    assert not caplog.records


def test_stalled_body_is_a_failed_try(caplog: pytest.LogCaptureFixture) -> None:
    with struck(cut_body=1) as house, bare(house) as connection:
        half = rest(connection) or b""
    with struck(stall_body=1) as house, bare(house) as connection:
        assert connection.recv(len(half), socket.MSG_WAITALL) == half
        assert_silent(house, connection)
        assert wait_for_calls(house, 1)[0].status == 0
        house.__exit__(None, None, None)
        assert rest(connection) in (b"", None), "the server has stopped, so nothing more arrives"
    assert not caplog.records


def test_trickled_reply_has_the_same_bytes() -> None:
    with struck(trickle=1, interval=0) as house, Asker(house) as ask:
        trickled = [ask(protocol) for protocol in PROTOCOLS]
        calls = house.calls
    with struck() as house, Asker(house) as ask:
        assert [ask(protocol) for protocol in PROTOCOLS] == trickled
    assert [(call.fault, call.status) for call in calls] == [("trickle", 200)] * 3
    assert [(call.input_tokens, call.output_tokens, call.cached_tokens) for call in calls] == [
        usage_in(body) for _, body in trickled
    ]


def test_many_clients_on_hold_do_not_delay_the_shutdown(caplog: pytest.LogCaptureFixture) -> None:
    gc.collect()  # so that no client of another test has open files
    threads, files = threading.active_count(), len(os.listdir("/dev/fd"))
    with ExitStack() as clients, struck(stall=0.5, stall_body=0.5) as house:
        connections = [clients.enter_context(bare(house, draw)) for draw in range(128)]
        calls = wait_for_calls(house, 128)
        house.__exit__(None, None, None)
        assert {len(rest(connection) or b"") > 0 for connection in connections} == {True, False}
        assert house.calls == calls, "each call has one record"
    assert {(call.fault, call.status) for call in calls} == {("stall", 0), ("stall_body", 0)}
    assert not caplog.records, "the server did not wait for a client"
    assert (threading.active_count(), len(os.listdir("/dev/fd"))) == (threads, files)
