"""The folder of a run: `manifest.yaml`, `run.db`, `all_games.yaml`. Nothing of another run is overwritten.

Also a run as one file, to be replayed on another machine: a zip of these three, with no code in it; and where runs lie:
those below a folder, the latest, the one that was meant.
"""

import os
import re
import sqlite3
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryDirectory
from typing import Any, Final

import yaml

from dubito.errors import RunStopped, UsageError, near, one_line
from dubito.files import MissingFile, UnreadableFile, check_format, check_is_file, read_yaml, write_whole
from dubito.store.lock import LOCK, drafting
from dubito.store.run_db import FORMAT, RunDb, reading

MANIFEST: Final = "manifest.yaml"
RESULTS: Final = "all_games.yaml"
DATABASE: Final = "run.db"
_UNSAID: Final = "not said"
_KEY_NAME: Final = "api_key_env"


class _Plain(yaml.SafeDumper):
    """Writes out what stands in two places, since names for parts (`&name`) are refused where YAML is read."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


class _Fast(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]  # libyaml's, where there is one
    ignore_aliases = _Plain.ignore_aliases


_SIMPLE: Final = re.compile(r"\w(?:[\w ./:@+-]{,98}\w)?", re.ASCII).fullmatch  # texts that both write alike


def to_yaml(content: Mapping[Any, Any]) -> str:
    dumper = _Fast if _is_simple(content) else _Plain
    return yaml.dump(content, Dumper=dumper, sort_keys=False, allow_unicode=True, width=4096)


def _is_simple(content: object) -> bool:
    """Whether there is no text in it that needs care."""
    if isinstance(content, Mapping):
        return all(map(_is_simple, content)) and all(map(_is_simple, content.values()))
    if isinstance(content, list | tuple):
        return all(map(_is_simple, content))
    return not isinstance(content, str) or _SIMPLE(content) is not None


def games_kept(folder: Path, manifest: Mapping[str, Any]) -> int | None:
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
    _check_same_run(folder, there, manifest)
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
            save_manifest(folder, manifest)
        # Until new counts are written there are none: this process may be killed before.
        (folder / RESULTS).unlink(missing_ok=True)
        return RunDb.create(folder / DATABASE)
    except (OSError, RunStopped, UsageError) as error:
        if new:
            for part in (MANIFEST, DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm"):
                with suppress(OSError):
                    (folder / part).unlink()
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"cannot write {folder}: {reason}; choose another --output") from None


def save_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    write_whole(folder / MANIFEST, to_yaml({"format": FORMAT, **manifest}))


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
    return "positions" in manifest["identity"]


def is_policy(manifest: Mapping[str, Any]) -> bool:
    return "policy" in manifest["identity"]


def manifest_of(folder: Path) -> dict[str, Any]:
    """What this folder holds: a run, a trial or policies; raises UsageError if nothing of these."""
    shown = one_line(str(folder / MANIFEST))
    try:
        content = read_yaml(folder / MANIFEST)
    except MissingFile:
        raise UsageError(f"{one_line(str(folder))} is not a run folder: it has no {MANIFEST}") from None
    except UnreadableFile as error:
        raise UsageError(f"{shown} is damaged: it is not readable as YAML ({error.why})") from None
    if not isinstance(content, dict) or not isinstance(content.get("identity"), dict):
        raise UsageError(f"{shown} is damaged: it does not say what was run")
    check_format(content.get("format"), FORMAT, shown)
    return content


def _check_same_run(folder: Path, there: Mapping[str, Any], ours: Mapping[str, Any]) -> None:
    """Refuse a run that differs in anything that can change a result, and say in what."""
    parts = ["a shard" if "shard" in one["identity"] else "a whole run" for one in (there, ours)]
    if parts[0] != parts[1]:
        raise UsageError(f"{folder} holds {parts[0]}, and this is {parts[1]}: choose another --output")
    identity = without_key_names(there["identity"])
    for key, value in without_key_names(ours["identity"]).items():
        kept = identity.get(key)
        if kept != value:
            said = difference_of_runs(key, kept, value)
            raise UsageError(f"{folder} belongs to another run: {said}; choose another --output{_or_delete(folder)}")


def without_key_names(identity: Mapping[str, Any]) -> dict[str, Any]:
    """Return an identity without the variables of keys, which can change no result."""
    return {
        key: [_without_key_name(player) for player in value] if _mappings(value) else value
        for key, value in identity.items()
    }


def _without_key_name(player: dict[str, Any]) -> dict[str, Any]:
    settings = player.get("settings")
    if not isinstance(settings, dict) or _KEY_NAME not in settings:
        return player
    return {**player, "settings": {**settings, _KEY_NAME: None}}


def _or_delete(folder: Path) -> str:
    if not (folder / DATABASE).exists():
        return ""
    with RunDb.open(folder / DATABASE) as db:
        return "" if db.game_count() else ", or delete it: no game in it is finished"


def difference_of_runs(where: str, there: Any, ours: Any, places: tuple[str, str] = ("there", "here")) -> str:
    """The first part in which two values of these places differ: all of them would be too long to see it."""
    if isinstance(there, dict) and isinstance(ours, dict):
        pairs = {key: (there.get(key, _UNSAID), ours.get(key, _UNSAID)) for key in [*ours, *there]}
        key = next(key for key, pair in pairs.items() if pair[0] != pair[1])
        return difference_of_runs(f"{where}.{key}", *pairs[key], places)
    if _mappings(there) and _mappings(ours):
        if len(there) != len(ours):
            return f"the number of {where} is {len(there)} {places[0]} and {len(ours)} {places[1]}"
        number = next(number for number, pair in enumerate(zip(there, ours, strict=True)) if pair[0] != pair[1])
        names = there[number].get("name"), ours[number].get("name")
        label = number if names[0] != names[1] else one_line(str(names[0]), 60)
        return difference_of_runs(f"{where}.{label}", there[number], ours[number], places)
    return f"{where} is {one_line(str(there), 120)} {places[0]} and {one_line(str(ours), 120)} {places[1]}"


def _mappings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


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
            _write_zip(draft / "zip", draft / DATABASE, folder)
            if os.path.lexists(file):
                raise UsageError(f"{shown} is there already: choose another name")
            (draft / "zip").replace(file)
    except (OSError, sqlite3.Error) as error:
        raise RunStopped(f"cannot write {shown}: {one_line(str(error))}") from None


def _write_zip(file: Path, copy: Path, folder: Path) -> None:
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
    os.utime(target, (0, 0))  # an export does not say when its run was written
    return left


RUNS: Final = "runs"  # in the working directory: where runs are written if nothing else is said


def runs_inside(folder: Path) -> list[Path]:
    """Return the runs in a folder that is not a run itself, the last written first."""
    return [] if (folder / MANIFEST).exists() else run_folders(folder)


def run_folders(root: Path) -> list[Path]:
    found = {file.parent for depth in ("*", "*/*") for file in root.glob(f"{depth}/{MANIFEST}")}
    found -= {folder for folder in found if folder.parent in found}  # the models of a policy
    return sorted(found, key=lambda folder: (-last_written(folder), folder))


def last_written(folder: Path) -> float:
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


def no_such_run(path: Path, root: Path, listed: str = "") -> UsageError:
    """What to say where there is nothing at that path: which runs it could mean, or what has them `listed`."""
    known = {folder.name: folder for folder in reversed(run_folders(root))}
    meant = near(path.name.removesuffix(".zip"), known)
    if meant is not None:
        hint = f"did you mean {one_line(str(known[meant]))}?"
    else:
        hint = listed or (f"`dubito status {root}` lists them" if known else f"there is no run in {root} either")
    return UsageError(f"there is no {one_line(str(path))}: {hint}")
