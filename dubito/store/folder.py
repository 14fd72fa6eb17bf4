"""A run's folder, which contains `manifest.yaml`, `run.db` and `all_games.yaml`.

Files of another run are never overwritten. This module also exports a run as a zip of these three files, without any
code, and searches folders for runs.
"""

import os
import re
import sqlite3
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryDirectory
from typing import Any, Final

import yaml

from dubito.commands import build_command
from dubito.errors import RunStopped, UsageError, find_similar, one_line
from dubito.files import MissingFile, UnreadableFile, check_format, check_is_file, read_yaml, write_whole
from dubito.store.lock import LOCK, draft_folder
from dubito.store.run_db import FORMAT, RunDb, has_no_tables, open_readonly

MANIFEST: Final = "manifest.yaml"
RESULTS: Final = "all_games.yaml"
CONFIG: Final = "config.yaml"  # how the run was started; not part of an export
DATABASE: Final = "run.db"
SEED_FILE: Final = "secret_seed"  # `store/secret.py`; not part of an export
# What a new run writes first. A process that is killed then has not started a run.
_BEFORE_MANIFEST: Final = {LOCK, SEED_FILE, CONFIG, f"{CONFIG}.part", f"{MANIFEST}.part"}
NOT_ENFORCED: Final = "not_enforced"  # manifest key: what programs could do in this run
_NOT_SET: Final = "not set"
_KEY_NAME: Final = "api_key_env"


class _Plain(yaml.SafeDumper):
    """A YAML dumper that writes no aliases (`&name`)."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


class _Fast(yaml.CSafeDumper if yaml.__with_libyaml__ else yaml.SafeDumper):  # type: ignore[misc]
    ignore_aliases = _Plain.ignore_aliases


# Texts that both dumpers write in the same way.
_SIMPLE: Final = re.compile(r"\w(?:[\w ./:@+-]{,98}\w)?", re.ASCII).fullmatch


def to_yaml(content: Mapping[Any, Any]) -> str:
    dumper = _Fast if _is_simple(content) else _Plain
    return yaml.dump(content, Dumper=dumper, sort_keys=False, allow_unicode=True, width=4096)


def _is_simple(content: object) -> bool:
    if isinstance(content, Mapping):
        return all(map(_is_simple, content)) and all(map(_is_simple, content.values()))
    if isinstance(content, list | tuple):
        return all(map(_is_simple, content))
    return not isinstance(content, str) or _SIMPLE(content) is not None


def count_kept_games(folder: Path, manifest: Mapping[str, Any]) -> int | None:
    """Return how many games of this run the folder contains, or None if it is missing or empty.

    Changes nothing. Raises UsageError if the folder contains something else: another run, a longer one, or a damaged
    one.
    """
    try:
        if not folder.exists() or (folder.is_dir() and not {path.name for path in folder.iterdir()} - _BEFORE_MANIFEST):
            return None
        has_manifest = (folder / MANIFEST).exists()
    except OSError as error:
        raise UsageError(f"cannot read {folder}: {one_line(str(error))}; choose another --output") from None
    if not has_manifest:
        raise UsageError(f"{folder} exists and is not a run folder: choose another --output")
    try:
        existing = load_manifest(folder)
    except UsageError as error:
        raise UsageError(f"{error}; choose another --output") from None
    _check_same_run(folder, existing, manifest)
    if not (folder / DATABASE).exists() or has_no_tables(folder / DATABASE):
        if (folder / RESULTS).exists():
            raise UsageError(f"the {DATABASE} of {folder} is missing: delete the folder or choose another --output")
        # The run was interrupted before its first write.
        return 0
    with RunDb.open(folder / DATABASE) as db:
        db.check(first_game(manifest))
        count = db.game_count()
    if count > manifest["games"]:
        raise UsageError(
            f"{folder} already has {count:,} games of this run: set --games to at least as many, or choose another "
            "--output"
        )
    return count


def open_run(folder: Path, manifest: Mapping[str, Any]) -> RunDb:
    """Open the run in this folder for writing, or create it.

    The folder must have been accepted by `count_kept_games`. Raises UsageError if the folder is not writable, and
    leaves no traces of a new run in that case.
    """
    is_new = not (folder / MANIFEST).exists()
    try:
        if is_new or (before := load_manifest(folder)).get("games") != manifest["games"]:
            kept = {} if is_new else {key: before[key] for key in (NOT_ENFORCED,) if key in before}
            save_manifest(folder, {**manifest, **kept})
        # The old results are invalid from now on, even if this process is killed.
        (folder / RESULTS).unlink(missing_ok=True)
        return RunDb.create(folder / DATABASE)
    except (OSError, RunStopped, UsageError) as error:
        if is_new:
            for part in (MANIFEST, DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm", SEED_FILE, CONFIG):
                with suppress(OSError):
                    (folder / part).unlink()
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"cannot write {folder}: {reason}; choose another --output") from None


def save_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    write_whole(folder / MANIFEST, to_yaml({"format": FORMAT, **manifest}))


def note_not_enforced(folder: Path, sentences: Sequence[str]) -> None:
    """Add sentences about limits that programs did not have to the manifest of a run, if the folder contains one."""
    if not (folder / MANIFEST).exists():
        return
    manifest = load_manifest(folder)
    before = list_not_enforced(manifest)
    if added := [sentence for sentence in sentences if sentence not in before]:
        save_manifest(folder, {**manifest, NOT_ENFORCED: [*before, *added]})


def list_not_enforced(manifest: Mapping[str, Any]) -> list[str]:
    """Return the sentences in a manifest about limits that programs did not have."""
    sentences = manifest.get(NOT_ENFORCED)
    return [str(sentence) for sentence in sentences] if isinstance(sentences, list) else []


def read_manifest(folder: Path) -> dict[str, Any]:
    """Load a run's manifest. Raises UsageError if the folder contains something else, such as a test of prompts."""
    content = load_manifest(folder)
    for is_kind, kind in ((is_trial, "a test of prompts"), (is_policy, "policies")):
        if is_kind(content):
            raise UsageError(
                f"{one_line(str(folder))} contains {kind}, without games",
                hint="use `dubito status`, or repeat the command that wrote it",
            )
    return content


