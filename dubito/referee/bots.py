"""Bots by name: what starts one, checked before anything is played, and what it is given."""

import os
import re
import shlex
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dubito.errors import UsageError, one_line
from dubito.referee import warden

NAME: Final = re.compile(r"[A-Za-z0-9][\w.-]{0,39}", re.ASCII)
_KEPT: Final = re.compile(
    r"PATH|HOME|USER|SHELL|LANG|TZ|TMPDIR|VIRTUAL_ENV|PYENV_VERSION|LC_\w+|\w+_(HOME|ROOT|PREFIX)|\w*PATH"
)
_SHEBANG: Final = 256  # bytes of a file in which its first line is looked for


@dataclass(frozen=True, slots=True)
class Bot:
    """A bot that can be started."""

    name: str
    command: tuple[str, ...]
    home: Path  # the folder it is started in: that of the config
    data: Path | None = None  # where its data lies, a folder for each game; None: in the run's folder
    network: bool = False  # whether it may have the network, which the rules forbid, and the whole environment

    def environment(self, mark: str, data: Path, seed: int) -> dict[str, str]:
        """Its environment: nothing of ours that could be a secret."""
        kept = {key: value for key, value in os.environ.items() if self.network or _KEPT.fullmatch(key)}
        return kept | {
            "PYTHONUNBUFFERED": "1",
            "OMP_NUM_THREADS": "1",
            "DUBITO_DATA": str(data),
            "DUBITO_SEED": str(seed),
            warden.MARK: mark,
        }


def bot(
    name: str, command: str | Sequence[str], home: Path, where: str, data: str | None = None, network: bool = False
) -> Bot:
    """The bot of this command; raises UsageError if it cannot be started. `where` says who named it."""
    if "--" in name:  # which stands between two names in a log's
        raise UsageError(f"{where}: a bot cannot be called {one_line(repr(name), 60)}: use no two dashes together")
    if not NAME.fullmatch(name):
        shown = one_line(repr(name), 60)
        raise UsageError(f"{where}: a bot cannot be called {shown}: use up to 40 letters, digits, dots, dashes")
    try:
        words = shlex.split(command) if isinstance(command, str) else list(command)
    except ValueError as error:
        raise UsageError(f"{where}: {one_line(str(command), 80)} is no command: {error}") from None
    if any("\0" in word for word in words):
        raise UsageError(f"{where}: {one_line(repr(words), 80)} is no command: it has a character of number 0")
    if not words or not words[0]:
        raise UsageError(f"{where}: what starts the bot? Give a command, such as `python3 my_bot.py`")
    first = _program(words[0], home, where)
    return Bot(name, (first, *words[1:]), home, None if data is None else home / data, network)


def _program(word: str, home: Path, where: str) -> str:
    """The program as it can be started from the bot's folder."""
    shown = one_line(word, 120)
    if "/" not in word:
        if shutil.which(word) is None:
            hint = f": for the file beside the config write ./{shown}" if (home / word).exists() else ""
            raise UsageError(f"{where}: there is no program {shown} on this machine{hint}")
        return word
    path = (home / word).absolute()
    if not path.is_file():
        raise UsageError(f"{where}: there is no file {one_line(str(path))}")
    if not os.access(path, os.X_OK):
        raise UsageError(f"{where}: {shown} is not executable: `chmod +x` it, or name what runs it: `python3 {shown}`")
    _check_interpreter(path, shown, where)
    return str(path)


def _check_interpreter(path: Path, shown: str, where: str) -> None:
    with path.open("rb") as file:
        first = file.read(_SHEBANG).partition(b"\n")[0]
    if not first.startswith(b"#!"):
        return
    words = first[2:].decode("utf-8", "backslashreplace").split()
    if words and words[0].endswith("/env"):
        words = [word for word in words[1:] if not word.startswith("-")]
    if not words or shutil.which(words[0]) is None:
        wanted = one_line(words[0], 80) if words else "an interpreter that is not named"
        raise UsageError(f"{where}: {shown} wants {wanted} (its first line), which is not on this machine")
