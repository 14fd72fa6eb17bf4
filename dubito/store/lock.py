"""Locks between processes, which the operating system releases when a process ends, and a run's log.

Only one process at a time writes to a run folder, and only one at a time requests a given reply of a shared cache.
`run.log` has one event per line, as JSON. It is only for people to read: no run is resumed from it.
"""

import errno
import json
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from shutil import rmtree
from typing import IO, Any, Final

from dubito.errors import RunStopped, UsageError
from dubito.files import check_is_file

LOCK: Final = "lock"
_LOCK_ERRORS: Final = (BlockingIOError, PermissionError)  # errors raised if another process has the lock
_RETRY_SECONDS: Final = 0.05  # far longer than `is_locked` holds a lock


@contextmanager
def lock_folder(folder: Path) -> Iterator[bool]:
    """Lock a folder, creating it if it is missing. Raises UsageError if another process has locked it.

    Yields False if the file system has no locks. The empty lock file stays, since removing it could let two processes
    in.
    """
    with _lock_new_folder(folder, folder, "playing into", "--output", parents=True) as has_lock:
        yield has_lock


@contextmanager
def draft_folder(path: Path, option: str) -> Iterator[Path]:
    """Create a temporary folder next to `path`, in which to write the contents of `path`.

    The folder's name is always the same, so that files of a killed process are removed and two processes exclude each
    other. Raises UsageError with the advice to choose another `option`.
    """
    draft = path.with_name(f".{path.name}.part")
    with _lock_new_folder(draft, path, "writing", option, parents=False):
        try:
            for old in draft.iterdir():
                if old.name != LOCK:
                    (rmtree if old.is_dir() else Path.unlink)(old)
            yield draft
        finally:
            rmtree(draft, ignore_errors=True)


@contextmanager
def _lock_new_folder(folder: Path, shown: Path, activity: str, option: str, *, parents: bool) -> Iterator[bool]:
    """Create a folder and lock it.

    Raises UsageError if the folder is not writable or another process has locked it. Yields False if the file system
    does not support locks, as on some clusters and network drives.
    """
    try:
        folder.mkdir(parents=parents, exist_ok=True)
        file = (folder / LOCK).open("a")
    except OSError as error:
        raise UsageError(f"cannot write {shown}: {error.strerror}; choose another {option}") from None
    with file:
        has_lock = True
        try:
            _lock_with_retry(file)
        except _LOCK_ERRORS:
            raise UsageError(
                f"another process is {activity} {shown}: wait until it has finished, or choose another {option}"
            ) from None
        except OSError:
            has_lock = False
        yield has_lock
        with suppress(OSError):
            _unlock(file)


def _lock_with_retry(file: IO[str]) -> None:
    """Lock a file. Try twice, since another process may only have checked for a lock."""
    try:
        _lock(file)
    except _LOCK_ERRORS:
        time.sleep(_RETRY_SECONDS)
        _lock(file)


def is_locked(folder: Path) -> bool:
    """Return whether a process has locked the folder, or False if that cannot be determined."""
    try:
        check_is_file(folder / LOCK)
        file = (folder / LOCK).open("rb")
    except (OSError, UsageError):
        return False
    with file:
        try:
            _share(file)
        except _LOCK_ERRORS:
            return True
        except OSError:
            # The file system does not support locks.
            return False
        with suppress(OSError):
            _unlock(file)
    return False


class ByteLocks:
    """Locks on single bytes of a file.

    The bytes need not exist, and each lock is held by only one process at a time. The locks do not work between
    threads. A process must open the file only once, since closing it releases all of the process's locks.
    """

    def __init__(self, path: Path) -> None:
        """Open or create the file. Raises OSError if that fails or the file system does not support locks."""
        self._file = path.open("ab")
        try:
            if self.acquire(0):
                self.release(0)
        except OSError:
            self._file.close()
            raise

    def acquire(self, byte: int) -> bool:
        """Try to lock a byte. Return False if another process has locked it.

        Raises OSError if locks are unsupported.
        """
        try:
            _lock_byte(self._file, byte)
        except _LOCK_ERRORS:
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

    # Windows locks bytes at the file's position, which threads share.
    _position = Lock()

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


@dataclass(eq=False, slots=True)
class RunLog:
    """A run's log, shared by threads."""

    folder: Path
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, event: str, **facts: Any) -> None:
        """Append an event with its facts. Raises RunStopped if the event cannot be written."""
        path = self.folder / LOG
        line = json.dumps({"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "event": event, **facts})
        try:
            with self._lock, path.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
        except OSError as error:
            full = "; is the disk full?" if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
            raise RunStopped(f"cannot write {path}: {error.strerror}{full}") from None
