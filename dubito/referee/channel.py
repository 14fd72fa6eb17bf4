"""A bot's process: lines to it and from it, its standard error, and its end.

Nothing here waits, so that no bot can hold the referee: all pipes are non-blocking, and who looks at them
(`match_table`) has a deadline. How the process is started and what is killed with it is `process`'s matter.
"""

import os
from collections import deque
from contextlib import suppress
from time import monotonic
from typing import Final

from dubito.referee.process import Process, Start

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
        """Of the process, which is its group's number too; None if it has none here."""
        return None if self._process is None else self._process.pid

    @property
    def errors(self) -> str:
        """The last of its standard error."""
        return self._errors.decode("utf-8", "backslashreplace")

    def forget_errors(self) -> None:
        """What it writes to standard error from now on belongs to the next match."""
        self._errors = b""

    def send(self, lines: bytes) -> None:
        """Write, or keep what does not fit for `write`."""
        self.hold(lines)
        if self.pending:
            self.write()

    def hold(self, lines: bytes) -> None:
        """Keep lines until the next ones are sent: one write costs as much as another."""
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
        """Whether the process has ended."""
        return self._process is None or self.status is not None or self._process.ended()

    def signal(self, number: int) -> None:
        """Signal its group."""
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
