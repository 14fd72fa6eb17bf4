"""What the protocols share: a body may be anything at all, so every part of it is read with care."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dubito.llm.answers import Schema
from dubito.llm.request import Failure, Finish, Instead, RawReply, Usage, sendable
from dubito.llm.settings import MOST_TOKENS

_FINISHES: Final[Mapping[str, Finish]] = {  # in the words of all protocols: gateways do not translate them all
    **dict.fromkeys(("stop", "end_turn", "stop_sequence"), "stop"),
    **dict.fromkeys(("length", "max_tokens", "max_output_tokens", "model_length"), "length"),
    "model_context_window_exceeded": "length",
    **dict.fromkeys(("content_filter", "refusal"), "refusal"),
}
_NO_ANSWER: Final = ("tool_calls", "function_call", "tool_use", "pause_turn")  # ends at which something is waited for
_STREAM: Final = re.compile(r"\s*(?:data|event|id|retry)?:")  # how the lines of one begin
_USUAL: Final[Mapping[str, Sequence[str]]] = {  # or cheaper
    "service_tier": ("default", "standard", "standard_only", "flex", "batch", "on_demand"),
    "speed": ("standard",),
    "inference_geo": ("global", "not_available"),
}


@dataclass(frozen=True, slots=True)
class Exchange:
    """A conversation of one decision: the prompt and the form of the answer, then what was said and asked again."""

    system: str
    user: str
    schema: Schema
    again: Sequence[tuple[str, str]] = ()  # the model's reply, our re-ask
    history: Sequence[str] = ()  # what the user text begins with: later requests of the player do so too

    def turns(self) -> list[dict[str, Any]]:
        """The messages of user and assistant, in turn."""
        messages = [{"role": "user", "content": "".join(self.history) + self.user}]
        for said, asked in self.again:
            messages += [{"role": "assistant", "content": sendable(said)}, {"role": "user", "content": asked}]
        return messages


def mapping(value: Any) -> dict[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def objects(value: Any) -> list[dict[str, Any]]:
    """The objects in a list, none if it is no list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def joined(parts: Sequence[dict[str, Any]], kind: str) -> str | None:
    """The texts of the parts of this type as one; None if there is none."""
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
    """How a reply ended by the word for it; None: it waits for something. A word that nobody knows says nothing."""
    if not isinstance(reason, str):
        return "other"
    return None if reason in _NO_ANSWER else _FINISHES.get(reason, "other")


def by_assistant(item: Mapping[str, Any]) -> bool:
    """Whether a message is the model's own, or does not say whose."""
    return item.get("role") in (None, "assistant")


def error_of(body: Mapping[str, Any]) -> Any:
    """The error at the top of a body, None if there is none; some servers send it bare."""
    if body.get("type") == "error" or body.get("object") == "error":
        return body.get("error") or body
    return body.get("error") or None


def modes_of(holder: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """The modes of service that are named there and may cost more than the usual one."""
    named = ((mode, holder.get(mode)) for mode in _USUAL)
    return tuple((mode, value) for mode, value in named if isinstance(value, str) and value not in _USUAL[mode])


def count_of(value: Any) -> int:
    """The value if it is a count of tokens or calls, else 0."""
    return value if type(value) is int and 0 <= value <= MOST_TOKENS else 0


def openai_usage(counts: Mapping[str, Any], into: str, out: str) -> Usage | None:
    """OpenAI counts cached tokens within the input; what is left out or null is none, as other servers do it."""
    read, written = (mapping(counts.get(f"{name}_tokens_details")) for name in (into, out))
    return usage_of(
        counts.get(f"{into}_tokens"),
        read.get("cached_tokens") or 0,
        read.get("cache_write_tokens") or 0,
        counts.get(f"{out}_tokens"),
        written.get("reasoning_tokens") or 0,
        counts.get("total_tokens"),
    )


def usage_of(into: Any, cached: Any, written: Any, out: Any, reasoning: Any, total: Any = None) -> Usage | None:
    """The counts; None, as for missing usage, if one of them is not a count.

    Some servers count reasoning within the output, others beside it: the largest reading is the bill.
    """
    counts = [into, cached, written, out, reasoning, 0 if total is None else total]
    if any(type(count) is not int or not 0 <= count <= MOST_TOKENS for count in counts):
        return None
    beside = out + reasoning if reasoning > out else out  # more than the whole is no part of it
    return Usage(into, cached, written, max(beside, counts[-1] - into), reasoning)
