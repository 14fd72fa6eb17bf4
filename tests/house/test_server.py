"""The server: its log, its ports, many clients, and its end."""

import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import openai
import pytest

from dubito.house.core import Call
from dubito.house.faults import Faults
from dubito.house.server import House
from dubito.llm.request import Request
from tests.house.kit import FORMATS, POLICY, Asker, anthropic_at, openai_at


def test_every_call_is_one_record(tmp_path: Path) -> None:
    log = tmp_path / "calls.jsonl"
    messages: Any = [{"role": "user", "content": "123"}]
    system: Any = [{"type": "text", "text": "x" * 100, "cache_control": {"type": "ephemeral"}}]
    with House(policy=POLICY, log=log) as house:
        with Asker(house) as ask:
            ask("responses", "12345", model="house-honest", draw=7, attempt=3)
            ask("responses", "12345", model="house-honest", draw=8)
            ask("responses", "12345", model="gpt-9")
        with anthropic_at(house) as client:
            client.messages.create(model="house-random", max_tokens=9, system=system, messages=messages)
        with openai_at(house) as other:
            with pytest.raises(openai.BadRequestError):
                other.post("/responses", cast_to=object, content=b"{")
            other.models.list()
            with pytest.raises(openai.NotFoundError):
                other.get("/nothing", cast_to=object)
        calls = house.calls
        assert [json.loads(line) for line in log.read_text().splitlines()] == [asdict(call) for call in calls]
    first, second, third, fourth, *others = calls
    path = "/v1/responses"
    assert first == Call("responses", path, "house-honest", 200, first.request, "7", 3, 2, 4, 0, understood=True)
    assert second == replace(first, draw="8", try_number=1), "draw and try are not part of the request"
    assert third == Call("responses", path, "gpt-9", 404, third.request, "0", 1)
    assert third.request != first.request
    body = {"model": "gpt-9", "input": [{"role": "user", "content": "12345"}], **FORMATS["responses"]}
    assert third.request == Request("responses", "/responses", body).digest, "the pipeline stores the same digest"
    assert (fourth.protocol, fourth.path, fourth.understood) == ("messages", "/v1/messages", False)
    body = {"model": "house-random", "max_tokens": 9, "system": system, "messages": messages}
    assert fourth.request == Request("messages", "/v1/messages", body).digest
    assert (fourth.input_tokens, fourth.output_tokens, fourth.cached_tokens) == (26, 4, 25)
    assert [(call.path, call.model, call.status) for call in others] == [
        ("/v1/responses", None, 400),
        ("/v1/models", None, 200),
        ("/v1/nothing", None, 404),
    ]
    assert house.calls == calls, "the log can be read after the end"


def test_a_log_is_continued(tmp_path: Path) -> None:
    log = tmp_path / "calls.jsonl"
    for _ in range(2):
        with House(policy=POLICY, log=log) as house, Asker(house) as ask:
            ask("responses")
            assert len(house.calls) == 1
    assert len(log.read_text().splitlines()) == 2


@pytest.mark.parametrize("key", ["PLANTED-fine", "wrong-PLANTED", "broke-PLANTED"])
def test_no_key_and_no_header_gets_into_log_or_answer(
    tmp_path: Path, key: str, capfd: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "calls.jsonl"
    headers = {"x-other": "PLANTED", "openai-organization": "PLANTED"}
    with House(policy=POLICY, log=log, faults=Faults(server_error=0.5)) as house:
        with openai_at(house, key) as client, ThreadPoolExecutor(4) as pool:

            def one(draw: int) -> str:
                draws = {"x-dubito-draw": str(draw)}
                try:
                    raw = client.responses.with_raw_response.create(
                        model="house-random", input="?", extra_headers=headers | draws
                    )
                except openai.APIStatusError as error:
                    return f"{error.response.text} {error.response.headers}"
                return f"{raw.http_response.text} {raw.headers}"

            answers = list(pool.map(one, range(8)))
        calls = repr(house.calls)
    assert len(answers) == len(log.read_text().splitlines()) == 8
    for text in (log.read_text(), calls, *answers, *capfd.readouterr()):
        assert "PLANTED" not in text


def test_shutdown_leaves_no_threads() -> None:
    before = threading.active_count()
    with House(policy=POLICY) as house, Asker(house) as ask:
        assert ask("responses")[0] == 200
        assert threading.active_count() > before
        port = house.port
        house.__exit__(None, None, None)  # while a client still holds its connection
        assert threading.active_count() == before
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", port)) != 0, "nothing listens on the port"
    with House(port, policy=POLICY) as again, Asker(again) as ask:
        assert again.port == port, "the port is free immediately"
        assert ask("responses")[0] == 200


def test_shutdown_does_not_wait_for_latency() -> None:
    with ThreadPoolExecutor(8) as pool, House(policy=POLICY, latency=600) as house, Asker(house) as ask:
        asked = [pool.submit(ask, "responses", draw=draw) for draw in range(8)]
        while len(house.calls) < 8:
            assert not any(future.done() for future in asked)
        house.__exit__(None, None, None)
        assert [future.result()[0] for future in asked] == [200] * 8, "calls in flight were answered"


HALF_A_REQUEST = b"POST /v1/responses HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{"


def test_incomplete_request_does_not_delay_the_shutdown() -> None:
    with socket.socket() as slow, House(policy=POLICY) as house, Asker(house) as ask:
        slow.connect(("127.0.0.1", house.port))
        slow.sendall(HALF_A_REQUEST)
        assert ask("responses")[0] == 200
