"""Events of streamed replies: what is common to all protocols."""

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from pydantic_core import from_json

READING: Final = "reading the prompt"
_MAX_SHOWN: Final = 2_000  # maximum number of characters shown
_MAX_PARSED: Final = 8_000  # maximum number of characters searched for the reasoning
_MEMBER: Final = re.compile(r'\s*"((?:[^"\\]|\\.)*)"\s*:\s*')


@dataclass(eq=False)
class EventReader:
    """Collects a stream's events into the text so far and the final body."""

    thoughts: str = ""
    text: str = ""
    error: str | None = None  # the data of an event that is an error

    @property
    def visible_text(self) -> str:
        reply = None
        # The JSON of the reply is unfinished, but may already contain its reasoning.
        with suppress(ValueError):
            reply = from_json(self.text[:_MAX_PARSED], allow_partial="trailing-strings")
        reasoning = reply.get("reasoning") if isinstance(reply, dict) else None
        shown = (self.thoughts, reasoning if isinstance(reasoning, str) else "")
        return "\n".join(filter(None, shown))[-_MAX_SHOWN:]

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


def merge_values(whole: dict[str, Any], piece: Mapping[str, Any]) -> None:
    """Merge a partial object into an object. A null does not replace a value."""
    whole |= {key: value for key, value in piece.items() if value is not None or key not in whole}


def find_member(text: str, name: str) -> str:
    """Return the source text of a member's value in a JSON object. Raises LookupError if it is missing."""
    decode, start = json.JSONDecoder().raw_decode, text.index("{") + 1
    while key := _MEMBER.match(text, start):
        _, end = decode(text, key.end())
        if key[1] == name:
            return text[key.end() : end]
        start = text.find(",", end) + 1 or len(text)
    raise LookupError(name)
