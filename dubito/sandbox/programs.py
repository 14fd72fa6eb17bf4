"""Bot programs: check that they can start, and confine them during a match.

On Linux, each bot gets an isolated environment, a core and a memory limit, and all of its processes end with the match.
`Confinement.enforced_limits()` returns the limits that the machine can enforce, for the log.
"""

import ctypes
import errno
import hashlib
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
from itertools import count
from pathlib import Path
from typing import Any, Final

from dubito.errors import UsageError, one_line
from dubito.sandbox import warden
from dubito.sandbox.keeper import MAX_PROCESSES, SHARE, limit_resources, stays_on_core
from dubito.sandbox.process import Keeper, start_directly

NAME: Final = re.compile(r"[A-Za-z0-9][\w.-]{0,39}", re.ASCII)
_ALLOWED_VARIABLES: Final = re.compile(
    r"PATH|HOME|USER|SHELL|LANG|TZ|TMPDIR|VIRTUAL_ENV|PYENV_VERSION|LC_\w+|\w+_(HOME|ROOT|PREFIX)|\w*PATH"
)
_PYC: Final = "__pycache__"
_MAX_SHEBANG_BYTES: Final = 256
_INTERPRETER: Final = re.compile(r"(python|pypy)[\d.]*|sh|bash|dash|ksh|zsh|node|perl|ruby|lua[\d.]*|php|Rscript|julia")
_PROBE_BYTES: Final = 1 << 40  # address space of a bot that is only probed
_PLAIN_FLAGS: Final = re.compile(r"-[uBEIOPSsqv]+")  # flags without an argument, before a script


@dataclass(frozen=True, slots=True)
class BotProgram:
    """A bot that can be started."""

    name: str
    command: tuple[str, ...]
    home: Path  # the bot's working directory: the config's folder
    data: Path | None = None  # the folder for its data, with one folder per game; None for the run's folder
    network: bool = False  # allow the network, unlike in tournaments, and pass the whole environment

    def environment(self, mark: str, data: Path, seed: int) -> dict[str, str]:
        """Return the bot's environment, without variables that could contain secrets."""
        allowed = {key: value for key, value in os.environ.items() if self.network or _ALLOWED_VARIABLES.fullmatch(key)}
        return allowed | {
            "PYTHONUNBUFFERED": "1",
            "OMP_NUM_THREADS": "1",
            "DUBITO_DATA": str(data),
            "DUBITO_SEED": str(seed),
            warden.MARK: mark,
        }

    def files(self, excluded: Sequence[Path] = ()) -> list[Path]:
        """Return the files in the command and, for those inside the bot's home, all files in their folders.

        `excluded` folders are left out, such as other bots' data.
        """
        command_files = {path for word in self.command if (path := self.home / word).is_file()}
        folders = {path.parent for path in command_files if self.home in path.parent.parents}
        below = {
            path for folder in folders for path in files_below(folder) if path.is_file() and _PYC not in path.parts
        }
        return sorted(command_files | {path for path in below if not any(map(path.is_relative_to, excluded))})

    def digests(self, excluded: Sequence[Path] = ()) -> dict[str, str]:
        return {os.path.relpath(path, self.home): file_digest(path) for path in self.files(excluded)}

    def keeper_orders(self, data: Path, hidden: Sequence[Path], memory: int, room: int, tries: bool) -> dict[str, Any]:
        hidden_paths = [
            str(path.resolve()) for path in hidden if not self.home.resolve().is_relative_to(path.resolve())
        ]
        own_data = str(data.resolve())
        return {
            "data": own_data,
            "hidden": hidden_paths,
            "memory": memory,
            "room": room,
            "network": self.network,
            "tries": tries,
        }


