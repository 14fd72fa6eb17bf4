"""Bots by name: what starts one, checked before anything is played, and what keeps it to its share.

That is a world of its own, a core, memory and an end with the match, by Linux's means where they are there: what could
be enforced is a fact of the machine, which `Confinement.facts()` says for the log.
"""

import ctypes
import errno
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path
from typing import Any, Final

from dubito.errors import UsageError, one_line
from dubito.sandbox import warden
from dubito.sandbox.keeper import MAX_PROCESSES, SHARE, bound, stays_on_core
from dubito.sandbox.process import Keeper, start_directly

NAME: Final = re.compile(r"[A-Za-z0-9][\w.-]{0,39}", re.ASCII)
_KEPT: Final = re.compile(
    r"PATH|HOME|USER|SHELL|LANG|TZ|TMPDIR|VIRTUAL_ENV|PYENV_VERSION|LC_\w+|\w+_(HOME|ROOT|PREFIX)|\w*PATH"
)
_PYC: Final = "__pycache__"
_SHEBANG: Final = 256  # bytes of a file in which its first line is looked for
_RUNS_A_SCRIPT: Final = re.compile(
    r"(python|pypy)[\d.]*|sh|bash|dash|ksh|zsh|node|perl|ruby|lua[\d.]*|php|Rscript|julia"
)
_ROOM: Final = 1 << 40  # bytes of address space for a bot that is only tried
_PLAIN_FLAGS: Final = re.compile(r"-[uBEIOPSsqv]+")  # which take no word, and after which a script follows


@dataclass(frozen=True, slots=True)
class Program:
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

    def files(self, but: Sequence[Path] = ()) -> list[Path]:
        """What its command names, and what else lies in the folder of such a file, if that is below its home; `but`
        are folders of others that may lie there."""
        named = {path for word in self.command if (path := self.home / word).is_file()}
        own = {path.parent for path in named if self.home in path.parent.parents}
        below = {path for folder in own for path in files_below(folder) if path.is_file() and _PYC not in path.parts}
        return sorted(named | {path for path in below if not any(map(path.is_relative_to, but))})

    def digests(self, but: Sequence[Path] = ()) -> dict[str, str]:
        return {os.path.relpath(path, self.home): digest(path) for path in self.files(but)}

    def orders(self, data: Path, hidden: Sequence[Path], memory: int, room: int, tries: bool) -> dict[str, Any]:
        seen = [str(path.resolve()) for path in hidden if not self.home.resolve().is_relative_to(path.resolve())]
        own = str(data.resolve())
        return {"data": own, "hidden": seen, "memory": memory, "room": room, "network": self.network, "tries": tries}


def files_below(folder: Path) -> Iterator[Path]:
    """What lies in a folder and those in it, but where a path is longer than the system takes: a bot can make such."""
    for place, _, names in os.walk(folder):
        for name in names:
            path = Path(place, name)
            if os.path.lexists(path):
                yield path


def digest(path: Path) -> str:
    """Of a bot's file; raises UsageError if it cannot be read."""
    try:
        with path.open("rb") as file:
            return file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UsageError(f"cannot read {one_line(str(path))}, a bot's file: {error.strerror}") from None


def check_copies(bots: Sequence[Program], programs: Mapping[str, Mapping[str, str]]) -> None:
    """Refuse one program under two names: a command with the same files, whatever these are called."""
    first: dict[tuple[str, ...], str] = {}
    for one in bots:
        files = programs[one.name]
        words = [files.get(os.path.relpath(one.home / word, one.home), word) for word in one.command]
        likeness = (*words, *sorted(files.values()))
        if (other := first.setdefault(likeness, one.name)) != one.name:
            raise UsageError(
                f"the bots {other} and {one.name} are the same program, which would play against itself: "
                "leave one out, or say `copies: true`"
            )


