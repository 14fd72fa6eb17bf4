"""The two protocols: a request out of a rendered prompt, a reply out of a received body. No I/O.

A body may be anything at all; what cannot be read becomes a reply without text, never an exception.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from dubito.llm.answers import SCHEMA
from dubito.llm.settings import ModelSettings
from dubito.llm.wire import Finish, Protocol, Received, Reply, Request, Usage

_MOST_TOKENS: Final = 2**40  # in one reply: more is no count


@dataclass(frozen=True, slots=True)
class Exchange:
    """A conversation of one decision: the prompt, then what was said and asked again."""

    system: str
    user: str
    again: Sequence[tuple[str, str]] = ()  # the model's reply, our re-ask


def build_request(settings: ModelSettings, exchange: Exchange, cache_key: str) -> Request:
    """The request of an attempt; `cache_key` names the prompt for the provider's own prompt cache."""
    return _BUILDERS[settings.api](settings, exchange, cache_key)


def read_reply(protocol: Protocol, received: Received) -> Reply:
    """What the model said in a received body."""
    try:
        body = json.loads(received.raw)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        return Reply(None, "other", None, received)
    text, finish = _READERS[protocol](body)
    return Reply(text, finish, _USAGES[protocol](_mapping(body.get("usage"))), received)


def _responses(settings: ModelSettings, exchange: Exchange, cache_key: str) -> Request:
    messages = [{"role": "developer", "content": exchange.system}, {"role": "user", "content": exchange.user}]
    for said, asked in exchange.again:
        messages += [{"role": "assistant", "content": _sendable(said)}, {"role": "user", "content": asked}]
    schema = {"type": "json_schema", "name": "answer", "strict": True, "schema": SCHEMA}
    body = {
        "model": settings.model,
        "input": messages,
        "max_output_tokens": settings.max_output,
        "prompt_cache_key": cache_key,
        "store": False,
        "text": {"format": schema},
    }
    return Request("responses", "/responses", body | settings.parameters)


def _messages(settings: ModelSettings, exchange: Exchange, cache_key: str) -> Request:
    messages: list[dict[str, Any]] = [{"role": "user", "content": exchange.user}]
    for said, asked in exchange.again:
        messages += [{"role": "assistant", "content": _sendable(said)}, {"role": "user", "content": asked}]
    output = {"format": {"type": "json_schema", "schema": SCHEMA}}
    parameters = dict(settings.parameters)
    body = {
        "model": settings.model,
        "max_tokens": settings.max_output,
        "system": [{"type": "text", "text": exchange.system, "cache_control": {"type": "ephemeral"}}],
        "messages": messages,
        "output_config": _mapping(parameters.pop("output_config", None)) | output,
    }
    return Request("messages", "/v1/messages", body | parameters)


def _sendable(text: str) -> str:
    """The text without half characters, which a reply may hold and no request can."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _read_responses(body: Mapping[str, Any]) -> tuple[str | None, Finish]:
    parts = [
        part
        for item in _list(body.get("output"))
        if item.get("type") == "message"
        for part in _list(item.get("content"))
    ]
    texts = [part["text"] for part in parts if part.get("type") == "output_text" and isinstance(part.get("text"), str)]
    text = "".join(texts) if texts else None
    reason = _mapping(body.get("incomplete_details")).get("reason")
    if reason == "content_filter" or any(part.get("type") == "refusal" for part in parts):
        return text, "refusal"
    if body.get("status") == "incomplete":
        return text, "length" if reason == "max_output_tokens" else "other"
    return (text, "stop") if body.get("status") == "completed" else (None, "other")


def _read_messages(body: Mapping[str, Any]) -> tuple[str | None, Finish]:
    blocks = _list(body.get("content"))
    texts = [block["text"] for block in blocks if block.get("type") == "text" and isinstance(block.get("text"), str)]
    text = "".join(texts) if texts else None
    finishes: dict[Any, Finish] = {
        "end_turn": "stop",
        "stop_sequence": "stop",
        "max_tokens": "length",
        "model_context_window_exceeded": "length",
        "refusal": "refusal",
    }
    reason = body.get("stop_reason")
    finish = finishes.get(reason, "other") if isinstance(reason, str) else "other"
    return (None, finish) if finish == "other" else (text, finish)


def _responses_usage(usage: Mapping[str, Any]) -> Usage | None:
    """OpenAI counts cached tokens within the input."""
    into, out = _mapping(usage.get("input_tokens_details")), _mapping(usage.get("output_tokens_details"))
    return _usage(
        usage.get("input_tokens"),
        into.get("cached_tokens", 0),
        into.get("cache_write_tokens", 0),
        usage.get("output_tokens"),
        out.get("reasoning_tokens", 0),
    )


def _messages_usage(usage: Mapping[str, Any]) -> Usage | None:
    """Anthropic counts cached tokens beside the input."""
    cached, written = usage.get("cache_read_input_tokens"), usage.get("cache_creation_input_tokens")
    thinking = _mapping(usage.get("output_tokens_details")).get("thinking_tokens", 0)
    apart = _usage(usage.get("input_tokens"), cached or 0, written or 0, usage.get("output_tokens"), thinking)
    return apart and replace(apart, input=apart.input + apart.cached + apart.cache_write)


def _usage(*counts: Any) -> Usage | None:
    """The counts, or None, which is missing usage, if one of them counts nothing."""
    if any(type(count) is not int or not 0 <= count <= _MOST_TOKENS for count in counts):
        return None
    return Usage(*counts)


_BUILDERS: Final[dict[Protocol, Callable[[ModelSettings, Exchange, str], Request]]] = {
    "responses": _responses,
    "messages": _messages,
}
_READERS: Final[dict[Protocol, Callable[[Mapping[str, Any]], tuple[str | None, Finish]]]] = {
    "responses": _read_responses,
    "messages": _read_messages,
}
_USAGES: Final[dict[Protocol, Callable[[Mapping[str, Any]], Usage | None]]] = {
    "responses": _responses_usage,
    "messages": _messages_usage,
}
