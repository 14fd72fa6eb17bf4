"""Worker processes that start from this module, whatever program started the run.

The processes of `multiprocessing` import the caller's main module again. A script without a guard for `__main__` would
play its own run in each of them, and pay for its calls again.
"""

import json
import os
import pickle
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from queue import SimpleQueue
from typing import IO, Any, Final, TypeVar

from dubito.errors import UsageError, describe_signal, one_line

_ENTRY: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv.pop()); from dubito.experiment import processes; "
    "processes.serve_parent()"
)
_LENGTH: Final = struct.Struct("<Q")  # length of a message
_STOP: Final = b""  # a message without content
_MAX_QUOTED: Final = 300  # maximum number of characters of standard error in a message
_READ_SECONDS: Final = 5.0  # seconds to wait for the rest of a dead worker's standard error

is_stopping: Final = threading.Event()  # in a worker process: whether the run stops
T = TypeVar("T")


class WorkerDied(BrokenExecutor):
    """Raised when a worker process ended during a call. The message describes how."""


def can_start_processes() -> bool:
    """Return whether this Python can start another one. A program frozen into one file cannot."""
    return bool(sys.executable) and not getattr(sys, "frozen", False)


def check_can_start() -> None:
    """Raise UsageError if this Python cannot start another one."""
    if not can_start_processes():
        raise UsageError(
            "this program cannot start worker processes, since its Python is frozen into the program",
            hint="set `workers: 1`",
        )


class WorkerProcess:
    """A process that runs one call at a time. Functions travel by name, so they must be in an importable module."""

    def __init__(self) -> None:
        """Start the process. Raises UsageError if this Python cannot start another one."""
        check_can_start()
        path = json.dumps([folder for folder in sys.path if isinstance(folder, str)])
        self._process = process = subprocess.Popen(  # noqa: S603
            (sys.executable, "-P", "-c", _ENTRY, path),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._calls, self._results = process.stdin, process.stdout
        self._last_error, self._sending = "", threading.Lock()
        self._errors = threading.Thread(target=self._forward_errors, args=(process.stderr,), daemon=True)
        self._errors.start()

    def _forward_errors(self, errors: IO[bytes]) -> None:
        """Print what the worker's bots print, and keep the last line."""
        with errors:
            for line in errors:
                text = line.decode("utf-8", "backslashreplace")
                self._last_error = text.strip() or self._last_error
                with suppress(OSError, ValueError, AttributeError):  # standard error can be closed, or None
                    sys.stderr.write(text)

    def call(self, function: Callable[..., T], *args: Any) -> T:
        """Run a function in the process. Raises what it raises, or WorkerDied."""
        self._send(pickle.dumps((function, args)))
        content = _receive(self._results)
        if content is None:
            self.close()
            code = self._process.returncode
            how = f"was ended by {describe_signal(-code)}" if code < 0 else f"ended with exit code {code}"
            last = f"; the last line that it printed is: {one_line(self._last_error, _MAX_QUOTED)}"
            raise WorkerDied(f"a worker process {how}{last if self._last_error else ''}")
        result, error = pickle.loads(content)  # noqa: S301, from our own process
        if error is not None:
            raise error
        return result  # type: ignore[no-any-return]

    def stop(self) -> None:
        """Tell the running call to stop soon."""
        self._send(_STOP)

    def _send(self, content: bytes) -> None:
        # A process that has ended is noticed when its result is read.
        with self._sending, suppress(OSError, ValueError):
            self._calls.write(_LENGTH.pack(len(content)) + content)
            self._calls.flush()

    def kill(self) -> None:
        self._process.kill()

    def close(self) -> None:
        """End the process. A running call is not finished."""
        with self._sending, suppress(OSError):
            self._calls.close()
        self._process.wait()
        self._results.close()
        self._errors.join(_READ_SECONDS)


class WorkerProcesses(Executor):
    """An executor with processes of our own."""

    def __init__(self, count: int) -> None:
        """Start this many processes. Raises UsageError like `WorkerProcess`."""
        self._workers: Final = [WorkerProcess() for _ in range(count)]
        self._idle = SimpleQueue[WorkerProcess]()
        for worker in self._workers:
            self._idle.put(worker)
        self._threads = ThreadPoolExecutor(count)
        self._death: WorkerDied | None = None

    def submit(self, function: Callable[..., T], /, *args: Any, **kwargs: Any) -> "Future[T]":
        return self._threads.submit(self._call, function, *args, **kwargs)

    def _call(self, function: Callable[..., T], *args: Any) -> T:
        worker = self._idle.get()
        try:
            return worker.call(function, *args)
        except WorkerDied as error:
            self._death = self._death or error
            self.kill()
            # Others end because of the first.
            raise self._death from None
        finally:
            self._idle.put(worker)

    def kill(self) -> None:
        for worker in self._workers:
            worker.kill()

    def stop(self) -> None:
        """Tell all running calls to stop soon."""
        for worker in self._workers:
            worker.stop()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._threads.shutdown(wait, cancel_futures=cancel_futures)
        for worker in self._workers:
            worker.close()


def _receive(stream: IO[bytes]) -> bytes | None:
    """Return the next message, or None at the end of the stream."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    content: bytes = stream.read(length)
    return content if len(content) == length else None


def serve_parent() -> None:
    """Run the calls of the process that started this one, until that process is gone."""
    calls, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # Bots can read from standard input and print.
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    sys.stdout = sys.stderr  # which writes each line at once
    queue = SimpleQueue[bytes | None]()
    is_busy = threading.Event()
    threading.Thread(target=_receive_calls, args=(calls, queue, is_busy), daemon=True).start()
    while (content := queue.get()) is not None:
        reply = _run(content)
        with suppress(OSError):
            replies.write(_LENGTH.pack(len(reply)) + reply)
            replies.flush()
        is_busy.clear()


def _receive_calls(calls: IO[bytes], queue: "SimpleQueue[bytes | None]", is_busy: threading.Event) -> None:
    while (content := _receive(calls)) is not None:
        if content == _STOP:
            is_stopping.set()
        else:
            is_busy.set()
            queue.put(content)
    if is_busy.is_set():  # the result has no reader
        os._exit(1)
    queue.put(None)


def _run(content: bytes) -> bytes:
    try:
        function, args = pickle.loads(content)  # noqa: S301, from our own process
        return pickle.dumps((function(*args), None))
    except BaseException as error:  # a bot can raise anything
        with suppress(Exception):
            pickled = pickle.dumps((None, error))
            pickle.loads(pickled)  # noqa: S301, some errors can only be pickled
            return pickled
        return pickle.dumps((None, RuntimeError(one_line(f"{type(error).__name__}: {error}", _MAX_QUOTED))))
