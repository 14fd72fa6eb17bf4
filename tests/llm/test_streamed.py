"""Streamed replies: the stored reply equals the unstreamed one, and broken streams have a cause.

The streams follow the providers' references and are written independently of the built-in server's.
"""

import contextlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from dubito.house.server import House
from dubito.llm.client import Provider
from dubito.llm.protocols import build_request, find_protocol, read_reply
from dubito.llm.protocols.events import EventReader
from dubito.llm.protocols.wire import Exchange
from dubito.llm.redaction import Redaction
from dubito.llm.request import AccountFault, Attempt, RawReply, TryFailed
from dubito.llm.streamed import StreamedReply, stream_to
from dubito.model_settings import Account, Api, ModelSettings
from tests.llm.kit import (
    PROTOCOLS,
    Incoming,
    Line,
    NoWait,
    Response,
    Server,
    ask,
    error_body,
    outcomes_of,
    player_at,
    reply_body,
    respond,
    rows,
    run_games,
    small,
)

KEY = "sk-a-key-of-nobody-0123456789"
STREAM = {"content-type": "text/event-stream; charset=utf-8"}
REPLY = '{"reasoning": "Nine is \u201cunlikely\u201d.", "answer": true}'
RESPONSE = {"id": "resp_1", "object": "response", "status": "completed", "output": [
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": REPLY}]}]}  # fmt: skip
EVENTS: Mapping[Api, list[Any]] = {
    "responses": [
        {"type": "response.created", "response": {"id": "resp_1", "status": "in_progress", "output": []}},
        {"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "I think: "},
        {"type": "response.output_text.delta", "output_index": 1, "delta": REPLY[:20]},
        {"type": "response.output_text.delta", "output_index": 1, "delta": REPLY[20:]},
        {"type": "response.of.tomorrow", "delta": {"no": "text"}},
        {"type": "response.completed", "sequence_number": 6, "response": RESPONSE},
    ],
    "chat": [
        {"id": "c", "created": 5, "model": "m", "choices": [{"index": 0, "delta": {"role": "assistant"}}]},
        {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"content": "", "reasoning": "I think: "}}]},
        {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"content": REPLY[:20]}, "finish_reason": None}]},
        {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"content": REPLY[20:]}, "finish_reason": None}]},
        {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        {"id": "c", "model": "m", "choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}},
        "[DONE]",
    ],
    "messages": [
        {"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant", "content": [],
            "stop_reason": None, "usage": {"input_tokens": 3, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
        {"type": "ping"},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "I think: "}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "s"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": REPLY[:20]}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": REPLY[20:]}},
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": {"output_tokens": 2}},
        {"type": "message_stop"},
    ],
}  # fmt: skip
WORDS = "I think: \nNine is \u201cunlikely\u201d."


def written(protocol: Api, response: list[Any], end: str = "\n") -> bytes:
    """Return the bytes of these events, with comments in between. Only one API names its events."""
    parts = [": keep-alive", ""]
    for one in response:
        parts += [f"event: {one['type']}"] if protocol != "chat" else []
        parts += [f"data: {one if isinstance(one, str) else json.dumps(one, ensure_ascii=False)}", ""]
    return end.join([*parts, ""]).encode()


def in_pieces(body: bytes, size: int) -> Iterator[bytes]:
    yield from (body[at : at + size] for at in range(0, len(body), size))


def event_reader(protocol: Api) -> EventReader:
    reader = find_protocol(protocol).event_reader
    assert reader is not None
    return reader()


def test_stream_gives_the_same_reply_however_it_is_split(subtests: pytest.Subtests) -> None:
    for protocol in PROTOCOLS:
        for end in ["\n", "\r\n", "\r"]:
            for size in [1, 7, 10_000]:
                with subtests.test(protocol=protocol, end=end, size=size):
                    progress: list[str] = []
                    pieces = in_pieces(written(protocol, EVENTS[protocol], end), size)
                    body = StreamedReply(event_reader(protocol), progress.append, Redaction(KEY)).read(pieces)
                    assert body is not None
                    read = read_reply(protocol, replace(READ, raw=body.decode()))
                    assert (read.text, read.finish) == (REPLY, "stop")
                    assert progress[-1] == WORDS
                    assert len(progress) >= 2
                    assert all(after.startswith(before) for before, after in pairwise(progress))
                    if protocol == "messages":
                        assert json.loads(body)["usage"] == {"input_tokens": 3, "output_tokens": 2}
                        assert json.loads(body)["content"][0] == {
                            "type": "thinking",
                            "thinking": "I think: ",
                            "signature": "s",
                        }