def first_game(manifest: Mapping[str, Any]) -> int:
    """Return the number of a run's first game, which is 0 except in a shard. Raises UsageError."""
    shard = manifest["identity"].get("shard") or {"first_game": 0}
    if not isinstance(shard, Mapping) or type(game := shard.get("first_game")) is not int:
        raise UsageError(f"{MANIFEST} is damaged: the shard's first game is missing")
    return game


def is_trial(manifest: Mapping[str, Any]) -> bool:
    return "positions" in manifest["identity"]


def is_policy(manifest: Mapping[str, Any]) -> bool:
    return "policy" in manifest["identity"]


def load_manifest(folder: Path) -> dict[str, Any]:
    """Load the manifest of a run, a test of prompts, or policies. Raises UsageError for any other folder."""
    shown = one_line(str(folder / MANIFEST))
    try:
        content = read_yaml(folder / MANIFEST)
    except MissingFile:
        raise UsageError(f"{one_line(str(folder))} is not a run folder: it has no {MANIFEST}") from None
    except UnreadableFile as error:
        raise UsageError(f"{shown} is damaged: it is not valid YAML ({error.why})") from None
    if not isinstance(content, dict) or not isinstance(content.get("identity"), dict):
        raise UsageError(f"{shown} is damaged: the run's identity is missing")
    check_format(content.get("format"), FORMAT, shown)
    return content


def _check_same_run(folder: Path, existing: Mapping[str, Any], ours: Mapping[str, Any]) -> None:
    """Raise UsageError if the runs differ in anything that can change a result."""
    kinds = ["a shard" if "shard" in one["identity"] else "a whole run" for one in (existing, ours)]
    if kinds[0] != kinds[1]:
        raise UsageError(f"{folder} contains {kinds[0]}, but this is {kinds[1]}: choose another --output")
    identity = without_key_names(existing["identity"])
    for key, value in without_key_names(ours["identity"]).items():
        other = identity.get(key)
        if other != value:
            advice = "choose another --output"
            if (folder / DATABASE).exists():
                with RunDb.open(folder / DATABASE) as db:
                    advice += "" if db.game_count() else ", or delete it, since it has no finished games"
            difference = describe_difference(key, other, value)
            raise UsageError(f"{folder} belongs to another run: {difference}; {advice}")


