"""What keeps a bot to its share: a core, memory, no network, no life after the match. Linux's means, where they are.

What could be enforced is a fact of the machine; `Confinement.facts()` says it, for the log.
"""

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final

from dubito.referee import warden

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
_NEWNET: Final = 0x40000000
_NEWUSER: Final = 0x10000000
_NETWORK: Final = Path("/proc/self/ns/net")


def _libc(name: str, *arguments: int) -> bool:
    """Call a function of the C library that gives back 0 if all is well."""
    with suppress(OSError, AttributeError):
        return bool(getattr(ctypes.CDLL(None), name)(*arguments) == 0)
    return False


def cores_of(number: int, pairs: int, cores: Sequence[int]) -> tuple[int, int] | None:
    """The cores for the two bots of one of so many pairs at once; None if there are not two for each pair."""
    return (cores[2 * number], cores[2 * number + 1]) if 2 * pairs <= len(cores) else None


def cores_here() -> list[int]:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


class Confinement:
    """What a process that plays matches has set up for its bots."""

    def __init__(self, memory: int, cores: tuple[int, int] | None) -> None:
        """`memory` in bytes for each bot; `cores` of the two seats, None where there is none for each."""
        self._memory, self._cores = memory, cores
        self._linux = sys.platform == "linux"
        self.orphans = _libc("prctl", _PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) if self._linux else False
        self._home: IO[bytes] | None = None  # the network as it was
        self._cut: IO[bytes] | None = None

    def cut_network(self) -> None:
        """Leave the network, and with us every process that is started from now on. For a process of one thread."""
        if not self._linux:
            return
        home, user, group = _NETWORK.open("rb"), os.getuid(), os.getgid()
        if not _libc("unshare", _NEWNET):
            if not _libc("unshare", _NEWUSER | _NEWNET):
                return
            for file, text in (
                ("setgroups", "deny"),
                ("uid_map", f"{user} {user} 1"),
                ("gid_map", f"{group} {group} 1"),
            ):
                with suppress(OSError):
                    Path("/proc/self", file).write_text(text)
        self._home, self._cut = home, _NETWORK.open("rb")

    @contextmanager
    def network(self, allowed: bool) -> Iterator[None]:
        """Start a bot that has the network within, if it is one that may."""
        if not allowed or self._home is None or self._cut is None:
            yield
            return
        _libc("setns", self._home.fileno(), _NEWNET)
        try:
            yield
        finally:
            _libc("setns", self._cut.fileno(), _NEWNET)

    def settle(self, pid: int | None, seat: int) -> None:
        """Keep a bot that was just started to its core and its memory."""
        if pid is None or not self._linux:
            return
        with suppress(OSError):  # it may have ended already
            if self._cores is not None:
                os.sched_setaffinity(pid, {self._cores[seat]})
            import resource

            resource.prlimit(pid, resource.RLIMIT_AS, (self._memory, self._memory))

    def end_orphans(self, mark: str, but: Sequence[int | None] = ()) -> None:
        """Kill what bots left behind outside of their groups: it has become our child. `but` are bots that go on."""
        if not self.orphans:
            return
        wanted = f"{warden.MARK}={mark}".encode()
        me = Path("/proc/self/task", str(os.getpid()), "children")
        with suppress(OSError):
            while pids := [pid for pid in map(int, me.read_text().split()) if pid not in but and _has(pid, wanted)]:
                for pid in pids:
                    with suppress(OSError):
                        os.kill(pid, signal.SIGKILL)
                        os.waitpid(pid, 0)

    def facts(self) -> dict[str, bool]:
        """What is enforced here, and what is not."""
        return {
            "own core, unless a bot leaves it": self._linux and self._cores is not None,
            "memory": self._linux,
            "no network": self._cut is not None,
            "nothing left behind that keeps its mark": self.orphans,
        }


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
        _libc("prctl", _PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
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