def test_response_is_stored_byte_for_byte() -> None:
    odd = '{ "output" :[ ],"a": 1.50, "note": "\\u00e9 \\"response\\": {}" }'
    stream = f'data: {{"sequence_number":9, "type": "response.completed" , "response":{odd} }}\n\n'.encode()
    assert StreamedReply(event_reader("responses"), lambda words: None, Redaction(KEY)).read([stream]) == odd.encode()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_incomplete_or_invalid_stream_is_not_a_reply(protocol: Api) -> None:
    last = {"responses": 1, "chat": 3, "messages": 1}[protocol]
    whole = written(protocol, EVENTS[protocol])
    for stream in (b"", whole[: len(whole) // 2], written(protocol, EVENTS[protocol][:-last]), b"data: {\n\n",
                   b"data: []\n\n", b'data: {"type": 5}\n\n', b"data: " + b"[" * 100_000 + b"\n\n"):  # fmt: skip
        assert StreamedReply(event_reader(protocol), lambda words: None, Redaction(KEY)).read([stream]) is None


READ = RawReply(200, "")


@pytest.fixture
def line() -> Iterator[Line]:
    with Line(KEY) as line:
        yield line


def streamed(line: Line, protocol: Api, response: Response) -> tuple[str, list[str]]:
    """Return the stored body, and the pieces that were reported while it arrived."""
    progress: list[str] = []
    with stream_to(progress.append):
        received = line(response, ask(protocol=protocol))
    return received.raw, progress


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_reply_is_streamed_only_with_a_callback(line: Line, protocol: Api) -> None:
    raw, pieces = streamed(line, protocol, Response(body=written(protocol, EVENTS[protocol]), headers=STREAM))
    assert read_reply(protocol, replace(READ, raw=raw)).text == REPLY
    assert pieces[-1] == WORDS
    assert line.server.requests[-1].body["stream"] is True
    line(respond(protocol), ask(protocol=protocol))
    assert "stream" not in line.server.requests[-1].body


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_server_without_streaming_still_answers(line: Line, protocol: Api) -> None:
    raw, pieces = streamed(line, protocol, respond(protocol))
    assert (json.loads(raw), pieces) == (reply_body(protocol), [])


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_stream_that_breaks_is_a_failed_try_that_may_be_billed(line: Line, protocol: Api) -> None:
    half = written(protocol, EVENTS[protocol][:-4])
    with pytest.raises(TryFailed, match="a stream that ended before its reply did, with status 200") as failed:
        streamed(line, protocol, Response(body=half, headers=STREAM))
    assert (failed.value.kind, failed.value.billed) == ("server", True)
    assert streamed(line, protocol, respond(protocol)) == (json.dumps(reply_body(protocol)), [])
    assert "stream" not in line.server.requests[-1].body  # the retry does not ask for a stream, which could be as odd


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_connection_that_is_lost_in_a_stream_is_a_lost_reply(line: Line, protocol: Api) -> None:
    half = written(protocol, EVENTS[protocol][:-4])
    with pytest.raises(TryFailed) as lost:
        streamed(line, protocol, Response(body=half, headers=STREAM, lost=100))
    assert (lost.value.kind, lost.value.billed) == ("connection", True)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_error_event_becomes_the_body(line: Line, protocol: Api) -> None:
    overloaded = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    response = written(protocol, [*EVENTS[protocol][:3], overloaded])
    raw, _ = streamed(line, protocol, Response(body=response, headers=STREAM))
    assert read_reply(protocol, replace(READ, raw=raw)).non_reply is not None
    assert json.loads(raw)["error"]["message"] == "Overloaded"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_key_is_redacted_in_streamed_text(line: Line, protocol: Api) -> None:
    events = json.loads(json.dumps(EVENTS[protocol]).replace("Nine is", f"Nine {KEY} is"))
    _, pieces = streamed(line, protocol, Response(body=written(protocol, events), headers=STREAM))
    assert pieces
    assert KEY not in "".join(pieces)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_account_without_streaming_is_asked_without_it(protocol: Api) -> None:
    message = "Your organization must be verified to stream this model."

    def strict(request: Incoming) -> Response:
        if "stream" in request.body:
            return Response(400, error_body(protocol, "invalid_request_error", message))
        return respond(protocol)

    with Server(strict) as server:
        address = server.base_url(protocol)
        provider, progress = Provider(Account(protocol, address, None), address, KEY, 1), list[str]()
        with stream_to(progress.append):
            with pytest.raises(TryFailed, match=f"^status 400 to a request for a streamed reply: {message}"):
                provider.send(ask(protocol=protocol), 1, 20.0)
            for number in (2, 3):
                assert json.loads(provider.send(ask(protocol=protocol), number, 20.0).raw) == reply_body(protocol)
        provider.close()
        assert ["stream" in request.body for request in server.requests] == [True, False, False]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_house_reply_is_the_same_with_and_without_streaming(protocol: Api) -> None:
    properties = {"reasoning": {"type": "string"}, "answer": {"type": "boolean"}}
    schema = {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}
    settings = ModelSettings(api=protocol, model="house-sharp", base_url="house")
    request = build_request(settings, Exchange("Rules.", "Do you doubt?", schema), "k")
    with House() as house:
        address = house.base_url(protocol)
        provider, progress = Provider(Account(protocol, address, None), address, KEY, 1), list[str]()
        plain = provider.send(Attempt(request, "d", ask().place), 1, 20.0)
        with stream_to(progress.append):
            assert provider.send(Attempt(request, "d", ask().place), 1, 20.0) == plain
        provider.close()
    assert len(progress) > 2


def test_progress_shows_how_much_of_a_prompt_is_read(tmp_path: Path) -> None:
    """llama.cpp's server streams this for `return_progress`. It delays its answer until the progress was seen."""
    is_seen = threading.Event()

    def answer(incoming: Incoming) -> Response:
        fields = incoming.body["response_format"]["json_schema"]["schema"]["required"]
        choice = {"index": 0, "delta": {"content": json.dumps(dict.fromkeys(fields, False))}, "finish_reason": "stop"}
        reading = {"choices": [], "prompt_progress": {"total": 500, "cache": 0, "processed": 200, "time_ms": 9}}
        body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in (reading, {"choices": [choice]}))
        return Response(body=body, headers=STREAM, waits=is_seen)

    progress = NoWait()

    def watch() -> None:
        while "reading the prompt: 40 %" not in progress.describe_use() and not is_seen.wait(0.01):
            pass
        is_seen.set()

    with Server(answer) as server:
        config = small(player_at(server, "chat", parameters={"return_progress": True}), games=1)
        watcher = threading.Thread(target=watch)
        watcher.start()
        run = run_games(config, tmp_path / "run", progress, in_flight=1)
        was_seen = is_seen.is_set()
        is_seen.set()
        watcher.join()
    assert was_seen
    assert run.failure is None
    assert "reading" not in progress.describe_use()


