"""The providers' wire formats: build a request from a rendered prompt, and parse a reply from a received body.

This module does no I/O. Servers can send anything, so a body that cannot be parsed becomes a reply without text, never
an exception.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, Protocol, get_args

from dubito.errors import UsageError, one_line
from dubito.llm.answers import Schema
from dubito.llm.logprobs import LOGPROB_FIELDS
from dubito.llm.request import (
    Charges,
    DuplicateKey,
    Finish,
    NonReply,
    NonReplyKind,
    ProtocolName,
    RawReply,
    Reply,
    ReplyOrigin,
    Request,
    Usage,
    parse_json,
    refuse_duplicate_keys,
    replace_surrogates,
)
from dubito.llm.verdicts import parse_rejected_output
from dubito.model_settings import MAX_TOKENS, Api, ModelSettings, is_house, uses_provider_address

_DECODER: Final = json.JSONDecoder(object_pairs_hook=refuse_duplicate_keys)
_PAUSED: Final = "pause_turn"
# Finish reasons of all protocols, since gateways do not translate all of them.
_FINISHES: Final[Mapping[str, Finish]] = {
    **dict.fromkeys(("stop", "end_turn", "stop_sequence"), "stop"),
    **dict.fromkeys(("length", "max_tokens", "max_output_tokens", "model_length"), "length"),
    "model_context_window_exceeded": "length",
    **dict.fromkeys(("content_filter", "refusal"), "refusal"),
}
# Finish reasons of a reply that waits for a tool's result.
_WAITING_FINISHES: Final = ("tool_calls", "function_call", "tool_use", _PAUSED)
_FILTERED: Final = "a content filter of the server stopped the reply"
_DECLINED: Final = "the model declined"
_CALLS_TOOL: Final = "it calls a tool, but there are no tools"
_MAX_MODEL_NAME: Final = 200  # characters
_EVENT_LINE: Final = re.compile(r"\s*(?:data|event|id|retry)?:")
# Service modes, with the values that cost at most the list price.
STANDARD_MODES: Final[Mapping[str, Sequence[str]]] = {
    "service_tier": ("default", "standard", "standard_only", "flex", "batch", "on_demand"),
    "speed": ("standard",),
    "inference_geo": ("global", "not_available"),
}
# Anthropic caches a request up to the blocks marked with this.
_CACHE_MARK: Final = {"cache_control": {"type": "ephemeral"}}
_UNFINISHED: Final = ("failed", "cancelled", "queued", "in_progress")
_INCOMPLETE: Final = ("incomplete", "in_progress")
_TEXT_PARTS: Final = ("output_text", "refusal")
_WAITING_ITEMS: Final = ("_call", "_call_output", "_approval_request")  # suffixes of these blocks' types
_CHARGED_TOOLS: Final = ("web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call")


@dataclass(frozen=True, slots=True)
class Exchange:
    """The messages of an attempt: the prompt, then each unusable reply with the re-ask that followed."""

    system: str
    user: str
    schema: Schema
    reasks: Sequence[tuple[str, str]] = ()  # the model's reply, our re-ask
    # The beginning of the user text, in pieces that the player's later requests repeat.
    history: Sequence[str] = ()

    def with_rules_as_user(self) -> "Exchange":
        return replace(self, system="", history=(f"{self.system}\n\n", *self.history))

    def system_message(self, role: str) -> list[dict[str, Any]]:
        return [{"role": role, "content": self.system}] if self.system else []

    def other_messages(self) -> list[dict[str, Any]]:
        """Return the alternating user and assistant messages."""
        messages = [{"role": "user", "content": "".join(self.history) + self.user}]
        for reply, reask in self.reasks:
            messages += [
                {"role": "assistant", "content": replace_surrogates(reply)},
                {"role": "user", "content": reask},
            ]
        return messages


def as_mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def as_objects(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def join_texts(parts: Sequence[dict[str, Any]], kind: str) -> str | None:
    texts = [part["text"] for part in parts if part.get("type") == kind and isinstance(part.get("text"), str)]
    return "".join(texts) if texts else None


def classify_non_reply(received: RawReply, body: Any) -> NonReply:
    """Classify a body that does not follow the protocol. `body` is its JSON, or None if it is not JSON.

    The body does not show whether a model was called. HTML or unrelated JSON comes from a proxy. An empty, truncated or
    streamed body could be a lost reply, which is billed, unless status 204 shows that it is empty.
    """
    text = received.raw.strip()
    if not text:
        kind: NonReplyKind = "empty"
    elif body is not None or text == "null":
        kind = "json"
    elif text.startswith("<"):
        kind = "page"
    elif _EVENT_LINE.match(text):
        kind = "stream"
    else:
        kind = "unreadable" if text.startswith(("{", "[")) else "text"
    return NonReply(None, kind in ("empty", "stream", "unreadable") and received.status != 204, kind)


def parse_finish(reason: Any) -> Finish:
    return _FINISHES.get(reason, "other") if isinstance(reason, str) else "other"


def _describe_missing_text(reason: Any, thoughts: str | None, *, calls_tool: bool) -> str:
    """Return why a reply has no text. `reason` is its finish reason."""
    if calls_tool:
        return _CALLS_TOOL
    finish = parse_finish(reason)
    if finish == "length":
        return "the reply stopped at its length limit" + (" while reasoning, before any text" if thoughts else "")
    ending = f" (it ended with {one_line(str(reason), 40)!r})" if finish == "other" and reason else ""
    return ("it has reasoning, but no text after it" if thoughts else "it has no text") + ending


def is_by_assistant(item: Mapping[str, Any]) -> bool:
    return item.get("role") in (None, "assistant")


def find_error(body: Mapping[str, Any]) -> Any:
    if body.get("type") == "error" or body.get("object") == "error":
        return body.get("error") or body
    return body.get("error") or None


def service_modes(fields: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple((mode, value) for mode in STANDARD_MODES if isinstance(value := fields.get(mode), str))


def parse_count(value: Any) -> int:
    return value if type(value) is int and 0 <= value <= MAX_TOKENS else 0


def parse_openai_usage(counts: Mapping[str, Any], input_name: str, output_name: str) -> Usage | None:
    """Parse token counts. OpenAI includes cached tokens in the input.

    A missing or null count is 0, as on many servers. If there are more cached tokens than input tokens, the server
    counts them separately.
    """
    inputs, outputs = (as_mapping(counts.get(f"{name}_tokens_details")) for name in (input_name, output_name))
    cache_write = inputs.get("cache_write_tokens") or 0
    if type(cache_write) is int:
        details = as_mapping(inputs.get("cache_write_tokens_details"))
        cache_write = max(cache_write, sum(map(parse_count, details.values())))
    usage = parse_usage(
        counts.get(f"{input_name}_tokens"),
        inputs.get("cached_tokens") or 0,
        cache_write,
        counts.get(f"{output_name}_tokens"),
        outputs.get("reasoning_tokens") or 0,
        counts.get("total_tokens"),
    )
    cached = usage.cached + usage.cache_write if usage else 0
    return replace(usage, input=usage.input + cached) if usage and cached > usage.input else usage


def _long_writes(details: Any) -> int:
    return parse_count(as_mapping(as_mapping(details).get("cache_write_tokens_details")).get("ttl_12h_tokens"))


def parse_usage(
    input_tokens: Any, cached: Any, cache_write: Any, output: Any, reasoning: Any, total: Any = None
) -> Usage | None:
    """Return the token counts, or None (as for missing usage) if one of them is invalid.

    Some servers include reasoning in the output and others do not, so the higher count is used.
    """
    counts = [input_tokens, cached, cache_write, output, reasoning, 0 if total is None else total]
    if any(type(count) is not int or not 0 <= count <= MAX_TOKENS for count in counts):
        return None
    # More reasoning than output means that the output does not include it.
    all_output = output + reasoning if reasoning > output else output
    return Usage(input_tokens, cached, cache_write, max(all_output, counts[-1] - input_tokens), reasoning)


class Content(NamedTuple):
    """The text of a reply and how it ended. `problem` is the reason if the text is missing or not an answer."""

    text: str | None
    finish: Finish
    problem: str = ""


class WireFormat(Protocol):
    """A protocol's representation of requests and replies."""

    @staticmethod
    def build_request(settings: ModelSettings, exchange: "Exchange", cache_key: str) -> Request:
        """Build an attempt's request."""

    @staticmethod
    def is_reply(body: Mapping[str, Any]) -> bool:
        """Return whether a body has the form of a reply."""

    @staticmethod
    def parse_error(body: Mapping[str, Any]) -> NonReply | None:
        """Return the error in a body without an answer. If it has both, `parse_text` finds a contradiction."""

    @staticmethod
    def parse_text(body: Mapping[str, Any]) -> Content:
        """Return the model's text and finish reason."""

    @staticmethod
    def parse_thoughts(body: Mapping[str, Any]) -> str | None:
        """Return the model's reasoning that the server keeps apart from the text."""

    @staticmethod
    def parse_charges(body: Mapping[str, Any]) -> Charges:
        """Return what can change the price: service tier, long-lived cache writes, the provider's own tools."""

    @staticmethod
    def parse_usage(counts: Mapping[str, Any]) -> Usage | None:
        """Return the token counts, or None if one of them is invalid."""


