"""The process of a bot: started alone or by its keeper in a world of its own, signalled, ended with its children."""

import errno
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from dubito.errors import RunStopped
from dubito.referee import keeper

Pipes = tuple[int, int, int]  # its standard input, output and error
Start = Callable[[Pipes], "Process"]

_PATIENCE: Final = 60.0  # seconds that a keeper has for an answer
_OURS: Final = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)  # the machine is full: no fault of a bot's
_TRIES: Final = 50
_PAUSE: Final = 0.1  # seconds between two tries
_GO_ON: Final = "run the same command again to continue"
_Started = TypeVar("_Started")


class Process(Protocol):
    """A bot that was started."""

    end: int  # a file that is readable once it has ended; -1 where there is none
    pid: int | None  # where it is known to us

    def ended(self) -> bool:
        """Whether it has ended; what it started may still be there."""

    def signal(self, number: int) -> None:
        """Signal its group."""

    def shut(self) -> int | str:
        """Kill it with its group; how it ended: an exit code, or a signal's name."""


class Alone:
    """A bot as a child of ours, leading a session of its own."""

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        pipes: Pipes,
        bound: Callable[[], None] | None,
    ) -> None:
        """Start it; raises OSError where that is the bot's fault, RunStopped where it is the machine's."""
        to, out, err = pipes

        def start() -> subprocess.Popen[bytes]:
            return subprocess.Popen(  # noqa: S603, a bot is a command of its user's
                command,
                cwd=folder,
                env=environment,
                stdin=to,
                stdout=out,
                stderr=err,
                start_new_session=True,
                preexec_fn=bound,
            )

        self._process = _patiently(start)
        self.pid: int | None = self._process.pid
        self.end = os.pidfd_open(self._process.pid) if hasattr(os, "pidfd_open") else -1

    def ended(self) -> bool:
        """Whether it has ended; it is not waited for, so that its group's number is still its own."""
        if self._process.returncode is not None:
            return True
        return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def signal(self, number: int) -> None:
        """Signal its group."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def shut(self) -> int | str:
        """Kill it with its group."""
        self.signal(signal.SIGKILL)
        status = _said(self._process.wait())
        if self.end >= 0:
            os.close(self.end)
        return status


def alone(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], bound: Callable[[], None] | None = None
) -> Start:
    """How a bot is started without a keeper; `bound` is called in its process before it."""
    return lambda pipes: Alone(command, folder, environment, pipes, bound)


class Keeper:
    """A world for a bot, for as many matches as it plays there one after the other."""

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        orders: Mapping[str, Any],
    ) -> None:
        """`orders` are what a world takes: see `keeper.World`."""
        self._command, self._folder, self._environment = command, folder, environment
        self._words = [json.dumps(orders), *command]
        self._open()

    def _open(self) -> None:
        self.gone = self._used = False  # a bot can do its keeper harm, and with it only itself
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.settimeout(_PATIENCE)
        with theirs:
            self._process = _patiently(
                lambda: subprocess.Popen(  # noqa: S603
                    (sys.executable, "-I", "-S", keeper.__file__, str(theirs.fileno()), *self._words),
                    cwd=self._folder,
                    env=self._environment,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                    pass_fds=[theirs.fileno()],
                )
            )
        self.able = self._answer().decode().split()  # what it can keep apart; empty if nothing

    def _answer(self) -> bytes:
        with suppress(OSError):
            return self._socket.recv(200)
        return b""

    def start(self, pipes: Pipes, seed: int, core: int | None) -> "KeeperBot":
        """Start the bot; raises OSError where that is the bot's fault, RunStopped where it is the machine's."""
        return _patiently(lambda: self._start(pipes, b"start %d %d" % (seed, -1 if core is None else core)))

    def _start(self, pipes: Pipes, message: bytes) -> "KeeperBot":
        try:
            socket.send_fds(self._socket, [message], pipes)
            said, files, _, _ = socket.recv_fds(self._socket, 200, 1)
        except OSError:
            said, files = b"", []
        if files:
            os.set_inheritable(files[0], False)
            self._used = True
            return KeeperBot(self, files[0])
        if not said:
            self.gone = True
            raise OSError(errno.EPIPE, "its keeper is gone", self._command[0])
        number = int(said.split()[1])
        if number in _OURS and self._used:  # a bot before this one may have cut its keeper's limits, not a new one's
            self.close()
            self._open()
        raise OSError(number, os.strerror(number), self._command[0])

    def signal(self, number: int) -> None:
        """Signal the bot's group."""
        with suppress(OSError):
            self._socket.send(b"signal %d" % number)

    def end_all(self) -> int | str:
        """Kill all that the bot started, wherever it went; how the bot itself ended."""
        with suppress(OSError):
            self._socket.send(b"end")
        said = self._answer()
        self.gone = not said
        return _said(int(said)) if said else "SIGKILL"  # a keeper that is gone took all with it

    def close(self) -> None:
        """End the world."""
        self._socket.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_PATIENCE)
        self._process.kill()
        self._process.wait()


class KeeperBot:
    """A bot in the world of its keeper."""

    pid: int | None = None  # in a world of its own

    def __init__(self, keeper: Keeper, end: int) -> None:
        self._keeper, self.end = keeper, end

    def ended(self) -> bool:
        """Whether it has ended."""
        looks = select.poll()
        looks.register(self.end, select.POLLIN)
        return bool(looks.poll(0))

    def signal(self, number: int) -> None:
        """Signal its group."""
        self._keeper.signal(number)

    def shut(self) -> int | str:
        """Kill it with all that it started."""
        os.close(self.end)
        return self._keeper.end_all()


def _patiently(start: Callable[[], _Started]) -> _Started:
    """Start a process, several times where the machine is full; raises RunStopped if it stays so."""
    for _ in range(_TRIES):
        try:
            return start()
        except OSError as error:
            if error.errno not in _OURS:
                raise
            why = error.strerror
            time.sleep(_PAUSE)
    raise RunStopped(f"no process can be started here: {why}; {_GO_ON}")


def _said(code: int) -> int | str:
    with suppress(ValueError):  # of a signal without a name
        return code if code >= 0 else signal.Signals(-code).name
    return f"signal {-code}"
