"""The commands that messages advise: complete and quoted, so that they can be pasted into a shell."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from shutil import which

from dubito.errors import printable


def build_command(*words: object, program: str | None = None) -> str:
    """Return a command of Dubito. `program` is how it is called; in files it is `dubito`, and by default as it was."""
    return " ".join([program or called_program(), *(quote(printable(str(word))) for word in words)])


_typed: Sequence[str] = ()


def remember_command(words: Sequence[str]) -> None:
    """Remember the command that was typed, without the program's name."""
    global _typed
    _typed = tuple(words)


def typed_words() -> Sequence[str]:
    return _typed


def repeat_command() -> str:
    """Return the command that was typed. It has every setting that was given."""
    return build_command(*_typed)


def called_program() -> str:
    """Return how to call this program, as the user did, because its environment may not be activated."""
    # uvx runs a command in an environment of uv's cache.
    if "UV" in os.environ and "archive-v0" in Path(sys.prefix).parts:
        return "uvx dubito"
    path = Path(sys.argv[0])
    if path.name != "dubito" or which("dubito") == str(path):
        return "dubito"
    return quote(str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path))
