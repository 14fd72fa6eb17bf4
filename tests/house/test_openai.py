"""The built-in model server through OpenAI's SDK."""

from collections.abc import Iterator
from typing import Any

import openai
import pytest
from pydantic import BaseModel

from dubito.house.server import House
from tests.house.kit import FORMATS, POLICY, SEEN, openai_at

FORMAT = FORMATS["responses"]


@pytest.fixture(scope="module")
def client(house: House) -> Iterator[openai.OpenAI]:
    with openai_at(house) as client:
        yield client


def create(client: openai.OpenAI, **changed: Any) -> Any:
    return client.responses.create(**{"model": "house-honest", "input": "say yes", **FORMAT, **changed})


def test_structured_answer_is_returned(client: openai.OpenAI) -> None:
    raw = client.responses.with_raw_response.create(model="house-honest", input="say yes", store=False, **FORMAT)
    reply = raw.parse()
    assert reply.output_text == '{"answer":true}'
    assert (reply.status, reply.error, reply.incomplete_details) == ("completed", None, None)
    assert (reply.model, reply.to_dict()["store"]) == ("house-honest", False)
    assert reply.id.startswith("resp_")
    assert raw.headers["content-type"] == "application/json"
    assert create(client, input="no").output_text == '{"answer":false}'
    assert create(client, text={"format": {"type": "text"}}).output_text == '{"answer":true}', "free text is the same"


def test_the_reply_passes_the_sdks_own_strict_check(house: House) -> None:
    with openai.OpenAI(
        base_url=house.openai_base_url, api_key="any", max_retries=0, _strict_response_validation=True
    ) as strict:
        assert create(strict).output_text == '{"answer":true}'
        assert create(strict, max_output_tokens=16, reasoning={"effort": "low"}, metadata={"a": "b"}).usage
        events = [*create(strict, stream=True)]
        assert [event.sequence_number for event in events] == [*range(len(events))]
        assert events[-1].response == create(strict)
        assert [model.id for model in strict.models.list()] == list(POLICY.models)


def test_policy_receives_all_text_in_order(client: openai.OpenAI) -> None:
    messages: Any = [
        {"role": "developer", "content": "two"},
        {"role": "user", "content": [{"type": "input_text", "text": "three"}, {"type": "input_text", "text": "four"}]},
        {"type": "reasoning", "id": "r", "summary": []},
        {"role": "system", "content": "five"},
    ]
    create(client, instructions="one", input=messages)
    assert SEEN[-1] == "one\ntwo\nthree\nfour\nfive"


def test_usage_counts_four_bytes_a_token(client: openai.OpenAI) -> None:
    usage = create(client, instructions="aé", input="12345").usage  # 3 bytes, a newline, 5 bytes
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (3, 4, 7)
    assert (usage.input_tokens_details.cached_tokens, usage.output_tokens_details.reasoning_tokens) == (0, 0)


@pytest.mark.parametrize(("letters", "cached"), [(4 * 1024 - 4, 0), (4 * 1024, 1024)])
def test_long_instructions_count_as_cached(client: openai.OpenAI, letters: int, cached: int) -> None:
    long = "x" * letters
    as_message: Any = [{"role": "developer", "content": long}, {"role": "user", "content": "12345"}]
    for request in ({"instructions": long, "input": "12345"}, {"input": as_message}):
        usage = create(client, **request).usage
        assert usage.input_tokens_details.cached_tokens == cached
        assert usage.input_tokens == letters // 4 + 2, "includes cached tokens"


def test_headers_match_the_provider(client: openai.OpenAI) -> None:
    raw = client.responses.with_raw_response.create(model="house-honest", input="?")
    assert raw.request_id is not None
    assert raw.request_id.startswith("req_")
    assert raw.headers["x-ratelimit-remaining-requests"] == "9999"
    assert raw.headers["x-ratelimit-reset-tokens"] == "2ms"


