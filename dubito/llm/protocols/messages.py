"""Anthropic's Messages API."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from dubito.llm.protocols.bodies import Exchange, joined, mapping, objects, usage_of
from dubito.llm.settings import ModelSettings
from dubito.llm.wire import Finish, Request, Usage

_FINISHES: Final[Mapping[str, Finish]] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}

_MARK: Final = {"cache_control": {"type": "ephemeral"}}  # all up to here may be cached


def build(settings: ModelSettings, exchange: Exchange, cache_key: str) -> Request:
    """The request of an attempt; what may be cached is marked, so that no key is needed."""
    parameters = dict(settings.parameters)
    form = {"format": {"type": "json_schema", "schema": exchange.schema}}
    body = {
        "model": settings.model,
        "max_tokens": settings.max_output,
        "system": [{"type": "text", "text": exchange.system, **_MARK}],
        "messages": _marked(exchange),
        "output_config": mapping(parameters.pop("output_config", None)) | form,
    }
    return Request("messages", "/v1/messages", body | parameters)


def _marked(exchange: Exchange) -> list[dict[str, Any]]:
    """The messages, with a mark on the last chapter of the history.

    The cache knows whole blocks, and looks back from a mark over 20 of them for one that was marked before: a
    chapter is a block, so that the mark of the player's request before is at most one back.
    """
    first, *rest = exchange.turns()
    if not exchange.history:
        return [first, *rest]
    *told, last = ({"type": "text", "text": text} for text in exchange.history)
    content = [*told, last | _MARK, {"type": "text", "text": exchange.user}]
    return [first | {"content": content}, *rest]


def read(body: Mapping[str, Any]) -> tuple[str | None, Finish]:
    """What was said, and how it ended. Blocks of thinking are passed over."""
    text = joined(objects(body.get("content")), "text")
    reason = body.get("stop_reason")
    finish = _FINISHES.get(reason, "other") if isinstance(reason, str) else "other"
    return (None, finish) if finish == "other" else (text, finish)


def usage(counts: Mapping[str, Any]) -> Usage | None:
    """Anthropic counts cached tokens beside the input."""
    cached, written = counts.get("cache_read_input_tokens"), counts.get("cache_creation_input_tokens")
    thinking = mapping(counts.get("output_tokens_details")).get("thinking_tokens") or 0
    apart = usage_of(counts.get("input_tokens"), cached or 0, written or 0, counts.get("output_tokens"), thinking)
    return apart and replace(apart, input=apart.input + apart.cached + apart.cache_write)
