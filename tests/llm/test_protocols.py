"""Parsing replies of all protocols from any body."""

import json
from dataclasses import replace
from typing import Any

import pytest

from dubito.llm.protocols import read_recorded_reply, read_reply
from dubito.llm.request import RawReply, Reply
from dubito.model_settings import Api
from tests.llm.kit import PROTOCOLS, YES, reply_body


def read(protocol: Api, body: Any) -> Reply:
    return read_reply(protocol, RawReply(200, json.dumps(body)))


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(("finish", "read_as"), [("stop", "stop"), ("length", "length"), ("filter", "refusal")])
def test_text_and_end_of_a_reply_are_read(protocol: Api, finish: str, read_as: str) -> None:
    reply = read(protocol, reply_body(protocol, YES, finish))
    assert (reply.text, reply.finish, reply.origin) == (YES, read_as, "live")


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("finish", ["stop", "length", "filter"])
def test_reply_without_text_has_a_cause(protocol: Api, finish: str) -> None:
    reply = read(protocol, reply_body(protocol, None, finish))
    assert reply.text is None
    assert reply.finish == {"stop": "stop", "length": "length", "filter": "refusal"}[finish]


def test_refusal_is_read_in_each_protocol() -> None:
    openai = read("responses", reply_body("responses", "I cannot help with that.", "refusal"))
    assert (openai.text, openai.finish) == (None, "refusal")
    anthropic = read("messages", reply_body("messages", "I cannot", "refusal"))
    assert (anthropic.text, anthropic.finish) == ("I cannot", "refusal")
    chat = read("chat", reply_body("chat", "I cannot help with that.", "refusal"))
    assert (chat.text, chat.finish) == ("I cannot help with that.", "refusal")


def test_text_after_reasoning_is_read() -> None:
    inner = [{"type": "output_text", "text": "no text of the reply"}]
    thought = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}], "content": inner}
    body = reply_body("responses")
    assert read("responses", body | {"output": [thought, *body["output"]]}).text == YES
    assert read("responses", body | {"output": [thought]}).text is None
    thought = {"type": "thinking", "thinking": "hm", "text": "no text of the reply"}
    body = reply_body("messages")
    assert read("messages", body | {"content": [thought, *body["content"]]}).text == YES
    assert read("messages", body | {"content": [thought]}).text is None


def test_text_in_parts_is_one() -> None:
    parts = [{"type": "output_text", "text": '{"answer"'}, {"type": "output_text", "text": ": true}"}]
    assert read("responses", reply_body("responses", output=[{"type": "message", "content": parts}])).text == YES
    parts = [{"type": "text", "text": '{"answer"'}, {"type": "text", "text": ": true}"}]
    assert read("messages", reply_body("messages", content=parts)).text == YES


@pytest.mark.parametrize("status", ["failed", "in_progress", "cancelled", "queued", None, 7, []])
def test_a_response_that_is_not_completed_has_no_text_to_read(status: Any) -> None:
    reply = read("responses", reply_body("responses", status=status))
    assert (reply.text, reply.finish) == (None if isinstance(status, str) else YES, "other")


@pytest.mark.parametrize("reason", ["tool_use", "pause_turn", "something new", None, 7, []])
def test_text_of_a_message_that_stopped_otherwise_is_read_unless_it_paused(reason: Any) -> None:
    reply = read("messages", reply_body("messages", stop_reason=reason))
    assert (reply.text, reply.finish) == (None if reason == "pause_turn" else YES, "other")


def test_other_stop_reasons_are_classified() -> None:
    assert read("messages", reply_body("messages", stop_reason="stop_sequence")).finish == "stop"
    assert read("messages", reply_body("messages", stop_reason="model_context_window_exceeded")).finish == "length"


def test_other_incomplete_response_is_not_finished() -> None:
    body = reply_body("responses", status="incomplete", incomplete_details={"reason": "something new"})
    assert (read("responses", body).text, read("responses", body).finish) == (None, "other")


def test_body_that_is_not_an_object_has_no_text(subtests: pytest.Subtests) -> None:
    for protocol in PROTOCOLS:
        for raw in ["", "<html>", "{", "null", "[]", '"text"', "7", "true", "[" * 100_000, "9" * 5000]:
            with subtests.test(protocol=protocol, raw=raw):
                reply = read_reply(protocol, RawReply(200, raw))
                assert reply.non_reply is not None
                assert reply.non_reply.kind is not None
                assert reply == replace(Reply(None, "other", None, RawReply(200, raw)), non_reply=reply.non_reply)
                assert read_recorded_reply(protocol, raw).digest == Reply(None, "other", None, RawReply(200, "")).digest


def test_reply_digest_covers_text_and_finish() -> None:
    reply = read("responses", reply_body("responses"))
    assert reply.digest == read("messages", reply_body("messages", usage=None)).digest
    assert reply.digest == read("chat", reply_body("chat", id="another")).digest
    assert reply.digest != read("responses", reply_body("responses", '{"answer": false}')).digest
    assert reply.digest != read("responses", reply_body("responses", finish="length")).digest
