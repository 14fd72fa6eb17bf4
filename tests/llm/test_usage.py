"""Tokens as billed, out of what each protocol says of them; what cannot be read is missing, never free."""

import json
from typing import Any

import pytest

from dubito.llm.protocols import read_reply
from dubito.llm.request import Api, Charges, RawReply, Usage
from tests.llm.kit import PROTOCOLS, reply_body

NAMES = {  # of the input, the output, the details of either
    "responses": ("input_tokens", "output_tokens", "input_tokens_details", "output_tokens_details"),
    "chat": ("prompt_tokens", "completion_tokens", "prompt_tokens_details", "completion_tokens_details"),
    "messages": ("input_tokens", "output_tokens", None, "output_tokens_details"),
}


def usage(protocol: Api, said: Any) -> Usage | None:
    return read_reply(protocol, RawReply(200, json.dumps(reply_body(protocol, usage=said)))).usage


def counts(protocol: Api, into: Any, out: Any) -> dict[str, Any]:
    return {NAMES[protocol][0]: into, NAMES[protocol][1]: out}


@pytest.mark.parametrize("protocol", ["responses", "chat"])
def test_openai_counts_cached_tokens_within_the_input(protocol: Api) -> None:
    into, out, of_input, of_output = NAMES[protocol]
    said = {
        into: 1000,
        of_input: {"cached_tokens": 600, "cache_write_tokens": 50},
        out: 30,
        of_output: {"reasoning_tokens": 20},
    }
    assert usage(protocol, said) == Usage(1000, 600, 50, 30, 20)


def test_anthropic_counts_cached_tokens_beside_the_input() -> None:
    said = {
        "input_tokens": 1000,
        "cache_read_input_tokens": 600,
        "cache_creation_input_tokens": 50,
        "output_tokens": 30,
        "output_tokens_details": {"thinking_tokens": 20},
    }
    assert usage("messages", said) == Usage(1650, 600, 50, 30, 20)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_usage_without_details(protocol: Api) -> None:
    assert usage(protocol, counts(protocol, 100, 20)) == Usage(100, 0, 0, 20, 0)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("details", [None, {}, [], 7, "x", {"other_tokens": 3}])
def test_details_that_say_nothing_are_none(protocol: Api, details: Any) -> None:
    said = {name: details for name in NAMES[protocol][2:] if name}
    assert usage(protocol, counts(protocol, 100, 20) | said) == Usage(100, 0, 0, 20, 0)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_details_that_are_null_are_none(protocol: Api) -> None:
    """As servers other than the providers' say it."""
    into = dict.fromkeys(["cached_tokens", "cache_write_tokens"])
    out = dict.fromkeys(["reasoning_tokens", "thinking_tokens"])
    apart = dict.fromkeys(["cache_read_input_tokens", "cache_creation_input_tokens"])
    _, _, of_input, of_output = NAMES[protocol]
    said = apart | {str(of_output): out} | ({of_input: into} if of_input else {})
    assert usage(protocol, counts(protocol, 100, 20) | said) == Usage(100, 0, 0, 20, 0)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("count", ["600", 1.5, -1, True, [5], 2**24 + 1])
def test_a_detail_that_counts_nothing_is_missing_usage(protocol: Api, count: Any) -> None:
    of_input = NAMES[protocol][2]
    said = {of_input: {"cached_tokens": count}} if of_input else {"cache_read_input_tokens": count}
    assert usage(protocol, counts(protocol, 1000, 20) | said) is None


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("said", [None, [], 7, "x", {}])
def test_missing_usage_is_no_usage(protocol: Api, said: Any) -> None:
    assert usage(protocol, said) is None


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("count", [None, "100", 1.5, -1, True, [], 2**24 + 1])
def test_a_count_that_is_none_is_missing_usage(protocol: Api, count: Any) -> None:
    assert usage(protocol, counts(protocol, count, 5)) is None
    assert usage(protocol, counts(protocol, 5, count)) is None


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_counts_that_cannot_be_are_missing_usage(protocol: Api) -> None:
    """A prompt is some tokens, and so is a text; an error may well have come before any."""
    assert usage(protocol, counts(protocol, 0, 0)) is None
    assert usage(protocol, counts(protocol, 0, 5)) is None
    assert usage(protocol, counts(protocol, 100, 0)) is None
    assert usage("messages", counts("messages", 0, 5) | {"cache_read_input_tokens": 90}) == Usage(90, 90, 0, 5, 0)
    refused = reply_body(protocol, None, "filter", usage=counts(protocol, 100, 0))
    assert read_reply(protocol, RawReply(200, json.dumps(refused))).usage == Usage(100, 0, 0, 0, 0)
    failed = reply_body(protocol, None, usage=counts(protocol, 0, 0), choices=None, content=None, output=None)
    said = read_reply(protocol, RawReply(200, json.dumps(failed | {"error": {"message": "no"}})))
    assert said.failure
    assert said.usage == Usage(0, 0, 0, 0, 0)


def chat_counts(into: int, out: int, total: int | None, reasoning: int | None = None) -> dict[str, Any]:
    details = {} if reasoning is None else {"completion_tokens_details": {"reasoning_tokens": reasoning}}
    return {"prompt_tokens": into, "completion_tokens": out, "total_tokens": total} | details


