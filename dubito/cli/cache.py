"""`dubito cache`: what the cache of replies holds, one entry of it, and why it has no reply to a request."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from shlex import quote
from typing import Final

import click

from dubito.cli.main import Listing
from dubito.cli.options import folder_of, json_option
from dubito.cli.output import note, print_document, say, table
from dubito.errors import RunStopped, UsageError, one_line
from dubito.experiment.stored import store_errors_as_usage_errors
from dubito.llm.cache import CacheEntry, ReplyCache, compute_key
from dubito.llm.protocols import read_reply
from dubito.llm.recording import differing_parts, nearest
from dubito.llm.request import parse_json
from dubito.report.documents import CachedModel, CacheObject
from dubito.store.folder import DATABASE
from dubito.store.model_log import ModelLog, StoredRequest
from dubito.store.run_db import RunDb

_FILE: Final = "cache.db"
_SHOWN: Final = 3  # other caches that a hint names
_CAUSES: Final = ("malformed", "refused", "truncated")
_WHERE: Final = click.option(
    "--cache", "folder", type=click.Path(path_type=Path), default="cache", show_default=True, help="The cache's folder."
)


@click.group(cls=Listing)
def cache() -> None:
    """Look into the cache of replies."""


@cache.command()
@_WHERE
@json_option
def stats(folder: Path, as_json: bool) -> None:
    """Show how many replies there are, from which servers and models."""
    with closing(_cache_in_folder(folder)) as opened:
        damaged, older = list[str](), list[str]()
        entries = Counter((entry.server, _model(entry)) for entry in _readable(opened, damaged, older))
        if as_json:
            print_document(_stats(opened, entries, len(older), len(damaged)))
            return
        rows = [[server, model, f"{count}"] for (server, model), count in sorted(entries.items())]
        title = f"{len(opened):,} replies, {opened.bytes:,} bytes in the cache {folder.resolve()}"
        table(one_line(title, 4096), ["server", "model", "replies"], rows)
        if older:
            say(f"{len(older):,} of them by another version of Dubito: this one does not use them")
        _note_damaged(damaged)
    if others := _other_caches(folder):
        note(f"not read: {_flags(others)}")


def _stats(opened: ReplyCache, entries: Counter[tuple[str, str]], older: int, damaged: int) -> CacheObject:
    models = [
        CachedModel(server=server, model=model, replies=count) for (server, model), count in sorted(entries.items())
    ]
    return CacheObject(
        folder=str(opened.folder),
        replies=len(opened),
        bytes=opened.bytes,
        older=older,
        damaged=damaged,
        models=models,
    )


@cache.command()
@_WHERE
def verify(folder: Path) -> int:
    """Read every entry and name those that were changed or damaged.

    Exit code 1 if there are any.
    """
    opened = _cache_in_folder(folder)
    faults = list(opened.faults())
    for fault in faults:
        say(one_line(fault, 400))
    say(f"{len(opened):,} replies, {len(faults):,} of them bad")
    opened.close()
    return 1 if faults else 0


@cache.command()
@click.argument("key")
@_WHERE
def show(key: str, folder: Path) -> None:
    """Show one entry: what was asked and what was answered.

    KEY may be the beginning of a key.
    """
    with closing(_cache_in_folder(folder)) as opened:
        full = _full(opened, key)
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
        say(f"{name}: {_printable(text)}")


@cache.command()
@click.argument("key", required=False)
@click.option("--cause", type=click.Choice(_CAUSES), help="All entries that are no answer for this cause.")
@_WHERE
def drop(key: str | None, cause: str | None, folder: Path) -> None:
    """Remove one entry from the cache, or all with a fault.

    KEY may be the beginning of a key. With --cause all replies without an answer go: `malformed` ones are not a JSON
    object, `refused` and `truncated` ones ended so.

    What can be read is put aside as files. The next run to ask for it pays again, unless that run has it.
    """
    if (key is None) == (cause is None):
        raise UsageError("say what to drop: a KEY, or --cause CAUSE for all that are no answer for it")
    with closing(_cache_in_folder(folder, writes=True)) as opened:
        if key is not None:
            full = _full(opened, key)
            aside = opened.drop(full)
            say(f"dropped {full}" + ("" if aside is None else f"; what it held is in {aside}"))
            return
        damaged: list[str] = []
        held, found = len(opened), [entry for entry in _readable(opened, damaged) if cause in _causes(entry)]
        for fault in damaged:
            note(fault)
        files = [opened.drop(entry.key) for entry in found]
    size = sum(len(entry.received.raw.encode("utf-8", "replace")) for entry in found)
    where = f"; what they held is in {files[0].parent}" if files and files[0] else ""
    say(f"dropped {len(found):,} of {held:,} replies, {size:,} bytes{where}")


def _readable(opened: ReplyCache, damaged: list[str], older: list[str] | None = None) -> Iterator[CacheEntry]:
    """Yield the readable entries. Add a sentence for each other one to `damaged`, or to `older` by its format."""
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
        note(f"damaged and left out: {len(damaged):,}; `dubito cache verify` names them")


def _causes(entry: CacheEntry) -> set[str]:
    """Why an entry is no answer, as far as its body shows; nothing where it may be one."""
    reply = read_reply(json.loads(entry.request)["protocol"], entry.received)
    if reply.non_reply is not None:
        return {"malformed"}
    if reply.finish in ("refusal", "length"):
        return {"refused" if reply.finish == "refusal" else "truncated"}
    return set() if isinstance(parse_json(reply.text or ""), dict) else {"malformed"}


@cache.command()
@click.argument("what", metavar="DECISION|REQUEST")
@click.option("--run", "run", type=click.Path(path_type=Path), help="The run it belongs to. [default: the latest]")
@_WHERE
def explain(what: str, run: Path | None, folder: Path) -> None:
    """Explain why the cache has no reply to a request.

    Printed is what differs from the nearest entry. DECISION is GAME.SEAT.DECISION or GAME.SEAT.DECISION.ATTEMPT,
    REQUEST the beginning of a request's digest (8 digits or more). `dubito replay RUN --game K` prints the decisions
    of a game, the report's viewer shows them at their turns, and an offline miss names its own.
    """
    with folder_of(run) as kept:
        if not (kept / DATABASE).exists():
            raise UsageError(f"{kept} is not a run folder: it has no {DATABASE}")
        with store_errors_as_usage_errors(), RunDb.open(kept / DATABASE) as db:
            asked = ModelLog(db).find(what)
    if asked is None:
        raise UsageError(
            f"{run or 'the latest run'} has no request {one_line(what)!r}: give GAME.SEAT.DECISION[.ATTEMPT], as the "
            "report's viewer and `dubito replay RUN --game GAME` say it, or 8 digits of a digest"
        )
    with closing(_cache_in_folder(folder)) as opened:
        _explain(opened, asked)


def _explain(opened: ReplyCache, asked: StoredRequest) -> None:
    key = compute_key(asked.server, asked.digest, asked.draw)
    if key in opened:
        say(f"the cache has it: {key}")
        return
    damaged: list[str] = []
    entry = nearest(_readable(opened, damaged), asked.server, asked.text, asked.draw)
    _note_damaged(damaged)
    if entry is None:
        say(f"the cache {opened.folder} {'holds no reply that can be read' if damaged else 'is empty'}")
        if others := _other_caches(opened.folder):
            note(f"not read: {_flags(others)}")
        return
    say(f"the cache has no reply for it; the nearest entry is {entry.key}, and it differs in:")
    for difference in differing_parts(asked.server, asked.text, asked.draw, entry):
        say(
            f"- {difference.part}\n  wanted: {_printable(difference.wanted)}\n  stored: {_printable(difference.stored)}"
        )


def _full(opened: ReplyCache, key: str) -> str:
    """The key itself, or the only one that begins so; raises UsageError."""
    keys = [key] if key in opened else [full for full in opened if full.startswith(key)]
    if len(keys) != 1:
        found = "no key begins" if not keys else f"{len(keys)} keys begin"
        raise UsageError(
            f"{found} with {one_line(key)!r} in {opened.folder}: `dubito cache stats` counts what is there"
        )
    return keys[0]


def _cache_in_folder(folder: Path, *, writes: bool = False) -> ReplyCache:
    if not (folder / _FILE).exists():
        others = _other_caches(folder)
        known = f", as {_flags(others)}" if others else ""
        raise UsageError(f"there is no cache in {folder}: give its folder with --cache{known}")
    return ReplyCache(folder, writes=writes)


def _other_caches(folder: Path) -> list[Path]:
    caches = [*Path().glob(f"runs/*/cache/{_FILE}"), *Path().glob(f"cache/{_FILE}")]
    newest = sorted(caches, key=lambda file: (-file.stat().st_mtime, file))
    return [file.parent for file in newest if file.parent.resolve() != folder.resolve()]


def _flags(folders: Sequence[Path]) -> str:
    more = f" and {len(folders) - _SHOWN} more" if len(folders) > _SHOWN else ""
    return " or ".join(f"--cache {quote(one_line(str(folder)))}" for folder in folders[:_SHOWN]) + more


def _model(entry: CacheEntry) -> str:
    return one_line(str(json.loads(entry.request)["body"].get("model")), 80)


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() or char == "\n" else f"\\x{ord(char):02x}" for char in text)
