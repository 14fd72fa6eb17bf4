"""The folder of a run: `manifest.yaml`, `run.db`, `all_games.yaml`. Nothing of another run is overwritten."""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import yaml

from dubito.errors import RunStopped, UsageError, one_line
from dubito.store.lock import LOCK
from dubito.store.run_db import RunDb

MANIFEST: Final = "manifest.yaml"
RESULTS: Final = "all_games.yaml"
DATABASE: Final = "run.db"


def to_yaml(content: Mapping[Any, Any]) -> str:
    """The mapping as YAML, in its own order, the same bytes on every machine."""
    return yaml.dump(content, Dumper=yaml.SafeDumper, sort_keys=False, allow_unicode=True, width=4096)


def write_whole(path: Path, text: str) -> None:
    """Write a file in one piece: it is there complete, or not at all. Raises RunStopped."""
    draft = path.with_name(path.name + ".part")
    try:
        with draft.open("w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        with suppress(OSError):
            draft.unlink()
        raise RunStopped(f"cannot write {path}: {error.strerror}") from None


def check(folder: Path, manifest: Mapping[str, Any]) -> int | None:
    """How many games of this very run the folder keeps; None if it is free. Reads, and changes nothing.

    Raises UsageError if it holds anything else: another run, a longer one, a damaged one.
    """
    try:
        if not folder.exists() or (folder.is_dir() and not {path.name for path in folder.iterdir()} - {LOCK}):
            return None
        known = (folder / MANIFEST).exists()
    except OSError as error:
        raise UsageError(f"cannot read {folder}: {one_line(str(error))}; choose another --output") from None
    if not known:
        raise UsageError(f"{folder} is there and is no run folder: choose another --output")
    there = read_manifest(folder)
    _compare(folder, there, manifest)
    if not (folder / DATABASE).exists() or (folder / DATABASE).stat().st_size == 0:
        if (folder / RESULTS).exists():
            raise UsageError(f"{folder} has lost its {DATABASE}: delete the folder or choose another --output")
        return 0  # it was cut off before its first write
    with RunDb.open(folder / DATABASE) as db:
        db.check()
        kept = db.games()
    if kept > manifest["games"]:
        raise UsageError(
            f"{folder} holds {kept:,} games of this run already: ask for at least as many, or choose another --output"
        )
    return kept


def begin(folder: Path, manifest: Mapping[str, Any]) -> RunDb:
    """The run of this folder, new or gone on with, to play into; `check` has found nothing against it.

    Raises UsageError if it cannot be written; of a new run no part is left then.
    """
    new = not (folder / MANIFEST).exists()
    try:
        if new or read_manifest(folder).get("games") != manifest["games"]:
            write_whole(folder / MANIFEST, to_yaml(manifest))
        return RunDb.create(folder / DATABASE)
    except (OSError, RunStopped, UsageError) as error:
        if new:
            for part in (MANIFEST, DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm"):
                with suppress(OSError):
                    (folder / part).unlink()
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"cannot write {folder}: {reason}; choose another --output") from None


def read_manifest(folder: Path) -> dict[str, Any]:
    """What the run in this folder is; raises UsageError if it holds none."""
    try:
        text = (folder / MANIFEST).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UsageError(f"{folder} is no run folder: it has no {MANIFEST}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {folder / MANIFEST}: {one_line(str(error))}") from None
    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError:
        content = None
    if not isinstance(content, dict) or not isinstance(content.get("identity"), dict):
        raise UsageError(f"{folder / MANIFEST} is damaged: delete the folder or choose another --output")
    return content


def _compare(folder: Path, there: Mapping[str, Any], ours: Mapping[str, Any]) -> None:
    """Refuse a run that differs in anything that can change a result, and say in what."""
    for key, value in ours["identity"].items():
        kept = there["identity"].get(key)
        if kept != value:
            raise UsageError(
                f"{folder} belongs to another run: {key} is {_brief(kept)} there and {_brief(value)} here; "
                "choose another --output"
            )


def _brief(value: Any) -> str:
    return one_line(str(value), 120)
