"""The protocols: a request out of a rendered prompt, a reply out of a received body. No I/O.

A body may be anything at all, so every part of it is read with care; what cannot be read becomes a reply without text,
never an exception.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from dubito.errors import UsageError, one_line
from dubito.llm.answers import Schema
from dubito.llm.request import (
    Api,
    Charges,
    Failure,
    Finish,
    Instead,
    RawReply,
    Reply,
    ReplyOrigin,
    Request,
    TwinKey,
    Usage,
    read_json,
    sendable,
    without_twins,
)
from dubito.llm.settings import MOST_TOKENS, ModelSettings, asks_provider, is_house

_DECODER: Final = json.JSONDecoder(object_pairs_hook=without_twins)
_FINISHES: Final[Mapping[str, Finish]] = {  # in the words of all protocols: gateways do not translate them all
    **dict.fromkeys(("stop", "end_turn", "stop_sequence"), "stop"),
    **dict.fromkeys(("length", "max_tokens", "max_output_tokens", "model_length"), "length"),
    "model_context_window_exceeded": "length",
    **dict.fromkeys(("content_filter", "refusal"), "refusal"),
}
_NO_ANSWER: Final = ("tool_calls", "function_call", "tool_use", "pause_turn")  # ends at which something is waited for
_NAME: Final = 200  # characters of a model's
_STREAM: Final = re.compile(r"\s*(?:data|event|id|retry)?:")  # how the lines of one begin
USUAL: Final[Mapping[str, Sequence[str]]] = {  # modes of service, with the values that cost the list price, or less
    "service_tier": ("default", "standard", "standard_only", "flex", "batch", "on_demand"),
    "speed": ("standard",),
    "inference_geo": ("global", "not_available"),
}
_MARK: Final = {"cache_control": {"type": "ephemeral"}}  # all up to here may be cached
_UNFINISHED: Final = ("failed", "cancelled", "queued", "in_progress")
_PARTLY: Final = ("incomplete", "in_progress")
_SAYING: Final = ("output_text", "refusal")
_WAITING: Final = ("_call", "_call_output", "_approval_request")
_CHARGED: Final = ("web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call")


@dataclass(frozen=True, slots=True)
class Exchange:
    """A conversation of one decision: the prompt and the form of the answer, then what was said and asked again."""

    system: str
    user: str
    schema: Schema
    again: Sequence[tuple[str, str]] = ()  # the model's reply, our re-ask
    history: Sequence[str] = ()  # what the user text begins with: later requests of the player do so too

    def as_user_text(self) -> "Exchange":
        return replace(self, system="", history=(f"{self.system}\n\n", *self.history))

    def begin(self, role: str) -> list[dict[str, Any]]:
        return [{"role": role, "content": self.system}] if self.system else []

    def turns(self) -> list[dict[str, Any]]:
        """The messages of user and assistant, in turn."""
        messages = [{"role": "user", "content": "".join(self.history) + self.user}]
        for said, asked in self.again:
            messages += [{"role": "assistant", "content": sendable(said)}, {"role": "user", "content": asked}]
        return messages


def mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def objects(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def joined_texts(parts: Sequence[dict[str, Any]], kind: str) -> str | None:
    texts = [part["text"] for part in parts if part.get("type") == kind and isinstance(part.get("text"), str)]
    return "".join(texts) if texts else None


def came_instead(received: RawReply, body: Any) -> Failure:
    """What a body is that is no reply; `body` is its JSON, None if it is none.

    Whether a model wrote is known of none of them: a page or another's JSON is a proxy's, what is cut short, empty or
    streamed may be a reply that was lost, and billed. By status 204 a server says itself that there is none.
    """
    text = received.raw.strip()
    if not text:
        what: Instead = "empty"
    elif body is not None or text == "null":
        what = "json"
    elif text.startswith("<"):
        what = "page"
    elif _STREAM.match(text):
        what = "stream"
    else:
        what = "unreadable" if text.startswith(("{", "[")) else "text"
    return Failure(None, what in ("empty", "stream", "unreadable") and received.status != 204, what)


def finish_of(reason: Any) -> Finish | None:
    if not isinstance(reason, str):
        return "other"
    return None if reason in _NO_ANSWER else _FINISHES.get(reason, "other")


def by_assistant(item: Mapping[str, Any]) -> bool:
    return item.get("role") in (None, "assistant")


def error_of(body: Mapping[str, Any]) -> Any:
    if body.get("type") == "error" or body.get("object") == "error":
        return body.get("error") or body
    return body.get("error") or None


def modes_of(holder: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple((mode, value) for mode in USUAL if isinstance(value := holder.get(mode), str))


def count_of(value: Any) -> int:
    return value if type(value) is int and 0 <= value <= MOST_TOKENS else 0


def openai_usage(counts: Mapping[str, Any], into: str, out: str) -> Usage | None:
    """OpenAI counts cached tokens within the input; what is left out or null is none, as other servers do it.

    Cached tokens that are more than the input are no part of it: that server counts them beside it.
    """
    read, written = (mapping(counts.get(f"{name}_tokens_details")) for name in (into, out))
    kept = read.get("cache_write_tokens") or 0
    if type(kept) is int:
        kept = max(kept, sum(map(count_of, mapping(read.get("cache_write_tokens_details")).values())))
    usage = usage_of(
        counts.get(f"{into}_tokens"),
        read.get("cached_tokens") or 0,
        kept,
        counts.get(f"{out}_tokens"),
        written.get("reasoning_tokens") or 0,
        counts.get("total_tokens"),
    )
    beside = usage.cached + usage.cache_write if usage else 0
    return replace(usage, input=usage.input + beside) if usage and beside > usage.input else usage


def _long_writes(details: Any) -> int:
    return count_of(mapping(mapping(details).get("cache_write_tokens_details")).get("ttl_12h_tokens"))


def usage_of(into: Any, cached: Any, written: Any, out: Any, reasoning: Any, total: Any = None) -> Usage | None:
    """The counts; None, as for missing usage, if one of them is not a count.

    Some servers count reasoning within the output, others beside it: the largest reading is the bill.
    """
    counts = [into, cached, written, out, reasoning, 0 if total is None else total]
    if any(type(count) is not int or not 0 <= count <= MOST_TOKENS for count in counts):
        return None
    beside = out + reasoning if reasoning > out else out  # more than the whole is no part of it
    return Usage(into, cached, written, max(beside, counts[-1] - into), reasoning)


class Speaks(Protocol):
    """One protocol: how a request is built, and how a body is read."""

    @staticmethod
    def build(settings: ModelSettings, exchange: "Exchange", cache_key: str) -> Request:
        """The request of an attempt."""

    @staticmethod
    def is_reply(body: Mapping[str, Any]) -> bool:
        """Whether it has the shape of a reply."""

    @staticmethod
    def failure(body: Mapping[str, Any]) -> Failure | None:
        """The error that stands in a reply's place; None beside an answer, which `read` takes as a contradiction."""

    @staticmethod
    def read(body: Mapping[str, Any]) -> tuple[str | None, Finish]:
        """What was said, and how it ended."""

    @staticmethod
    def charges(body: Mapping[str, Any]) -> Charges:
        """What may cost more than tokens do: tier, input that is kept for long, the provider's own tools."""

    @staticmethod
    def usage(counts: Mapping[str, Any]) -> Usage | None:
        """The tokens; None if they are not all counts."""


