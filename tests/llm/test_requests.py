"""Requests of all protocols for a prompt, a conversation and a player's settings."""

from typing import Any

import pytest

from dubito.games.dubito.game import GAME
from dubito.llm.answers import build_form
from dubito.llm.protocols import build_request
from dubito.llm.protocols.wire import Exchange
from dubito.llm.request import Request
from dubito.model_settings import Api
from tests.llm.kit import PATH_OF, PROTOCOLS, settings

FORM = build_form(("reasoning", "p_bluff", "answer"), GAME.node("C"))
AGAIN = (("I doubt", "Only JSON."), ("true", "Only the object."))
TALK = [
    {"role": "user", "content": "U"},
    {"role": "assistant", "content": "I doubt"},
    {"role": "user", "content": "Only JSON."},
    {"role": "assistant", "content": "true"},
    {"role": "user", "content": "Only the object."},
]
ELSEWHERE = "http://127.0.0.1:11434/v1"


def built(protocol: Api, system: str = "S", again: tuple[tuple[str, str], ...] = (), **changes: Any) -> Request:
    return build_request(settings(protocol, **changes), Exchange(system, "U", FORM.schema, again), "the-prompt")


# llama.cpp rejects an assistant item without a type.
TYPED_TALK = [{"type": "message", **turn} if turn["role"] == "assistant" else turn for turn in TALK]


def test_a_request_of_the_responses_api() -> None:
    request = built("responses", again=AGAIN, max_output=99)
    assert (request.protocol, request.path) == ("responses", "/responses")
    assert request.body == {
        "model": "some-model",
        "input": [{"role": "developer", "content": "S"}, *TYPED_TALK],
        "max_output_tokens": 99,
        "prompt_cache_key": "the-prompt",
        "store": False,
        "text": {"format": {"type": "json_schema", "name": "answer", "strict": True, "schema": FORM.schema}},
    }


def test_a_request_of_the_messages_api() -> None:
    request = built("messages", again=AGAIN, max_output=99)
    assert (request.protocol, request.path) == ("messages", "/v1/messages")
    assert request.body == {
        "model": "some-model",
        "max_tokens": 99,
        "system": [{"type": "text", "text": "S", "cache_control": {"type": "ephemeral"}}],
        "messages": TALK,
        "output_config": {"format": {"type": "json_schema", "schema": FORM.schema}},
    }


def test_history_is_one_text_or_cacheable_blocks() -> None:
    exchange = Exchange("S", "U", FORM.schema, AGAIN, ("one\n", "two\n"))
    bodies = {protocol: build_request(settings(protocol), exchange, "").body for protocol in PROTOCOLS}
    message = {"role": "user", "content": "one\ntwo\nU"}
    assert bodies["chat"]["messages"][1:] == [message, *TALK[1:]]
    assert bodies["responses"]["input"][1:] == [message, *TYPED_TALK[1:]]
    content = [
        {"type": "text", "text": "one\n"},
        {"type": "text", "text": "two\n", "cache_control": {"type": "ephemeral"}},
        {"type": "text", "text": "U"},
    ]
    assert bodies["messages"]["messages"] == [{"role": "user", "content": content}, *TALK[1:]]


CHAT = {
    "model": "some-model",
    "messages": [{"role": "system", "content": "S"}, *TALK],
    "response_format": {
        "type": "json_schema",
        "json_schema": {"name": "answer", "strict": True, "schema": FORM.schema},
    },
}


@pytest.mark.parametrize("base_url", [None, "house", "https://api.openai.com/v1", "https://api.openai.com/v1/"])
def test_a_request_of_chat_completions_to_openai(base_url: str | None) -> None:
    request = built("chat", again=AGAIN, max_output=99, base_url=base_url)
    assert (request.protocol, request.path) == ("chat", "/chat/completions")
    own = {} if base_url == "house" else {"service_tier": "default"}
    assert request.body == CHAT | own | {
        "max_completion_tokens": 99,
        "prompt_cache_key": "the-prompt",
        "store": False,
    }