def without_streams(request: Incoming) -> Response:
    """Return the answer of a proxy that cannot stream, or that of the server behind it."""
    if "stream" in request.body:
        return Response(502, "<html><title>502 Bad Gateway</title></html>", {"content-type": "text/html"})
    return respond(request.protocol)


FAULTS: dict[str, Callable[[Incoming], Response]] = {
    "a status": without_streams,
    "a page": lambda request: Response(body="<html></html>") if "stream" in request.body else respond(request.protocol),
    "events of another type": (
        lambda request: Response(body="data: {}\n\n") if "stream" in request.body else respond(request.protocol)
    ),
    "a lost connection": lambda request: Response(lost=None) if "stream" in request.body else respond(request.protocol),
    "an unknown field": (
        lambda request: Response(422, '{"detail": "no"}') if "stream" in request.body else respond(request.protocol)
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_behind_a_proxy_that_cannot_stream_one_call_is_repeated_and_counted(tmp_path: Path, fault: str) -> None:
    with Server(FAULTS[fault]) as server:
        config = small(player_at(server, "chat", parameters={"return_progress": True}), games=1)
        run = run_games(config, tmp_path / "run", NoWait(), in_flight=1)
        streamed = ["stream" in request.body for request in server.requests]
    assert run.failure is None
    assert streamed == [True, *[False] * (len(streamed) - 1)]
    assert set(outcomes_of(tmp_path / "run")) == {"model"}
    assert rows(tmp_path / "run", "SELECT count(*) FROM tries WHERE state = 'failed'") == [(1,)]
    assert rows(tmp_path / "run", "SELECT count(*) FROM tries") == [(len(streamed),)]


@pytest.mark.parametrize("status", [401, 429, 503, 529])
def test_fault_of_the_account_does_not_end_streaming(line: Line, status: int) -> None:
    for response in (Response(status, error_body("chat", "some_error", "Upstream is busy.")), respond("chat")):
        with contextlib.suppress(TryFailed, AccountFault):
            streamed(line, "chat", response)
    assert ["stream" in request.body for request in line.server.requests[-2:]] == [True, True]