@pytest.mark.parametrize(
    ("said", "output"),
    [
        (chat_counts(279, 6, 374, 89), 95),  # xAI: reasoning beside the completion
        (chat_counts(10_120, 1499, 14_428, 2809), 4308),
        (chat_counts(100, 20, 700), 600),  # Gemini: thoughts are in the total only
        (chat_counts(100, 50, 150, 30), 50),  # OpenAI: reasoning within the output
        (chat_counts(100, 50, None, 30), 50),
        (chat_counts(100, 6, None, 89), 95),  # more than the output is no part of it
        (chat_counts(100, 6, 106, 89), 95),
        (chat_counts(100, 50, 20), 50),
    ],
)
def test_output_is_the_largest_reading(said: dict[str, Any], output: int) -> None:
    read = usage("chat", said)
    assert read is not None
    assert (read.input, read.output) == (said["prompt_tokens"], output)
    details = said.get("completion_tokens_details")
    same = {
        "input_tokens": read.input,
        "output_tokens": said["completion_tokens"],
        "total_tokens": said["total_tokens"],
    }
    assert usage("responses", same | ({"output_tokens_details": details} if details else {})) == read


@pytest.mark.parametrize("protocol", ["responses", "chat"])
@pytest.mark.parametrize("total", ["600", 1.5, -1, True, 2**24 + 1])
def test_a_total_that_counts_nothing_is_missing_usage(protocol: Api, total: Any) -> None:
    assert usage(protocol, counts(protocol, 100, 20) | {"total_tokens": total}) is None


def test_what_anthropic_keeps_is_the_larger_of_its_two_accounts() -> None:
    said = counts("messages", 100, 20) | {
        "cache_creation_input_tokens": 30,
        "cache_creation": {"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 40},
    }
    assert usage("messages", said) == Usage(150, 0, 50, 20, 0)
    assert usage("messages", said | {"cache_creation_input_tokens": 70}) == Usage(170, 0, 70, 20, 0)


def charges(protocol: Api, **changes: Any) -> Charges:
    return read_reply(protocol, RawReply(200, json.dumps(reply_body(protocol, **changes)))).charges


@pytest.mark.parametrize("protocol", ["responses", "chat"])
@pytest.mark.parametrize("tier", ["default", "flex", "priority", "fast", "ultrafast", "scale", "something new"])
def test_a_tier_is_named(protocol: Api, tier: str) -> None:
    assert charges(protocol, service_tier=tier) == Charges((("service_tier", tier),))


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("tier", [None, 7, []])
def test_a_tier_that_is_no_word_is_not_named(protocol: Api, tier: Any) -> None:
    assert charges(protocol, service_tier=tier) == Charges()
    assert charges("messages", usage=counts("messages", 1, 1) | {"service_tier": tier, "speed": None}) == Charges()


def test_what_anthropic_says_of_its_service() -> None:
    said = {
        "service_tier": "priority",
        "speed": "fast",
        "inference_geo": "us",
        "cache_creation": {"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 40},
        "server_tool_use": {"web_search_requests": 3, "web_fetch_requests": 2},
    }
    modes = (("service_tier", "priority"), ("speed", "fast"), ("inference_geo", "us"))
    assert charges("messages", usage=counts("messages", 100, 20) | said) == Charges(modes, 40, 5)


def test_the_providers_own_tools_are_counted() -> None:
    calls = [{"type": kind} for kind in ("web_search_call", "file_search_call", "mcp_call", "reasoning")]
    output = [*calls, *reply_body("responses")["output"]]
    assert charges("responses", output=output) == Charges(tool_calls=2)
    said = counts("chat", 1, 1) | {"server_tool_use": {"web_search_requests": 4}}
    assert charges("chat", usage=said) == Charges(tool_calls=4)


def test_input_that_openai_keeps_for_long_is_counted() -> None:
    details = {"cache_write_tokens": 50, "cache_write_tokens_details": {"ttl_30m_tokens": 20, "ttl_12h_tokens": 30}}
    assert charges("responses", usage=counts("responses", 100, 1) | {"input_tokens_details": details}).long_writes == 30
    assert charges("chat", usage=counts("chat", 100, 1) | {"prompt_tokens_details": details}).long_writes == 30


@pytest.mark.parametrize("protocol", ["responses", "chat"])
def test_tokens_that_do_not_fit_into_the_input_are_counted_beside_it(protocol: Api) -> None:
    name = str(NAMES[protocol][2])
    said = counts(protocol, 100, 1)
    assert usage(protocol, said | {name: {"cached_tokens": 60, "cache_write_tokens": 40}}) == Usage(100, 60, 40, 1, 0)
    assert usage(protocol, said | {name: {"cached_tokens": 60, "cache_write_tokens": 41}}) == Usage(201, 60, 41, 1, 0)
    kept = {"cache_write_tokens": 10, "cache_write_tokens_details": {"ttl_30m_tokens": 20, "ttl_12h_tokens": 30}}
    assert usage(protocol, said | {name: kept}) == Usage(100, 0, 50, 1, 0)