def without_key_names(identity: Mapping[str, Any]) -> dict[str, Any]:
    """Return an identity without the names of the keys' environment variables, which cannot change a result."""
    return {
        key: [_without_key_name(player) for player in value] if _is_list_of_mappings(value) else value
        for key, value in identity.items()
    }


def _without_key_name(player: dict[str, Any]) -> dict[str, Any]:
    settings = player.get("settings")
    if not isinstance(settings, dict) or _KEY_NAME not in settings:
        return player
    return {**player, "settings": {**settings, _KEY_NAME: None}}


def describe_difference(where: str, there: Any, ours: Any, places: tuple[str, str] = ("there", "here")) -> str:
    """Describe the first difference between two values found in these places."""
    if isinstance(there, dict) and isinstance(ours, dict):
        pairs = {key: (there.get(key, _NOT_SET), ours.get(key, _NOT_SET)) for key in [*ours, *there]}
        key = next(key for key, pair in pairs.items() if pair[0] != pair[1])
        return describe_difference(f"{where}.{key}", *pairs[key], places)
    if _is_list_of_mappings(there) and _is_list_of_mappings(ours):
        if len(there) != len(ours):
            return f"the number of {where} is {len(there)} {places[0]} and {len(ours)} {places[1]}"
        number = next(number for number, pair in enumerate(zip(there, ours, strict=True)) if pair[0] != pair[1])
        names = there[number].get("name"), ours[number].get("name")
        label = number if names[0] != names[1] else one_line(str(names[0]), 60)
        return describe_difference(f"{where}.{label}", there[number], ours[number], places)
    return f"{where} is {one_line(str(there), 120)} {places[0]} and {one_line(str(ours), 120)} {places[1]}"


def _is_list_of_mappings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


_PARTS: Final = (MANIFEST, DATABASE, RESULTS)
# Date of all files in an export, so that the same run always produces the same bytes.
_DATE: Final = (2000, 1, 1, 0, 0, 0)
_BLOCK_BYTES: Final = 1 << 20
_MAX_RATIO: Final = 50  # ratio of unpacked to packed size: about 2 to 10 for runs, 1,000 for a zip bomb
_MIN_ALLOWED_BYTES: Final = 16 << 20  # number of bytes that can always be unpacked


def pack(folder: Path, file: Path, first_game: int = 0) -> None:
    """Export the run in this folder. `first_game` is the number of its first game.

    Raises UsageError if the run is missing or the file cannot be created. If writing fails, deletes the file and raises
    RunStopped.
    """
    with RunDb.open(folder / DATABASE) as db:
        db.check(first_game)
    shown = one_line(str(file))
    if os.path.lexists(file):
        raise UsageError(f"{shown} already exists: choose another name")
    try:
        with draft_folder(file, "name") as draft:
            _write_zip(draft / "zip", draft / DATABASE, folder)
            if os.path.lexists(file):
                raise UsageError(f"{shown} already exists: choose another name")
            (draft / "zip").replace(file)
    except (OSError, sqlite3.Error) as error:
        raise RunStopped(f"cannot write {shown}: {one_line(str(error))}") from None


def _write_zip(file: Path, copy: Path, folder: Path) -> None:
    with closing(open_readonly(folder / DATABASE)) as db_file:
        # The copy includes data that is still in the journal.
        db_file.execute("VACUUM INTO ?", (str(copy),))
    with zipfile.ZipFile(file, "w") as archive:
        for name in _PARTS:
            path = copy if name == DATABASE else folder / name
            if path.exists():
                part = zipfile.ZipInfo(name, _DATE)
                part.compress_type, part.file_size = zipfile.ZIP_DEFLATED, path.stat().st_size
                with path.open("rb") as source, archive.open(part, "w") as packed:
                    copyfileobj(source, packed, _BLOCK_BYTES)


def is_export(file: Path) -> bool:
    check_is_file(file)
    return zipfile.is_zipfile(file)


@contextmanager
def unpack(file: Path) -> Iterator[Path]:
    """Unpack an exported run into a temporary folder.

    Raises UsageError if the file has other contents. Error messages contain the file's name instead of the folder's.
    """
    with TemporaryDirectory(prefix="dubito-") as folder:
        _unpack(file, Path(folder))
        try:
            yield Path(folder)
        except (UsageError, RunStopped) as error:
            raise type(error)(str(error).replace(folder, str(file))) from None


