"""A run as one file, to be replayed on another machine: a zip of manifest, run.db and counts. No code is in it."""

import os
import sqlite3
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryDirectory
from typing import Final

from dubito.errors import RunStopped, UsageError, one_line
from dubito.store.folder import DATABASE, MANIFEST, RESULTS
from dubito.store.lock import drafting
from dubito.store.run_db import RunDb, reading
from dubito.user_files import check_is_file

_PARTS: Final = (MANIFEST, DATABASE, RESULTS)
_DATE: Final = (2000, 1, 1, 0, 0, 0)  # the same run, the same bytes
_AT_ONCE: Final = 1 << 20  # bytes that are unpacked at once
_RATIO: Final = 50  # how many times its size an export may unpack to: runs have 2 to 10, a bomb 1,000
_SPARE: Final = 16 << 20  # bytes that any may take besides


def pack(folder: Path, file: Path, first_game: int = 0) -> None:
    """Write the run in this folder, which begins with this game, into a file.

    Raises UsageError if there is none, or the file cannot be made.
    Raises RunStopped where it cannot be written to its end; then no part of it is left.
    """
    with RunDb.open(folder / DATABASE) as db:
        db.check(first_game)
    shown = one_line(str(file))
    if os.path.lexists(file):
        raise UsageError(f"{shown} is there already: choose another name")
    try:
        with drafting(file, "name") as draft:
            _fill(draft / "zip", draft / DATABASE, folder)
            if os.path.lexists(file):
                raise UsageError(f"{shown} is there already: choose another name")
            (draft / "zip").replace(file)
    except (OSError, sqlite3.Error) as error:
        raise RunStopped(f"cannot write {shown}: {one_line(str(error))}") from None


def _fill(file: Path, copy: Path, folder: Path) -> None:
    with closing(reading(folder / DATABASE)) as db_file:
        db_file.execute("VACUUM INTO ?", (str(copy),))  # in one piece, whatever is still in its journal
    with zipfile.ZipFile(file, "w") as archive:
        for name in _PARTS:
            path = copy if name == DATABASE else folder / name
            if path.exists():
                part = zipfile.ZipInfo(name, _DATE)
                part.compress_type, part.file_size = zipfile.ZIP_DEFLATED, path.stat().st_size
                with path.open("rb") as source, archive.open(part, "w") as packed:
                    copyfileobj(source, packed, _AT_ONCE)


def is_export(file: Path) -> bool:
    """Whether the file looks like one that `pack` wrote; raises UsageError where it is no file."""
    check_is_file(file)
    return zipfile.is_zipfile(file)


@contextmanager
def unpacked(file: Path) -> Iterator[Path]:
    """An exported run as a folder, for a while; raises UsageError if the file holds anything else.

    What is wrong with the folder is said of the file.
    """
    with TemporaryDirectory(prefix="dubito-") as folder:
        _unpack(file, Path(folder))
        try:
            yield Path(folder)
        except (UsageError, RunStopped) as error:
            raise type(error)(str(error).replace(folder, str(file))) from None


def _unpack(file: Path, folder: Path) -> None:
    """Write its parts into a folder; what they take is counted as they are written, whatever the file says of it."""
    shown, left = one_line(str(file)), _SPARE + _RATIO * file.stat().st_size
    try:
        with zipfile.ZipFile(file) as archive:
            parts = archive.infolist()
            names = [part.filename for part in parts]
            if not set(names) <= set(_PARTS) or len(names) > len(set(names)) or MANIFEST not in names:
                raise UsageError(f"{shown} is not an exported run: it should hold {', '.join(_PARTS)}")
            for part in parts:
                if part.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    raise UsageError(f"{shown} is not an exported run: its {part.filename} is packed in another way")
                left = _write_part(archive, part, folder / part.filename, left)
                if left < 0:
                    raise UsageError(
                        f"{shown} holds more than {_RATIO} times its size, which no exported run does: if you trust "
                        "it, unpack it yourself and give the folder"
                    )
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError) as error:
        raise UsageError(f"{shown} is damaged: {one_line(str(error))}") from None
    except OSError as error:
        raise UsageError(f"cannot unpack {shown} into {folder.parent}: {error.strerror or error}") from None


def _write_part(archive: zipfile.ZipFile, part: zipfile.ZipInfo, target: Path, left: int) -> int:
    """Write it as long as it takes no more bytes than are left; returns how many are left then."""
    with archive.open(part) as packed, target.open("xb") as file:
        while left >= 0 and (data := packed.read(_AT_ONCE)):
            left -= len(data)
            file.write(data)
    return left