def test_a_limit_on_output_cuts(client: openai.OpenAI) -> None:
    class Long(BaseModel):
        answer: bool
        first: str
        second: str

    schema = {**Long.model_json_schema(), "additionalProperties": False}
    form = {"format": {"type": "json_schema", "name": "long", "strict": True, "schema": schema}}
    whole = create(client, text=form)
    assert Long.model_validate_json(whole.output_text).answer
    cut = create(client, text=form, max_output_tokens=16)
    assert (cut.status, cut.incomplete_details.reason, cut.usage.output_tokens) == (
        "incomplete",
        "max_output_tokens",
        16,
    )
    assert len(cut.output_text) == 64
    assert whole.output_text.startswith(cut.output_text)


def test_models_are_listed(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["house-random", "house-honest"]
    assert client.models.retrieve("house-random").owned_by == "dubito"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("gpt-9")


BAD_SCHEMA = {"type": "object", "properties": {"answer": {"type": "boolean"}}, "required": ["answer"]}
REFUSED: list[tuple[dict[str, Any], type[openai.APIStatusError], str | None, str | None]] = [
    ({"model": "gpt-9"}, openai.NotFoundError, "model_not_found", "model"),
    ({"input": None}, openai.BadRequestError, "missing_required_parameter", "input"),
    ({"input": [{"role": "user", "content": 7}]}, openai.BadRequestError, "invalid_value", "input[0].content"),
    ({"input": "x" * 800_004}, openai.BadRequestError, "context_length_exceeded", "input"),
    ({"extra_body": {"seed": 1}}, openai.BadRequestError, "unknown_parameter", "seed"),
    ({"previous_response_id": "resp_1"}, openai.BadRequestError, "unsupported_parameter", "previous_response_id"),
    ({"background": True}, openai.BadRequestError, "unsupported_parameter", "background"),
    ({"max_output_tokens": 15}, openai.BadRequestError, "invalid_value", "max_output_tokens"),
    (
        {"text": {"format": {"type": "json_schema", "schema": BAD_SCHEMA}}},
        openai.BadRequestError,
        "missing_required_parameter",
        "text.format.name",
    ),
    (
        {"text": {"format": {"type": "json_schema", "name": "a", "strict": True, "schema": BAD_SCHEMA}}},
        openai.BadRequestError,
        "invalid_json_schema",
        "text.format.schema",
    ),
    ({"extra_headers": {"x-dubito-try": "0"}}, openai.BadRequestError, "invalid_value", "x-dubito-try"),
    ({"extra_headers": {"Authorization": openai.Omit()}}, openai.AuthenticationError, None, None),
    ({"extra_headers": {"Authorization": "Bearer wrong-1"}}, openai.AuthenticationError, "invalid_api_key", None),
    ({"extra_headers": {"Authorization": "Bearer broke-1"}}, openai.RateLimitError, "insufficient_quota", None),
]


def test_errors_match_the_provider(client: openai.OpenAI, subtests: pytest.Subtests) -> None:
    for changed, error, code, param in REFUSED:
        with subtests.test(changed=changed, error=error, code=code, param=param):
            with pytest.raises(error) as caught:
                create(client, **changed)
            assert type(caught.value) is error
            assert (caught.value.code, caught.value.param) == (code, param)
            assert caught.value.type in ("invalid_request_error", "insufficient_quota")
            assert caught.value.request_id is not None
            assert str(caught.value.request_id).startswith("req_")


def test_invalid_json_is_refused(client: openai.OpenAI) -> None:
    for text in (b"", b"{", b"[]", b'{"model": NaN}', b"\xff", b"[" * 100_000, b'{"a":' + b"9" * 5000 + b"}"):
        with pytest.raises(openai.BadRequestError, match="could not parse the JSON body"):
            client.post("/responses", cast_to=object, content=text)


def test_other_paths_and_methods_are_refused(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match=r"Invalid URL \(POST /v1/completions\)"):
        client.completions.create(model="house-random", prompt="?")
    with pytest.raises(openai.APIStatusError, match="Not allowed to GET on /v1/responses") as caught:
        client.get("/responses", cast_to=object)
    assert (caught.value.status_code, caught.value.code) == (405, "method_not_supported")
    with pytest.raises(openai.NotFoundError):
        client.post("/responses/", cast_to=object, body={})