def files_below(folder: Path) -> Iterator[Path]:
    """Yield all files below a folder.

    Paths that are longer than the system allows, which a bot can create, are left out.
    """
    for place, _, names in os.walk(folder):
        for name in names:
            path = Path(place, name)
            if os.path.lexists(path):
                yield path


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a bot's file. Raises UsageError if it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UsageError(f"cannot read {one_line(str(path))}, a bot's file: {error.strerror}") from None


def check_copies(bots: Sequence[BotProgram], programs: Mapping[str, Mapping[str, str]]) -> None:
    """Refuse the same program under two names: equal commands with equal files, whatever the files are called."""
    first: dict[tuple[str, ...], str] = {}
    for one in bots:
        files = programs[one.name]
        words = [files.get(os.path.relpath(one.home / word, one.home), word) for word in one.command]
        content = (*words, *sorted(files.values()))
        if (other := first.setdefault(content, one.name)) != one.name:
            raise UsageError(
                f"the bots {other} and {one.name} are the same program, which would play against itself: "
                "remove one of them, or set `copies: true`"
            )


def load_bot(
    name: str, command: str | Sequence[str], home: Path, where: str, data: str | None = None, network: bool = False
) -> BotProgram:
    """Return the bot with this command. Its name is used in file names. Raises UsageError like `load_program`."""
    if "--" in name:  # separates two bots in the file names of logs
        raise UsageError(
            f"{where}: a bot cannot be called {one_line(repr(name), 60)}: two dashes in a row are not allowed"
        )
    if not NAME.fullmatch(name):
        shown = one_line(repr(name), 60)
        raise UsageError(f"{where}: a bot cannot be called {shown}: use up to 40 letters, digits, dots, dashes")
    return load_program(name, command, home, where, data, network)


def load_program(
    name: str, command: str | Sequence[str], home: Path, where: str, data: str | None = None, network: bool = False
) -> BotProgram:
    """Return the program with this command. Raises UsageError if it cannot be started.

    The message begins with `where`.
    """
    if not hasattr(os, "killpg"):
        raise UsageError(f"{where}: bot programs need Linux or macOS", hint="on Windows, run Dubito in WSL")
    try:
        words = shlex.split(command) if isinstance(command, str) else list(command)
    except ValueError as error:
        raise UsageError(f"{where}: invalid command {one_line(str(command), 80)}: {error}") from None
    if any("\0" in word for word in words):
        raise UsageError(f"{where}: invalid command {one_line(repr(words), 80)}: it contains a null character")
    if not words or not words[0]:
        raise UsageError(f"{where}: the command is empty: use one such as `python3 my_bot.py`")
    first = _find_program(words[0], home, where)
    _check_script(words, home, where)
    return BotProgram(name, (first, *words[1:]), home, None if data is None else home / data, network)


def _find_program(word: str, home: Path, where: str) -> str:
    """Return a path with which the program can be started from the bot's folder."""
    shown = one_line(word, 120)
    if "/" not in word:
        if shutil.which(word) is None:
            hint = f": to use the file next to the config, write ./{shown}" if (home / word).exists() else ""
            raise UsageError(f"{where}: the program {shown} is not installed{hint}")
        return word
    path = (home / word).absolute()
    if not path.is_file():
        raise UsageError(f"{where}: the file {one_line(str(path))} does not exist")
    if not os.access(path, os.X_OK):
        raise UsageError(f"{where}: {shown} is not executable: run `chmod +x {shown}`, or write `python3 {shown}`")
    _check_interpreter(path, shown, where)
    return str(path)


def _check_interpreter(path: Path, shown: str, where: str) -> None:
    with path.open("rb") as file:
        first = file.read(_MAX_SHEBANG_BYTES).partition(b"\n")[0]
    if not first.startswith(b"#!"):
        return
    if first.endswith(b"\r"):
        raise UsageError(
            f"{where}: the first line of {shown} has a Windows line ending, so its interpreter is not found: "
            f"run `sed -i 's/\\r$//' {shown}`"
        )
    words = first[2:].decode("utf-8", "backslashreplace").split()
    if words and words[0].endswith("/env"):
        words = [word for word in words[1:] if not word.startswith("-")]
    if not words or shutil.which(words[0]) is None:
        problem = f"needs {one_line(words[0], 80)}, which is not installed" if words else "names no interpreter"
        raise UsageError(f"{where}: the first line of {shown} {problem}")


