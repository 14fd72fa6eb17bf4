"""What the protocols share: a body may be anything at all, so every part of it is read with care."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dubito.llm.answers import Schema
from dubito.llm.settings import MOST_TOKENS
from dubito.llm.wire import Usage


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
            messages += [{"role": "assistant", "content": _sendable(said)}, {"role": "user", "content": asked}]
        return messages


def _sendable(text: str) -> str:
    """The text without half characters, which a reply may hold and no request can."""
    return text.encode("utf-8", "replace").decode("utf-8")


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


def usage_of(*counts: Any) -> Usage | None:
    """The counts, or None, which is missing usage, if one of them counts nothing."""
    if any(type(count) is not int or not 0 <= count <= MOST_TOKENS for count in counts):
        return None
    return Usage(*counts)
