"""A bot's process, started directly or by its keeper.

No call here blocks, so no bot can stall the referee. All pipes are non-blocking, and the caller that polls them
(`table`) has a deadline.
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
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any, Final, Protocol, TypeVar

from dubito.errors import RunStopped
from dubito.sandbox import keeper

Pipes = tuple[int, int, int]  # the bot's standard input, output and error
Start = Callable[[Pipes], "Process"]

_ANSWER_SECONDS: Final = 60.0  # seconds for a keeper to answer
# the machine is out of resources, which is not the bot's fault
_OUT_OF_RESOURCES: Final = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)
_MAX_TRIES: Final = 50
_PAUSE_SECONDS: Final = 0.1  # seconds between two attempts
_CONTINUE_HINT: Final = "run the same command again to continue"
_Started = TypeVar("_Started")


class Process(Protocol):
    """A started bot."""

    end: int  # file descriptor that is readable once the process has ended; -1 if there is none
    pid: int | None  # None if the pid is unknown

    def has_ended(self) -> bool:
        """Return whether the process has ended. Its children may still be running."""

    def signal(self, number: int) -> None:
        """Send a signal to the bot's process group."""

    def shut(self) -> int | str:
        """Kill the process and its group. Return how it ended: an exit code or a signal's name."""


class DirectProcess:
    """A bot that is a direct child with its own session."""

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        pipes: Pipes,
        bound: Callable[[], None] | None = None,
    ) -> None:
        """Start the process. Raises OSError if the bot is to blame, and RunStopped if the machine is."""
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

        self._process = _start_with_retries(start)
        self.pid: int | None = self._process.pid
        self.end = os.pidfd_open(self._process.pid) if hasattr(os, "pidfd_open") else -1

    def has_ended(self) -> bool:
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


class Keeper:
    """Isolated namespaces for a bot, reused for one match after another."""

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
        self.gone = self._used = False  # a bot can break its keeper, but this harms only the bot
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.settimeout(_ANSWER_SECONDS)
        with theirs:
            self._process = _start_with_retries(
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
        self.able = self._answer().decode().split()  # protections that work; may be empty

    def _answer(self) -> bytes:
        with suppress(OSError):
            return self._socket.recv(200)
        return b""

    def start(self, pipes: Pipes, seed: int, core: int | None) -> "KeeperBot":
        return _start_with_retries(lambda: self._start(pipes, b"start %d %d" % (seed, -1 if core is None else core)))

    def _start(self, pipes: Pipes, message: bytes) -> "KeeperBot":
        try:
            socket.send_fds(self._socket, [message], pipes)
            answer, files, _, _ = socket.recv_fds(self._socket, 200, 1)
        except OSError:
            answer, files = b"", []
        if files:
            os.set_inheritable(files[0], False)
            self._used = True
            return KeeperBot(self, files[0])
        if not answer:
            self.gone = True
            raise OSError(errno.EPIPE, "its keeper process has exited", self._command[0])
        number = int(answer.split()[1])
        # An earlier bot may have lowered its keeper's limits; a new keeper has fresh ones.
        if number in _OUT_OF_RESOURCES and self._used:
            self.close()
            self._open()
        raise OSError(number, os.strerror(number), self._command[0])

    def signal(self, number: int) -> None:
        with suppress(OSError):
            self._socket.send(b"signal %d" % number)

    def end_all(self) -> int | str:
        """Kill everything the bot started and return how the bot ended."""
        with suppress(OSError):
            self._socket.send(b"end")
        answer = self._answer()
        self.gone = not answer
        return _status(int(answer)) if answer else "SIGKILL"  # when a keeper ends, all of its processes end too

    def close(self) -> None:
        self._socket.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_ANSWER_SECONDS)
        self._process.kill()
        self._process.wait()


@dataclass(eq=False, slots=True)
class KeeperBot:
    """A bot running in its keeper's namespaces."""

    keeper: Keeper
    end: int  # file descriptor that is readable once the process has ended
    pid: int | None = None  # the pid is unknown outside its namespace

    def has_ended(self) -> bool:
        looks = select.poll()
        looks.register(self.end, select.POLLIN)
        return bool(looks.poll(0))

    def signal(self, number: int) -> None:
        self.keeper.signal(number)

    def shut(self) -> int | str:
        os.close(self.end)
        return self.keeper.end_all()


def _start_with_retries(start: Callable[[], _Started]) -> _Started:
    """Start a process, retrying while the machine is out of resources. Raises RunStopped if that does not help."""
    for _ in range(_MAX_TRIES):
        try:
            return start()
        except OSError as error:
            if error.errno not in _OUT_OF_RESOURCES:
                raise
            why = error.strerror
            time.sleep(_PAUSE_SECONDS)
        except subprocess.SubprocessError as error:
            raise RunStopped(f"cannot limit a program before it starts: {error}") from None
    raise RunStopped(f"cannot start a process: {why}; {_CONTINUE_HINT}")


