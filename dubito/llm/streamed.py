"""Streamed replies: a viewer receives a model's words as they arrive.

A call streams only if its thread has a callback. A streamed request has the same digest as any other, and the same body
is cached and recorded. For the Responses API, the body is the response in the last event, byte for byte. For Chat
Completions and the Messages API, whose events contain pieces, it is the assembled object as canonical JSON. An error
event becomes the body. A stream that ends before the reply is complete has no body.

Events follow the HTML standard (server-sent events), and their content follows the providers' references:
`responses/streaming` and `chat/streaming` (OpenAI), `messages-streaming` (Anthropic).
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final

from pydantic_core import from_json

from dubito.llm.redaction import Redaction
from dubito.llm.request import ProtocolName

READING: Final = "reading the prompt"
TextCallback = Callable[[str], None]  # receives the text so far, or its end if it is long
STREAM_FIELDS: Final[Mapping[ProtocolName, Mapping[str, Any]]] = {  # request fields, for protocols that can stream
    "responses": {"stream": True},
    "chat": {"stream": True, "stream_options": {"include_usage": True}},
    "messages": {"stream": True},
}
_MAX_SHOWN: Final = 2_000  # maximum number of characters shown
_MAX_PARSED: Final = 8_000  # maximum number of characters searched for the reasoning
_CALLBACK: Final = ContextVar[TextCallback | None]("receives replies as they arrive", default=None)
_MEMBER: Final = re.compile(r'\s*"((?:[^"\\]|\\.)*)"\s*:\s*')


@contextmanager
def stream_to(callback: TextCallback) -> Iterator[None]:
    """Stream the replies to this thread's calls to a callback. If the callback raises, the call ends."""
    before = _CALLBACK.set(callback)
    try:
        yield
    finally:
        _CALLBACK.reset(before)


def text_callback() -> TextCallback | None:
    return _CALLBACK.get()


@dataclass(frozen=True, slots=True)
class StreamedReply:
    """The way to read a streamed reply."""

    protocol: ProtocolName
    callback: TextCallback
    redaction: Redaction

    def read(self, pieces: Iterable[bytes]) -> bytes | None:
        """Assemble the body from a stream of events.

        Returns None if the reply is incomplete or the events do not belong to the protocol.
        """
        reader, shown = _READERS[self.protocol](), ""
        try:
            for data in parse_events(pieces):
                reader.add(data)
                if (text := reader.visible_text) != shown:
                    shown = text
                    self.callback(self.redaction.reply(text))
            return reader.body()
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            return None


def parse_events(pieces: Iterable[bytes]) -> Iterator[str]:
    """Yield the data of each event. An event that does not end with an empty line is ignored."""
    data: list[str] = []
    for line in _split_lines(pieces):
        if line:
            field, _, value = line.partition(":")
            if field == "data":
                data.append(value.removeprefix(" "))
        elif data:
            yield "\n".join(data)
            data = []


def _split_lines(pieces: Iterable[bytes]) -> Iterator[str]:
    """Yield the lines, which end with CR, LF or both, regardless of how the pieces are cut."""
    rest = b""
    for piece in pieces:
        rest += piece
        # An LF may follow in the next piece.
        ends_with_cr = rest.endswith(b"\r")
        *lines, rest = re.split(rb"\r\n|\r|\n", rest[:-1] if ends_with_cr else rest)
        rest += b"\r" * ends_with_cr
        for line in lines:
            yield line.decode("utf-8", "replace")
    yield from (line.decode("utf-8", "replace") for line in re.split(rb"\r\n|\r|\n", rest)[:-1])


class _Reader:
    """Collects a stream's events into the text so far and the final body."""

    def __init__(self) -> None:
        self.thoughts, self.text = "", ""
        # The data of an event that is an error.
        self.error: str | None = None

    @property
    def visible_text(self) -> str:
        return "\n".join(filter(None, (self.thoughts, _extract_reasoning(self.text))))[-_MAX_SHOWN:]

    def add(self, data: str) -> None:
        raise NotImplementedError

    def finished_reply(self) -> Any:
        raise NotImplementedError

    def body(self) -> bytes | None:
        if self.error is not None:
            return self.error.encode()
        reply = self.finished_reply()
        text = reply if isinstance(reply, str) else json.dumps(reply, sort_keys=True, separators=(",", ":"))
        return None if reply is None else text.encode()


