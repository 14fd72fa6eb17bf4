"""Anthropic's Messages API."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from dubito.llm.protocols.bodies import (
    Exchange,
    by_assistant,
    count_of,
    error_of,
    finish_of,
    joined,
    mapping,
    modes_of,
    objects,
    usage_of,
)
from dubito.llm.request import Charges, Failure, Finish, Request, Usage
from dubito.llm.settings import ModelSettings, asks_provider

_MARK: Final = {"cache_control": {"type": "ephemeral"}}  # all up to here may be cached


def build(settings: ModelSettings, exchange: Exchange, cache_key: str) -> Request:
    """The request of an attempt; what may be cached is marked, so that no key is needed."""
    parameters = dict(settings.parameters)
    form = {"format": {"type": "json_schema", "schema": exchange.schema}}
    body: dict[str, Any] = {
        "model": settings.model,
        "max_tokens": settings.max_output,
        "system": [{"type": "text", "text": exchange.system, **_MARK}],
        "messages": _marked(exchange),
        "output_config": mapping(parameters.pop("output_config", None)) | form,
    }
    if asks_provider(settings):
        body["service_tier"] = "standard_only"  # left out, it may be served at the price of priority
    return Request("messages", "/v1/messages", body | parameters)


def is_reply(body: Mapping[str, Any]) -> bool:
    """Whether it has the shape of a message: blocks of content."""
    content = body.get("content")
    return isinstance(content, list) and all(isinstance(block, dict) for block in content)


def failure(body: Mapping[str, Any]) -> Failure | None:
    """The error that stands in a reply's place; None beside an answer, which `read` takes as a contradiction."""
    error, content = error_of(body), body.get("content")
    return Failure(error, None if "content" in body else False) if error and not content else None


def _marked(exchange: Exchange) -> list[dict[str, Any]]:
    """The messages, with a mark on the last chapter of the history.

    The cache knows whole blocks, and looks back from a mark over 20 of them for one that was marked before: a
    chapter is a block, so the mark of the player's previous request is at most one back.
    """
    first, *rest = exchange.turns()
    if not exchange.history:
        return [first, *rest]
    *told, last = ({"type": "text", "text": text} for text in exchange.history)
    content = [*told, last | _MARK, {"type": "text", "text": exchange.user}]
    return [first | {"content": content}, *rest]


def read(body: Mapping[str, Any]) -> tuple[str | None, Finish]:
    """What was said, and how it ended. Blocks of thinking are ignored.

    A refusal beside a text means that a filter stopped it: here it is no contradiction.
    """
    blocks = objects(body.get("content"))
    if error_of(body) or not by_assistant(body) or any(block.get("type") == "tool_use" for block in blocks):
        return None, "other"  # it contradicts itself
    finish = finish_of(body.get("stop_reason"))
    return (None, "other") if finish is None else (joined(blocks, "text"), finish)


def charges(body: Mapping[str, Any]) -> Charges:
    """Tier, speed and region that served; input that is kept for an hour; the provider's own tools."""
    counts = mapping(body.get("usage"))
    hour = mapping(counts.get("cache_creation")).get("ephemeral_1h_input_tokens")
    tools = mapping(counts.get("server_tool_use"))
    return Charges(modes_of(counts), count_of(hour), sum(map(count_of, tools.values())))


def usage(counts: Mapping[str, Any]) -> Usage | None:
    """Anthropic counts cached tokens beside the input."""
    cached, written = counts.get("cache_read_input_tokens"), counts.get("cache_creation_input_tokens") or 0
    kinds = mapping(counts.get("cache_creation")).values()
    if type(written) is int:
        written = max(written, sum(map(count_of, kinds)))
    thinking = mapping(counts.get("output_tokens_details")).get("thinking_tokens") or 0
    apart = usage_of(counts.get("input_tokens"), cached or 0, written, counts.get("output_tokens"), thinking)
    return apart and replace(apart, input=apart.input + apart.cached + apart.cache_write)
