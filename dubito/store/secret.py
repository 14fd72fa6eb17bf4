"""The file with a run's secret seed, which is kept until the seed is revealed in the manifest.

The secret is written before the manifest with its SHA-256, and deleted after the manifest that reveals it. A process
that is killed in between leaves a run that can be continued.
"""

import os
from pathlib import Path

from dubito.errors import RunStopped, UsageError, one_line
from dubito.files import read_text
from dubito.store.folder import SEED_FILE, load_manifest, save_manifest

_KEY = "seed"  # of a revealed seed in the manifest


def is_revealed(folder: Path) -> bool:
    """Return whether the manifest contains the run's secret seed. Raises UsageError if it cannot be read."""
    return _KEY in load_manifest(folder)


def write_secret(folder: Path, seed: str) -> None:
    """Write the secret seed of a new run, readable only by this user. Raises RunStopped."""
    path = folder / SEED_FILE
    try:
        path.unlink(missing_ok=True)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
            file.write(f"{seed}\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise RunStopped(f"cannot write {one_line(str(path))}: {error.strerror}") from None


def read_secret(folder: Path) -> str:
    """Return the seed of a run that has not revealed it. Raises UsageError."""
    try:
        return read_text(folder / SEED_FILE).removesuffix("\n")
    except UsageError as error:
        # The seed may have been revealed since the caller read the manifest.
        if _KEY in (manifest := load_manifest(folder)):
            return str(manifest[_KEY])
        problem = error
    raise UsageError(
        f"the seed of this run is still secret: {problem}",
        hint="restore the file; without it, the run can be neither continued nor replayed",
    )


def reveal_seed(folder: Path, seed: str) -> None:
    """Add the seed to the manifest of a run that plays no more games. Raises RunStopped."""
    save_manifest(folder, {**load_manifest(folder), _KEY: seed})
    try:
        (folder / SEED_FILE).unlink(missing_ok=True)
    except OSError as error:
        raise RunStopped(f"cannot delete {one_line(str(folder / SEED_FILE))}: {error.strerror}") from None
