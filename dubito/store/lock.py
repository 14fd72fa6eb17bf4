"""One process plays into a run folder at a time: a lock of the operating system, which ends with its process."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final

from dubito.errors import UsageError

LOCK: Final = "lock"


@contextmanager
def claimed(folder: Path, flag: str = "--output") -> Iterator[None]:
    """The folder is ours within; it is made if it is missing. Raises UsageError if another process has it.

    `flag` says which folder it is, for the error. The file stays, empty: whoever removed it could let two processes in.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / LOCK).open("a")
    except OSError as error:
        raise UsageError(f"cannot write {folder}: {error.strerror}; choose another {flag}") from None
    with file:
        try:
            _lock(file)
        except OSError:
            raise UsageError(
                f"another process is playing into {folder}: wait for its end, or choose another {flag}"
            ) from None
        yield
        with suppress(OSError):
            _unlock(file)


if sys.platform == "win32":
    import msvcrt

    def _lock(file: IO[str]) -> None:
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)

    def _unlock(file: IO[str]) -> None:
        msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _lock(file: IO[str]) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _unlock(file: IO[str]) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)
