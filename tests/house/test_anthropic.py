"""The built-in model server through Anthropic's SDK."""

from collections.abc import Iterator
from typing import Any

import anthropic
import pytest

from dubito.house.server import House
from tests.house.kit import FORMATS, POLICY, SEEN, anthropic_at

FORMAT = FORMATS["messages"]
MARK = {"cache_control": {"type": "ephemeral"}}


@pytest.fixture(scope="module")
def client(house: House) -> Iterator[anthropic.Anthropic]:
    with anthropic_at(house) as client:
        yield client


def user_messages(text: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": text}]


def create(client: anthropic.Anthropic, **changed: Any) -> Any:
    request = {"model": "house-honest", "max_tokens": 100, "messages": user_messages("say yes"), **FORMAT, **changed}
    return client.messages.create(**request)


def test_structured_answer_is_returned(client: anthropic.Anthropic) -> None:
    reply = create(client)
    assert [block.to_dict() for block in reply.content] == [
        {"type": "text", "text": '{"answer":true}', "citations": None}
    ]
    assert (reply.stop_reason, reply.role, reply.model) == ("end_turn", "assistant", "house-honest")
    assert reply.id.startswith("msg_01")
    assert create(client, messages=user_messages("no")).content[0].text == '{"answer":false}'
    assert create(client, output_config={"effort": "low"}).content[0].text == '{"answer":true}', "free text is the same"


def test_the_reply_passes_the_sdks_own_strict_check(house: House) -> None:
    with anthropic.Anthropic(
        base_url=house.anthropic_base_url, api_key="any", max_retries=0, _strict_response_validation=True
    ) as strict:
        assert create(strict).stop_reason == "end_turn"
        assert create(strict, max_tokens=1).stop_reason == "max_tokens"
        events = [*create(strict, stream=True)]
        assert "".join(event.delta.text for event in events if event.type == "content_block_delta") == '{"answer":true}'
        assert (events[-2].type, events[-2].delta.stop_reason) == ("message_delta", "end_turn")
        assert [model.id for model in strict.models.list()] == list(POLICY.models)


def test_policy_receives_all_text_in_order(client: anthropic.Anthropic) -> None:
    system = [{"type": "text", "text": "one", **MARK}, {"type": "text", "text": "two"}]
    blocks = [{"type": "text", "text": "three"}, {"type": "text", "text": "four"}]
    messages = [{"role": "user", "content": blocks}, *user_messages("five")]
    create(client, system=system, messages=messages)
    assert SEEN[-1] == "one\ntwo\nthree\nfour\nfive"


def test_blocks_before_a_cache_mark_count_as_cached(client: anthropic.Anthropic) -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    blocks = [{"type": "text", "text": "a" * 399}, {"type": "text", "text": "b" * 39}, {"type": "text", "text": "c"}]
    for marked, cached in ((0, 100), (1, 200), (2, 210)):
        content = [block | mark if place == marked else block for place, block in enumerate(blocks)]
        system = [{"type": "text", "text": "s" * 400, **mark}]
        usage = create(client, system=system, messages=[{"role": "user", "content": content}]).usage
        assert abs(usage.cache_read_input_tokens - cached) <= 1
        assert usage.input_tokens + usage.cache_read_input_tokens == 211


@pytest.mark.parametrize(
    ("system", "extra", "cached"),
    [
        ("x" * 8000, {}, 0),
        ("x" * 8000, MARK, 2000),
        ([{"type": "text", "text": "x" * 8000}], {}, 0),
        ([{"type": "text", "text": "x" * 4000, **MARK}, {"type": "text", "text": "x" * 3999}], {}, 1000),
        ([{"type": "text", "text": "x" * 4000}, {"type": "text", "text": "x" * 3999, **MARK}], {}, 2000),
    ],
)
def test_marked_system_text_counts_as_cached(
    client: anthropic.Anthropic, system: Any, extra: dict[str, Any], cached: int
) -> None:
    usage = create(client, system=system, messages=user_messages("123"), **extra).usage
    assert usage.cache_read_input_tokens == cached
    assert usage.input_tokens + cached == 2001, "input tokens exclude cached ones"
    assert (usage.cache_creation_input_tokens, usage.output_tokens) == (0, 4)


def test_headers_match_the_provider(client: anthropic.Anthropic) -> None:
    messages: Any = user_messages("?")
    raw = client.messages.with_raw_response.create(model="house-honest", max_tokens=9, messages=messages)
    assert raw.request_id is not None
    assert raw.request_id.startswith("req_")
    assert raw.headers["anthropic-ratelimit-requests-remaining"] == "3996"
    assert raw.headers["anthropic-ratelimit-input-tokens-reset"] == "2026-01-01T00:00:00Z"


def test_a_limit_on_output_cuts(client: anthropic.Anthropic) -> None:
    cut = create(client, max_tokens=3)
    assert (cut.stop_reason, cut.usage.output_tokens) == ("max_tokens", 3)
    assert cut.content[0].text == '{"answer":tr'
    assert create(client, max_tokens=4).stop_reason == "end_turn"


def test_models_are_listed(client: anthropic.Anthropic) -> None:
    assert [model.id for model in client.models.list()] == ["house-random", "house-honest"]
    assert client.models.retrieve("house-random").lifecycle == "active"
    with pytest.raises(anthropic.NotFoundError):
        client.models.retrieve("claude-9")


OPEN_SCHEMA = {"type": "object", "properties": {"answer": {"type": "boolean"}}, "required": ["answer"]}
INVALID = "invalid_request_error"
REFUSED: list[tuple[dict[str, Any], type[anthropic.APIStatusError], str, str]] = [
    ({"model": "claude-9"}, anthropic.NotFoundError, "not_found_error", "model: claude-9"),
    ({"extra_body": {"max_tokens": None}}, anthropic.BadRequestError, INVALID, "max_tokens: Field required"),
    ({"max_tokens": 0}, anthropic.BadRequestError, INVALID, "max_tokens: Input should be an integer greater"),
    ({"messages": None}, anthropic.BadRequestError, INVALID, "messages: Field required"),
    ({"messages": [{"role": "user"}]}, anthropic.BadRequestError, INVALID, "messages.0.content: Input should be"),
    (
        {"messages": user_messages("x" * 800_004)},
        anthropic.BadRequestError,
        INVALID,
        "prompt is too long: 200001 tokens > 200000",
    ),
    ({"extra_body": {"temperature": 1.0}}, anthropic.BadRequestError, INVALID, "`temperature` is not supported"),
    (
        {"output_config": {"format": {"type": "json_schema", "schema": OPEN_SCHEMA}}},
        anthropic.BadRequestError,
        INVALID,
        "'additionalProperties' is required",
    ),
    ({"extra_headers": {"x-dubito-try": "-1"}}, anthropic.BadRequestError, INVALID, "x-dubito-try: Input should be"),
    (
        {"extra_headers": {"anthropic-version": anthropic.Omit()}},
        anthropic.BadRequestError,
        INVALID,
        "anthropic-version",
    ),
    (
        {"extra_headers": {"Authorization": anthropic.Omit()}},
        anthropic.AuthenticationError,
        "authentication_error",
        "x-api-key header is required",
    ),
    (
        {"extra_headers": {"Authorization": "Bearer wrong-1"}},
        anthropic.AuthenticationError,
        "authentication_error",
        "invalid x-api-key",
    ),
    (
        {"extra_headers": {"Authorization": "Bearer broke-1"}},
        anthropic.PaymentRequiredError,
        "billing_error",
        "credit balance is too low",
    ),
]


@pytest.mark.parametrize(("changed", "error", "kind", "message"), REFUSED)
def test_errors_match_the_provider(
    client: anthropic.Anthropic, changed: dict[str, Any], error: type[anthropic.APIStatusError], kind: str, message: str
) -> None:
    with pytest.raises(error) as caught:
        create(client, **changed)
    assert type(caught.value) is error
    assert caught.value.type == kind
    assert message in str(caught.value.api_message)
    body: Any = caught.value.body
    assert (body["type"], body["request_id"]) == ("error", caught.value.request_id)


def test_x_api_key_header_is_accepted(house: House) -> None:
    with anthropic_at(house) as client:
        bare = {"Authorization": anthropic.Omit(), "x-api-key": "any"}
        assert create(client, extra_headers=bare).stop_reason == "end_turn"
        with pytest.raises(anthropic.AuthenticationError):
            create(client, extra_headers=bare | {"x-api-key": "wrong"})


def test_other_paths_and_methods_are_refused(client: anthropic.Anthropic) -> None:
    with pytest.raises(anthropic.NotFoundError) as caught:
        client.messages.count_tokens(model="house-random", messages=[{"role": "user", "content": "?"}])
    assert caught.value.type == "not_found_error"
    with pytest.raises(anthropic.APIStatusError, match="Method Not Allowed") as refused:
        client.get("/v1/messages", cast_to=object)
    assert refused.value.status_code == 405
