"""A reply told as it comes: it is streamed, whoever watches hears its words, and its body is that of any reply.

Only who listens is streamed to. To cache and tape the request is the same, and so is what they keep: of the Responses
API the response as the last event has it, byte for byte; of Chat Completions and the Messages API, whose events hold
pieces, the object that these pieces make, as canonical JSON. An error among the events is the body; a stream that ends
before its reply does is none.

Events are those of the HTML standard (server-sent events); what they say is as the providers' references have it:
`responses/streaming`, `chat/streaming` (OpenAI) and `messages-streaming` (Anthropic).
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from pydantic_core import from_json

from dubito.llm.request import Api

Tell = Callable[[str], None]  # told the words so far, the latest of them if there are many
STREAMS: Final[Mapping[Api, Mapping[str, Any]]] = {  # what a request says besides, where the protocol streams
    "responses": {"stream": True},
    "chat": {"stream": True, "stream_options": {"include_usage": True}},
    "messages": {"stream": True},
}
_TOLD: Final = 2_000  # characters of the words so far
_READ: Final = 8_000  # characters of a reply in which its reasons are looked for
_LISTENS: Final = ContextVar[Tell | None]("whoever hears a reply as it comes", default=None)
_STRING: Final = re.compile(r'\s*"((?:[^"\\]|\\.)*)"\s*:\s*')


@contextmanager
def told_to(hear: Tell) -> Iterator[None]:
    """Replies that this thread is sent within are told as they come. What `hear` raises ends the call."""
    before = _LISTENS.set(hear)
    try:
        yield
    finally:
        _LISTENS.reset(before)


def listener() -> Tell | None:
    return _LISTENS.get()


def body_of(protocol: Api, pieces: Iterable[bytes], hear: Tell) -> bytes | None:
    """The body that a stream of events makes; None if its reply did not come to its end, or is no such stream."""
    reading, told = _READERS[protocol](), ""
    try:
        for data in events(pieces):
            reading.take(data)
            if (words := reading.words) != told:
                told = words
                hear(told)
        return reading.body()
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None


def events(pieces: Iterable[bytes]) -> Iterator[str]:
    """The data of each event; one that no empty line ends is none."""
    data: list[str] = []
    for line in _lines(pieces):
        if line:
            field, _, value = line.partition(":")
            if field == "data":
                data.append(value.removeprefix(" "))
        elif data:
            yield "\n".join(data)
            data = []


def _lines(pieces: Iterable[bytes]) -> Iterator[str]:
    """The lines, which CR, LF or both end, wherever the pieces are cut."""
    rest = b""
    for piece in pieces:
        rest += piece
        held = rest.endswith(b"\r")  # an LF may follow
        *lines, rest = re.split(rb"\r\n|\r|\n", rest[:-1] if held else rest)
        rest += b"\r" * held
        for line in lines:
            yield line.decode("utf-8", "replace")
    yield from (line.decode("utf-8", "replace") for line in re.split(rb"\r\n|\r|\n", rest)[:-1])


class _Reader:
    """Of a stream's events, what was said so far and the body that they make."""

    def __init__(self) -> None:
        self.thoughts, self.text = "", ""
        self.error: str | None = None  # an event that is one, as it came

    @property
    def words(self) -> str:
        return "\n".join(filter(None, (self.thoughts, _reasons(self.text))))[-_TOLD:]

    def take(self, data: str) -> None:
        raise NotImplementedError

    def made(self) -> Any:
        raise NotImplementedError

    def body(self) -> bytes | None:
        if self.error is not None:
            return self.error.encode()
        made = self.made()
        text = made if isinstance(made, str) else json.dumps(made, sort_keys=True, separators=(",", ":"))
        return None if made is None else text.encode()


class _Responses(_Reader):
    _ENDS: Final = ("response.completed", "response.incomplete", "response.failed")
    _THOUGHTS: Final = ("response.reasoning_summary_text.delta", "response.reasoning_text.delta")

    def __init__(self) -> None:
        super().__init__()
        self._whole: str | None = None

    def take(self, data: str) -> None:
        event = json.loads(data)
        match event["type"]:
            case "response.output_text.delta":
                self.text += event["delta"]
            case kind if kind in self._THOUGHTS:
                self.thoughts += event["delta"]
            case kind if kind in self._ENDS:
                self._whole = _member(data, "response")
            case "error":
                self.error = data

    def made(self) -> str | None:
        return self._whole