def _check_script(words: Sequence[str], home: Path, where: str) -> None:
    """Refuse an interpreter without a script or whose script does not exist, if its arguments are understood."""
    if not _INTERPRETER.fullmatch(os.path.basename(words[0])):
        return
    script = next((word for word in words[1:] if not _PLAIN_FLAGS.fullmatch(word)), None)
    if script is None:
        raise UsageError(f"{where}: {one_line(words[0], 80)} has no script to run: add the bot's file to the command")
    if not script.startswith("-") and not (home / script).exists():
        shown = one_line(str((home / script).absolute()))
        raise UsageError(f"{where}: the script {shown} does not exist")


def probe(bot: BotProgram, run: Path) -> None:
    """Start a bot and stop it at once. Raises UsageError if the system cannot start it.

    The bot is isolated if possible, since it could leave processes behind even in this short time. The tournament's
    folder, `run`, is hidden from it. It does not matter whether the bot exits on its own.
    """
    with tempfile.TemporaryDirectory(prefix="dubito-probe-") as data, open(os.devnull, "r+b", 0) as null:
        environment, pipes = bot.environment(data, Path(data), 0), (null.fileno(),) * 3
        try:
            if sys.platform == "linux":
                orders = bot.keeper_orders(Path(data), [run], _PROBE_BYTES, _PROBE_BYTES, tries=False)
                with closing(Keeper(bot.command, bot.home, environment, orders)) as keeper:
                    if "apart" in keeper.able:
                        keeper.start(pipes, 0, None).shut()
                        return
            start_directly(bot.command, bot.home, environment)(pipes).shut()
        except OSError as error:
            raise UsageError(f"cannot start the bot {bot.name}: {_describe_error(bot, error)}") from None


def _describe_error(bot: BotProgram, error: OSError) -> str:
    program, command = one_line(bot.command[0], 120), one_line(shlex.join(bot.command), 120)
    if error.errno == errno.ENOEXEC:
        return (
            f"{program} is neither a program for this machine nor a script with an interpreter: begin the script with "
            f"a line such as `#!/bin/sh`, or write `sh {program}`"
        )
    return f"`{command}` in {one_line(str(bot.home))}: {error.strerror}; try to run the command there"


_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
_MAX_CLEANUP_SECONDS: Final = 5.0
# While one child ends, the system may omit another from the list, so wait for several empty lists.
_EMPTY_LISTS_NEEDED: Final = 3


def _prctl(*arguments: int) -> bool:
    with suppress(OSError, AttributeError):
        return bool(ctypes.CDLL(None).prctl(*arguments) == 0)
    return False


def assign_cores(number: int, pairs: int, cores: Sequence[int]) -> tuple[int, int] | None:
    return (cores[2 * number], cores[2 * number + 1]) if 2 * pairs <= len(cores) else None