def bot(
    name: str, command: str | Sequence[str], home: Path, where: str, data: str | None = None, network: bool = False
) -> Program:
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
    _check_script(words, home, where)
    return Program(name, (first, *words[1:]), home, None if data is None else home / data, network)


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
    if first.endswith(b"\r"):
        raise UsageError(
            f"{where}: the first line of {shown} ends as in Windows, so that its interpreter is not found: "
            f"`sed -i 's/\\r$//' {shown}` corrects it"
        )
    words = first[2:].decode("utf-8", "backslashreplace").split()
    if words and words[0].endswith("/env"):
        words = [word for word in words[1:] if not word.startswith("-")]
    if not words or shutil.which(words[0]) is None:
        wanted = one_line(words[0], 80) if words else "an interpreter that is not named"
        raise UsageError(f"{where}: {shown} wants {wanted} (its first line), which is not on this machine")


def _check_script(words: Sequence[str], home: Path, where: str) -> None:
    """Refuse an interpreter that is given a script which is not there, as far as its arguments can be told apart."""
    if not _RUNS_A_SCRIPT.fullmatch(os.path.basename(words[0])):
        return
    script = next((word for word in words[1:] if not _PLAIN_FLAGS.fullmatch(word)), None)
    if script is None:
        raise UsageError(f"{where}: {one_line(words[0], 80)} has nothing to run: name the bot's file behind it")
    if not script.startswith("-") and not (home / script).exists():
        shown = one_line(str((home / script).absolute()))
        raise UsageError(f"{where}: there is no file {shown}, which {one_line(words[0], 80)} is to run")


def probe(bot: Program, run: Path) -> None:
    """Start a bot, in a world of its own if there can be one, and end it at once: even so short it could leave others.

    `run` is the tournament's folder, which it does not see. Raises UsageError if the system cannot start it. A bot that
    ends by itself may enter.
    """
    with tempfile.TemporaryDirectory(prefix="dubito-probe-") as data, open(os.devnull, "r+b", 0) as null:
        environment, pipes = bot.environment(data, Path(data), 0), (null.fileno(),) * 3
        try:
            if sys.platform == "linux":
                orders = bot.orders(Path(data), [run], _ROOM, _ROOM, tries=False)
                with closing(Keeper(bot.command, bot.home, environment, orders)) as keeper:
                    if "apart" in keeper.able:
                        keeper.start(pipes, 0, None).shut()
                        return
            start_directly(bot.command, bot.home, environment)(pipes).shut()
        except OSError as error:
            raise UsageError(f"the bot {bot.name} does not start: {_why(bot, error)}") from None


def _why(bot: Program, error: OSError) -> str:
    program, command = one_line(bot.command[0], 120), one_line(shlex.join(bot.command), 120)
    if error.errno == errno.ENOEXEC:
        return (
            f"{program} is no program for this machine, and no script that says what runs it: begin it with a line "
            f"such as `#!/bin/sh`, or name what runs it: `sh {program}`"
        )
    return f"`{command}` in {one_line(str(bot.home))}: {error.strerror}; try the command there yourself"


_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
_PATIENCE: Final = 5.0  # seconds
_CLEAN: Final = 3  # looks without a find: while a child ends, the system may leave another one out of the list


def _prctl(*arguments: int) -> bool:
    with suppress(OSError, AttributeError):
        return bool(ctypes.CDLL(None).prctl(*arguments) == 0)
    return False


def cores_of(number: int, pairs: int, cores: Sequence[int]) -> tuple[int, int] | None:
    return (cores[2 * number], cores[2 * number + 1]) if 2 * pairs <= len(cores) else None


