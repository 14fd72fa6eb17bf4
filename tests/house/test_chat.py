"""The built-in model server's Chat Completions through OpenAI's SDK."""

from collections.abc import Iterator
from typing import Any

import openai
import pytest

from dubito.house.server import House
from dubito.llm.request import Request
from tests.house.kit import FORMATS, SEEN, openai_at

FORMAT = FORMATS["chat"]


@pytest.fixture(scope="module")
def client(house: House) -> Iterator[openai.OpenAI]:
    with openai_at(house) as client:
        yield client


def make_messages(text: str, role: str = "user") -> list[dict[str, Any]]:
    return [{"role": role, "content": text}]


def create(client: openai.OpenAI, **changed: Any) -> Any:
    return client.chat.completions.create(
        **{"model": "house-honest", "messages": make_messages("say yes"), **FORMAT, **changed}
    )


def test_structured_answer_is_returned(client: openai.OpenAI) -> None:
    reply = create(client, store=False, temperature=0.5, prompt_cache_key="k", n=1)
    (choice,) = reply.choices
    assert (choice.message.content, choice.message.refusal, choice.finish_reason) == ('{"answer":true}', None, "stop")
    assert (reply.object, reply.model) == ("chat.completion", "house-honest")
    assert reply.id.startswith("chatcmpl-")
    assert create(client, messages=make_messages("no")).choices[0].message.content == '{"answer":false}'


@pytest.mark.parametrize("kind", ["text", "json_object"])
def test_without_a_schema_the_answer_is_the_same(client: openai.OpenAI, kind: str) -> None:
    reply = create(client, messages=make_messages("say yes in JSON"), response_format={"type": kind})
    assert reply.choices[0].message.content == '{"answer":true}'


def test_the_reply_passes_the_sdks_own_strict_check(house: House) -> None:
    with openai.OpenAI(
        base_url=house.base_url("chat"), api_key="any", max_retries=0, _strict_response_validation=True
    ) as strict:
        assert create(strict).usage
        assert create(strict, max_completion_tokens=1).choices[0].finish_reason == "length"
        chunks = [*create(strict, stream=True, stream_options={"include_usage": True})]
        text = [choice.delta.content or "" for chunk in chunks for choice in chunk.choices]
        assert ("".join(text), chunks[-1].usage == create(strict).usage) == ('{"answer":true}', True)


def test_policy_receives_all_text_in_order(client: openai.OpenAI) -> None:
    parts = [{"type": "text", "text": "two"}, {"type": "text", "text": "three"}]
    refused = {"role": "assistant", "refusal": "no"}
    messages = [
        *make_messages("one", "system"),
        {"role": "user", "content": parts},
        *make_messages("four", "assistant"),
        refused,
    ]
    create(client, messages=[*messages, *make_messages("five", "developer")])
    assert SEEN[-1] == "one\ntwo\nthree\nfour\nfive"


@pytest.mark.parametrize("role", ["system", "developer"])
@pytest.mark.parametrize(("letters", "cached"), [(4 * 1024 - 4, 0), (4 * 1024, 1024)])
def test_a_long_system_message_counts_as_cached(client: openai.OpenAI, role: str, letters: int, cached: int) -> None:
    usage = create(client, messages=[*make_messages("x" * letters, role), *make_messages("12345")]).usage
    assert usage.prompt_tokens_details.cached_tokens == cached
    assert usage.prompt_tokens == letters // 4 + 2, "includes cached tokens"


@pytest.mark.parametrize("name", ["max_completion_tokens", "max_tokens"])
def test_a_limit_on_output_cuts(client: openai.OpenAI, name: str) -> None:
    cut = create(client, **{name: 3})
    assert (cut.choices[0].message.content, cut.choices[0].finish_reason) == ('{"answer":tr', "length")
    assert cut.usage.completion_tokens == 3
    assert create(client, **{name: 4}).choices[0].finish_reason == "stop"


def test_the_log_has_the_digest_of_the_pipeline(house: House, client: openai.OpenAI) -> None:
    raw = client.chat.completions.with_raw_response.create(
        model="house-random", messages=[{"role": "user", "content": "12345"}]
    )
    call = house.calls[-1]
    body = {"model": "house-random", "messages": make_messages("12345")}
    assert (call.protocol, call.path, call.status) == ("chat", "/v1/chat/completions", 200)
    assert call.request == Request("chat", "/chat/completions", body).digest
    assert (call.input_tokens, call.output_tokens) == (2, 4)
    assert raw.headers["x-ratelimit-remaining-requests"] == "9999"
    assert str(raw.request_id).startswith("req_")


OPEN_SCHEMA = {"type": "object", "properties": {"answer": {"type": "boolean"}}, "required": ["answer"]}
BAD_SCHEMA = {"type": "json_schema", "json_schema": {"name": "a", "strict": True, "schema": OPEN_SCHEMA}}
TOOL = {"type": "function", "function": {"name": "f"}}
# In addition to what both of OpenAI's protocols reject (test_openai.py).
REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"extra_body": {"messages": None}}, "missing_required_parameter", "messages"),
    ({"messages": [{"role": "user"}]}, "invalid_value", "messages[0].content"),
    ({"extra_body": {"input": "?"}}, "unknown_parameter", "input"),
    ({"n": 2}, "unsupported_parameter", "n"),
    ({"tools": [TOOL]}, "unsupported_parameter", "tools"),
    ({"max_tokens": 9, "max_completion_tokens": 9}, "unsupported_parameter", "max_tokens"),
    ({"max_completion_tokens": 0}, "invalid_value", "max_completion_tokens"),
    ({"response_format": {"type": "json_object"}}, "invalid_value", "messages"),
    (
        {"response_format": {"type": "json_schema", "json_schema": {"schema": OPEN_SCHEMA}}},
        "missing_required_parameter",
        "response_format.json_schema.name",
    ),
    ({"response_format": BAD_SCHEMA}, "invalid_json_schema", "response_format.json_schema.schema"),
]


@pytest.mark.parametrize(("changed", "code", "param"), REFUSED)
def test_errors_match_the_provider(client: openai.OpenAI, changed: dict[str, Any], code: str, param: str) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        create(client, **changed)
    assert (caught.value.code, caught.value.param) == (code, param)
    assert str(caught.value.request_id).startswith("req_")
