"""Requests of both protocols, and what is read out of any body at all."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dubito.llm.protocols import Exchange, build_request, read_reply
from dubito.llm.wire import Protocol, Received, Reply, Usage
from tests.llm.kit import PROTOCOLS, YES, reply_body, settings

AGAIN = (("I doubt", "Only JSON."), ("true", "Only the object."))


def read(protocol: Protocol, body: Any) -> Reply:
    return read_reply(protocol, Received(200, json.dumps(body)))


def test_a_request_of_openais_protocol() -> None:
    request = build_request(settings("responses", max_output=99), Exchange("S", "U", AGAIN), "the-prompt")
    assert (request.protocol, request.path) == ("responses", "/responses")
    assert {key: value for key, value in request.body.items() if key != "text"} == {
        "model": "some-model",
        "input": [
            {"role": "developer", "content": "S"},
            {"role": "user", "content": "U"},
            {"role": "assistant", "content": "I doubt"},
            {"role": "user", "content": "Only JSON."},
            {"role": "assistant", "content": "true"},
            {"role": "user", "content": "Only the object."},
        ],
        "max_output_tokens": 99,
        "prompt_cache_key": "the-prompt",
        "store": False,
    }


def test_a_request_of_anthropics_protocol() -> None:
    request = build_request(settings("messages", max_output=99), Exchange("S", "U", AGAIN), "the-prompt")
    assert (request.protocol, request.path) == ("messages", "/v1/messages")
    assert {key: value for key, value in request.body.items() if key != "output_config"} == {
        "model": "some-model",
        "max_tokens": 99,
        "system": [{"type": "text", "text": "S", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {"role": "user", "content": "U"},
            {"role": "assistant", "content": "I doubt"},
            {"role": "user", "content": "Only JSON."},
            {"role": "assistant", "content": "true"},
            {"role": "user", "content": "Only the object."},
        ],
    }


def test_parameters_are_sent_beside_what_the_harness_sends() -> None:
    ours = build_request(settings("responses", parameters={"reasoning": {"effort": "low"}}), Exchange("S", "U"), "k")
    assert ours.body["reasoning"] == {"effort": "low"}
    theirs = build_request(
        settings("messages", parameters={"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}}),
        Exchange("S", "U"),
        "k",
    )
    assert theirs.body["thinking"] == {"type": "adaptive"}
    assert theirs.body["output_config"]["effort"] == "low"
    assert theirs.body["output_config"]["format"]["type"] == "json_schema"


def test_the_schema_cannot_be_taken_away_by_a_parameter() -> None:
    request = build_request(
        settings("messages", parameters={"output_config": {"format": {"type": "text"}}}), Exchange("S", "U"), "k"
    )
    assert request.body["output_config"]["format"]["type"] == "json_schema"


def test_the_digest_tells_requests_apart_and_nothing_else() -> None:
    def digest(system: str = "S", **changes: Any) -> str:
        return build_request(settings(**changes), Exchange(system, "U"), "k").digest

    assert digest() == digest(tries=9, deadline=5, sample=3, base_url="http://127.0.0.1:1/v1", fallback="StefaBot")
    different = [digest(), digest("T"), digest(model="other"), digest(max_output=17), digest(parameters={"a": 1})]
    assert len(set(different)) == len(different)
    one = build_request(settings(parameters={"a": 1, "b": 2}), Exchange("S", "U"), "k")
    assert one.digest == build_request(settings(parameters={"b": 2, "a": 1}), Exchange("S", "U"), "k").digest


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(("finish", "read_as"), [("stop", "stop"), ("length", "length"), ("filter", "refusal")])
def test_text_and_finish(protocol: Protocol, finish: str, read_as: str) -> None:
    reply = read(protocol, reply_body(protocol, YES, finish))
    assert (reply.text, reply.finish, reply.origin) == (YES, read_as, "live")


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("finish", ["stop", "length", "filter"])
def test_a_reply_that_never_came_to_text(protocol: Protocol, finish: str) -> None:
    reply = read(protocol, reply_body(protocol, None, finish))
    assert reply.text is None
    assert reply.finish == {"stop": "stop", "length": "length", "filter": "refusal"}[finish]


def test_refusals_of_each_protocol() -> None:
    openai = read("responses", reply_body("responses", "I cannot help with that.", "refusal"))
    assert (openai.text, openai.finish) == (None, "refusal")
    anthropic = read("messages", reply_body("messages", "I cannot", "refusal"))
    assert (anthropic.text, anthropic.finish) == ("I cannot", "refusal")


def test_text_is_found_behind_reasoning() -> None:
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
    assert (reply.text, reply.finish) == (None, "other")


@pytest.mark.parametrize("reason", ["tool_use", "pause_turn", "something new", None, 7, []])
def test_a_message_that_stopped_otherwise_has_no_text_to_read(reason: Any) -> None:
    reply = read("messages", reply_body("messages", stop_reason=reason))
    assert (reply.text, reply.finish) == (None, "other")


def test_other_ends_of_a_message() -> None:
    assert read("messages", reply_body("messages", stop_reason="stop_sequence")).finish == "stop"
    assert read("messages", reply_body("messages", stop_reason="model_context_window_exceeded")).finish == "length"


def test_an_incomplete_response_for_another_reason_is_no_end() -> None:
    body = reply_body("responses", status="incomplete", incomplete_details={"reason": "something new"})
    assert read("responses", body).finish == "other"


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("raw", ["", "<html>", "{", "null", "[]", '"text"', "7", "true", "[" * 100_000, "9" * 5000])
def test_what_is_no_object_has_no_text(protocol: Protocol, raw: str) -> None:
    received = Received(200, raw)
    assert read_reply(protocol, received) == Reply(None, "other", None, received)


KEYS = [
    *("output", "content", "type", "text", "status", "incomplete_details", "reason", "usage", "stop_reason"),
    *("input_tokens", "output_tokens", "input_tokens_details", "output_tokens_details", "cached_tokens"),
    *("cache_read_input_tokens", "cache_creation_input_tokens", "thinking_tokens", "reasoning_tokens"),
]
WORDS = ["message", "output_text", "refusal", "completed", "incomplete", "end_turn", "max_tokens", "text"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(WORDS) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6)
        | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=20,
)


@given(st.sampled_from(PROTOCOLS), JSON)
def test_any_json_at_all_is_read_without_an_exception(protocol: Protocol, body: Any) -> None:
    reply = read(protocol, body)
    assert reply.text is None or isinstance(reply.text, str)
    assert reply.finish in ("stop", "length", "refusal", "other")
    assert reply.received.raw == json.dumps(body)
    assert len(reply.digest) == 64


@given(st.sampled_from(PROTOCOLS), st.sampled_from(KEYS), JSON)
def test_a_good_body_with_one_wrong_part_is_read_without_an_exception(protocol: Protocol, key: str, value: Any) -> None:
    reply = read(protocol, reply_body(protocol) | {key: value})
    assert reply.text is None or isinstance(reply.text, str)
    if key not in ("output", "content", "status", "incomplete_details", "stop_reason"):
        assert (reply.text, reply.finish) == (YES, "stop")


def test_openai_counts_cached_tokens_within_the_input() -> None:
    usage = {
        "input_tokens": 1000,
        "input_tokens_details": {"cached_tokens": 600, "cache_write_tokens": 50},
        "output_tokens": 30,
        "output_tokens_details": {"reasoning_tokens": 20},
    }
    assert read("responses", reply_body("responses", usage=usage)).usage == Usage(1000, 600, 50, 30, 20)


def test_anthropic_counts_cached_tokens_beside_the_input() -> None:
    usage = {
        "input_tokens": 1000,
        "cache_read_input_tokens": 600,
        "cache_creation_input_tokens": 50,
        "output_tokens": 30,
        "output_tokens_details": {"thinking_tokens": 20},
    }
    assert read("messages", reply_body("messages", usage=usage)).usage == Usage(1650, 600, 50, 30, 20)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_usage_without_cached_tokens(protocol: Protocol) -> None:
    assert read(protocol, reply_body(protocol)).usage == Usage(100, 0, 0, 20, 0)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("usage", [None, [], 7, {}, {"input_tokens": 5}, {"output_tokens": 5}])
def test_missing_usage_is_no_usage(protocol: Protocol, usage: Any) -> None:
    assert read(protocol, reply_body(protocol, usage=usage)).usage is None


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("count", [None, "100", 1.5, -1, True, []])
def test_a_count_that_is_none_is_missing_usage(protocol: Protocol, count: Any) -> None:
    """Not nothing: what is missing is reckoned at its worst, what is 0 was free."""
    usage = {"input_tokens": count, "output_tokens": 5}
    assert read(protocol, reply_body(protocol, usage=usage)).usage is None


def test_the_reply_digest_is_of_text_and_finish() -> None:
    reply = read("responses", reply_body("responses"))
    assert reply.digest == read("messages", reply_body("messages", usage=None)).digest
    assert reply.digest != read("responses", reply_body("responses", '{"answer": false}')).digest
    assert reply.digest != read("responses", reply_body("responses", finish="length")).digest