@pytest.mark.parametrize(
    ("protocol", "tier"), [("responses", "default"), ("chat", "default"), ("messages", "standard_only")]
)
def test_provider_gets_the_service_tier_of_the_list_price(protocol: Api, tier: str) -> None:
    """If omitted, the project's setting would apply.

    Other servers do not get a tier, and the player's own setting overrides it.
    """
    assert built(protocol, base_url=None).body["service_tier"] == tier
    assert built(protocol, base_url=None, parameters={"service_tier": "priority"}).body["service_tier"] == "priority"
    for other in (ELSEWHERE, "house"):
        assert "service_tier" not in built(protocol, base_url=other).body


@pytest.mark.parametrize("base_url", [ELSEWHERE, "https://openrouter.ai/api/v1", "https://api.openai.com.example/v1"])
def test_chat_requests_to_others_use_common_fields(base_url: str) -> None:
    request = built("chat", again=AGAIN, max_output=99, base_url=base_url)
    assert (request.protocol, request.path) == ("chat", "/chat/completions")
    assert request.body == CHAT | {"max_tokens": 99}


@pytest.mark.parametrize("base_url", [None, ELSEWHERE])
@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_output_limit_has_the_name_the_server_supports(name: str, base_url: str | None) -> None:
    body = built("chat", base_url=base_url, max_output=99, output_limit=name).body
    assert {key: value for key, value in body.items() if key.startswith("max_")} == {name: 99}


@pytest.mark.parametrize("base_url", [None, ELSEWHERE])
def test_fields_of_a_chat_request(base_url: str | None) -> None:
    asked = {form: built("chat", base_url=base_url, response_format=form).body for form in ("json_object", "text")}
    assert asked["json_object"]["response_format"] == {"type": "json_object"}
    assert "response_format" not in asked["text"]
    assert "response_format" in built("chat", base_url=base_url).body


def test_parameters_are_added_to_the_request() -> None:
    ours = built("responses", parameters={"reasoning": {"effort": "low"}})
    assert ours.body["reasoning"] == {"effort": "low"}
    terse = built("responses", parameters={"text": {"verbosity": "low"}})
    assert terse.body["text"] == {"verbosity": "low"} | built("responses").body["text"]
    chat = built("chat", parameters={"temperature": 0, "prompt_cache_key": "mine"})
    assert (chat.body["temperature"], chat.body["prompt_cache_key"]) == (0, "mine")
    theirs = built("messages", parameters={"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}})
    assert theirs.body["thinking"] == {"type": "adaptive"}
    assert theirs.body["output_config"]["effort"] == "low"
    assert theirs.body["output_config"]["format"]["type"] == "json_schema"


def test_parameter_cannot_remove_the_schema() -> None:
    request = built("messages", parameters={"output_config": {"format": {"type": "text"}}})
    assert request.body["output_config"]["format"]["type"] == "json_schema"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_digest_depends_only_on_the_request(protocol: Api) -> None:
    def digest(system: str = "S", base_url: str = ELSEWHERE, **changes: Any) -> str:
        return built(protocol, system, base_url=base_url, **changes).digest

    assert digest() == digest(tries=9, deadline=5, sample=3, base_url="http://127.0.0.1:1/v1", fallback="StefaBot")
    different = [digest(), digest("T"), digest(model="other"), digest(max_output=17), digest(parameters={"a": 1})]
    assert len(set(different)) == len(different)
    assert digest(parameters={"a": 1, "b": 2}) == digest(parameters={"b": 2, "a": 1})


def test_the_same_question_in_another_protocol_is_another_request() -> None:
    assert len({built(protocol).digest for protocol in PROTOCOLS}) == 3
    assert {protocol: built(protocol).path for protocol in PROTOCOLS} == PATH_OF


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_partial_character_of_a_reply_can_be_quoted(protocol: Api) -> None:
    request = built(protocol, again=(("a half \ud83d", "Only JSON."),))
    assert "a half ?" in request.text


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_digest_depends_on_field_order(protocol: Api) -> None:
    """Models write fields in the schema's order, so the order can change an answer."""
    exchanges = [
        Exchange("S", "U", build_form(fields, GAME.node("C")).schema)
        for fields in (("reasoning", "p_bluff", "answer"), ("p_bluff", "reasoning", "answer"))
    ]
    one, other = (build_request(settings(protocol), exchange, "k").digest for exchange in exchanges)
    assert one != other
