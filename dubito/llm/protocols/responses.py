"""OpenAI's Responses API."""

from collections.abc import Mapping
from typing import Any

from dubito.llm.protocols.bodies import Exchange, joined, mapping, objects, usage_of
from dubito.llm.settings import ModelSettings
from dubito.llm.wire import Finish, Request, Usage


def build(settings: ModelSettings, exchange: Exchange, cache_key: str) -> Request:
    """The request of an attempt."""
    schema = {"type": "json_schema", "name": "answer", "strict": True, "schema": exchange.schema}
    body = {
        "model": settings.model,
        "input": [{"role": "developer", "content": exchange.system}, *exchange.turns()],
        "max_output_tokens": settings.max_output,
        "prompt_cache_key": cache_key,
        "store": False,
        "text": {"format": schema},
    }
    return Request("responses", "/responses", body | settings.parameters)


def read(body: Mapping[str, Any]) -> tuple[str | None, Finish]:
    """What was said, and how it ended."""
    messages = [item for item in objects(body.get("output")) if item.get("type") == "message"]
    parts = [part for item in messages for part in objects(item.get("content"))]
    text = joined(parts, "output_text")
    reason = mapping(body.get("incomplete_details")).get("reason")
    if reason == "content_filter" or any(part.get("type") == "refusal" for part in parts):
        return text, "refusal"
    if body.get("status") == "incomplete":
        return (text, "length") if reason == "max_output_tokens" else (None, "other")
    return (text, "stop") if body.get("status") == "completed" else (None, "other")


def usage(counts: Mapping[str, Any]) -> Usage | None:
    """OpenAI counts cached tokens within the input; details left out or null are none."""
    into, out = mapping(counts.get("input_tokens_details")), mapping(counts.get("output_tokens_details"))
    return usage_of(
        counts.get("input_tokens"),
        into.get("cached_tokens") or 0,
        into.get("cache_write_tokens") or 0,
        counts.get("output_tokens"),
        out.get("reasoning_tokens") or 0,
    )
