"""The folder of a run: `manifest.yaml`, `run.db`, `all_games.yaml`. Nothing of another run is overwritten."""

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import yaml

from dubito.errors import RunStopped, UsageError, one_line
from dubito.store.lock import LOCK
from dubito.store.run_db import RunDb
from dubito.user_files import read_yaml

MANIFEST: Final = "manifest.yaml"
RESULTS: Final = "all_games.yaml"
DATABASE: Final = "run.db"
_UNSAID: Final = "not said"


class _Plain(yaml.SafeDumper):
    """Writes out what stands in two places, since names for parts (`&name`) are refused where YAML is read."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


class _Fast(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]  # libyaml's, where there is one
    """The same, sooner."""

    ignore_aliases = _Plain.ignore_aliases


_SIMPLE: Final = re.compile(r"\w(?:[\w ./:@+-]{,98}\w)?", re.ASCII).fullmatch  # texts that both write alike


def to_yaml(content: Mapping[Any, Any]) -> str:
    """The mapping as YAML, in its own order, the same bytes on every machine."""
    dumper = _Fast if _is_simple(content) else _Plain
    return yaml.dump(content, Dumper=dumper, sort_keys=False, allow_unicode=True, width=4096)


def _is_simple(content: object) -> bool:
    """Whether there is no text in it that needs care."""
    if isinstance(content, Mapping):
        return all(map(_is_simple, content)) and all(map(_is_simple, content.values()))
    if isinstance(content, list | tuple):
        return all(map(_is_simple, content))
    return not isinstance(content, str) or _SIMPLE(content) is not None


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
    """How many games of this run the folder keeps; None if it is free. Reads, and changes nothing.

    Raises UsageError if it holds anything else: another run, a longer one, a damaged one.
    """
    try:
        if not folder.exists() or (folder.is_dir() and not {path.name for path in folder.iterdir()} - {LOCK}):
            return None
        known = (folder / MANIFEST).exists()
    except OSError as error:
        raise UsageError(f"cannot read {folder}: {one_line(str(error))}; choose another --output") from None
    if not known:
        raise UsageError(f"{folder} exists and is not a run folder: choose another --output")
    try:
        there = manifest_of(folder)
    except UsageError as error:
        raise UsageError(f"{error}; choose another --output") from None
    _compare(folder, there, manifest)
    if not (folder / DATABASE).exists() or (folder / DATABASE).stat().st_size == 0:
        if (folder / RESULTS).exists():
            raise UsageError(f"{folder} has lost its {DATABASE}: delete the folder or choose another --output")
        return 0  # it was cut off before its first write
    with RunDb.open(folder / DATABASE) as db:
        db.check(first_game(manifest))
        kept = db.game_count()
    if kept > manifest["games"]:
        raise UsageError(
            f"{folder} holds {kept:,} games of this run already: ask for at least as many, or choose another --output"
        )
    return kept


def begin(folder: Path, manifest: Mapping[str, Any]) -> RunDb:
    """Open the run in this folder, new or resumed, to play into, once `check` has passed.

    Raises UsageError if it cannot be written; then nothing of a new run is left.
    """
    new = not (folder / MANIFEST).exists()
    try:
        if new or manifest_of(folder).get("games") != manifest["games"]:
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
    """What the run in this folder is; raises UsageError if it holds none, but a trial of prompts, say."""
    content = manifest_of(folder)
    for holds, what in ((is_trial, "a trial of prompts"), (is_policy, "policies")):
        if holds(content):
            raise UsageError(
                f"{one_line(str(folder))} holds {what}, in which no game was played: `dubito status` reads it, "
                "and the command that wrote it resumes it or prints it again"
            )
    return content


def first_game(manifest: Mapping[str, Any]) -> int:
    """The number of a run's first game: 0 but for a shard; raises UsageError."""
    shard = manifest["identity"].get("shard") or {"first_game": 0}
    if not isinstance(shard, Mapping) or type(game := shard.get("first_game")) is not int:
        raise UsageError(f"{MANIFEST} is damaged: it does not say where the shard begins")
    return game


def is_trial(manifest: Mapping[str, Any]) -> bool:
    """Whether it is the manifest of a trial of prompts (`dubito/workshop/trial.py`), not that of a run."""
    return "positions" in manifest["identity"]


def is_policy(manifest: Mapping[str, Any]) -> bool:
    """Whether it is the manifest of policies (`dubito policy`)."""
    return "policy" in manifest["identity"]


def manifest_of(folder: Path) -> dict[str, Any]:
    """What this folder holds: a run, a trial or policies; raises UsageError if nothing of these."""
    shown = one_line(str(folder / MANIFEST))
    try:
        content = read_yaml(folder / MANIFEST)
    except UsageError as error:
        if isinstance(error.__context__, FileNotFoundError | NotADirectoryError):
            raise UsageError(f"{one_line(str(folder))} is not a run folder: it has no {MANIFEST}") from None
        if (reason := str(error)).startswith("cannot read"):
            raise
        why = reason.removeprefix(shown).lstrip(", ").replace("not readable as YAML: ", "")
        raise UsageError(f"{shown} is damaged: it is not readable as YAML ({why})") from None
    if not isinstance(content, dict) or not isinstance(content.get("identity"), dict):
        raise UsageError(f"{shown} is damaged: it does not say what was run")
    return content


def _compare(folder: Path, there: Mapping[str, Any], ours: Mapping[str, Any]) -> None:
    """Refuse a run that differs in anything that can change a result, and say in what."""
    parts = ["a shard" if "shard" in one["identity"] else "a whole run" for one in (there, ours)]
    if parts[0] != parts[1]:
        raise UsageError(f"{folder} holds {parts[0]}, and this is {parts[1]}: choose another --output")
    for key, value in ours["identity"].items():
        kept = there["identity"].get(key)
        if kept != value:
            said = difference(key, kept, value)
            raise UsageError(f"{folder} belongs to another run: {said}; choose another --output")


def difference(where: str, there: Any, ours: Any, places: tuple[str, str] = ("there", "here")) -> str:
    """The first part in which two values of these places differ: all of them would be too long to see it."""
    if isinstance(there, dict) and isinstance(ours, dict):
        pairs = {key: (there.get(key, _UNSAID), ours.get(key, _UNSAID)) for key in [*ours, *there]}
        key = next(key for key, pair in pairs.items() if pair[0] != pair[1])
        return difference(f"{where}.{key}", *pairs[key], places)
    if _mappings(there) and _mappings(ours):
        if len(there) != len(ours):
            return f"the number of {where} is {len(there)} {places[0]} and {len(ours)} {places[1]}"
        number = next(number for number, pair in enumerate(zip(there, ours, strict=True)) if pair[0] != pair[1])
        names = there[number].get("name"), ours[number].get("name")
        label = number if names[0] != names[1] else one_line(str(names[0]), 60)
        return difference(f"{where}.{label}", there[number], ours[number], places)
    return f"{where} is {one_line(str(there), 120)} {places[0]} and {one_line(str(ours), 120)} {places[1]}"


def _mappings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)
