"""The process of a bot: started alone or by its keeper, lines to it and from it, its end with its children.

Nothing here waits, so that no bot can hold the referee: all pipes are non-blocking, and who looks at them (`table`)
has a deadline.
"""

import errno
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any, Final, Protocol, TypeVar

from dubito.errors import RunStopped
from dubito.sandbox import keeper

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
        if self._process.returncode is not None:
            return True
        return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def signal(self, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def shut(self) -> int | str:
        self.signal(signal.SIGKILL)
        status = _status(self._process.wait())
        if self.end >= 0:
            os.close(self.end)
        return status


def alone(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], bound: Callable[[], None] | None = None
) -> Start:
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
        with suppress(OSError):
            self._socket.send(b"signal %d" % number)

    def end_all(self) -> int | str:
        """Kill all that the bot started, wherever it went; how the bot itself ended."""
        with suppress(OSError):
            self._socket.send(b"end")
        said = self._answer()
        self.gone = not said
        return _status(int(said)) if said else "SIGKILL"  # a keeper that is gone took all with it

    def close(self) -> None:
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
        looks = select.poll()
        looks.register(self.end, select.POLLIN)
        return bool(looks.poll(0))

    def signal(self, number: int) -> None:
        self._keeper.signal(number)

    def shut(self) -> int | str:
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


def _status(code: int) -> int | str:
    with suppress(ValueError):  # of a signal without a name
        return code if code >= 0 else signal.Signals(-code).name
    return f"signal {-code}"


CAP: Final = 4096  # bytes of a line; the rest of a longer one is thrown away
STDERR: Final = 64 * 1024  # bytes that are kept, the last
_PIPE: Final = 1 << 20  # bytes that wait for a bot in its pipe, where the system lets us
_READ: Final = 1 << 16
_F_SETPIPE_SZ: Final = 1031
_LAST_READS: Final = 64  # of standard error after the end
_UNHEARD: Final = 4096  # lines beyond which what is written while nobody listens is thrown away


class Channel:
    """A running bot. `lines` are what it said and nobody has heard yet; `closed` says that nothing will follow."""

    def __init__(self, start: Start) -> None:
        """Start it. If that fails it is as if it had ended at once, with the reason as its standard error."""
        self.started = self.flushed = monotonic()  # `flushed`: when all that was sent was in the pipe
        self.lines: deque[bytes] = deque()
        self.closed = False
        self.status: int | str | None = None  # how it ended: an exit code, or a signal's name
        self.pending = b""  # of what was sent: not in the pipe yet
        self._partial, self._skipping, self._deaf = b"", False, False
        self._errors = b""
        self._process: Process | None = None
        self.to = self.out = self.err = self.end = -1  # its pipes, and what is readable once it has ended
        try:
            self._start(start)
        except OSError as error:
            self.closed, self.status = True, "not started"
            self._errors = f"cannot start {error.filename}: {error.strerror}".encode()

    def _start(self, start: Start) -> None:
        pipes = [os.pipe() for _ in range(3)]
        (its_in, to), (out, its_out), (err, its_err) = pipes
        try:
            self._process = start((its_in, its_out, its_err))
        finally:
            for end in (its_in, its_out, its_err) if self._process else (end for pipe in pipes for end in pipe):
                os.close(end)
        self.to, self.out, self.err, self.end = to, out, err, self._process.end  # numbers of no one else's files
        for end in (self.to, self.out, self.err):
            os.set_blocking(end, False)
        with suppress(ImportError, OSError):
            from fcntl import fcntl

            fcntl(self.to, _F_SETPIPE_SZ, _PIPE)

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    @property
    def errors(self) -> str:
        return self._errors.decode("utf-8", "backslashreplace")

    def forget_errors(self) -> None:
        self._errors = b""

    def send(self, lines: bytes) -> None:
        self.hold(lines)
        if self.pending:
            self.write()

    def hold(self, lines: bytes) -> None:
        if self._process is not None and not self._deaf:
            self.pending += lines

    def write(self) -> None:
        """As much as the pipe takes; a bot that closed its input is sent nothing more."""
        try:
            written = os.write(self.to, self.pending)
        except BlockingIOError:
            return
        except OSError:
            self._deaf, written = True, len(self.pending)
        self.pending = self.pending[written:]
        if not self.pending:
            self.flushed = monotonic()

    def read(self) -> bool:
        """Take what it wrote; False at its end."""
        try:
            data = os.read(self.out, _READ)
        except BlockingIOError:
            return True
        if not data:
            self.closed = True
            return False
        if self._skipping:
            _, newline, data = data.partition(b"\n")
            if not newline:
                return True
            self._skipping = False
        if len(self.lines) > _UNHEARD:
            self._partial, self._skipping = b"", not data.endswith(b"\n")
            return True
        *lines, partial = (self._partial + data).split(b"\n")
        self.lines += [line[:CAP] for line in lines]
        if len(partial) >= CAP:
            self.lines.append(partial[:CAP])
            partial, self._skipping = b"", True
        self._partial = partial
        return True

    def read_last(self) -> bool:
        """The process has ended: take what it left in its pipe, which a child of its may hold open. Always False."""
        for _ in range(_LAST_READS):
            before = len(self.lines), self._partial
            if self.closed or not self.read() or before == (len(self.lines), self._partial):
                break
        self.closed = True
        return False

    def read_errors(self) -> bool:
        """Take what it wrote to standard error; False at its end."""
        try:
            data = os.read(self.err, _READ)
        except BlockingIOError:
            return True
        self._errors = (self._errors + data)[-STDERR:]
        return bool(data)

    def ended(self) -> bool:
        return self._process is None or self.status is not None or self._process.ended()

    def signal(self, number: int) -> None:
        if self._process is not None and self.status is None:
            self._process.signal(number)

    def shut(self) -> None:
        """Kill it with all that it started, take the rest of its standard error, and close the pipes."""
        self.closed = True
        if self._process is None or self.status is not None:
            return
        self.status = self._process.shut()
        for _ in range(_LAST_READS):
            before = self._errors
            if not self.read_errors() or self._errors == before:
                break
        for end in (self.to, self.out, self.err):
            os.close(end)
