"""OpenAI's Responses API."""

from collections.abc import Mapping, Sequence
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
    openai_usage,
)
from dubito.llm.request import Charges, Failure, Finish, Request, Usage
from dubito.llm.settings import ModelSettings, asks_provider

_UNFINISHED: Final = ("failed", "cancelled", "queued", "in_progress")
_PARTLY: Final = ("incomplete", "in_progress")
_SAYING: Final = ("output_text", "refusal")
_WAITING: Final = ("_call", "_call_output", "_approval_request")
_CHARGED: Final = ("web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call")


def build(settings: ModelSettings, exchange: Exchange, cache_key: str) -> Request:
    """The request of an attempt."""
    schema = {"type": "json_schema", "name": "answer", "strict": True, "schema": exchange.schema}
    body: dict[str, Any] = {
        "model": settings.model,
        "input": [{"role": "developer", "content": exchange.system}, *exchange.turns()],
        "max_output_tokens": settings.max_output,
        "prompt_cache_key": cache_key,
        "store": False,
        "text": {"format": schema},
    }
    if asks_provider(settings):
        body["service_tier"] = "default"  # left out, the project's own settings decide, at another price
    return Request("responses", "/responses", body | settings.parameters)


def is_reply(body: Mapping[str, Any]) -> bool:
    """Whether it has the shape of a response: items of output."""
    output = body.get("output")
    return isinstance(output, list) and all(isinstance(item, dict) for item in output)


def failure(body: Mapping[str, Any]) -> Failure | None:
    """The error that stands in a reply's place; None beside an answer, which `read` takes as a contradiction."""
    error, status, output = error_of(body), body.get("status"), body.get("output")
    begun = True if output else None if "output" in body else False
    if isinstance(status, str) and status in _UNFINISHED:
        return Failure(error or f"the response is {status}", True if output else None)
    return Failure(error, begun) if error and not objects(output) else None


def read(body: Mapping[str, Any]) -> tuple[str | None, Finish]:
    """What was said, and how it ended. Of several phases only the final answer counts."""
    items = objects(body.get("output"))
    answers = _answers(items)
    parts = [part for item in answers for part in objects(item.get("content"))]
    text, refused = joined(parts, "output_text"), any(part.get("type") == "refusal" for part in parts)
    if error_of(body) or len(answers) > 1 or (text and refused) or any(map(_foreign, items)):
        return None, "other"  # it contradicts itself
    reason = mapping(body.get("incomplete_details")).get("reason")
    if reason == "content_filter" or refused:
        return text, "refusal"
    if body.get("status") == "incomplete":
        return (text, "length") if finish_of(reason) == "length" else (None, "other")
    if any(item.get("status") in _PARTLY for item in answers):
        return None, "other"
    return text, "stop" if body.get("status") == "completed" else "other"


def _answers(items: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The messages that say something, and are no commentary."""
    messages = [item for item in items if item.get("type") == "message" and item.get("phase") != "commentary"]
    return [item for item in messages if any(part.get("type") in _SAYING for part in objects(item.get("content")))]


def _foreign(item: Mapping[str, Any]) -> bool:
    """Whether an item is somebody else's, or waits for somebody: a call of a tool that is ours to answer."""
    kind = item.get("type")
    waits = isinstance(kind, str) and kind.endswith(_WAITING) and kind not in (*_CHARGED, "mcp_call")
    return waits or not by_assistant(item)


def charges(body: Mapping[str, Any]) -> Charges:
    """The tier that served, and the provider's own tools; OpenAI keeps input for 30 minutes, or for 12 hours."""
    calls = sum(item.get("type") in _CHARGED for item in objects(body.get("output")))
    written = mapping(mapping(mapping(body.get("usage")).get("input_tokens_details")).get("cache_write_tokens_details"))
    return Charges(modes_of(body), count_of(written.get("ttl_12h_tokens")), calls)


def usage(counts: Mapping[str, Any]) -> Usage | None:
    """In the Responses API's names."""
    return openai_usage(counts, "input", "output")
