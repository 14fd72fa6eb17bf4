"""The file of `dubito seat --token-file`: one token per agent and line, in the order of the config."""

import os
import re
import secrets
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from dubito.errors import UsageError, one_line
from dubito.files import check_is_file, describe_os_error

_TOKEN_BYTES: Final = 24
_MAX_FILE_BYTES: Final = 1 << 16
_TOKEN: Final = re.compile(rb"[A-Za-z0-9_-]{32,256}")  # as long as the tokens that we make, or longer
_NEW_FILE: Final = "name a file that does not exist, and it is created"


def make_token() -> str:
    return secrets.token_urlsafe(_TOKEN_BYTES)


def load_tokens(path: Path, agents: int) -> Sequence[str]:
    """Return the agents' tokens from a file, which is created if it is missing. Raises UsageError."""
    shown = f"--token-file {one_line(str(path))}"
    try:
        check_is_file(path)
        try:
            content = _read_private(path, shown)
        except FileNotFoundError:
            made = [make_token() for _ in range(agents)]
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(descriptor, "w", encoding="ascii") as file:
                file.writelines(f"{token}\n" for token in made)
            return made
    except OSError as error:
        raise UsageError(f"{shown}: {describe_os_error(error)}", hint="name another file") from None
    tokens = content.split()
    if len(tokens) != agents:
        problem = f"{shown} has {len(tokens)} tokens, but the run has {agents} agent{'s' if agents > 1 else ''}"
        raise UsageError(problem, hint=_NEW_FILE)
    if not all(map(_TOKEN.fullmatch, tokens)):
        problem = f"{shown} has a token that is too short or has other characters than letters, digits, - and _"
        raise UsageError(problem, hint=_NEW_FILE)
    if len({*tokens}) < agents:
        raise UsageError(f"{shown} has the same token twice", hint=_NEW_FILE)
    return [token.decode() for token in tokens]


def _read_private(path: Path, shown: str) -> bytes:
    """Return the content of a file that only its owner can read."""
    with path.open("rb") as file:
        status = os.fstat(file.fileno())
        if os.name == "posix" and status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise UsageError(f"other users can use {shown}", hint=f"run `chmod 600` on it, or {_NEW_FILE}")
        return file.read(_MAX_FILE_BYTES)