class Chat:
    """Chat Completions: OpenAI's older API, supported by most other servers (Ollama, vLLM, llama.cpp, OpenRouter).

    Other servers support fewer parameters, and some reject unknown ones, so they receive only those that all servers
    support.
    """

    @staticmethod
    def build_request(settings: ModelSettings, exchange: Exchange, cache_key: str) -> Request:
        body: dict[str, Any] = {
            "model": settings.model,
            "messages": [*exchange.system_message("system"), *exchange.other_messages()],
        }
        is_openai = uses_provider_address(settings) or is_house(settings.base_url or "")
        body[settings.output_limit or ("max_completion_tokens" if is_openai else "max_tokens")] = settings.max_output
        if is_openai:
            body |= {"prompt_cache_key": cache_key, "store": False}
        if uses_provider_address(settings):
            # Otherwise, the project's settings apply, at another price.
            body["service_tier"] = "default"
        if settings.response_format == "json_schema":
            schema = {"name": "answer", "strict": True, "schema": exchange.schema}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif settings.response_format == "json_object":
            body["response_format"] = {"type": "json_object"}
        if settings.belief == "logprobs":
            body |= LOGPROB_FIELDS
        return Request("chat", "/chat/completions", body | settings.parameters)

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
        problem = _find_contradiction(
            text, refusal=bool(refusal), calls_tool=calls_tool, error=find_error(body) or error, item=message
        )
        if len(choices) != 1:
            problem = f"it has {len(choices) or 'no'} choices instead of one"
        if problem:
            return Content(None, "other", problem)
        if refusal:
            return Content(refusal, "refusal", _DECLINED)
        finish = parse_finish(reason)
        if finish == "refusal":
            return Content(text or None, finish, _FILTERED)
        if (text or "").strip():
            return Content(text, finish)
        return Content(
            text or None, finish, _describe_missing_text(reason, Chat.parse_thoughts(body), calls_tool=calls_tool)
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
            _long_writes(counts.get("prompt_tokens_details")),
            sum(map(parse_count, tools.values())),
        )

    @staticmethod
    def parse_usage(counts: Mapping[str, Any]) -> Usage | None:
        return parse_openai_usage(counts, "prompt", "completion")