def _status(code: int) -> int | str:
    with suppress(ValueError):  # a signal without a name
        return code if code >= 0 else signal.Signals(-code).name
    return f"signal {-code}"


MAX_LINE_BYTES: Final = 4096  # maximum length of a line in bytes; the rest is discarded
MAX_STDERR_BYTES: Final = 64 * 1024  # number of last bytes kept
_PIPE_BYTES: Final = 1 << 20  # requested capacity in bytes of the pipe to a bot
_READ_BYTES: Final = 1 << 16
_F_SETPIPE_SZ: Final = 1031
_LAST_READS: Final = 64  # number of reads after the end
# Number of unread lines after which further output is discarded.
_MAX_UNREAD_LINES: Final = 4096
_POLL_SECONDS: Final = 0.005  # seconds between checks for the end


class Channel:
    """A running bot. `lines` contains its unread output. `closed` means that there will be no more output."""

    def __init__(self, start: Start) -> None:
        """Start the bot. A failure looks like a bot that exited at once with the reason on stderr."""
        self.started = self.flushed = monotonic()  # `flushed` is when the pipe last accepted everything that was sent
        self.lines: deque[bytes] = deque()
        self.closed = False
        self.status: int | str | None = None  # how it ended: an exit code or a signal's name
        self.pending = b""  # data that is sent but not in the pipe yet
        self._partial, self._skipping, self._input_closed = b"", False, False
        self._errors = b""
        self._process: Process | None = None
        self.to = self.out = self.err = self.end = -1  # the bot's pipes, and the descriptor that shows its end
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
        # these ends of the pipes do not belong to the bot
        self.to, self.out, self.err, self.end = to, out, err, self._process.end
        for end in (self.to, self.out, self.err):
            os.set_blocking(end, False)
        with suppress(ImportError, OSError):
            from fcntl import fcntl

            fcntl(self.to, _F_SETPIPE_SZ, _PIPE_BYTES)

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
        if self._process is not None and not self._input_closed:
            self.pending += lines

    def write(self) -> None:
        """Write as much as the pipe accepts. If the bot has closed its input, discard everything."""
        try:
            written = os.write(self.to, self.pending)
        except BlockingIOError:
            return
        except OSError:
            self._input_closed, written = True, len(self.pending)
        self.pending = self.pending[written:]
        if not self.pending:
            self.flushed = monotonic()

    def read(self) -> bool:
        """Read the available output. Return False at the end of the stream."""
        try:
            data = os.read(self.out, _READ_BYTES)
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
        if len(self.lines) > _MAX_UNREAD_LINES:
            self._partial, self._skipping = b"", not data.endswith(b"\n")
            return True
        *lines, partial = (self._partial + data).split(b"\n")
        self.lines += [line[:MAX_LINE_BYTES] for line in lines]
        if len(partial) >= MAX_LINE_BYTES:
            self.lines.append(partial[:MAX_LINE_BYTES])
            partial, self._skipping = b"", True
        self._partial = partial
        return True

    def read_last(self) -> bool:
        """Read the output left in the pipe after the process ended. Always returns False.

        A child of the bot may keep the pipe open.
        """
        for _ in range(_LAST_READS):
            before = len(self.lines), self._partial
            if self.closed or not self.read() or before == (len(self.lines), self._partial):
                break
        self.closed = True
        return False

    def read_errors(self) -> bool:
        """Read the available standard error. Return False at the end of the stream."""
        try:
            data = os.read(self.err, _READ_BYTES)
        except BlockingIOError:
            return True
        self._errors = (self._errors + data)[-MAX_STDERR_BYTES:]
        return bool(data)

    def has_ended(self) -> bool:
        return self._process is None or self.status is not None or self._process.has_ended()

    def wait_for_end(self, seconds: float) -> bool:
        """Wait for the bot to end. Return whether it has ended."""
        until = monotonic() + seconds
        while not self.has_ended() and monotonic() < until:
            time.sleep(_POLL_SECONDS)
        return self.has_ended()

    def signal(self, number: int) -> None:
        if self._process is not None and self.status is None:
            self._process.signal(number)

    def shut(self) -> None:
        """Kill the bot and everything it started, read the rest of its stderr, and close the pipes."""
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


def wait_for_line(channel: Channel, seconds: float) -> bytes | None:
    """Return the next line from a bot, or None if the bot ends or prints nothing in this time."""
    until = monotonic() + seconds
    ends = {channel.out: select.POLLIN, channel.err: select.POLLIN, channel.end: select.POLLIN}
    while not channel.lines and not channel.closed and (remaining := until - monotonic()) > 0:
        looks = select.poll()
        for end, event in ends.items():
            if end >= 0:
                looks.register(end, event)
        if channel.pending:
            looks.register(channel.to, select.POLLOUT)
        for end, _ in looks.poll(remaining * 1000):
            if end == channel.to:
                channel.write()
            elif end == channel.out:
                channel.read()
            elif end == channel.err:
                if not channel.read_errors():
                    del ends[end]
            else:
                channel.read_last()
    return channel.lines.popleft() if channel.lines else None
