"""Anthropic's Messages API."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

from dubito.llm.protocols.events import EventReader
from dubito.llm.protocols.wire import (
    DECLINED,
    Content,
    Exchange,
    WireFormat,
    as_mapping,
    as_objects,
    describe_missing_text,
    find_contradiction,
    find_error,
    join_texts,
    parse_count,
    parse_finish,
    parse_usage,
    service_modes,
)
from dubito.llm.request import Charges, Request, Usage
from dubito.model_settings import ModelSettings

if TYPE_CHECKING:
    from httpx2 import Client

_PAUSED: Final = "pause_turn"
# Anthropic caches a request up to the blocks marked with this.
_CACHE_MARK: Final = {"cache_control": {"type": "ephemeral"}}


_PARTS: Final = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}


@dataclass(eq=False)
class MessagesEvents(EventReader):
    _message: dict[str, Any] = field(default_factory=dict)
    _blocks: dict[int, dict[str, Any]] = field(default_factory=dict)
    _is_finished: bool = False

    def add(self, data: str) -> None:
        event = json.loads(data)
        match event["type"]:
            case "message_start":
                self._message = event["message"]
            case "content_block_start":
                self._blocks[event["index"]] = event["content_block"]
            case "content_block_delta" if event["delta"]["type"] in _PARTS:
                block, delta = self._blocks[event["index"]], event["delta"]
                part = _PARTS[delta["type"]]
                block[part] = block.get(part, "") + delta[part]
                self.text += delta[part] if part == "text" else ""
                self.thoughts += delta[part] if part == "thinking" else ""
            case "message_delta":
                usage = {**self._message["usage"], **{key: n for key, n in event["usage"].items() if n is not None}}
                self._message |= {**event["delta"], "usage": usage}
            case "message_stop":
                self._is_finished = True
            case "error":
                self.error = data

    def finished_reply(self) -> dict[str, Any] | None:
        if not self._is_finished:
            return None
        return {**self._message, "content": [self._blocks[number] for number in sorted(self._blocks)]}


class Messages(WireFormat):
    label: ClassVar[str] = "the Messages API"
    reply_label: ClassVar[str] = "Messages API message"
    path: ClassVar[str] = "/v1/messages"
    answer_field: ClassVar[str] = "content"
    models_path: ClassVar[str] = "/v1/models"
    provider: ClassVar[str] = "anthropic"
    bot: ClassVar[str] = "AnthropicBot"
    key_variable: ClassVar[str] = "ANTHROPIC_API_KEY"
    address: ClassVar[str] = "https://api.anthropic.com"
    address_variable: ClassVar[str] = "ANTHROPIC_BASE_URL"
    stream_fields: ClassVar[Mapping[str, Any]] = {"stream": True}
    event_reader: ClassVar[type[EventReader] | None] = MessagesEvents

    @classmethod
    def build_request(cls, settings: ModelSettings, exchange: Exchange, cache_key: str) -> Request:
        parameters = dict(settings.parameters)
        form = {"format": {"type": "json_schema", "schema": exchange.schema}} if exchange.schema else {}
        output = as_mapping(parameters.pop("output_config", None)) | form
        messages = exchange.other_messages()
        if exchange.history:
            # Mark the last block of the history. From a mark, the cache looks back up to 20 blocks for an earlier mark.
            # Each request of a player adds at most one block of history, so the mark of its previous request is at most
            # one block back.
            *older, last = ({"type": "text", "text": text} for text in exchange.history)
            messages[0]["content"] = [*older, last | _CACHE_MARK, {"type": "text", "text": exchange.user}]
        body: dict[str, Any] = {
            "model": settings.model,
            "max_tokens": settings.max_output,
            **({"system": [{"type": "text", "text": exchange.system, **_CACHE_MARK}]} if exchange.system else {}),
            "messages": messages,
            **({"output_config": output} if output else {}),
        }
        if cls.uses_provider(settings):
            # Otherwise the request may be served at the priority price.
            body["service_tier"] = "standard_only"
        return Request("messages", cls.path, body | parameters)

    @staticmethod
    def parse_text(body: Mapping[str, Any]) -> Content:
        """Return the text without thinking blocks.

        Unlike in other protocols, text with a refusal is not a contradiction here: a filter cut the text off.
        """
        blocks, reason = as_objects(body.get("content")), body.get("stop_reason")
        calls_tool, text = any(block.get("type") == "tool_use" for block in blocks), join_texts(blocks, "text")
        problem = find_contradiction(text, refusal=False, calls_tool=calls_tool, error=find_error(body), item=body)
        if problem or reason == _PAUSED:
            return Content(None, "other", problem or "it paused before its answer (pause_turn)")
        finish = parse_finish(reason)
        if finish == "refusal" or (text or "").strip():
            return Content(text, finish, DECLINED if finish == "refusal" else "")
        return Content(
            text, finish, describe_missing_text(reason, Messages.parse_thoughts(body), calls_tool=calls_tool)
        )

    @staticmethod
    def parse_thoughts(body: Mapping[str, Any]) -> str | None:
        blocks = as_objects(body.get("content"))
        texts = [block["thinking"] for block in blocks if isinstance(block.get("thinking"), str)]
        return "".join(texts) or None

    @staticmethod
    def parse_charges(body: Mapping[str, Any]) -> Charges:
        counts = as_mapping(body.get("usage"))
        hour = as_mapping(counts.get("cache_creation")).get("ephemeral_1h_input_tokens")
        tools = as_mapping(counts.get("server_tool_use"))
        return Charges(service_modes(counts), parse_count(hour), sum(map(parse_count, tools.values())))

    @staticmethod
    def parse_usage(body: Mapping[str, Any]) -> Usage | None:
        counts = as_mapping(body.get("usage"))
        cached, cache_write = counts.get("cache_read_input_tokens"), counts.get("cache_creation_input_tokens") or 0
        kinds = as_mapping(counts.get("cache_creation")).values()
        if type(cache_write) is int:
            cache_write = max(cache_write, sum(map(parse_count, kinds)))
        thinking = as_mapping(counts.get("output_tokens_details")).get("thinking_tokens") or 0
        usage = parse_usage(counts.get("input_tokens"), cached or 0, cache_write, counts.get("output_tokens"), thinking)
        # Anthropic does not include cached tokens in the input.
        return usage and replace(usage, input=usage.input + usage.cached + usage.cache_write)

    @staticmethod
    def import_sdk() -> tuple[Any, Callable[..., "Client"]]:
        import anthropic

        return anthropic, anthropic.DefaultHttpxClient

    @staticmethod
    def build_client(sdk: Any, **arguments: Any) -> Any:
        return sdk.Anthropic(**arguments, auth_token=None)


WIRE: Final = Messages
