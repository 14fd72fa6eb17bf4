"""Chat Completions: OpenAI's older API, supported by most other servers."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from dubito.llm.logprobs import LOGPROB_FIELDS
from dubito.llm.protocols.events import READING, EventReader, merge_values
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
    join_texts,
    parse_count,
    parse_finish,
    service_modes,
)
from dubito.llm.request import Charges, NonReply, Request
from dubito.model_settings import ModelSettings, is_house


@dataclass(eq=False)
class ChatEvents(EventReader):
    _completion: dict[str, Any] = field(default_factory=dict)
    _choices: dict[int, dict[str, Any]] = field(default_factory=dict)

    def add(self, data: str) -> None:
        if data == "[DONE]":
            return
        chunk = json.loads(data)
        if chunk.get("error"):
            self.error = data
            return
        if progress := chunk.pop("prompt_progress", None):  # llama.cpp's server sends this with `return_progress`
            self.thoughts = f"{READING}: {100 * progress['processed'] // progress['total']} %"
            return
        for choice in chunk.pop("choices", None) or ():
            whole = self._choices.setdefault(choice["index"], {"message": {}})
            _add_delta(whole["message"], choice.pop("delta", None) or {})
            if tokens := (choice.get("logprobs") or {}).get("content"):
                earlier = (whole.get("logprobs") or {}).get("content") or []
                choice["logprobs"] = {**choice["logprobs"], "content": [*earlier, *tokens]}
            merge_values(whole, choice)
        merge_values(self._completion, chunk)
        message = self._choices.get(0, {}).get("message", {})
        self.text = message.get("content") or ""
        self.thoughts = message.get("reasoning_content") or message.get("reasoning") or ""

    def finished_reply(self) -> dict[str, Any] | None:
        choices = [self._choices[number] for number in sorted(self._choices)]
        if not choices or any(choice.get("finish_reason") is None for choice in choices):
            return None
        return {**self._completion, "object": "chat.completion", "choices": choices}


class Chat(OpenAIFormat):
    """Chat Completions: OpenAI's older API, supported by most other servers (Ollama, vLLM, llama.cpp, OpenRouter).

    Other servers support fewer parameters, and some reject unknown ones, so they receive only those that all servers
    support.
    """

    label: ClassVar[str] = "Chat Completions"
    reply_label: ClassVar[str] = "chat completion"
    path: ClassVar[str] = "/chat/completions"
    answer_field: ClassVar[str] = "choices"
    token_names: ClassVar[tuple[str, str]] = ("prompt", "completion")
    own_settings: ClassVar[Sequence[str]] = ("response_format", "output_limit", "belief")
    stream_fields: ClassVar[Mapping[str, Any]] = {"stream": True, "stream_options": {"include_usage": True}}
    event_reader: ClassVar[type[EventReader] | None] = ChatEvents

    @classmethod
    def build_request(cls, settings: ModelSettings, exchange: Exchange, cache_key: str) -> Request:
        body: dict[str, Any] = {
            "model": settings.model,
            "messages": [*exchange.system_message("system"), *exchange.other_messages()],
        }
        is_openai = cls.uses_provider(settings) or is_house(settings.base_url or "")
        body[settings.output_limit or ("max_completion_tokens" if is_openai else "max_tokens")] = settings.max_output
        if is_openai:
            body |= {"prompt_cache_key": cache_key, "store": False}
        if cls.uses_provider(settings):
            # Otherwise, the project's settings apply, at another price.
            body["service_tier"] = "default"
        form = settings.response_format if exchange.schema is not None else "text"
        if form == "json_schema":
            schema = {"name": "answer", "strict": True, "schema": exchange.schema}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif form == "json_object":
            body["response_format"] = {"type": "json_object"}
        if settings.belief == "logprobs":
            body |= LOGPROB_FIELDS
        return Request("chat", cls.path, body | settings.parameters)

    @staticmethod
    def is_reply(body: Mapping[str, Any]) -> bool:
        choices = body.get("choices")
        return isinstance(choices, list) and all(isinstance(as_mapping(each).get("message"), dict) for each in choices)

    @staticmethod
    def parse_error(body: Mapping[str, Any]) -> NonReply | None:
        choice = next(iter(as_objects(body.get("choices"))), {})
        text, refusal = _text_and_refusal(as_mapping(choice.get("message")))
        error, finish = find_error(body) or choice.get("error"), choice.get("finish_reason")
        if finish == "error" or (error and not text and not refusal):
            return NonReply(error or "finish_reason: error", True if text else None if choice else False)
        return None

    @staticmethod
    def parse_text(body: Mapping[str, Any]) -> Content:
        """Return the text of the only choice without its reasoning."""
        choices = as_objects(body.get("choices"))
        choice = next(iter(choices), {})
        message, reason = as_mapping(choice.get("message")), choice.get("finish_reason")
        text, refusal = _text_and_refusal(message)
        calls_tool, error = bool(message.get("tool_calls") or message.get("function_call")), choice.get("error")
        problem = find_contradiction(
            text, refusal=bool(refusal), calls_tool=calls_tool, error=find_error(body) or error, item=message
        )
        if len(choices) != 1:
            problem = f"it has {len(choices) or 'no'} choices instead of one"
        if problem:
            return Content(None, "other", problem)
        if refusal:
            return Content(refusal, "refusal", DECLINED)
        finish = parse_finish(reason)
        if finish == "refusal":
            return Content(text or None, finish, FILTERED)
        if (text or "").strip():
            return Content(text, finish)
        return Content(
            text or None, finish, describe_missing_text(reason, Chat.parse_thoughts(body), calls_tool=calls_tool)
        )

    @staticmethod
    def parse_thoughts(body: Mapping[str, Any]) -> str | None:
        """Return what DeepSeek, vLLM, LM Studio and OpenRouter put beside the content."""
        message = as_mapping(next(iter(as_objects(body.get("choices"))), {}).get("message"))
        fields = (message.get(name) for name in ("reasoning_content", "reasoning"))
        return next((field for field in fields if isinstance(field, str) and field.strip()), None)

    @staticmethod
    def parse_charges(body: Mapping[str, Any]) -> Charges:
        counts = as_mapping(body.get("usage"))
        tools = as_mapping(counts.get("server_tool_use"))
        return Charges(
            service_modes(body),
            count_long_writes(counts.get("prompt_tokens_details")),
            sum(map(parse_count, tools.values())),
        )


def _text_and_refusal(message: Mapping[str, Any]) -> tuple[str | None, str | None]:
    content = message.get("content")
    parts = as_objects(content)
    text = content if isinstance(content, str) else join_texts(parts, "text")
    refusals = [message.get("refusal"), *(part.get("refusal") for part in parts if part.get("type") == "refusal")]
    return text, next((str(each) for each in refusals if each), None)


def _add_delta(message: dict[str, Any], delta: Mapping[str, Any]) -> None:
    """Add the next piece of a message. Texts are appended, and other values replaced."""
    for key, value in delta.items():
        if isinstance(value, str) and isinstance(message.get(key), str) and key != "role":
            message[key] += value
        elif value is not None or key not in message:
            message[key] = value


WIRE: Final = Chat
