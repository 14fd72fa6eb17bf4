"""What keeps a bot to its share: a world of its own, a core, memory, an end with the match: Linux's means, if there.

What could be enforced is a fact of the machine; `Confinement.facts()` says it, for the log.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from dubito.referee import warden
from dubito.referee.keeper import PROCESSES, SHARE, bound, stays_on_core
from dubito.referee.process import Keeper
from dubito.referee.programs import Program

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
_PATIENCE: Final = 5.0  # seconds
_CLEAN: Final = 3  # looks without a find: while a child ends, the system may leave another one out of the list


def _prctl(*arguments: int) -> bool:
    """Call this function of the C library; whether all is well."""
    with suppress(OSError, AttributeError):
        return bool(ctypes.CDLL(None).prctl(*arguments) == 0)
    return False


def cores_of(number: int, pairs: int, cores: Sequence[int]) -> tuple[int, int] | None:
    """The cores for the two bots of one of so many pairs at once; None if there are not two for each pair."""
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
        """The core of a seat's bot."""
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
            f"at most {PROCESSES:,} processes a bot": "few" in able,
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
