"""Each content fault in each protocol: the body, the finish reason, the SDK's result and the log."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from dubito.house.core import Policy
from dubito.house.faults import CONTENT_FAULTS, Faults
from dubito.house.request import Opinion
from dubito.house.server import House
from dubito.house.wires import ModelOutput
from tests.house.kit import POLICY, PROTOCOLS, Asker, answer_in, anthropic_at, openai_at, text_and_end, usage_in

YES = '{"answer":true}'
NESTED = "[" * 2000 + "]" * 2000
FILTER = {"responses": "content_filter", "chat": "content_filter", "messages": "refusal"}
STOP = {"responses": "completed", "chat": "stop", "messages": "end_turn"}
LENGTH = {"responses": "max_output_tokens", "chat": "length", "messages": "max_tokens"}
TEXTS: dict[str, str] = {
    "fenced": f"```json\n{YES}\n```",
    "prose": f"I have thought about it. My answer is {YES}. I hope this helps!",
    "wrong_string": '{"answer":"true"}',
    "wrong_number": '{"answer":1}',
    "wrong_null": '{"answer":null}',
    "nan": '{"answer":NaN}',
    "no_answer": "{}",
    "duplicate_keys": '{"answer":true,"answer":false}',
    "extra_fields": '{"answer":true,"confidence":"high"}',
    "surrogate": '{"answer":true,"mood":"\ud83d"}',
    "escapes": f"\x1b[2J\x1b]0;house\x07\x1b[31m\r\x00\u202e{YES}",
    "deep": f'{{"answer":{NESTED}}}',
    "empty_text": "",
    "unknown_fields": YES,
    "huge": YES,
    "no_usage": YES,
    "bad_usage": YES,
}
ENDS: dict[str, tuple[str | None, dict[str, str]]] = {
    "no_output": (None, STOP),
    "reasoning_only": (None, STOP),
    "reasoning_cut": (None, LENGTH),
    "cut_off": ('{"answe', LENGTH),
    "content_filter": ('{"answe', FILTER),
}
NO_MESSAGE = ("deep_body", "truncated_json", "broken_json", "wrong_shape", "empty_body", "html")
UNCOUNTED = ("no_usage", "bad_usage", *NO_MESSAGE)
Replies = dict[tuple[str, str], tuple[str, Any, Any]]


@pytest.fixture(scope="module")
def replies() -> Replies:
    """Return the body, the headers and the log record for each fault in each protocol."""
    found: Replies = {}
    for name in CONTENT_FAULTS:
        for protocol, (body, headers, call) in zip(PROTOCOLS, _ask_each_protocol(name), strict=True):
            found[protocol, name] = (body, headers, call)
    return found


def _ask_each_protocol(name: str) -> Iterator[tuple[str, Any, Any]]:
    faults = Faults(size=2_000_000, **{name: 1})
    user, rules = {"role": "user", "content": "say yes"}, "x" * 4096
    messages: Any = [{"role": "system", "content": rules}, user]
    system = [{"type": "text", "text": rules, "cache_control": {"type": "ephemeral"}}]
    with House(policy=POLICY, faults=faults) as house, openai_at(house) as client, anthropic_at(house) as other:
        for ask, more in (
            (client.responses, {"input": messages, "max_output_tokens": 4000}),
            (client.chat.completions, {"messages": messages, "max_completion_tokens": 4000}),
            (other.messages, {"messages": [user], "system": system, "max_tokens": 4000}),
        ):
            raw = ask.with_raw_response.create(model="house-honest", **more)
            assert raw.status_code == 200
            yield raw.http_response.text, raw.headers, house.calls[-1]


def test_content_fault_changes_the_text(replies: Replies, subtests: pytest.Subtests) -> None:
    for protocol in PROTOCOLS:
        for name in TEXTS:
            with subtests.test(protocol=protocol, name=name):
                assert text_and_end(replies[protocol, name][0]) == (TEXTS[name], STOP[protocol])


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", ENDS)
def test_content_fault_changes_the_finish_reason(replies: Replies, protocol: str, name: str) -> None:
    text, ends = ENDS[name]
    assert text_and_end(replies[protocol, name][0]) == (text, ends[protocol])


def test_a_refusal_in_each_protocols_shape(replies: Replies) -> None:
    sorry = "I'm sorry, but I can't help with that."
    bodies = {protocol: json.loads(replies[protocol, "refusal"][0]) for protocol in PROTOCOLS}
    assert bodies["responses"]["output"][0]["content"] == [{"type": "refusal", "refusal": sorry}]
    assert bodies["responses"]["status"] == "completed"
    (choice,) = bodies["chat"]["choices"]
    assert (choice["message"]["content"], choice["message"]["refusal"], choice["finish_reason"]) == (
        None,
        sorry,
        "stop",
    )
    assert (bodies["messages"]["content"], bodies["messages"]["stop_reason"]) == ([], "refusal")
    assert bodies["messages"]["stop_details"]["type"] == "refusal"


def test_thoughts_in_each_protocols_shape(replies: Replies) -> None:
    thought = f"I would say {YES}"
    bodies = {protocol: json.loads(replies[protocol, "reasoning_only"][0]) for protocol in PROTOCOLS}
    (item,) = bodies["responses"]["output"]
    assert (item["type"], item["summary"]) == ("reasoning", [{"type": "summary_text", "text": thought}])
    message = bodies["chat"]["choices"][0]["message"]
    assert (message["content"], message["reasoning_content"]) == (None, thought)
    (block,) = bodies["messages"]["content"]
    assert (block["type"], block["thinking"]) == ("thinking", thought)
    details = [
        bodies["responses"]["usage"]["output_tokens_details"]["reasoning_tokens"],
        bodies["chat"]["usage"]["completion_tokens_details"]["reasoning_tokens"],
        bodies["messages"]["usage"]["output_tokens_details"]["thinking_tokens"],
    ]
    assert details == [7] * 3


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_bodies_that_are_not_messages(replies: Replies, protocol: str) -> None:
    bodies = {name: replies[protocol, name][0] for name in NO_MESSAGE}
    assert bodies["empty_body"] == ""
    assert isinstance(json.loads(bodies["wrong_shape"]), list)
    for name in ("truncated_json", "broken_json", "empty_body", "html"):
        with pytest.raises(json.JSONDecodeError):
            json.loads(bodies[name])
    with pytest.raises(RecursionError):
        json.loads(bodies["deep_body"])
    assert replies[protocol, "html"][1]["content-type"].startswith("text/html")
    for name in CONTENT_FAULTS:
        assert int(replies[protocol, name][1]["content-length"]) == len(replies[protocol, name][0].encode())


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_bodies_with_extra_or_missing_parts(replies: Replies, protocol: str) -> None:
    assert len(replies[protocol, "huge"][0]) > 2_000_000
    novel = json.loads(replies[protocol, "unknown_fields"][0])
    assert "house_novelty" in novel
    assert "house_novelty" in novel["usage"]
    items = novel[{"responses": "output", "chat": "choices", "messages": "content"}[protocol]]
    assert "house_novelty" in items[0]
    assert "usage" not in json.loads(replies[protocol, "no_usage"][0])
    assert set(json.loads(replies[protocol, "bad_usage"][0])["usage"].values()) == {-1}


def test_log_counts_match_the_reply(replies: Replies, subtests: pytest.Subtests) -> None:
    for protocol in PROTOCOLS:
        for name in CONTENT_FAULTS:
            with subtests.test(protocol=protocol, name=name):
                body, _, call = replies[protocol, name]
                assert (call.fault, call.status, call.understood) == (name, 200, True)
                stated = (0, 0, 0) if name in UNCOUNTED else usage_in(body)
                assert stated[2] == (0 if name in UNCOUNTED else 1024)
                assert (call.input_tokens, call.output_tokens, call.cached_tokens) == stated


def test_every_content_fault_is_tried_here() -> None:
    assert {*TEXTS, *ENDS, *NO_MESSAGE, "refusal"} == set(CONTENT_FAULTS)


@pytest.mark.parametrize("name", ["unknown_fields", "huge", "no_usage", "bad_usage"])
def test_sdks_accept_unknown_fields(name: str) -> None:
    with House(policy=POLICY, faults=Faults(**{name: 1})) as house, Asker(house) as ask:
        assert [answer_in(ask(protocol, "say yes", model="house-honest")[1]) for protocol in PROTOCOLS] == [True] * 3
        with openai_at(house) as client:
            reply = client.responses.create(model="house-honest", input="say yes")
    assert reply.output_text == YES


def test_fault_changes_the_answer_of_a_filled_schema() -> None:
    """A fault changes the answer but no other field of the schema."""
    policy = Policy(("house-honest",), lambda model, prompt, chance, schema: Opinion(False, True, 0.25))
    properties = {"reasoning": {"type": "string"}, "p_bluff": {"type": "number"}, "answer": {"type": "boolean"}}
    schema = {"type": "object", "additionalProperties": False, "properties": properties, "required": [*properties]}
    form: Any = {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": schema}}
    texts = {}
    for name in ("wrong_string", "wrong_number", "duplicate_keys", "extra_fields"):
        with House(policy=policy, faults=Faults(**{name: 1})) as house, openai_at(house) as client:
            reply = client.chat.completions.create(
                model="house-honest", messages=[{"role": "user", "content": "?"}], response_format=form
            )
        texts[name] = reply.choices[0].message.content
    start = '{"reasoning":"The house has no reasons.","p_bluff":0.25,"answer":'
    assert texts == {
        "wrong_string": f'{start}"false"}}',
        "wrong_number": f"{start}0}}",
        "duplicate_keys": f'{start}false,"answer":true}}',
        "extra_fields": f'{start}false,"confidence":"high"}}',
    }


def test_output_limit_applies_to_faults() -> None:
    for name, end in (("prose", "length"), ("reasoning_only", "length"), ("content_filter", "content_filter")):
        with House(policy=POLICY, faults=Faults(**{name: 1})) as house, openai_at(house) as client:
            reply: Any = client.chat.completions.create(
                model="house-honest", messages=[{"role": "user", "content": "say yes"}], max_completion_tokens=1
            )
        assert (reply.usage.completion_tokens, reply.choices[0].finish_reason) == (1, end)


@pytest.mark.parametrize(
    ("written", "limit", "cut"),
    [
        (ModelOutput("12345678"), 2, ModelOutput("12345678")),
        (ModelOutput("12345678"), 1, ModelOutput("1234", "length")),
        (ModelOutput("12345678", "refused"), 1, ModelOutput("1234", "refused")),
        (ModelOutput("5678", "stop", "1234"), 1, ModelOutput(None, "length", "1234")),
        (ModelOutput(None, "stop", "12345678"), 1, ModelOutput(None, "length", "1234")),
        (ModelOutput("123\ud83d5678"), 1, ModelOutput("123", "length")),
    ],
)
def test_text_is_cut_at_a_limit(written: ModelOutput, limit: int | None, cut: ModelOutput) -> None:
    assert written.truncate(limit) == cut
