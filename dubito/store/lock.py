"""Locks of the operating system between processes, each of which ends with its process.

One process plays into a run folder at a time; one process asks for a reply of a shared cache at a time.

The log of a run, `run.log`: what happened when, an event a line, as JSON. It is only for reading: no run is
resumed from it.
"""

import errno
import json
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from shutil import rmtree
from typing import IO, Any, Final

from dubito.errors import RunStopped, UsageError
from dubito.files import check_is_file

LOCK: Final = "lock"
_HELD: Final = (BlockingIOError, PermissionError)  # raised where another process has the lock
_POLL_SECONDS: Final = 0.05  # seconds: a look at a lock takes far less


@contextmanager
def claimed(folder: Path) -> Iterator[bool]:
    """Within, the folder is ours; it is made if it is missing. Raises UsageError if another process has it.

    Yields False where the file system has no locks, so nobody can know whether another process has it.
    The lock file stays, empty: removing it could let two processes in.
    """
    with _locked(folder, folder, "playing into", "--output", parents=True) as is_locked:
        yield is_locked


@contextmanager
def drafting(path: Path, named: str) -> Iterator[Path]:
    """Within, a folder beside `path` for what will stand there; nothing of it is left.

    Its name is always the same: what a killed process left in it is cleared away, and no other process is let in.
    Raises UsageError that advises another of what is `named` so: another name, another --output.
    """
    draft = path.with_name(f".{path.name}.part")
    with _locked(draft, path, "writing", named, parents=False):
        try:
            for left in draft.iterdir():
                if left.name != LOCK:
                    (rmtree if left.is_dir() else Path.unlink)(left)
            yield draft
        finally:
            rmtree(draft, ignore_errors=True)


@contextmanager
def _locked(folder: Path, shown: Path, doing: str, other: str, *, parents: bool) -> Iterator[bool]:
    """Make a folder and hold its lock; raises UsageError: what cannot be written, or what another process is doing.

    Yields False where the file system has no locks, as some of clusters and networks do.
    """
    try:
        folder.mkdir(parents=parents, exist_ok=True)
        file = (folder / LOCK).open("a")
    except OSError as error:
        raise UsageError(f"cannot write {shown}: {error.strerror}; choose another {other}") from None
    with file:
        is_locked = True
        try:
            _lock_soon(file)
        except _HELD:
            raise UsageError(
                f"another process is {doing} {shown}: wait for its end, or choose another {other}"
            ) from None
        except OSError:
            is_locked = False
        yield is_locked
        with suppress(OSError):
            _unlock(file)


def _lock_soon(file: IO[str]) -> None:
    """Lock it, with a second attempt in case another process was only looking whether it is locked."""
    try:
        _lock(file)
    except _HELD:
        time.sleep(_POLL_SECONDS)
        _lock(file)


def is_claimed(folder: Path) -> bool:
    """Whether a process holds the folder now; False where that cannot be known."""
    try:
        check_is_file(folder / LOCK)
        file = (folder / LOCK).open("rb")
    except (OSError, UsageError):
        return False
    with file:
        try:
            _share(file)
        except _HELD:
            return True
        except OSError:  # no locks there
            return False
        with suppress(OSError):
            _unlock(file)
    return False


class ByteLocks:
    """Locks on single bytes of a file, wherever they lie: one process at a time holds each.

    They are between processes, not threads; and open the file once in a process only: closing it ends all its locks.
    """

    def __init__(self, path: Path) -> None:
        """Open or make the file; raises OSError where that fails, or where the file system knows no locks."""
        self._file = path.open("ab")
        try:
            if self.take(0):
                self.release(0)
        except OSError:
            self._file.close()
            raise

    def take(self, byte: int) -> bool:
        """Whether the byte is ours now; False if another process has it. Raises OSError where there are no locks."""
        try:
            _lock_byte(self._file, byte)
        except _HELD:
            return False
        return True

    def release(self, byte: int) -> None:
        with suppress(OSError):
            _unlock_byte(self._file, byte)

    def close(self) -> None:
        self._file.close()


if sys.platform == "win32":
    import msvcrt
    from threading import Lock

    _position = Lock()  # of a file, which is what is locked here

    def _lock(file: IO[str]) -> None:
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)

    def _share(file: IO[bytes]) -> None:
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)

    def _unlock(file: IO[Any]) -> None:
        msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)

    def _lock_byte(file: IO[bytes], byte: int) -> None:
        with _position:
            file.seek(byte)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)

    def _unlock_byte(file: IO[bytes], byte: int) -> None:
        with _position:
            file.seek(byte)
            msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _lock(file: IO[str]) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _share(file: IO[bytes]) -> None:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)

    def _unlock(file: IO[Any]) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)

    def _lock_byte(file: IO[bytes], byte: int) -> None:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)

    def _unlock_byte(file: IO[bytes], byte: int) -> None:
        fcntl.lockf(file, fcntl.LOCK_UN, 1, byte)


LOG: Final = "run.log"


class RunLog:
    """Appends events; any thread may."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / LOG
        self._lock = threading.Lock()

    def __call__(self, event: str, **facts: Any) -> None:
        """Write an event with its facts; raises RunStopped if that cannot be written."""
        line = json.dumps({"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "event": event, **facts})
        try:
            with self._lock, self._path.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
        except OSError as error:
            full = "; is the disk full?" if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
            raise RunStopped(f"cannot write {self._path}: {error.strerror}{full}") from None