def _text_and_refusal(message: Mapping[str, Any]) -> tuple[str | None, str | None]:
    content = message.get("content")
    parts = as_objects(content)
    text = content if isinstance(content, str) else join_texts(parts, "text")
    refusals = [message.get("refusal"), *(part.get("refusal") for part in parts if part.get("type") == "refusal")]
    return text, next((str(each) for each in refusals if each), None)


class Messages:
    """Anthropic's Messages API."""

    @staticmethod
    def build_request(settings: ModelSettings, exchange: Exchange, cache_key: str) -> Request:
        parameters = dict(settings.parameters)
        form = {"format": {"type": "json_schema", "schema": exchange.schema}}
        body: dict[str, Any] = {
            "model": settings.model,
            "max_tokens": settings.max_output,
            **({"system": [{"type": "text", "text": exchange.system, **_CACHE_MARK}]} if exchange.system else {}),
            "messages": _marked_messages(exchange),
            "output_config": as_mapping(parameters.pop("output_config", None)) | form,
        }
        if uses_provider_address(settings):
            # Otherwise the request may be served at the priority price.
            body["service_tier"] = "standard_only"
        return Request("messages", "/v1/messages", body | parameters)

    @staticmethod
    def is_reply(body: Mapping[str, Any]) -> bool:
        content = body.get("content")
        return isinstance(content, list) and all(isinstance(block, dict) for block in content)

    @staticmethod
    def parse_error(body: Mapping[str, Any]) -> NonReply | None:
        error, content = find_error(body), body.get("content")
        return NonReply(error, None if "content" in body else False) if error and not content else None

    @staticmethod
    def parse_text(body: Mapping[str, Any]) -> Content:
        """Return the text without thinking blocks.

        Unlike in other protocols, text with a refusal is not a contradiction here: a filter cut the text off.
        """
        blocks, reason = as_objects(body.get("content")), body.get("stop_reason")
        calls_tool, text = any(block.get("type") == "tool_use" for block in blocks), join_texts(blocks, "text")
        problem = _find_contradiction(text, refusal=False, calls_tool=calls_tool, error=find_error(body), item=body)
        if problem or reason == _PAUSED:
            return Content(None, "other", problem or "it paused before its answer (pause_turn)")
        finish = parse_finish(reason)
        if finish == "refusal" or (text or "").strip():
            return Content(text, finish, _DECLINED if finish == "refusal" else "")
        return Content(
            text, finish, _describe_missing_text(reason, Messages.parse_thoughts(body), calls_tool=calls_tool)
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
    def parse_usage(counts: Mapping[str, Any]) -> Usage | None:
        cached, cache_write = counts.get("cache_read_input_tokens"), counts.get("cache_creation_input_tokens") or 0
        kinds = as_mapping(counts.get("cache_creation")).values()
        if type(cache_write) is int:
            cache_write = max(cache_write, sum(map(parse_count, kinds)))
        thinking = as_mapping(counts.get("output_tokens_details")).get("thinking_tokens") or 0
        usage = parse_usage(counts.get("input_tokens"), cached or 0, cache_write, counts.get("output_tokens"), thinking)
        # Anthropic does not include cached tokens in the input.
        return usage and replace(usage, input=usage.input + usage.cached + usage.cache_write)


def _marked_messages(exchange: Exchange) -> list[dict[str, Any]]:
    """Return the messages, with a cache mark on the last block of the history.

    From a mark, the cache looks back up to 20 blocks for an earlier mark. Each request of a player adds at most one
    block of history, so the mark of its previous request is at most one block back.
    """
    first, *rest = exchange.other_messages()
    if not exchange.history:
        return [first, *rest]
    *older, last = ({"type": "text", "text": text} for text in exchange.history)
    content = [*older, last | _CACHE_MARK, {"type": "text", "text": exchange.user}]
    return [first | {"content": content}, *rest]


def _with_type(message: dict[str, Any]) -> dict[str, Any]:
    return {"type": "message", **message} if message["role"] == "assistant" else message


class Responses:
    """OpenAI's Responses API."""

    @staticmethod
    def build_request(settings: ModelSettings, exchange: Exchange, cache_key: str) -> Request:
        parameters = dict(settings.parameters)
        schema = {"type": "json_schema", "name": "answer", "strict": True, "schema": exchange.schema}
        body: dict[str, Any] = {
            "model": settings.model,
            "input": [*exchange.system_message("developer"), *map(_with_type, exchange.other_messages())],
            "max_output_tokens": settings.max_output,
            "prompt_cache_key": cache_key,
            "store": False,
            "text": as_mapping(parameters.pop("text", None)) | {"format": schema},
        }
        if uses_provider_address(settings):
            # Otherwise, the project's settings apply, at another price.
            body["service_tier"] = "default"
        return Request("responses", "/responses", body | parameters)

    @staticmethod
    def is_reply(body: Mapping[str, Any]) -> bool:
        output = body.get("output")
        return isinstance(output, list) and all(isinstance(item, dict) for item in output)

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
        answers = _answers(items)
        parts = [part for item in answers for part in as_objects(item.get("content"))]
        text, refused = join_texts(parts, "output_text"), any(part.get("type") == "refusal" for part in parts)
        calls_tool, reason = any(map(_waits, items)), as_mapping(body.get("incomplete_details")).get("reason")
        foreign: Mapping[str, Any] = next((item for item in items if not is_by_assistant(item)), {})
        problem = _find_contradiction(
            text, refusal=refused, calls_tool=calls_tool, error=find_error(body), item=foreign
        )
        if problem:
            return Content(None, "other", problem)
        if reason == "content_filter" or refused:
            return Content(text, "refusal", _DECLINED if refused else _FILTERED)
        finish, thoughts = parse_finish(reason), Responses.parse_thoughts(body)
        if body.get("status") == "incomplete":
            if finish != "length":
                return Content(None, "other", f"it is incomplete ({one_line(str(reason), 40)})")
            return Content(text, finish, "" if text else _describe_missing_text(reason, thoughts, calls_tool=False))
        if any(item.get("status") in _INCOMPLETE for item in answers):
            return Content(None, "other", "its message is incomplete")
        finish = "stop" if body.get("status") == "completed" else "other"
        if len(answers) > 1:
            texts = [join_texts(as_objects(item.get("content")), "output_text") or "" for item in answers]
            return Content("\n".join(texts), "other", f"it has {len(answers)} messages with a text instead of one")
        if (text or "").strip():
            return Content(text, finish)
        return Content(text, finish, _describe_missing_text(None, thoughts, calls_tool=calls_tool))

    @staticmethod
    def parse_thoughts(body: Mapping[str, Any]) -> str | None:
        items = [item for item in as_objects(body.get("output")) if item.get("type") == "reasoning"]
        parts = [part for item in items for part in as_objects(item.get("content"))]
        return join_texts(parts, "reasoning_text")

    @staticmethod
    def parse_charges(body: Mapping[str, Any]) -> Charges:
        calls = sum(item.get("type") in _CHARGED_TOOLS for item in as_objects(body.get("output")))
        long = _long_writes(as_mapping(body.get("usage")).get("input_tokens_details"))
        return Charges(service_modes(body), long, calls)

    @staticmethod
    def parse_usage(counts: Mapping[str, Any]) -> Usage | None:
        return parse_openai_usage(counts, "input", "output")


def _answers(items: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    messages = [item for item in items if item.get("type") == "message" and item.get("phase") != "commentary"]
    return [
        item for item in messages if any(part.get("type") in _TEXT_PARTS for part in as_objects(item.get("content")))
    ]


def _waits(item: Mapping[str, Any]) -> bool:
    kind = item.get("type")
    return isinstance(kind, str) and kind.endswith(_WAITING_ITEMS) and kind not in (*_CHARGED_TOOLS, "mcp_call")


def _find_contradiction(
    text: str | None, *, refusal: bool, calls_tool: bool, error: Any, item: Mapping[str, Any]
) -> str:
    """Return what contradicts a reply's text, or an empty string. `item` is the message with a role."""
    if error:
        return "it has an error beside its text"
    if not is_by_assistant(item):
        return f"its role is {one_line(str(item.get('role')), 40)!r} instead of 'assistant'"
    if calls_tool:
        return f"{_CALLS_TOOL}{', beside its text' if text else ''}"
    return "it has both a text and a refusal" if text and refusal else ""


class Decisions:
    """OpenAI's Decisions API. Its replies have answers instead of text, and the JSON of these is used as text."""

    @staticmethod
    def build_request(settings: ModelSettings, exchange: Exchange, cache_key: str) -> Request:
        body: dict[str, Any] = {
            "model": settings.model,
            "input": [*exchange.system_message("developer"), *exchange.other_messages()],
            "questions": exchange.schema["questions"],
            "prompt_cache_key": cache_key,
        }
        return Request("decisions", "/decisions", body | settings.parameters)

    @staticmethod
    def is_reply(body: Mapping[str, Any]) -> bool:
        answers = body.get("answers")
        return isinstance(answers, list) and all(isinstance(answer, dict) for answer in answers)

    @staticmethod
    def parse_error(body: Mapping[str, Any]) -> NonReply | None:
        error, answers = find_error(body), body.get("answers")
        return NonReply(error, None if "answers" in body else False) if error and not as_objects(answers) else None

    @staticmethod
    def parse_text(body: Mapping[str, Any]) -> Content:
        if find_error(body):
            return Content(None, "other", "it has an error beside its answers")
        return Content(json.dumps(body["answers"], sort_keys=True), "stop")

    @staticmethod
    def parse_thoughts(body: Mapping[str, Any]) -> str | None:
        return None

    @staticmethod
    def parse_charges(body: Mapping[str, Any]) -> Charges:
        return Charges(service_modes(body))

    @staticmethod
    def parse_usage(counts: Mapping[str, Any]) -> Usage | None:
        return parse_openai_usage(counts, "input", "output")


_FORMATS: Final[dict[Api, type[WireFormat]]] = {
    "responses": Responses,
    "chat": Chat,
    "messages": Messages,
    "decisions": Decisions,
}
_WITHOUT_OUTPUT_TOKENS: Final = ("decisions",)


def build_request(settings: ModelSettings, exchange: Exchange, cache_key: str) -> Request:
    if settings.system == "user":
        exchange = exchange.with_rules_as_user()
    return _FORMATS[settings.api].build_request(settings, exchange, cache_key)


def read_reply(protocol: ProtocolName, received: RawReply, origin: ReplyOrigin = "live") -> Reply:
    """Parse a received body. If it is not a model's reply, the result's `non_reply` describes it."""
    if protocol == "program":
        return _read_program_line(received, origin)
    wire, has_duplicate_keys = _FORMATS[protocol], False
    try:
        body: Any = _DECODER.decode(received.raw)
    except DuplicateKey:
        body, has_duplicate_keys = parse_json(received.raw), True
    except (ValueError, RecursionError):
        body = None
    is_reply = isinstance(body, dict) and wire.is_reply(body)
    if has_duplicate_keys and is_reply:
        # It is unclear which of the values is meant.
        return Reply(None, "other", None, received, origin, problem="a key appears twice in its body")
    fields = as_mapping(body)
    usage, charges = wire.parse_usage(as_mapping(fields.get("usage"))), wire.parse_charges(fields)
    non_reply = wire.parse_error(fields) or (None if is_reply else classify_non_reply(received, body))
    if non_reply and non_reply.error and (rejected := parse_rejected_output(non_reply.error)):
        return Reply(rejected.text, "invalid", usage, received, origin, charges, problem=rejected.problem)
    if non_reply is not None:
        return Reply(None, "other", usage, received, origin, charges, non_reply)
    text, finish, problem = wire.parse_text(body)
    if usage and not (usage.input and (usage.output or not text or protocol in _WITHOUT_OUTPUT_TOKENS)):
        # Every prompt and text has tokens, so a count of 0 is wrong.
        usage = None
    name = fields.get("model")
    model = replace_surrogates(name)[:_MAX_MODEL_NAME] if isinstance(name, str) and name else None
    thoughts = wire.parse_thoughts(body)
    return Reply(text, finish, usage, received, origin, charges, model=model, problem=problem, thoughts=thoughts)


def _read_program_line(received: RawReply, origin: ReplyOrigin) -> Reply:
    """Parse the recorded output of a program: a line or an error."""
    body = as_mapping(parse_json(received.raw))
    if isinstance(line := body.get("line"), str):
        return Reply(line, "stop", None, received, origin)
    return Reply(str(body.get("error")), "other", None, received, origin)


def detect_protocol(raw: str) -> Api | None:
    """Return the protocol whose reply format a body matches, or None if it matches none or several."""
    try:
        body = parse_json(raw)
    except (ValueError, RecursionError):
        return None
    matches = [api for api, wire in _FORMATS.items() if isinstance(body, dict) and wire.is_reply(body)]
    return matches[0] if len(matches) == 1 else None


def parse_stored_request(text: str) -> Request:
    """Parse a request from a run's log. Raises UsageError if the text is not a request."""
    fields = parse_json(text)
    name, body = (fields.get("protocol"), fields.get("body")) if isinstance(fields, dict) else (None, None)
    protocol = next((known for known in get_args(ProtocolName) if known == name), None)
    if protocol is None or not isinstance(body, dict):
        raise UsageError(f"a request in the run's log is damaged: {one_line(text, 60)}")
    return Request(protocol, str(fields.get("path")), body)


def read_recorded_reply(protocol: ProtocolName, body: str | None) -> Reply:
    """Parse a body from the run's recording. If there is no body, return a reply without text."""
    return read_reply(protocol, RawReply(200, body or ""), "tape")
