"""Tokens as billed, out of what each protocol says of them; what cannot be read is missing, never free."""

import json
from typing import Any

import pytest

from dubito.llm.protocols import read_reply
from dubito.llm.wire import Protocol, Received, Usage
from tests.llm.kit import PROTOCOLS, reply_body

NAMES = {  # of the input, the output, the details of either
    "responses": ("input_tokens", "output_tokens", "input_tokens_details", "output_tokens_details"),
    "chat": ("prompt_tokens", "completion_tokens", "prompt_tokens_details", "completion_tokens_details"),
    "messages": ("input_tokens", "output_tokens", None, "output_tokens_details"),
}


def usage(protocol: Protocol, said: Any) -> Usage | None:
    """What is read of a usage."""
    return read_reply(protocol, Received(200, json.dumps(reply_body(protocol, usage=said)))).usage


def counts(protocol: Protocol, into: Any, out: Any) -> dict[str, Any]:
    """A usage without details."""
    return {NAMES[protocol][0]: into, NAMES[protocol][1]: out}


@pytest.mark.parametrize("protocol", ["responses", "chat"])
def test_openai_counts_cached_tokens_within_the_input(protocol: Protocol) -> None:
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
def test_usage_without_details(protocol: Protocol) -> None:
    assert usage(protocol, counts(protocol, 100, 20)) == Usage(100, 0, 0, 20, 0)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("details", [None, {}, [], 7, "x", {"other_tokens": 3}])
def test_details_that_say_nothing_are_none(protocol: Protocol, details: Any) -> None:
    said = {name: details for name in NAMES[protocol][2:] if name}
    assert usage(protocol, counts(protocol, 100, 20) | said) == Usage(100, 0, 0, 20, 0)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_details_that_are_null_are_none(protocol: Protocol) -> None:
    """As servers other than the providers' say it."""
    into = dict.fromkeys(["cached_tokens", "cache_write_tokens"])
    out = dict.fromkeys(["reasoning_tokens", "thinking_tokens"])
    apart = dict.fromkeys(["cache_read_input_tokens", "cache_creation_input_tokens"])
    _, _, of_input, of_output = NAMES[protocol]
    said = apart | {str(of_output): out} | ({of_input: into} if of_input else {})
    assert usage(protocol, counts(protocol, 100, 20) | said) == Usage(100, 0, 0, 20, 0)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("count", ["600", 1.5, -1, True, [5], 2**24 + 1])
def test_a_detail_that_counts_nothing_is_missing_usage(protocol: Protocol, count: Any) -> None:
    of_input = NAMES[protocol][2]
    said = {of_input: {"cached_tokens": count}} if of_input else {"cache_read_input_tokens": count}
    assert usage(protocol, counts(protocol, 1000, 20) | said) is None


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("said", [None, [], 7, "x", {}])
def test_missing_usage_is_no_usage(protocol: Protocol, said: Any) -> None:
    assert usage(protocol, said) is None


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("count", [None, "100", 1.5, -1, True, [], 2**24 + 1])
def test_a_count_that_is_none_is_missing_usage(protocol: Protocol, count: Any) -> None:
    """Not nothing: what is missing is reckoned at its worst, what is 0 was free."""
    assert usage(protocol, counts(protocol, count, 5)) is None
    assert usage(protocol, counts(protocol, 5, count)) is None
    assert usage(protocol, counts(protocol, 0, 0)) == Usage(0, 0, 0, 0, 0)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_one_count_of_two_is_missing_usage(protocol: Protocol) -> None:
    into, out, *_ = NAMES[protocol]
    assert usage(protocol, {into: 5}) is None
    assert usage(protocol, {out: 5}) is None
    assert usage(protocol, {"total_tokens": 5}) is None