class _Chat(_Reader):
    def __init__(self) -> None:
        super().__init__()
        self._whole: dict[str, Any] = {}
        self._choices: dict[int, dict[str, Any]] = {}

    def take(self, data: str) -> None:
        if data == "[DONE]":
            return
        chunk = json.loads(data)
        if chunk.get("error"):
            self.error = data
            return
        for choice in chunk.pop("choices", None) or ():
            kept = self._choices.setdefault(choice["index"], {"message": {}})
            delta = choice.pop("delta", None) or {}
            kept["message"] = _joined(kept["message"], delta)
            kept |= {key: value for key, value in choice.items() if value is not None or key not in kept}
        self._whole |= {key: value for key, value in chunk.items() if value is not None or key not in self._whole}
        message = self._choices.get(0, {}).get("message", {})
        self.text = message.get("content") or ""
        self.thoughts = message.get("reasoning_content") or message.get("reasoning") or ""

    def made(self) -> dict[str, Any] | None:
        choices = [self._choices[number] for number in sorted(self._choices)]
        if not choices or any(choice.get("finish_reason") is None for choice in choices):
            return None
        return {**self._whole, "object": "chat.completion", "choices": choices}


class _Messages(_Reader):
    _PARTS: Final = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}

    def __init__(self) -> None:
        super().__init__()
        self._message: dict[str, Any] = {}
        self._blocks: dict[int, dict[str, Any]] = {}
        self._ended = False

    def take(self, data: str) -> None:
        event = json.loads(data)
        match event["type"]:
            case "message_start":
                self._message = event["message"]
            case "content_block_start":
                self._blocks[event["index"]] = event["content_block"]
            case "content_block_delta" if event["delta"]["type"] in self._PARTS:
                self._add(event["index"], self._PARTS[event["delta"]["type"]], event["delta"])
            case "message_delta":
                usage = {**self._message["usage"], **{key: n for key, n in event["usage"].items() if n is not None}}
                self._message |= {**event["delta"], "usage": usage}
            case "message_stop":
                self._ended = True
            case "error":
                self.error = data

    def _add(self, number: int, part: str, delta: Mapping[str, Any]) -> None:
        block = self._blocks[number]
        block[part] = block.get(part, "") + delta[part]
        self.text += delta[part] if part == "text" else ""
        self.thoughts += delta[part] if part == "thinking" else ""

    def made(self) -> dict[str, Any] | None:
        return {**self._message, "content": [self._blocks[at] for at in sorted(self._blocks)]} if self._ended else None


_READERS: Final[Mapping[Api, type[_Reader]]] = {"responses": _Responses, "chat": _Chat, "messages": _Messages}


def _joined(message: Mapping[str, Any], delta: Mapping[str, Any]) -> dict[str, Any]:
    """A message and what comes next of it: texts are added to, whatever else it says replaces what was."""
    new = dict(message)
    for key, value in delta.items():
        if isinstance(value, str) and isinstance(new.get(key), str) and key != "role":
            new[key] += value
        elif value is not None or key not in new:
            new[key] = value
    return new


def _reasons(text: str) -> str:
    """The reasons in a reply that has only begun."""
    try:
        said = from_json(text[:_READ], allow_partial="trailing-strings")
    except ValueError:
        return ""
    reasons = said.get("reasoning") if isinstance(said, dict) else None
    return reasons if isinstance(reasons, str) else ""


def _member(text: str, name: str) -> str:
    """The value under a name in the text of an object, as it is written there; raises LookupError without one."""
    read, at = json.JSONDecoder().raw_decode, text.index("{") + 1
    while key := _STRING.match(text, at):
        _, end = read(text, key.end())
        if key[1] == name:
            return text[key.end() : end]
        at = text.find(",", end) + 1 or len(text)
    raise LookupError(name)
