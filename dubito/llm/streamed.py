"""Streamed replies: a viewer receives a model's words as they arrive.

A call streams only if its thread has a callback. A streamed request has the same digest as any other, and the same body
is cached and recorded. For the Responses API, the body is the response in the last event, byte for byte. For Chat
Completions and the Messages API, whose events contain pieces, it is the assembled object as canonical JSON. An error
event becomes the body. A stream that ends before the reply is complete has no body.

Events follow the HTML standard (server-sent events), and their content follows the providers' references:
`responses/streaming` and `chat/streaming` (OpenAI), `messages-streaming` (Anthropic).
"""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

from dubito.llm.protocols.events import EventReader
from dubito.llm.redaction import Redaction

TextCallback = Callable[[str], None]  # receives the text so far, or its end if it is long
_CALLBACK: Final = ContextVar[TextCallback | None]("receives replies as they arrive", default=None)


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
    """One streamed reply."""

    reader: EventReader
    callback: TextCallback
    redaction: Redaction

    def read(self, pieces: Iterable[bytes]) -> bytes | None:
        """Assemble the body from a stream of events.

        Returns None if the reply is incomplete or the events do not belong to the protocol.
        """
        reader, shown = self.reader, ""
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