class Confinement:
    """What a process that plays matches does to keep its bots to their share."""

    def __init__(self, memory: int, cores: tuple[int, int] | None, apart: bool = True) -> None:
        """`memory` in bytes for each bot; `cores` of the two seats, None where there is none for each.

        `apart` asks that each bot has a world of its own, where the system can make one.
        """
        self.memory, self._cores, self._apart = memory, cores, apart
        self._linux = sys.platform == "linux"
        self.orphans = _prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) if self._linux else False
        self._able: list[str] = []

    def keeper(
        self, bot: Program, environment: Mapping[str, str], data: Path, hidden: Sequence[Path], room: int
    ) -> Keeper | None:
        """A world for a bot, to be closed by who asked for it; None where there can be none."""
        if not self._apart or not self._linux:
            return None
        orders = bot.orders(data, hidden, self.memory, room, tries=not self._able)
        keeper = Keeper(bot.command, bot.home, environment, orders)
        self._able = self._able or keeper.able
        if "apart" in keeper.able:
            return keeper
        keeper.close()
        self._apart = False
        return None

    def core(self, seat: int) -> int | None:
        return None if self._cores is None else self._cores[seat]

    def bound(self, seat: int, file: int) -> Callable[[], None] | None:
        """What keeps a bot without a keeper to its core, its memory and files of so many bytes; None if nothing can."""
        if not self._linux:
            return None
        core, memory = self.core(seat), self.memory

        def settle() -> None:
            if core is not None:
                with suppress(OSError):
                    os.sched_setaffinity(0, {core})
            bound(memory, max(file, memory // SHARE))

        return settle

    def end_orphans(self, mark: str, but: Sequence[int | None] = ()) -> None:
        """Kill what bots without a keeper left behind outside of their groups: it has become our child.

        `but` are bots that go on. What cannot be ended within a few seconds is left to the warden.
        """
        if not self.orphans or self._apart:
            return
        wanted, until = f"{warden.MARK}={mark}".encode(), time.monotonic() + _PATIENCE
        me = Path("/proc/self/task", str(os.getpid()), "children")
        with suppress(OSError):
            clean = 0
            while clean < _CLEAN and time.monotonic() < until:
                pids = [pid for pid in map(int, me.read_text().split()) if pid not in but and _has(pid, wanted)]
                clean = 0 if pids else clean + 1
                for pid in pids:
                    with suppress(OSError):
                        os.kill(pid, signal.SIGKILL)
                        os.waitpid(pid, os.WNOHANG)

    def facts(self) -> dict[str, bool]:
        """What is enforced here, and what is not; known once a keeper was asked for."""
        able = set(self._able)
        return {
            "bots kept apart": {"processes", "files"} <= able,
            "own core": self._cores is not None and (self._stays() if "apart" not in able else "core" in able),
            "memory": "processes" in able,
            "memory of each process": self._linux,
            f"at most {MAX_PROCESSES:,} processes a bot": "few" in able,
            "nothing but its data can be written": "still" in able,
            "temporary folders of its own": "scratch" in able,
            "size of its data": "processes" in able,
            "no network": "apart" in able,
            "a loopback of its own": "loopback" in able,
            "nothing left behind": "apart" in able,
            "not run as root": os.geteuid() != 0,
        }

    def _stays(self) -> bool:
        """Whether a bot without a keeper stays on its core: tried."""
        if (settle := self.bound(0, 0)) is None:
            return False
        if (child := os.fork()) == 0:
            try:
                settle()
                os._exit(int(not stays_on_core()))
            finally:
                os._exit(1)
        return os.waitpid(child, 0)[1] == 0


def _has(pid: int, wanted: bytes) -> bool:
    """Whether a child of ours is a bot's, or just ending, and may leave us a child of its own."""
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False
    return not environment or wanted in environment.split(b"\0")


def end_with(parent: int) -> None:
    """End this process as soon as its parent, of this number, ends, however that goes."""
    if sys.platform == "linux":
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)


@contextmanager
def guarded(mark: str) -> Iterator[None]:
    """No process with this mark is left, now and after the end within, even if we are killed."""
    warden.sweep(mark)
    command = (sys.executable, "-S", "-E", warden.__file__, mark)
    with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True) as process:  # noqa: S603
        assert process.stdin is not None
        try:
            yield
        finally:
            process.stdin.close()