def _unpack(file: Path, folder: Path) -> None:
    """Unpack a file, counting bytes as they are written, because the sizes in a zip cannot be trusted."""
    shown, allowance = one_line(str(file)), _MIN_ALLOWED_BYTES + _MAX_RATIO * file.stat().st_size
    try:
        with zipfile.ZipFile(file) as archive:
            parts = archive.infolist()
            names = [part.filename for part in parts]
            if not set(names) <= set(_PARTS) or len(names) > len(set(names)) or MANIFEST not in names:
                raise UsageError(f"{shown} is not an exported run: it should contain {', '.join(_PARTS)}")
            for part in parts:
                if part.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    raise UsageError(
                        f"{shown} is not an exported run: its {part.filename} uses an unknown compression method"
                    )
                allowance = _write_part(archive, part, folder / part.filename, allowance)
                if allowance < 0:
                    raise UsageError(
                        f"{shown} unpacks to more than {_MAX_RATIO} times its size, unlike any exported run",
                        hint="if you trust it, unpack it yourself and use the folder",
                    )
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError) as error:
        raise UsageError(f"{shown} is damaged: {one_line(str(error))}") from None
    except OSError as error:
        raise UsageError(f"cannot unpack {shown} into {folder.parent}: {error.strerror or error}") from None


def _write_part(archive: zipfile.ZipFile, part: zipfile.ZipInfo, target: Path, left: int) -> int:
    """Write a part, up to the number of bytes left. Return what remains, negative if it was too small."""
    with archive.open(part) as packed, target.open("xb") as file:
        while left >= 0 and (data := packed.read(_BLOCK_BYTES)):
            left -= len(data)
            file.write(data)
    # An export does not contain the time at which its run was written.
    os.utime(target, (0, 0))
    return left


RUNS: Final = "runs"  # the default folder of runs, in the working directory


def runs_inside(folder: Path) -> list[Path]:
    """Return the runs in a folder that is not a run, most recently written first."""
    return [] if (folder / MANIFEST).exists() else run_folders(folder)


def run_folders(root: Path) -> list[Path]:
    folders = {file.parent for depth in ("*", "*/*") for file in root.glob(f"{depth}/{MANIFEST}")}
    # A policy folder contains a folder for each model.
    folders -= {folder for folder in folders if folder.parent in folders}
    return sorted(folders, key=lambda folder: (-last_written(folder), folder))


def last_written(folder: Path) -> float:
    files = [file for name in (DATABASE, f"{DATABASE}-wal", MANIFEST) if (file := folder / name).exists()]
    # SQLite creates empty files when reading.
    return max((file.stat().st_mtime for file in files if file.stat().st_size), default=0.0)


def latest_run(root: Path) -> Path:
    """Return the most recently written run, ignoring parts of ratings. Raises UsageError without runs."""
    folders = [folder for folder in run_folders(root) if (folder / DATABASE).exists()]
    latest = next((folder for folder in folders if not _is_part_of_rating(folder)), None)
    if latest is None and folders:
        raise UsageError(f"{one_line(str(root))} has only parts of ratings", hint=f"name one, such as {folders[0]}")
    if latest is None:
        raise UsageError(f"no runs in {one_line(str(root))} yet: start one with `dubito demo` or `dubito run CONFIG`")
    return latest


def _is_part_of_rating(folder: Path) -> bool:
    try:
        return "book" in load_manifest(folder)["identity"]
    except UsageError:
        return False


def missing_run_error(path: Path, root: Path, hint: str = "") -> UsageError:
    """Return the error for a path without a run. It suggests a similar run, or else gives the `hint`."""
    known = {folder.name: folder for folder in reversed(run_folders(root))}
    similar = find_similar(path.name.removesuffix(".zip"), known)
    if similar is not None:
        hint = f"did you mean {one_line(str(known[similar]))}?"
    elif not hint:
        hint = f"list the runs with `{build_command('status', root)}`" if known else f"no runs in {root} either"
    return UsageError(f"{one_line(str(path))} does not exist: {hint}")