class Chat:
    """Chat Completions: OpenAI's older API, and what most other servers speak (Ollama, vLLM, llama.cpp, OpenRouter).

    Others than OpenAI know fewer parameters, and some refuse what they do not know: they are sent what all know.
    """

    @staticmethod
    def build(settings: ModelSettings, exchange: Exchange, cache_key: str) -> Request:
        body: dict[str, Any] = {
            "model": settings.model,
            "messages": [*exchange.begin("system"), *exchange.turns()],
        }
        newer = asks_provider(settings) or is_house(settings.base_url or "")
        body[settings.output_limit or ("max_completion_tokens" if newer else "max_tokens")] = settings.max_output
        if newer:
            body |= {"prompt_cache_key": cache_key, "store": False}
        if asks_provider(settings):
            body["service_tier"] = "default"  # left out, the project's own settings decide, at another price
        if settings.response_format == "json_schema":
            schema = {"name": "answer", "strict": True, "schema": exchange.schema}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif settings.response_format == "json_object":
            body["response_format"] = {"type": "json_object"}
        return Request("chat", "/chat/completions", body | settings.parameters)

    @staticmethod
    def is_reply(body: Mapping[str, Any]) -> bool:
        choices = body.get("choices")
        return isinstance(choices, list) and all(isinstance(mapping(each).get("message"), dict) for each in choices)

    @staticmethod
    def failure(body: Mapping[str, Any]) -> Failure | None:
        """At the top or in the choice."""
        choice = next(iter(objects(body.get("choices"))), {})
        text, refusal = _text_and_refusal(mapping(choice.get("message")))
        error, finish = error_of(body) or choice.get("error"), choice.get("finish_reason")
        if finish == "error" or (error and not text and not refusal):
            return Failure(error or "finish_reason: error", True if text else None if choice else False)
        return None

    @staticmethod
    def read(body: Mapping[str, Any]) -> tuple[str | None, Finish]:
        """What was said in the only choice, and how it ended. Thoughts beside it are ignored."""
        choices = objects(body.get("choices"))
        choice = next(iter(choices), {})
        message = mapping(choice.get("message"))
        text, refusal = _text_and_refusal(message)
        beside = (error_of(body), choice.get("error"), message.get("tool_calls"), message.get("function_call"))
        if len(choices) > 1 or any(beside) or (text and refusal) or not by_assistant(message):
            return None, "other"  # it contradicts itself
        if refusal:
            return refusal, "refusal"
        finish = finish_of(choice.get("finish_reason"))
        return (None, "other") if finish is None else (text or None, finish)

    @staticmethod
    def charges(body: Mapping[str, Any]) -> Charges:
        """The tier that served, and the server's own tools."""
        counts = mapping(body.get("usage"))
        tools = mapping(counts.get("server_tool_use"))
        return Charges(
            modes_of(body), _long_writes(counts.get("prompt_tokens_details")), sum(map(count_of, tools.values()))
        )

    @staticmethod
    def usage(counts: Mapping[str, Any]) -> Usage | None:
        return openai_usage(counts, "prompt", "completion")