class _Responses(_Reader):
    _ENDS: Final = ("response.completed", "response.incomplete", "response.failed")
    _THOUGHTS: Final = ("response.reasoning_summary_text.delta", "response.reasoning_text.delta")

    def __init__(self) -> None:
        super().__init__()
        self._response: str | None = None

    def add(self, data: str) -> None:
        event = json.loads(data)
        match event["type"]:
            case "response.output_text.delta":
                self.text += event["delta"]
            case kind if kind in self._THOUGHTS:
                self.thoughts += event["delta"]
            case kind if kind in self._ENDS:
                self._response = _find_member(data, "response")
            case "error":
                self.error = data

    def finished_reply(self) -> str | None:
        return self._response


class _Chat(_Reader):
    def __init__(self) -> None:
        super().__init__()
        self._completion: dict[str, Any] = {}
        self._choices: dict[int, dict[str, Any]] = {}

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
            _update_known(whole, choice)
        _update_known(self._completion, chunk)
        message = self._choices.get(0, {}).get("message", {})
        self.text = message.get("content") or ""
        self.thoughts = message.get("reasoning_content") or message.get("reasoning") or ""

    def finished_reply(self) -> dict[str, Any] | None:
        choices = [self._choices[number] for number in sorted(self._choices)]
        if not choices or any(choice.get("finish_reason") is None for choice in choices):
            return None
        return {**self._completion, "object": "chat.completion", "choices": choices}


class _Messages(_Reader):
    _PARTS: Final = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}

    def __init__(self) -> None:
        super().__init__()
        self._message: dict[str, Any] = {}
        self._blocks: dict[int, dict[str, Any]] = {}
        self._is_finished = False

    def add(self, data: str) -> None:
        event = json.loads(data)
        match event["type"]:
            case "message_start":
                self._message = event["message"]
            case "content_block_start":
                self._blocks[event["index"]] = event["content_block"]
            case "content_block_delta" if event["delta"]["type"] in self._PARTS:
                self._append(event["index"], self._PARTS[event["delta"]["type"]], event["delta"])
            case "message_delta":
                usage = {**self._message["usage"], **{key: n for key, n in event["usage"].items() if n is not None}}
                self._message |= {**event["delta"], "usage": usage}
            case "message_stop":
                self._is_finished = True
            case "error":
                self.error = data

    def _append(self, number: int, part: str, delta: Mapping[str, Any]) -> None:
        block = self._blocks[number]
        block[part] = block.get(part, "") + delta[part]
        self.text += delta[part] if part == "text" else ""
        self.thoughts += delta[part] if part == "thinking" else ""

    def finished_reply(self) -> dict[str, Any] | None:
        if not self._is_finished:
            return None
        return {**self._message, "content": [self._blocks[number] for number in sorted(self._blocks)]}


_READERS: Final[Mapping[ProtocolName, type[_Reader]]] = {"responses": _Responses, "chat": _Chat, "messages": _Messages}


def _update_known(whole: dict[str, Any], piece: Mapping[str, Any]) -> None:
    """Merge a partial object into an object. A null does not replace a value."""
    whole |= {key: value for key, value in piece.items() if value is not None or key not in whole}


def _add_delta(message: dict[str, Any], delta: Mapping[str, Any]) -> None:
    """Add the next piece of a message. Texts are appended, and other values replaced."""
    for key, value in delta.items():
        if isinstance(value, str) and isinstance(message.get(key), str) and key != "role":
            message[key] += value
        elif value is not None or key not in message:
            message[key] = value


def _extract_reasoning(text: str) -> str:
    """Return the reasoning in an unfinished JSON reply."""
    try:
        reply = from_json(text[:_MAX_PARSED], allow_partial="trailing-strings")
    except ValueError:
        return ""
    reasoning = reply.get("reasoning") if isinstance(reply, dict) else None
    return reasoning if isinstance(reasoning, str) else ""


def _find_member(text: str, name: str) -> str:
    """Return the source text of a member's value in a JSON object. Raises LookupError if it is missing."""
    decode, start = json.JSONDecoder().raw_decode, text.index("{") + 1
    while key := _MEMBER.match(text, start):
        _, end = decode(text, key.end())
        if key[1] == name:
            return text[key.end() : end]
        start = text.find(",", end) + 1 or len(text)
    raise LookupError(name)
