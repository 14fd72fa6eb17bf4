"""How two prompts differ at a position, part by part."""

import difflib
from collections.abc import Iterator
from typing import Final

from dubito.game import Position
from dubito.llm.prompts import Prompt

_PARTS: Final = ("answer fields", "system", "history", "user")


def differences(one: Prompt, other: Prompt, position: Position) -> Iterator[str]:
    """The lines of a unified diff of each part in which they differ."""
    for part, old, new in zip(_PARTS, _texts(one, position), _texts(other, position), strict=True):
        yield from unified(old, new, f"{part} of {one.folder}", f"{part} of {other.folder}")


def _texts(prompt: Prompt, position: Position) -> tuple[str, str, str, str]:
    rendered = prompt.render(position)
    return ", ".join(prompt.fields), rendered.system, "".join(rendered.history), rendered.user


def unified(old: str, new: str, old_name: str, new_name: str) -> Iterator[str]:
    """The lines of a unified diff of two texts; none if they are the same."""
    return difflib.unified_diff(old.split("\n"), new.split("\n"), old_name, new_name, lineterm="")
