"""OpenAI's Responses API."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from dubito.errors import one_line
from dubito.llm.protocols.events import EventReader, find_member
from dubito.llm.protocols.openai import OpenAIFormat, count_long_writes
from dubito.llm.protocols.wire import (
    DECLINED,
    FILTERED,
    Content,
    Exchange,
    as_mapping,
    as_objects,
    describe_missing_text,
    find_contradiction,
    find_error,
    is_by_assistant,
    join_texts,
    parse_finish,
    service_modes,
)
from dubito.llm.request import Charges, NonReply, Request
from dubito.model_settings import ModelSettings

_UNFINISHED: Final = ("failed", "cancelled", "queued", "in_progress")
_INCOMPLETE: Final = ("incomplete", "in_progress")
_TEXT_PARTS: Final = ("output_text", "refusal")
_WAITING_ITEMS: Final = ("_call", "_call_output", "_approval_request")  # suffixes of these blocks' types
_CHARGED_TOOLS: Final = ("web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call")


_END_EVENTS: Final = ("response.completed", "response.incomplete", "response.failed")
_THOUGHT_EVENTS: Final = ("response.reasoning_summary_text.delta", "response.reasoning_text.delta")


@dataclass(eq=False)
class ResponsesEvents(EventReader):
    _response: str | None = None

    def add(self, data: str) -> None:
        event = json.loads(data)
        match event["type"]:
            case "response.output_text.delta":
                self.text += event["delta"]
            case kind if kind in _THOUGHT_EVENTS:
                self.thoughts += event["delta"]
            case kind if kind in _END_EVENTS:
                self._response = find_member(data, "response")
            case "error":
                self.error = data

    def finished_reply(self) -> str | None:
        return self._response


class Responses(OpenAIFormat):
    label: ClassVar[str] = "the Responses API"
    reply_label: ClassVar[str] = "Responses API response"
    path: ClassVar[str] = "/responses"
    answer_field: ClassVar[str] = "output"
    bot: ClassVar[str] = "OpenAIBot"
    stream_fields: ClassVar[Mapping[str, Any]] = {"stream": True}
    event_reader: ClassVar[type[EventReader] | None] = ResponsesEvents

    @classmethod
    def build_request(cls, settings: ModelSettings, exchange: Exchange, cache_key: str) -> Request:
        parameters = dict(settings.parameters)
        schema = {"type": "json_schema", "name": "answer", "strict": True, "schema": exchange.schema}
        form = {"format": schema} if exchange.schema else {}
        text = as_mapping(parameters.pop("text", None)) | form
        messages = [
            {"type": "message", **message} if message["role"] == "assistant" else message
            for message in exchange.other_messages()
        ]
        body: dict[str, Any] = {
            "model": settings.model,
            "input": [*exchange.system_message("developer"), *messages],
            "max_output_tokens": settings.max_output,
            "prompt_cache_key": cache_key,
            "store": False,
            **({"text": text} if text else {}),
        }
        if cls.uses_provider(settings):
            # Otherwise, the project's settings apply, at another price.
            body["service_tier"] = "default"
        return Request("responses", cls.path, body | parameters)

    @staticmethod
    def parse_error(body: Mapping[str, Any]) -> NonReply | None:
        error, status, output = find_error(body), body.get("status"), body.get("output")
        generated = True if output else None if "output" in body else False
        if isinstance(status, str) and status in _UNFINISHED:
            return NonReply(error or f"the response is {status}", True if output else None)
        return NonReply(error, generated) if error and not as_objects(output) else None

    @staticmethod
    def parse_text(body: Mapping[str, Any]) -> Content:
        """Return the text of the final answer, ignoring other phases."""
        items = as_objects(body.get("output"))
        messages = [item for item in items if item.get("type") == "message" and item.get("phase") != "commentary"]
        contents = [(item, as_objects(item.get("content"))) for item in messages]
        answers = [item for item, parts in contents if any(part.get("type") in _TEXT_PARTS for part in parts)]
        parts = [part for item in answers for part in as_objects(item.get("content"))]
        text, refused = join_texts(parts, "output_text"), any(part.get("type") == "refusal" for part in parts)
        calls_tool, reason = any(map(_waits, items)), as_mapping(body.get("incomplete_details")).get("reason")
        foreign: Mapping[str, Any] = next((item for item in items if not is_by_assistant(item)), {})
        problem = find_contradiction(text, refusal=refused, calls_tool=calls_tool, error=find_error(body), item=foreign)
        if problem:
            return Content(None, "other", problem)
        if reason == "content_filter" or refused:
            return Content(text, "refusal", DECLINED if refused else FILTERED)
        finish, thoughts = parse_finish(reason), Responses.parse_thoughts(body)
        if body.get("status") == "incomplete":
            if finish != "length":
                return Content(None, "other", f"it is incomplete ({one_line(str(reason), 40)})")
            return Content(text, finish, "" if text else describe_missing_text(reason, thoughts, calls_tool=False))
        if any(item.get("status") in _INCOMPLETE for item in answers):
            return Content(None, "other", "its message is incomplete")
        finish = "stop" if body.get("status") == "completed" else "other"
        if len(answers) > 1:
            texts = [join_texts(as_objects(item.get("content")), "output_text") or "" for item in answers]
            return Content("\n".join(texts), "other", f"it has {len(answers)} messages with a text instead of one")
        if (text or "").strip():
            return Content(text, finish)
        return Content(text, finish, describe_missing_text(None, thoughts, calls_tool=calls_tool))

    @staticmethod
    def parse_thoughts(body: Mapping[str, Any]) -> str | None:
        items = [item for item in as_objects(body.get("output")) if item.get("type") == "reasoning"]
        parts = [part for item in items for part in as_objects(item.get("content"))]
        return join_texts(parts, "reasoning_text")

    @staticmethod
    def parse_charges(body: Mapping[str, Any]) -> Charges:
        calls = sum(item.get("type") in _CHARGED_TOOLS for item in as_objects(body.get("output")))
        long = count_long_writes(as_mapping(body.get("usage")).get("input_tokens_details"))
        return Charges(service_modes(body), long, calls)


def _waits(item: Mapping[str, Any]) -> bool:
    kind = item.get("type")
    return isinstance(kind, str) and kind.endswith(_WAITING_ITEMS) and kind not in (*_CHARGED_TOOLS, "mcp_call")


WIRE: Final = Responses