class Confinement:
    """Enforces limits on a referee process's bots."""

    def __init__(self, memory: int, cores: Sequence[int] | None, apart: bool = True) -> None:
        """Set the limits.

        Args:
            memory: Bytes for each bot.
            cores: The cores of the bots, by number modulo their count, or None if there are too few.
            apart: Isolate each bot if the system supports it.
        """
        self.memory, self._cores, self._apart = memory, cores, apart
        self._linux = sys.platform == "linux"
        self.numbers = count()  # numbers for bots that are not numbered by seat
        self.orphans = _prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) if self._linux else False
        self._able: list[str] = []

    def keeper(
        self, bot: BotProgram, environment: Mapping[str, str], data: Path, hidden: Sequence[Path], room: int
    ) -> Keeper | None:
        """Return an isolated environment for a bot, or None if unsupported. The caller closes it."""
        if not self._apart or not self._linux:
            return None
        orders = bot.keeper_orders(data, hidden, self.memory, room, tries=not self._able)
        keeper = Keeper(bot.command, bot.home, environment, orders)
        self._able = self._able or keeper.able
        if "apart" in keeper.able:
            return keeper
        keeper.close()
        self._apart = False
        return None

    def core(self, number: int) -> int | None:
        return None if self._cores is None else self._cores[number % len(self._cores)]

    def resource_limiter(self, number: int, file: int) -> Callable[[], None] | None:
        """Return a function that limits a bot's core, memory and file size without a keeper, or None."""
        if not self._linux:
            return None
        core, memory = self.core(number), self.memory

        def apply_limits() -> None:
            if core is not None:
                with suppress(OSError):
                    os.sched_setaffinity(0, {core})
            limit_resources(memory, max(file, memory // SHARE))

        return apply_limits

    def end_orphans(self, mark: str, excluded: Sequence[int | None] = ()) -> None:
        """Kill processes that bots without a keeper left outside their process groups, except `excluded`.

        They are children of this process by now. The warden kills those that survive for a few seconds.
        """
        if not self.orphans or self._apart:
            return
        marker, until = f"{warden.MARK}={mark}".encode(), time.monotonic() + _MAX_CLEANUP_SECONDS
        children = Path("/proc/self/task", str(os.getpid()), "children")
        with suppress(OSError):
            empty_lists = 0
            while empty_lists < _EMPTY_LISTS_NEEDED and time.monotonic() < until:
                pids = [
                    pid
                    for pid in map(int, children.read_text("ascii").split())
                    if pid not in excluded and _may_belong_to_bot(pid, marker)
                ]
                empty_lists = 0 if pids else empty_lists + 1
                for pid in pids:
                    with suppress(OSError):
                        os.kill(pid, signal.SIGKILL)
                        os.waitpid(pid, os.WNOHANG)

    def enforced_limits(self) -> dict[str, bool]:
        """Return the limits that are enforced here. They are known after the first call to `keeper`."""
        able = set(self._able)
        return {
            "bots isolated": {"processes", "files"} <= able,
            "own core": self._cores is not None and (self._can_set_core() if "apart" not in able else "core" in able),
            "memory": "processes" in able,
            "memory of each process": self._linux,
            f"at most {MAX_PROCESSES:,} processes per bot": "few" in able,
            "only its own data is writable": "still" in able,
            "separate temporary folders": "scratch" in able,
            "size of its data": "processes" in able,
            "no network": "apart" in able,
            "separate loopback interface": "loopback" in able,
            "all processes are ended after the match": "apart" in able,
            "no root privileges": os.geteuid() != 0,
        }

    def _can_set_core(self) -> bool:
        """Test whether a bot without a keeper stays on its core."""
        if (apply_limits := self.resource_limiter(0, 0)) is None:
            return False
        if (child := os.fork()) == 0:
            try:
                apply_limits()
                os._exit(int(not stays_on_core()))
            finally:
                os._exit(1)
        return os.waitpid(child, 0)[1] == 0


def _may_belong_to_bot(pid: int, marker: bytes) -> bool:
    """Return whether a child process belongs to a bot, or is ending and could leave a child behind."""
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False
    return not environment or marker in environment.split(b"\0")


def terminate_with(parent: int) -> None:
    """End this process as soon as its parent ends, for any reason."""
    if sys.platform == "linux":
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)


@contextmanager
def guard_processes(mark: str) -> Iterator[None]:
    """Kill all processes with this mark, now and when the context ends, even if this process is killed."""
    warden.sweep(mark)
    command = (sys.executable, "-S", "-E", warden.__file__, mark)
    with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True) as process:  # noqa: S603
        assert process.stdin is not None
        try:
            yield
        finally:
            process.stdin.close()
