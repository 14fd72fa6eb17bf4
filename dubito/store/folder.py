"""The folder of a run: `manifest.yaml`, `run.db`, `all_games.yaml`. Nothing of another run is overwritten."""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import yaml

from dubito.errors import RunStopped, UsageError, one_line
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


def create(folder: Path, manifest: Mapping[str, Any]) -> RunDb:
    """A new run folder; raises UsageError if one is there, or if it cannot be written, and leaves no part of it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / MANIFEST).open("x", encoding="utf-8", newline="\n")
    except OSError as error:
        raise UsageError(f"cannot write {folder}: {error.strerror}; choose another --output") from None
    try:
        with file:
            file.write(to_yaml(manifest))
        return RunDb.create(folder / DATABASE)
    except (OSError, UsageError) as error:
        for part in (MANIFEST, DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm"):
            with suppress(OSError):
                (folder / part).unlink()
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"cannot write {folder}: {reason}; choose another --output") from None


def existing(folder: Path, manifest: Mapping[str, Any]) -> RunDb | None:
    """The finished run of this very manifest in the folder; None if the folder is free.

    Raises UsageError if it holds anything else: another run, one of another length, an unfinished one.
    """
    try:
        if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
            return None
        text = (folder / MANIFEST).read_text(encoding="utf-8") if (folder / MANIFEST).exists() else None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {folder}: {one_line(str(error))}; choose another --output") from None
    if text is None:
        raise UsageError(f"{folder} is there and is no run folder: choose another --output")
    _compare(folder, _parsed(folder, text), manifest)
    if not (folder / DATABASE).exists():
        raise UsageError(f"{folder} has no {DATABASE}: delete the folder or choose another --output")
    db = RunDb.open(folder / DATABASE)
    kept = db.games()
    if kept != manifest["games"]:
        db.__exit__()
        raise UsageError(
            f"{folder} holds an unfinished run, {kept:,} of {manifest['games']:,} games: going on is not "
            "possible yet; delete the folder or choose another --output"
        )
    return db


def _parsed(folder: Path, text: str) -> dict[str, Any]:
    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError:
        content = None
    if not isinstance(content, dict):
        raise UsageError(f"{folder / MANIFEST} is damaged: delete the folder or choose another --output")
    return content


def _compare(folder: Path, there: Mapping[str, Any], ours: Mapping[str, Any]) -> None:
    """Refuse a run that differs in anything that can change a result, and say in what."""
    for key, value in ours["identity"].items():
        kept = (there.get("identity") or {}).get(key)
        if kept != value:
            raise UsageError(
                f"{folder} belongs to another run: {key} is {_brief(kept)} there and {_brief(value)} here; "
                "choose another --output"
            )
    if there.get("games") != ours["games"]:
        raise UsageError(
            f"{folder} holds this run with {there.get('games')} games, not {ours['games']}: lengthening a run is not "
            "possible yet; choose another --output"
        )


def _brief(value: Any) -> str:
    return one_line(str(value), 120)
