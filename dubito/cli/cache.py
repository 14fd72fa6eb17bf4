"""`dubito cache`: inspect and clean the cache of model replies."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from shlex import quote
from typing import Final

import click

from dubito.cli.main import Listing
from dubito.cli.options import json_option, open_run_folder
from dubito.cli.output import note, print_document, say, table
from dubito.errors import RunStopped, UsageError, one_line
from dubito.experiment.stored import store_errors_as_usage_errors
from dubito.llm.cache import CacheEntry, ReplyCache, compute_key
from dubito.llm.protocols import read_reply
from dubito.llm.recording import differing_parts, find_nearest
from dubito.llm.request import parse_json
from dubito.report.documents import CachedModel, CacheObject
from dubito.store.folder import DATABASE
from dubito.store.model_log import ModelLog
from dubito.store.run_db import RunDb

_FILE: Final = "cache.db"
_MAX_SUGGESTED_CACHES: Final = 3
_CAUSES: Final = ("malformed", "refused", "truncated")
_cache_option: Final = click.option(
    "--cache", "folder", type=click.Path(path_type=Path), default="cache", show_default=True, help="The cache folder."
)


@click.group(cls=Listing)
def cache() -> None:
    """Inspect and clean the cache of model replies."""


@cache.command()
@_cache_option
@json_option
def stats(folder: Path, as_json: bool) -> None:
    """Count the cached replies by server and model."""
    with closing(_cache_in_folder(folder)) as opened:
        damaged, older = list[str](), list[str]()
        entries = Counter[tuple[str, str]]()
        for entry in _readable_entries(opened, damaged, older):
            model = json.loads(entry.request)["body"].get("model")
            entries[entry.server, one_line(str(model), 80)] += 1
        if as_json:
            models = [
                CachedModel(server=server, model=model, replies=count)
                for (server, model), count in sorted(entries.items())
            ]
            document = CacheObject(
                folder=str(opened.folder),
                replies=len(opened),
                bytes=opened.bytes,
                older=len(older),
                damaged=len(damaged),
                models=models,
            )
            print_document(document)
            return
        rows = [[server, model, f"{count}"] for (server, model), count in sorted(entries.items())]
        title = f"{len(opened):,} replies, {opened.bytes:,} bytes in the cache {folder.resolve()}"
        table(one_line(title, 4096), ["server", "model", "replies"], rows)
        if older:
            say(f"{len(older):,} replies are from another version of Dubito and are not used")
        _note_damaged(damaged)
    if others := _flags_of_other_caches(folder):
        note(f"there are other caches: {others}")


@cache.command()
@_cache_option
def verify(folder: Path) -> int:
    """Check every entry and print the modified or damaged ones.

    The exit code is 1 if any are found.
    """
    opened = _cache_in_folder(folder)
    faults = list(opened.faults())
    for fault in faults:
        say(one_line(fault, 400))
    say(f"{len(opened):,} replies, {len(faults):,} damaged")
    opened.close()
    return 1 if faults else 0


@cache.command()
@click.argument("key")
@_cache_option
def show(key: str, folder: Path) -> None:
    """Show the request and the reply of one entry.

    KEY may be a prefix of a key.
    """
    with closing(_cache_in_folder(folder)) as opened:
        full = _complete_key(opened, key)
        entry = opened.entry(full)
        assert entry is not None, "its key was found"
    received = entry.received
    for name, text in (
        ("key", entry.key),
        ("server", entry.server),
        ("draw", entry.draw),
        ("request", json.dumps(json.loads(entry.request), indent=1)),
        ("status", str(received.status)),
        *sorted(received.headers.items()),
        ("reply", received.raw),
    ):
        say(f"{name}: {_escape_unprintable(text)}")


@cache.command()
@click.argument("key", required=False)
@click.option("--cause", type=click.Choice(_CAUSES), help="Remove all unusable replies of this kind.")
@_cache_option
def drop(key: str | None, cause: str | None, folder: Path) -> None:
    """Remove one entry from the cache, or all unusable replies of a kind.

    KEY may be a prefix of a key. --cause malformed removes replies that are not a JSON object; refused and truncated
    remove replies that the provider marked as such.

    Removed entries are saved as files if they are readable. A later run pays for the request again, unless the reply is
    in its own folder.
    """
    if (key is None) == (cause is None):
        raise UsageError("give a KEY, or use --cause to remove all unusable replies of one kind")
    with closing(_cache_in_folder(folder, writes=True)) as opened:
        if key is not None:
            full = _complete_key(opened, key)
            copy = opened.drop(full)
            say(f"removed {full}" + ("" if copy is None else f"; a copy is in {copy}"))
            return
        damaged: list[str] = []
        total, entries = (
            len(opened),
            [entry for entry in _readable_entries(opened, damaged) if cause in _unusable_causes(entry)],
        )
        for fault in damaged:
            note(fault)
        copies = [opened.drop(entry.key) for entry in entries]
    size = sum(len(entry.received.raw.encode("utf-8", "replace")) for entry in entries)
    where = f"; copies are in {copies[0].parent}" if copies and copies[0] else ""
    say(f"removed {len(entries):,} of {total:,} replies, {size:,} bytes{where}")


def _readable_entries(opened: ReplyCache, damaged: list[str], older: list[str] | None = None) -> Iterator[CacheEntry]:
    """Yield the readable entries. Errors are appended to `damaged`, or to `older` for entries in an old format."""
    for key in opened:
        try:
            entry = opened.entry(key)
        except (RunStopped, UsageError) as error:
            other = damaged if older is None or isinstance(error, RunStopped) else older
            other.append(one_line(str(error), 400))
            continue
        if entry is not None:
            yield entry


def _note_damaged(damaged: Sequence[str]) -> None:
    if damaged:
        note(f"{len(damaged):,} damaged entries were skipped; list them with `dubito cache verify`")


def _unusable_causes(entry: CacheEntry) -> set[str]:
    """Return why a reply's body is unusable. An empty set means that it may be usable."""
    reply = read_reply(json.loads(entry.request)["protocol"], entry.received)
    if reply.non_reply is not None or reply.finish == "invalid":
        return {"malformed"}
    if reply.finish in ("refusal", "length"):
        return {"refused" if reply.finish == "refusal" else "truncated"}
    return set() if isinstance(parse_json(reply.text or ""), dict) else {"malformed"}


