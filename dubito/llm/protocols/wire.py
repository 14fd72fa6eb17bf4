"""What all protocols have in common: the interface of a wire format, and parsers of the values in bodies."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from dubito.errors import one_line
from dubito.llm.answers import Schema
from dubito.llm.protocols.events import EventReader
from dubito.llm.request import Charges, Finish, NonReply, NonReplyKind, RawReply, Request, Usage, replace_surrogates
from dubito.model_settings import MAX_TOKENS, ModelSettings

if TYPE_CHECKING:
    from httpx2 import Client

# Finish reasons of all protocols, since gateways do not translate all of them.
_FINISHES: Final[Mapping[str, Finish]] = {
    **dict.fromkeys(("stop", "end_turn", "stop_sequence"), "stop"),
    **dict.fromkeys(("length", "max_tokens", "max_output_tokens", "model_length"), "length"),
    "model_context_window_exceeded": "length",
    **dict.fromkeys(("content_filter", "refusal"), "refusal"),
}
CALLS_TOOL: Final = "it calls a tool, but there are no tools"
_EVENT_LINE: Final = re.compile(r"\s*(?:data|event|id|retry)?:")
# Service modes, with the values that cost at most the list price.
STANDARD_MODES: Final[Mapping[str, Sequence[str]]] = {
    "service_tier": ("default", "standard", "standard_only", "flex", "batch", "on_demand"),
    "speed": ("standard",),
    "inference_geo": ("global", "not_available"),
}
FILTERED: Final = "a content filter of the server stopped the reply"
DECLINED: Final = "the model declined"


@dataclass(frozen=True, slots=True)
class Exchange:
    """The messages of an attempt: the prompt, then each unusable reply with the re-ask that followed."""

    system: str
    user: str
    schema: Schema | None  # None for a reply in plain text
    reasks: Sequence[tuple[str, str]] = ()  # the model's reply, our re-ask
    # The beginning of the user text, in pieces that the player's later requests repeat.
    history: Sequence[str] = ()

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


class Content(NamedTuple):
    """The text of a reply and how it ended. `problem` is the reason if the text is missing or not an answer."""

    text: str | None
    finish: Finish
    problem: str = ""


class WireFormat:
    """A protocol: its names in messages, its provider's server, and its form of requests, replies and streams."""

    label: ClassVar[str]  # in sentences, such as "the Responses API"
    reply_label: ClassVar[str]  # a reply in sentences, without an article
    path: ClassVar[str]
    models_path: ClassVar[str] = "/models"  # lists the server's models

    provider: ClassVar[str]  # as in `openai:MODEL`
    bot: ClassVar[str] = ""  # the bot for a `provider:MODEL`, if this is the provider's usual protocol
    key_variable: ClassVar[str]  # environment variable with the provider's key
    address: ClassVar[str]
    address_variable: ClassVar[str]  # environment variable that overrides the address

    writes_text: ClassVar[bool] = True  # False if a reply has answers to listed questions instead of a text
    own_settings: ClassVar[Sequence[str]] = ()  # settings of a player that only this protocol supports
    message_fields: ClassVar[Sequence[str]] = ("system", "messages", "input")  # fields with the conversation
    answer_field: ClassVar[str]  # reply field with the list that contains the answer
    model_field: ClassVar[str] = "model"  # reply field with the name of the model that answered
    stream_fields: ClassVar[Mapping[str, Any]] = {}  # request fields for a streamed reply
    event_reader: ClassVar[type[EventReader] | None] = None  # None if its replies are never streamed

    @classmethod
    def uses_provider(cls, settings: ModelSettings) -> bool:
        """Return whether the player's server is the provider's own."""
        return settings.base_url is None or settings.base_url.rstrip("/") == cls.address

    @classmethod
    def build_request(cls, settings: ModelSettings, exchange: Exchange, cache_key: str) -> Request:
        """Build an attempt's request."""
        raise NotImplementedError

    @staticmethod
    def conversation(body: Mapping[str, Any]) -> list[tuple[str, str]]:
        """Return the messages in a request's body with their roles, starting with the system message."""
        messages = body.get("messages") or body.get("input") or []
        system = [("system", content_text(body["system"]))] if "system" in body else []
        return system + [(str(each.get("role")), content_text(each.get("content"))) for each in as_objects(messages)]

    @classmethod
    def is_reply(cls, body: Mapping[str, Any]) -> bool:
        """Return whether a body has the form of a reply."""
        parts = body.get(cls.answer_field)
        return isinstance(parts, list) and all(isinstance(part, dict) for part in parts)

    @classmethod
    def parse_error(cls, body: Mapping[str, Any]) -> NonReply | None:
        """Return the error in a body without an answer. If it has both, `parse_text` finds a contradiction."""
        error, parts = find_error(body), body.get(cls.answer_field)
        return NonReply(error, None if cls.answer_field in body else False) if error and not parts else None

    @staticmethod
    def parse_text(body: Mapping[str, Any]) -> Content:
        """Return the model's text and finish reason."""
        raise NotImplementedError

    @staticmethod
    def parse_thoughts(body: Mapping[str, Any]) -> str | None:
        """Return the model's reasoning that the server keeps apart from the text."""
        return None

    @staticmethod
    def parse_charges(body: Mapping[str, Any]) -> Charges:
        """Return what can change the price: service tier, long-lived cache writes, the provider's own tools."""
        raise NotImplementedError

    @classmethod
    def parse_usage(cls, body: Mapping[str, Any]) -> Usage | None:
        """Return the token counts, or None if one of them is invalid."""
        raise NotImplementedError

    @staticmethod
    def list_models(body: Mapping[str, Any]) -> list[str]:
        """Return the names in the server's list of models."""
        return [one["id"] for one in as_objects(body.get("data")) if isinstance(one.get("id"), str)]

    @staticmethod
    def import_sdk() -> tuple[Any, Callable[..., "Client"]]:
        """Import the SDK, which takes a second. Return it and its class of HTTP clients."""
        raise NotImplementedError

    @staticmethod
    def build_client(sdk: Any, **arguments: Any) -> Any:
        """Build the SDK's client with arguments that both SDKs have, ignoring the environment's settings."""
        raise NotImplementedError


def content_text(content: Any) -> str:
    """Return the text of a message, which is a string or a list of blocks."""
    if isinstance(content, str):
        return content
    return "".join(str(block.get("text", "")) for block in as_objects(content))


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


def describe_missing_text(reason: Any, thoughts: str | None, *, calls_tool: bool) -> str:
    """Return why a reply has no text. `reason` is its finish reason."""
    if calls_tool:
        return CALLS_TOOL
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


def find_contradiction(
    text: str | None, *, refusal: bool, calls_tool: bool, error: Any, item: Mapping[str, Any]
) -> str:
    """Return what contradicts a reply's text, or an empty string. `item` is the message with a role."""
    if error:
        return "it has an error beside its text"
    if not is_by_assistant(item):
        return f"its role is {one_line(str(item.get('role')), 40)!r} instead of 'assistant'"
    if calls_tool:
        return f"{CALLS_TOOL}{', beside its text' if text else ''}"
    return "it has both a text and a refusal" if text and refusal else ""


def service_modes(fields: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple((mode, value) for mode in STANDARD_MODES if isinstance(value := fields.get(mode), str))


def parse_count(value: Any) -> int:
    return value if type(value) is int and 0 <= value <= MAX_TOKENS else 0


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
