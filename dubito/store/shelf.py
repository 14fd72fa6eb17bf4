"""Where runs lie: the folders below a folder that hold one, the latest, and the one that was meant."""

from pathlib import Path
from typing import Final

from dubito.errors import UsageError, nearest_first, one_line
from dubito.store.folder import DATABASE, MANIFEST

RUNS: Final = "runs"  # in the working directory: where runs are written if nothing else is said
_NAMED: Final = 3  # of many that could have been meant


def run_folders(root: Path) -> list[Path]:
    """The folders with a run's manifest in it, or one folder further down, the last written first."""
    found = {file.parent for depth in ("*", "*/*") for file in root.glob(f"{depth}/{MANIFEST}")}
    found -= {folder for folder in found if folder.parent in found}  # the models of a policy
    return sorted(found, key=lambda folder: (-last_written(folder), folder))


def last_written(folder: Path) -> float:
    """When anything was last written of it, in seconds since the epoch."""
    files = [file for name in (DATABASE, f"{DATABASE}-wal", MANIFEST) if (file := folder / name).exists()]
    return max((file.stat().st_mtime for file in files if file.stat().st_size), default=0.0)  # reading makes empty ones


def latest(root: Path) -> Path:
    """The run that was last written to; raises UsageError if there is none."""
    folders = [folder for folder in run_folders(root) if (folder / DATABASE).exists()]
    if not folders:
        raise UsageError(
            f"there is no run in {one_line(str(root))} yet: `dubito demo` or `dubito run CONFIG` makes one"
        )
    return folders[0]


def missing(path: Path, root: Path) -> UsageError:
    """What to say where there is nothing at that path: which runs it could mean."""
    known = {str(folder): folder for folder in run_folders(root)}
    near = nearest_first(str(path), known)[:_NAMED]
    hint = f"did you mean {' or '.join(map(one_line, near))}?" if near else f"there is no run in {root} either"
    return UsageError(f"there is no {one_line(str(path))}: {hint}")
