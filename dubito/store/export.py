"""A run as one file, to be replayed on another machine: a zip of manifest, run.db and counts. No code is in it."""

import sqlite3
import zipfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from dubito.errors import RunStopped, UsageError, one_line
from dubito.store.folder import DATABASE, MANIFEST, RESULTS
from dubito.store.run_db import RunDb, reading

_PARTS: Final = (MANIFEST, DATABASE, RESULTS)
_DATE: Final = (2000, 1, 1, 0, 0, 0)  # the same run, the same bytes


def pack(folder: Path, file: Path, first_game: int = 0) -> None:
    """Write the run in this folder, which begins with this game, into a file.

    Raises UsageError if there is none, or the file cannot be made.
    Raises RunStopped where it cannot be written to its end; then no part of it is left.
    """
    with RunDb.open(folder / DATABASE) as db:
        db.check(first_game)
    try:
        archive = zipfile.ZipFile(file, "x")
    except FileExistsError:
        raise UsageError(f"{file} is there already: choose another name") from None
    except OSError as error:
        raise UsageError(f"cannot write {file}: {error.strerror}; choose another name") from None
    try:
        with archive:
            _fill(archive, folder)
    except BaseException as error:
        with suppress(OSError):
            file.unlink()
        if isinstance(error, OSError | sqlite3.Error):
            raise RunStopped(f"cannot write {file}: {one_line(str(error))}") from None
        raise


def _fill(archive: zipfile.ZipFile, folder: Path) -> None:
    with TemporaryDirectory(prefix="dubito-") as scratch:
        copy = Path(scratch) / DATABASE
        with closing(reading(folder / DATABASE)) as db_file:
            db_file.execute("VACUUM INTO ?", (str(copy),))  # in one piece, whatever is still in its journal
        for name in _PARTS:
            part = copy if name == DATABASE else folder / name
            if part.exists():
                archive.writestr(zipfile.ZipInfo(name, _DATE), part.read_bytes(), zipfile.ZIP_DEFLATED)


def is_export(file: Path) -> bool:
    """Whether the file looks like one that `pack` wrote."""
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
        except UsageError as error:
            raise UsageError(str(error).replace(folder, str(file))) from None


def _unpack(file: Path, folder: Path) -> None:
    try:
        with zipfile.ZipFile(file) as archive:
            names = archive.namelist()
            if not set(names) <= set(_PARTS) or len(names) > len(set(names)) or MANIFEST not in names:
                raise UsageError(f"{file} is not an exported run: it should hold {', '.join(_PARTS)}")
            for name in names:
                (folder / name).write_bytes(archive.read(name))
    except (zipfile.BadZipFile, OSError, RuntimeError) as error:
        raise UsageError(f"{file} is damaged: {one_line(str(error))}") from None
