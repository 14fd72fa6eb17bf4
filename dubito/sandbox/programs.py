"""Bot programs: check that they can start, and confine them during a match.

On Linux, each bot gets an isolated environment, a core and a memory limit, and all of its processes end with the match.
Without namespaces, Landlock and a stricter filter of system calls keep it away from other files, processes and the
network. `Confinement.enforced_limits()` returns the limits that the machine can enforce, for the log.
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
from typing import Final

from dubito.errors import UsageError, one_line
from dubito.sandbox import landlock, warden
from dubito.sandbox.keeper import MAX_PROCESSES, SHARE, drop_privileges, limit_resources, prefer_in_shortage
from dubito.sandbox.process import DirectProcess, Keeper, Pipes, Start
from dubito.sandbox.syscalls import build_filter
from dubito.sandbox.view import MAX_SHEBANG_BYTES, read_shebang, visible_paths

NAME: Final = re.compile(r"[A-Za-z0-9][\w.-]{0,39}", re.ASCII)
# Variables that programs receive. Others can contain secrets, whatever their names.
_VARIABLES: Final = re.compile(
    "PATH|LANG|LANGUAGE|LC_[A-Z]+|TZ|VIRTUAL_ENV|PYTHON(PATH|HOME|HASHSEED|UTF8)|PYENV_(ROOT|VERSION)|CONDA_PREFIX|"
    "NODE_PATH|NVM_DIR|VOLTA_HOME|ASDF_(DATA_)?DIR|J(AVA|DK)_HOME|CLASSPATH|LD_LIBRARY_PATH|GEM_(HOME|PATH)|RUBYLIB|"
    "PERL5LIB|LUA_C?PATH|R_HOME|R_LIBS|JULIA_DEPOT_PATH|DOTNET_ROOT"
)
_PYC: Final = "__pycache__"
_INTERPRETER: Final = re.compile(r"(python|pypy)[\d.]*|sh|bash|dash|ksh|zsh|node|perl|ruby|lua[\d.]*|php|Rscript|julia")
_PROBE_BYTES: Final = 1 << 40  # size of the files of a bot that is only probed
_PLAIN_FLAGS: Final = re.compile(r"-[uBEIOPSsqv]+")  # flags without an argument, before a script


@dataclass(frozen=True, slots=True)
class BotProgram:
    """A bot that can be started."""

    name: str
    command: tuple[str, ...]
    home: Path  # the bot's working directory: the config's folder
    data: Path | None = None  # the folder for its data, with one folder per game; None for the run's folder
    network: bool = False  # allow the network, unlike in tournaments, and pass the whole environment
    reads: tuple[Path, ...] = ()  # other files and folders that it can read
    owns_home: bool = False  # whether `home` contains only this bot's files, all of which it can read

    def environment(self, mark: str, data: Path, seed: int) -> dict[str, str]:
        """Return the bot's environment, without variables that could contain secrets."""
        allowed = {key: value for key, value in os.environ.items() if self.network or _VARIABLES.fullmatch(key)}
        return allowed | {
            "HOME": str(data),
            "TMPDIR": str(data),  # a keeper has a folder for temporary files instead
            "PYTHONUSERBASE": str(Path.home() / ".local"),
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
    # Refuse an interpreter without a script or whose script does not exist, if its arguments are understood.
    if _INTERPRETER.fullmatch(os.path.basename(words[0])):
        script = next((word for word in words[1:] if not _PLAIN_FLAGS.fullmatch(word)), None)
        if script is None:
            shown = one_line(words[0], 80)
            raise UsageError(f"{where}: {shown} has no script to run: add the bot's file to the command")
        if not script.startswith("-") and not (home / script).exists():
            shown = one_line(str((home / script).absolute()))
            raise UsageError(f"{where}: the script {shown} does not exist")
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
    with path.open("rb") as file:
        first = file.read(MAX_SHEBANG_BYTES).partition(b"\n")[0]
    if first.startswith(b"#!"):
        if first.endswith(b"\r"):
            raise UsageError(
                f"{where}: the first line of {shown} has a Windows line ending, so its interpreter is not found: "
                f"run `sed -i 's/\\r$//' {shown}`"
            )
        words = read_shebang(path)
        if not words or shutil.which(words[0]) is None:
            problem = f"needs {one_line(words[0], 80)}, which is not installed" if words else "names no interpreter"
            raise UsageError(f"{where}: the first line of {shown} {problem}")
    return str(path)


def find_reads(paths: Sequence[str], home: Path, where: str) -> tuple[Path, ...]:
    """Return the paths that a bot's `reads` grants. Raises UsageError if one does not exist."""
    found = tuple(home / Path(path).expanduser() for path in paths)
    if missing := next((path for path in found if not path.exists()), None):
        raise UsageError(f"{one_line(str(missing))} does not exist", where=f"{where}: reads")
    return found


def probe(bot: BotProgram, hidden: Sequence[Path], confinement: "Confinement") -> None:
    """Start a bot and stop it at once. Raises UsageError if the system cannot start or confine it.

    It does not matter whether the bot exits on its own. `hidden` lists what it must not see.
    """
    with tempfile.TemporaryDirectory(prefix="dubito-probe-") as data, open(os.devnull, "r+b", 0) as null:
        environment, pipes = bot.environment(data, Path(data), 0), (null.fileno(),) * 3
        try:
            keeper = confinement.keeper(bot, environment, Path(data), hidden, _PROBE_BYTES)
            if keeper is None:
                confinement.start_directly(bot, environment, Path(data), hidden, 0, _PROBE_BYTES)(pipes).shut()
                return
            with closing(keeper):
                keeper.start(pipes, 0, None).shut()
        except OSError as error:
            program, command = one_line(bot.command[0], 120), one_line(shlex.join(bot.command), 120)
            problem = f"`{command}` in {one_line(str(bot.home))}: {error.strerror}; try to run the command there"
            if error.errno == errno.ENOEXEC:
                problem = (
                    f"{program} is neither a program for this machine nor a script with an interpreter: begin the "
                    f"script with a line such as `#!/bin/sh`, or write `sh {program}`"
                )
            raise UsageError(f"cannot start the bot {bot.name}: {problem}") from None


_PR_SET_PDEATHSIG: Final = 1
_PR_SET_DUMPABLE: Final = 4
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


_CONTROL_GROUP: Final = Path("/proc/self/cgroup")
_CONTROL_GROUPS: Final = Path("/sys/fs/cgroup")


def machine_memory(own: Path = _CONTROL_GROUP, groups: Path = _CONTROL_GROUPS) -> int:
    """Return the bytes of memory of this machine or, if that is less, of the control group of this process."""
    limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    with suppress(OSError):
        for line in own.read_text("utf-8").splitlines():
            _, controllers, group = line.split(":", 2)
            root = groups / "memory" if "memory" in controllers.split(",") else groups
            for folder in (root / group[1:], *(root / group[1:]).parents):
                if folder.is_relative_to(root):
                    limits += _read_limits(folder)
    return min(limits)


def _read_limits(folder: Path) -> list[int]:
    limits = list[int]()
    for name in ("memory.max", "memory.limit_in_bytes"):
        with suppress(OSError, ValueError):  # "max": unlimited
            limits.append(int((folder / name).read_text("ascii")))
    return limits


METHODS: Final = ("namespaces", "Landlock")
# What a bot can do if a limit is not enforced.
_CONSEQUENCES: Final = {
    "no access to other files": "read and change your files, such as your keys and the cards of this run",
    "no access to other processes": "read the memory of your other processes, and stop them",
    "no network": "use the network",
    "own core": "use the cores of its opponents",
    "memory": "use more memory with several processes than with one",
    "memory of each process": "use all memory",
    f"at most {MAX_PROCESSES:,} processes per bot": "start any number of processes",
    "separate temporary folders": "find files of other programs in its temporary folder",
    "size of its data": "fill the disk",
    "separate loopback interface": "connect to servers on this machine",
    "all processes are ended after the match": "leave processes that run after the end",
    "no root privileges": "do everything that root can do",
}


def describe_missing(limits: Mapping[str, bool]) -> list[str]:
    """Return what programs can do because some limits are not enforced."""
    return [f"programs can {_CONSEQUENCES[name]}" for name, is_enforced in limits.items() if not is_enforced]


class Confinement:
    """Enforces limits on a referee process's bots."""

    def __init__(
        self,
        memory: int,
        cores: Sequence[int] | None,
        methods: Sequence[str] = METHODS,
        *,
        allow_unsandboxed: bool = False,
    ) -> None:
        """Set the limits, and hide this process's memory and environment from other processes of the user.

        Args:
            memory: Bytes for each bot.
            cores: The cores of the bots, by number modulo their count, or None if there are too few.
            methods: How to keep bots away from files, processes and the network, if the system supports it.
            allow_unsandboxed: Start bots even if they can reach files, processes and the network.
        """
        self.memory, self._cores, self._unsandboxed = memory, cores, allow_unsandboxed
        self._linux = sys.platform == "linux"
        self._apart = self._linux and "namespaces" in methods
        is_possible = self._linux and landlock.is_supported() and build_filter() is not None
        self._landlocked = is_possible and "Landlock" in methods
        self.numbers = count()  # numbers for bots that are not numbered by seat
        self.orphans = self._linux and _prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        if self._linux:
            _prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
        self._able: list[str] = []
        self._visible: dict[tuple[object, ...], list[str]] = {}

    def keeper(
        self, bot: BotProgram, environment: Mapping[str, str], data: Path, hidden: Sequence[Path], room: int
    ) -> Keeper | None:
        """Return an isolated environment for a bot, or None without namespaces. The caller closes it.

        Raises UsageError if the system cannot confine the bot, unless that is allowed.
        """
        if self._apart:
            calls = build_filter()
            orders = {
                "data": str(data.absolute()),
                "visible": self._find_visible(bot, hidden),
                "memory": self.memory,
                "room": room,
                "network": bot.network,
                "calls": None if calls is None else calls.hex(),
                "tries": not self._able,
            }
            keeper = Keeper(bot.command, bot.home, environment, orders)
            self._able = self._able or keeper.able
            if {"apart", "processes", "files"} <= {*self._able}:
                return keeper
            keeper.close()
            self._apart = False
        if not (self._landlocked or self._unsandboxed):
            raise UsageError(
                f"{one_line(bot.name)} is not started: this machine cannot keep programs away from your files, your "
                "other processes and the network, so it could read your keys and the cards of this run",
                hint="allow user namespaces, use Linux 6.2 or later with Landlock, or accept this with "
                "--allow-unsandboxed",
            )
        return None

    def _find_visible(self, bot: BotProgram, hidden: Sequence[Path]) -> list[str]:
        key = (bot, *hidden)
        if key not in self._visible:
            self._visible[key] = visible_paths(bot.command, bot.home, bot.owns_home, bot.reads, hidden)
        return self._visible[key]

    def start_directly(
        self,
        bot: BotProgram,
        environment: Mapping[str, str],
        data: Path,
        hidden: Sequence[Path],
        number: int,
        room: int,
    ) -> Start:
        """Return a function that starts a bot without a keeper, with the limits that work there.

        `number` determines its core. `room` is the maximum size of its files, in bytes.
        """

        def start(pipes: Pipes) -> DirectProcess:
            rules = landlock.Rules(self._find_visible(bot, hidden), [str(data)]) if self._landlocked else None
            try:
                bound = self._resource_limiter(bot, number, room, rules)
                return DirectProcess(bot.command, bot.home, environment, pipes, bound)
            finally:
                if rules is not None:
                    rules.close()

        return start

    def core(self, number: int) -> int | None:
        return None if self._cores is None else self._cores[number % len(self._cores)]

    def _resource_limiter(
        self, bot: BotProgram, number: int, file: int, rules: landlock.Rules | None
    ) -> Callable[[], None] | None:
        """Return a function with which the new process limits itself before it becomes the bot, or None."""
        if not self._linux:
            return None
        core, memory, signals = self.core(number), self.memory, rules is not None and landlock.scopes_signals()

        def apply_limits() -> None:
            if core is not None:
                with suppress(OSError):
                    os.sched_setaffinity(0, {core})
            prefer_in_shortage()
            drop_privileges()
            if rules is not None:
                rules.apply()
            filter_ = build_filter(os.getpid(), network=bot.network, signals=signals)
            limit_resources(memory, max(file, memory // SHARE), filter_)

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
        able = {*self._able} if self._apart else set[str]()
        has_walls = self._apart or self._landlocked
        return {
            "no access to other files": has_walls,
            "no access to other processes": has_walls,
            "no network": has_walls,
            "own core": self._cores is not None and (self._linux if not self._apart else "core" in able),
            "memory": self._apart,
            "memory of each process": self._linux,
            f"at most {MAX_PROCESSES:,} processes per bot": "few" in able,
            "separate temporary folders": has_walls,
            "size of its data": self._apart,
            "separate loopback interface": has_walls,
            "all processes are ended after the match": self._apart,
            "no root privileges": has_walls or os.geteuid() != 0,
        }


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
    warden.end_earlier_wardens(mark)
    warden.sweep(mark)
    command = (sys.executable, "-S", "-E", warden.__file__, mark)
    # Its environment would be readable without namespaces.
    with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True, env={}) as process:  # noqa: S603
        assert process.stdin is not None
        try:
            yield
        finally:
            process.stdin.close()
