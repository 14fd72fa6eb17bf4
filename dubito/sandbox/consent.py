"""Consent to start programs. A command in a file from somebody else is shown before its first start."""

import json
import os
import shlex
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from dubito.errors import UsageError, join_names, one_line

if TYPE_CHECKING:
    from dubito.sandbox.programs import BotProgram


@dataclass(frozen=True, slots=True)
class Permits:
    """What the user allows programs. A config cannot set any of this."""

    trust: bool = False  # start the programs that files name, without a question
    unsandboxed: bool = False  # start programs that this machine cannot confine
    ask: Callable[[str], bool] | None = None  # asks the user whether to start what the text describes


def require_consent(programs: Sequence["BotProgram"], permits: Permits) -> None:
    """Raise UsageError unless the user has agreed to start these programs, now or before.

    Consent is remembered for a command in its folder, with what it can read. A changed command needs consent again.
    """
    known = set[str]()
    with suppress(OSError, UnicodeDecodeError):
        known = {*_file().read_text("ascii").split()}
    new: dict[str, BotProgram] = {}
    for program in programs:
        reads = [os.path.realpath(path) for path in program.reads]
        content = [str(program.home.resolve()), program.command, reads, program.network]
        key = sha256(json.dumps(content).encode("utf-8", "surrogateescape")).hexdigest()
        if key not in known:
            new[key] = program
    if not new:
        return
    text = "; ".join(map(_describe, new.values()))
    if not permits.trust and not (permits.ask is not None and permits.ask(text)):
        raise UsageError(text, hint="if you trust it, add --trust (in Python: `trust=True`)")
    with suppress(OSError):
        _file().parent.mkdir(parents=True, exist_ok=True)
        with _file().open("a", encoding="ascii") as file:
            file.writelines(f"{key}\n" for key in new)


def _file() -> Path:
    state = os.environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "dubito" / "trusted"


def _describe(program: "BotProgram") -> str:
    """Return a sentence that shows a command, where it runs, and what it can use besides its sandbox."""
    from dubito.sandbox.view import private_grants, visible_paths  # imported late, since few runs have programs

    command = one_line(shlex.join(program.command), 400)
    sentence = f"{one_line(program.name)} starts the command `{command}` in {one_line(str(program.home), 200)}"
    visible = visible_paths(program.command, program.home, program.owns_home, program.reads, [])
    paths = sorted({os.path.realpath(path) for path in private_grants(visible)})
    if paths:
        sentence += f", which can read {join_names([one_line(path, 200) for path in paths])}"
    return f"{sentence}, and use the network and your environment variables" if program.network else sentence