@cache.command()
@click.argument("what", metavar="DECISION|REQUEST")
@click.option("--run", "run", type=click.Path(path_type=Path), help="Run that sent the request. [default: the latest]")
@_cache_option
def explain(what: str, run: Path | None, folder: Path) -> None:
    """Explain why the cache has no reply to a request.

    Prints how the request differs from the most similar entry. DECISION is GAME.SEAT.DECISION or
    GAME.SEAT.DECISION.ATTEMPT. REQUEST is a prefix of a request's digest (8 digits or more). `dubito replay RUN --game
    K`, the report's viewer and an offline run's error message show these numbers.
    """
    with open_run_folder(run) as stored_run:
        if not (stored_run / DATABASE).exists():
            raise UsageError(f"{stored_run} is not a run folder because it has no {DATABASE}")
        with store_errors_as_usage_errors(), RunDb.open(stored_run / DATABASE) as db:
            request = ModelLog(db).find(what)
    if request is None:
        raise UsageError(
            f"{run or 'the latest run'} has no request {one_line(what)!r}",
            hint="give GAME.SEAT.DECISION[.ATTEMPT], as printed by `dubito replay RUN --game GAME`, or at least 8 "
            "digits of a digest",
        )
    with closing(_cache_in_folder(folder)) as opened:
        key = compute_key(request.server, request.digest, request.draw)
        if key in opened:
            say(f"the cache has a reply: {key}")
            return
        damaged: list[str] = []
        entry = find_nearest(_readable_entries(opened, damaged), request.server, request.text, request.draw)
        _note_damaged(damaged)
        if entry is None:
            say(f"the cache {opened.folder} {'has no readable replies' if damaged else 'is empty'}")
            if others := _flags_of_other_caches(opened.folder):
                note(f"there are other caches: {others}")
            return
        say(f"the cache has no reply to this request; the most similar entry, {entry.key}, differs in:")
        for difference in differing_parts(request.server, request.text, request.draw, entry):
            wanted, stored = _escape_unprintable(difference.wanted), _escape_unprintable(difference.stored)
            say(f"- {difference.part}\n  request: {wanted}\n  cached: {stored}")


def _complete_key(opened: ReplyCache, key: str) -> str:
    """Return the only key with this prefix; raises UsageError."""
    keys = [key] if key in opened else [full for full in opened if full.startswith(key)]
    if len(keys) != 1:
        matches = "no key starts" if not keys else f"{len(keys)} keys start"
        raise UsageError(f"{matches} with {one_line(key)!r} in {opened.folder}")
    return keys[0]


def _cache_in_folder(folder: Path, *, writes: bool = False) -> ReplyCache:
    if not (folder / _FILE).exists():
        others = _flags_of_other_caches(folder)
        example = f", for example {others}" if others else ""
        raise UsageError(f"{folder} does not contain a cache", hint=f"give its folder with --cache{example}")
    return ReplyCache(folder, writes=writes)


def _flags_of_other_caches(folder: Path) -> str:
    """Return the flags that choose other caches, such as `--cache runs/a/cache`, the newest first."""
    caches = [*Path().glob(f"runs/*/cache/{_FILE}"), *Path().glob(f"cache/{_FILE}")]
    newest = sorted(caches, key=lambda file: (-file.stat().st_mtime, file))
    folders = [file.parent for file in newest if file.parent.resolve() != folder.resolve()]
    more = f" and {len(folders) - _MAX_SUGGESTED_CACHES} more" if len(folders) > _MAX_SUGGESTED_CACHES else ""
    return " or ".join(f"--cache {quote(one_line(str(folder)))}" for folder in folders[:_MAX_SUGGESTED_CACHES]) + more


def _escape_unprintable(text: str) -> str:
    return "".join(char if char.isprintable() or char == "\n" else f"\\x{ord(char):02x}" for char in text)
