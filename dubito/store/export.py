"""A run as one file, to be replayed on another machine: a zip of manifest, run.db and counts. No code is in it."""

import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from dubito.errors import RunStopped, UsageError, one_line
from dubito.store.folder import DATABASE, MANIFEST, RESULTS
from dubito.store.run_db import RunDb

_PARTS: Final = (MANIFEST, DATABASE, RESULTS)
_DATE: Final = (2000, 1, 1, 0, 0, 0)  # the same run, the same bytes


def pack(folder: Path, file: Path) -> None:
    """Write the run in this folder into a file; raises UsageError if there is none, or the file is there already."""
    with RunDb.open(folder / DATABASE) as db:
        db.check()
    try:
        with TemporaryDirectory(prefix="dubito-") as scratch, zipfile.ZipFile(file, "x") as archive:
            copy = Path(scratch) / DATABASE
            with closing(sqlite3.connect(f"{(folder / DATABASE).resolve().as_uri()}?mode=ro", uri=True)) as db_file:
                db_file.execute("VACUUM INTO ?", (str(copy),))  # in one piece, whatever is still in its journal
            for name in _PARTS:
                part = copy if name == DATABASE else folder / name
                if part.exists():
                    archive.writestr(zipfile.ZipInfo(name, _DATE), part.read_bytes(), zipfile.ZIP_DEFLATED)
    except FileExistsError:
        raise UsageError(f"{file} is there already: choose another name") from None
    except (OSError, sqlite3.Error) as error:
        raise RunStopped(f"cannot write {file}: {one_line(str(error))}") from None


def is_export(file: Path) -> bool:
    """Whether the file looks like one that `pack` wrote."""
    return zipfile.is_zipfile(file)


def unpack(file: Path, folder: Path) -> None:
    """Write the parts of an exported run into a folder; raises UsageError if the file holds anything else."""
    try:
        with zipfile.ZipFile(file) as archive:
            names = archive.namelist()
            if not set(names) <= set(_PARTS) or len(names) > len(set(names)) or MANIFEST not in names:
                raise UsageError(f"{file} is no exported run: it should hold {', '.join(_PARTS)}")
            for name in names:
                (folder / name).write_bytes(archive.read(name))
    except (zipfile.BadZipFile, OSError, RuntimeError) as error:
        raise UsageError(f"{file} is damaged: {one_line(str(error))}") from None