def _text_and_refusal(message: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Text and refusal of a message."""
    content = message.get("content")
    parts = objects(content)
    text = content if isinstance(content, str) else joined_texts(parts, "text")
    refusals = [message.get("refusal"), *(part.get("refusal") for part in parts if part.get("type") == "refusal")]
    return text, next((str(each) for each in refusals if each), None)


class Messages:
    """Anthropic's Messages API."""

    @staticmethod
    def build(settings: ModelSettings, exchange: Exchange, cache_key: str) -> Request:
        parameters = dict(settings.parameters)
        form = {"format": {"type": "json_schema", "schema": exchange.schema}}
        body: dict[str, Any] = {
            "model": settings.model,
            "max_tokens": settings.max_output,
            **({"system": [{"type": "text", "text": exchange.system, **_MARK}]} if exchange.system else {}),
            "messages": _marked_messages(exchange),
            "output_config": mapping(parameters.pop("output_config", None)) | form,
        }
        if asks_provider(settings):
            body["service_tier"] = "standard_only"  # left out, it may be served at the price of priority
        return Request("messages", "/v1/messages", body | parameters)

    @staticmethod
    def is_reply(body: Mapping[str, Any]) -> bool:
        content = body.get("content")
        return isinstance(content, list) and all(isinstance(block, dict) for block in content)

    @staticmethod
    def failure(body: Mapping[str, Any]) -> Failure | None:
        error, content = error_of(body), body.get("content")
        return Failure(error, None if "content" in body else False) if error and not content else None

    @staticmethod
    def read(body: Mapping[str, Any]) -> tuple[str | None, Finish]:
        """What was said, and how it ended. Blocks of thinking are ignored.

        A refusal beside a text means that a filter stopped it: here it is no contradiction.
        """
        blocks = objects(body.get("content"))
        if error_of(body) or not by_assistant(body) or any(block.get("type") == "tool_use" for block in blocks):
            return None, "other"  # it contradicts itself
        finish = finish_of(body.get("stop_reason"))
        return (None, "other") if finish is None else (joined_texts(blocks, "text"), finish)

    @staticmethod
    def charges(body: Mapping[str, Any]) -> Charges:
        """Tier, speed and region that served; input that is kept for an hour; the provider's own tools."""
        counts = mapping(body.get("usage"))
        hour = mapping(counts.get("cache_creation")).get("ephemeral_1h_input_tokens")
        tools = mapping(counts.get("server_tool_use"))
        return Charges(modes_of(counts), count_of(hour), sum(map(count_of, tools.values())))

    @staticmethod
    def usage(counts: Mapping[str, Any]) -> Usage | None:
        """Anthropic counts cached tokens beside the input."""
        cached, written = counts.get("cache_read_input_tokens"), counts.get("cache_creation_input_tokens") or 0
        kinds = mapping(counts.get("cache_creation")).values()
        if type(written) is int:
            written = max(written, sum(map(count_of, kinds)))
        thinking = mapping(counts.get("output_tokens_details")).get("thinking_tokens") or 0
        apart = usage_of(counts.get("input_tokens"), cached or 0, written, counts.get("output_tokens"), thinking)
        return apart and replace(apart, input=apart.input + apart.cached + apart.cache_write)


def _marked_messages(exchange: Exchange) -> list[dict[str, Any]]:
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


def _with_type(message: dict[str, Any]) -> dict[str, Any]:
    return {"type": "message", **message} if message["role"] == "assistant" else message


class Responses:
    """OpenAI's Responses API."""

    @staticmethod
    def build(settings: ModelSettings, exchange: Exchange, cache_key: str) -> Request:
        parameters = dict(settings.parameters)
        schema = {"type": "json_schema", "name": "answer", "strict": True, "schema": exchange.schema}
        body: dict[str, Any] = {
            "model": settings.model,
            "input": [*exchange.begin("developer"), *map(_with_type, exchange.turns())],
            "max_output_tokens": settings.max_output,
            "prompt_cache_key": cache_key,
            "store": False,
            "text": mapping(parameters.pop("text", None)) | {"format": schema},
        }
        if asks_provider(settings):
            body["service_tier"] = "default"  # left out, the project's own settings decide, at another price
        return Request("responses", "/responses", body | parameters)

    @staticmethod
    def is_reply(body: Mapping[str, Any]) -> bool:
        output = body.get("output")
        return isinstance(output, list) and all(isinstance(item, dict) for item in output)

    @staticmethod
    def failure(body: Mapping[str, Any]) -> Failure | None:
        error, status, output = error_of(body), body.get("status"), body.get("output")
        begun = True if output else None if "output" in body else False
        if isinstance(status, str) and status in _UNFINISHED:
            return Failure(error or f"the response is {status}", True if output else None)
        return Failure(error, begun) if error and not objects(output) else None

    @staticmethod
    def read(body: Mapping[str, Any]) -> tuple[str | None, Finish]:
        """What was said, and how it ended. Of several phases only the final answer counts."""
        items = objects(body.get("output"))
        answers = _answers(items)
        parts = [part for item in answers for part in objects(item.get("content"))]
        text, refused = joined_texts(parts, "output_text"), any(part.get("type") == "refusal" for part in parts)
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

    @staticmethod
    def charges(body: Mapping[str, Any]) -> Charges:
        calls = sum(item.get("type") in _CHARGED for item in objects(body.get("output")))
        long = _long_writes(mapping(body.get("usage")).get("input_tokens_details"))
        return Charges(modes_of(body), long, calls)

    @staticmethod
    def usage(counts: Mapping[str, Any]) -> Usage | None:
        return openai_usage(counts, "input", "output")


def _answers(items: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    messages = [item for item in items if item.get("type") == "message" and item.get("phase") != "commentary"]
    return [item for item in messages if any(part.get("type") in _SAYING for part in objects(item.get("content")))]


def _foreign(item: Mapping[str, Any]) -> bool:
    kind = item.get("type")
    waits = isinstance(kind, str) and kind.endswith(_WAITING) and kind not in (*_CHARGED, "mcp_call")
    return waits or not by_assistant(item)


class Decisions:
    """OpenAI's Decisions API: no text comes back, but an answer to each question; their JSON stands for it."""

    @staticmethod
    def build(settings: ModelSettings, exchange: Exchange, cache_key: str) -> Request:
        body: dict[str, Any] = {
            "model": settings.model,
            "input": [*exchange.begin("developer"), *exchange.turns()],
            "questions": exchange.schema["questions"],
            "prompt_cache_key": cache_key,
        }
        return Request("decisions", "/decisions", body | settings.parameters)

    @staticmethod
    def is_reply(body: Mapping[str, Any]) -> bool:
        answers = body.get("answers")
        return isinstance(answers, list) and all(isinstance(answer, dict) for answer in answers)

    @staticmethod
    def failure(body: Mapping[str, Any]) -> Failure | None:
        error = error_of(body)
        return (
            Failure(error, None if "answers" in body else False) if error and not objects(body.get("answers")) else None
        )

    @staticmethod
    def read(body: Mapping[str, Any]) -> tuple[str | None, Finish]:
        if error_of(body):
            return None, "other"  # it contradicts itself
        return json.dumps(body["answers"], sort_keys=True), "stop"

    @staticmethod
    def charges(body: Mapping[str, Any]) -> Charges:
        return Charges(modes_of(body))

    @staticmethod
    def usage(counts: Mapping[str, Any]) -> Usage | None:
        return openai_usage(counts, "input", "output")


_PROTOCOLS: Final[dict[Api, type[Speaks]]] = {
    "responses": Responses,
    "chat": Chat,
    "messages": Messages,
    "decisions": Decisions,
}
_SILENT: Final = ("decisions",)  # where an answer is no token of output


def build_request(settings: ModelSettings, exchange: Exchange, cache_key: str) -> Request:
    stated = exchange.as_user_text() if settings.system == "user" else exchange
    return _PROTOCOLS[settings.api].build(settings, stated, cache_key)


def read_reply(protocol: Api, received: RawReply, origin: ReplyOrigin = "live") -> Reply:
    """What the model said in a received body, or what stands in its place: an error, or something else altogether."""
    speaks, twins = _PROTOCOLS[protocol], False
    try:
        body: Any = _DECODER.decode(received.raw)
    except TwinKey:
        body, twins = read_json(received.raw), True
    except (ValueError, RecursionError):
        body = None
    whole = isinstance(body, dict) and speaks.is_reply(body)
    if twins and whole:  # a reply in which nobody knows what is meant
        return Reply(None, "other", None, received, origin)
    said = mapping(body)
    usage, charges = speaks.usage(mapping(said.get("usage"))), speaks.charges(said)
    failure = speaks.failure(said) or (None if whole else came_instead(received, body))
    if failure is not None:
        return Reply(None, "other", usage, received, origin, charges, failure)
    text, finish = speaks.read(body)
    told = usage is not None and usage.input and (usage.output or not text or protocol in _SILENT)
    if not told:
        usage = None  # a prompt is some tokens, and so is a text: nobody knows how many
    named = said.get("model")
    model = sendable(named)[:_NAME] if isinstance(named, str) and named else None
    return Reply(text, finish, usage, received, origin, charges, model=model)


def protocol_of(raw: str) -> Api | None:
    """The protocol whose reply a body is; None if it is that of none, or of several."""
    try:
        body = read_json(raw)
    except (ValueError, RecursionError):
        return None
    found = [api for api, speaks in _PROTOCOLS.items() if isinstance(body, dict) and speaks.is_reply(body)]
    return found[0] if len(found) == 1 else None


def kept_request(text: str) -> Request:
    """Parse a request that a run has kept; raises UsageError if the text is not one."""
    sent = read_json(text)
    named, body = (sent.get("protocol"), sent.get("body")) if isinstance(sent, dict) else (None, None)
    protocol = next((known for known in _PROTOCOLS if known == named), None)
    if protocol is None or not isinstance(body, dict):
        raise UsageError(f"a request that the run has kept is none: {one_line(text, 60)}")
    return Request(protocol, str(sent.get("path")), body)


def kept_reply(protocol: Api, body: str | None) -> Reply:
    """Return the reply in a body that the tape has kept; without a body, a reply without text."""
    return read_reply(protocol, RawReply(200, body or ""), "tape")
