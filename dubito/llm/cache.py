"""Replies on disk, by server, request and draw: what was paid for once is never asked for again.

A diskcache that evicts nothing and holds text only. Its default would drop entries at a gigabyte in
silence, and unpickle whatever an entry's row says (CVE-2025-69872).
"""

import json
import os
import sqlite3
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any, Final

import diskcache

from dubito.errors import RunStopped, UsageError, one_line
from dubito.files import check_format
from dubito.llm.request import RawReply, Request, canonical, compute_digest
from dubito.store.lock import ByteLocks
from dubito.store.model_log import inflated
from dubito.store.run_db import readable

_FORMAT: Final = 4  # of an entry; part of its key
_MARK: Final = "written"  # a key that shows that the folder can be written
_DATABASE: Final = "cache.db"
SOLVED: Final = "solved"  # a folder in the cache's own, for games that were solved (dubito/plugins/openspiel/policy)
_BESIDE: Final = {".gitkeep", SOLVED}
_DROPPED: Final = "dropped"  # the folder of entries that were put aside
_PREFIX: Final = 16  # digits of a key that tell it from all others
_LOCKS: Final = "locks"  # the file whose bytes are locked, one for each key that somebody asks for
_POLL_SECONDS: Final = 0.1  # seconds between two looks whether another process is done
_QUICK: Final = 1  # level of packing: the best is a tenth smaller, and takes twice as long
_LOCK_DIGITS: Final = 15  # of a key, in hex, that say which byte
_SETTINGS: Final = {"eviction_policy": "none", "cull_limit": 0, "size_limit": 2**40}


class _NoText(Exception):
    """An entry that was not written by Dubito."""


class _TextDisk(diskcache.Disk):  # type: ignore[misc]  # diskcache has no types
    """Text in, text out; a row of any other mode, a pickle above all, is refused.

    A text is packed. A long one is a file.
    """

    def put(self, key: Any) -> Any:
        if type(key) is not str:
            raise TypeError("a key of the cache is a text")
        return super().put(key)

    def get(self, key: Any, raw: Any) -> Any:
        if not raw or type(key) is not str:
            raise RunStopped("an entry of the cache has a key that is no text: it was not written by Dubito")
        return key

    def store(self, value: Any, read: bool, key: Any = diskcache.UNKNOWN) -> Any:
        if read or type(value) is not str:
            raise TypeError("a value of the cache is a text")
        packed = zlib.compress(value.encode("utf-8", "surrogatepass"), _QUICK)
        return super().store(packed if len(packed) < self.min_file_size else value, False, key)

    def fetch(self, mode: int, filename: Any, value: Any, read: bool) -> Any:
        if mode not in (diskcache.core.MODE_RAW, diskcache.core.MODE_TEXT) or read or not self._is_ours(filename):
            raise _NoText
        kept = super().fetch(mode, filename, value, False)
        try:
            text = inflated(kept).decode("utf-8", "surrogatepass") if isinstance(kept, bytes) else kept
        except zlib.error:
            raise _NoText from None
        if type(text) is not str:
            raise _NoText
        return text

    def remove(self, file_path: Any) -> None:
        if self._is_ours(file_path):
            super().remove(file_path)

    def _is_ours(self, filename: Any) -> bool:
        """Whether an entry's file, if it has one, lies in the cache's folder: a row may name any."""
        if filename is None:  # as of nearly all: what it takes to look is more than the rest of a reading
            return True
        folder = Path(self._directory).resolve()
        return type(filename) is str and (folder / filename).resolve().is_relative_to(folder)


class _ReadOnly:
    """What is read of a cache whose folder cannot be written."""

    def __init__(self, folder: Path) -> None:
        self.disk = _TextDisk(str(folder))
        self._connection = sqlite3.connect(readable(folder / _DATABASE), uri=True, check_same_thread=False)
        self._lock = threading.Lock()
        self._sql("SELECT 1 FROM Cache")

    def _sql(self, query: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._connection.execute(query, values).fetchall()

    def __contains__(self, key: str) -> bool:
        return bool(self._sql("SELECT 1 FROM Cache WHERE key = ? AND raw = 1", (key,)))

    def __len__(self) -> int:
        return int(self._sql("SELECT count(*) FROM Cache")[0][0])

    def volume(self) -> int:
        (((pages,),), ((size,),)) = (self._sql(f"PRAGMA {name}") for name in ("page_count", "page_size"))
        return int(pages * size + self._sql("SELECT coalesce(sum(size), 0) FROM Cache")[0][0])

    def close(self) -> None:
        self._connection.close()


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """A stored reply with what it answers."""

    server: str
    request: str  # the request's canonical text
    draw: str
    received: RawReply

    @property
    def key(self) -> str:
        return key_of_reply(self.server, compute_digest(self.request), self.draw)


def key_of_reply(server: str, request: str, draw: str) -> str:
    return compute_digest(canonical([_FORMAT, server, request, draw]))


class ReplyCache:
    """The open cache; shared by all threads, and by processes. `unshared` says why not by processes, if so."""

    def __init__(self, folder: Path, *, writes: bool = True) -> None:
        """Open or make it; raises UsageError if the folder is something else, or cannot be written.

        Where nothing is to be written, it may be a folder that cannot be.
        """
        self.folder = folder
        self._flights: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()
        self._locks: ByteLocks | None = None
        self.unshared: str | None = None
        self.oldest: float | None = None  # when the oldest of the replies that were used was stored, as `time.time`
        self._cache: Any  # a diskcache, which has no types, or what reads like one
        read_only = not writes and not all(os.access(path, os.W_OK) for path in (folder, folder / _DATABASE))
        try:
            _check_folder(folder)
            if read_only and (folder / _DATABASE).exists():
                self._cache = _ReadOnly(folder)
                return
            self._cache = diskcache.Cache(str(folder), disk=_TextDisk, **_SETTINGS)
            self._cache.set(_MARK, "yes")
        except (OSError, sqlite3.Error) as error:
            raise UsageError(f"cannot use the cache {folder}: {one_line(str(error))}; choose another --cache") from None
        kept = {name: getattr(self._cache, name) for name in _SETTINGS}
        if kept != _SETTINGS:
            raise UsageError(f"the cache {folder} would drop replies ({kept}): choose another --cache")
        try:
            self._locks = ByteLocks(folder / _LOCKS)
        except OSError as error:
            self.unshared = (
                f"the cache {folder} has no locks ({error.strerror}): two processes that ask the same at the "
                "same time may both pay for it; run them one after the other"
            )

    def close(self) -> None:
        if isinstance(self._cache, diskcache.Cache):  # its log is folded in, whatever ended threads keep open
            with suppress(sqlite3.Error, diskcache.Timeout):
                self._cache._con.executescript("PRAGMA busy_timeout=0; PRAGMA wal_checkpoint(TRUNCATE)")
        self._cache.close()
        if self._locks is not None:
            self._locks.close()

    def once(
        self,
        server: str,
        request: Request,
        draw: str,
        ask: Callable[[], RawReply],
        waiting: Callable[[], AbstractContextManager[object]] = nullcontext,
        check: Callable[[], None] = lambda: None,
        serves: Callable[[RawReply], bool] = lambda received: True,
    ) -> tuple[RawReply, bool]:
        """The stored reply, or the asked one, stored before it is used; and whether it was stored already.

        Only one at a time asks for a key: the others wait and get its reply. They wait for another process within
        `waiting`, and until `check` raises something. Errors are not stored. A stored reply that is not usable by
        `serves` is asked for again.
        """
        key = key_of_reply(server, request.digest, draw)
        with self._lock:
            flight = self._flights.setdefault(key, threading.Lock())
        with flight:
            kept = self._stored(key, server, request, draw)
            if kept is None or not serves(kept[0]):
                with self._alone(key, waiting, check):
                    kept = self._stored(key, server, request, draw)  # another process may have stored it just now
                    if kept is None or not serves(kept[0]):
                        received = ask()
                        self._store(key, _packed(server, request, draw, received))
                        return received, False
            reply, stored = kept
            if isinstance(stored, float):
                with self._lock:
                    self.oldest = min(stored, self.oldest or stored)
            return reply, True

    def stored(self, server: str, request: Request, draw: str) -> RawReply | None:
        kept = self._stored(key_of_reply(server, request.digest, draw), server, request, draw)
        return None if kept is None else kept[0]

    def _stored(self, key: str, server: str, request: Request, draw: str) -> tuple[RawReply, object] | None:
        """Return the reply under a key, and when it was stored: in a damaged row anything."""
        kept = self._text_and_time(key)
        return None if kept is None else (self._received(key, kept[0], server, request.digest, draw), kept[1])

    @contextmanager
    def _alone(
        self, key: str, waiting: Callable[[], AbstractContextManager[object]], check: Callable[[], None]
    ) -> Iterator[None]:
        """Within, no other process asks for this key."""
        locks, byte = self._locks, 1 + int(key[:_LOCK_DIGITS], 16)
        if locks is None:
            yield
            return
        if not locks.take(byte):
            with waiting():
                while not locks.take(byte):
                    check()
                    time.sleep(_POLL_SECONDS)
        try:
            yield
        finally:
            locks.release(byte)

    def _store(self, key: str, text: str) -> None:
        try:
            self._cache.set(key, text)
        except (OSError, sqlite3.Error, diskcache.Timeout) as error:
            why = str(error) or "another process holds it"
            raise RunStopped(f"cannot write the cache {self.folder}: {why}; is the disk full?") from None

    def __contains__(self, key: str) -> bool:
        return key != _MARK and key in self._cache

    def __len__(self) -> int:
        return len(self._cache) - 1  # without the mark that it can be written

    @property
    def bytes(self) -> int:
        return int(self._cache.volume())

    def __iter__(self) -> Iterator[str]:
        return (key for key in self._keys() if key not in (None, _MARK))

    def _keys(self) -> Iterator[str | None]:
        """All keys; None for one that is no text."""
        for key, raw in self._cache._sql(
            "SELECT CAST(key AS BLOB), raw AND typeof(key) = 'text' FROM Cache ORDER BY rowid"
        ):
            try:
                yield key.decode() if raw else None
            except UnicodeDecodeError:
                yield None

    def entry(self, key: str) -> CacheEntry | None:
        """Return the entry of a key, None if there is none.

        Raises RunStopped if it was changed or is damaged, UsageError if it has another format.
        """
        text = None if key == _MARK else self._text(key)
        if text is None:
            return None
        content, received = self._checked_entry(key, text)
        check_format(content.get("format"), _FORMAT, f"entry {key} of the cache {self.folder}")
        try:
            entry = CacheEntry(content["server"], str(content["asked"]), content["draw"], received)
        except (KeyError, TypeError):
            raise self._tampered(key) from None
        if entry.key != key:
            raise self._tampered(key)
        return entry

    def drop(self, key: str) -> Path | None:
        """Take an entry out of the cache, and put it aside as a file if it can be read; returns the file. Raises
        RunStopped."""
        try:
            text = self._text(key)
        except RunStopped:
            text = None
        aside = self.folder / _DROPPED / f"{key}.txt" if text is not None else None
        try:
            if aside is not None:
                aside.parent.mkdir(exist_ok=True)
                aside.write_text(text or "", encoding="utf-8", errors="surrogatepass")
            del self._cache[key]
        except (OSError, sqlite3.Error, diskcache.Timeout) as error:
            raise RunStopped(f"cannot drop {key} from the cache {self.folder}: {error}") from None
        return aside

    def faults(self) -> Iterator[str]:
        """What is wrong with the entries, a sentence each; reads them all. Nothing of a bad entry is ever used."""
        for key in self._keys():
            try:
                if key is None:
                    yield f"an entry of the cache {self.folder} has a key that is no text: nothing asks for it"
                elif self.entry(key) is None and self._text(key) is None and key != _MARK:
                    yield str(self._bad(key, "has lost its file"))
            except (RunStopped, UsageError) as error:
                yield str(error)

    def _text(self, key: str) -> str | None:
        kept = self._text_and_time(key)
        return None if kept is None else kept[0]

    def _text_and_time(self, key: str) -> tuple[str, object] | None:
        """Return the text under a key, and when it was stored. Raises RunStopped if the row holds anything else."""
        query = "SELECT mode, filename, value, store_time FROM Cache WHERE key = ? AND raw = 1"
        try:
            for mode, filename, value, stored in self._cache._sql(query, (key,)):
                with suppress(FileNotFoundError):  # the file of a long text was deleted
                    return self._cache.disk.fetch(mode, filename, value, False), stored
            return None
        except (_NoText, ValueError):
            raise self._bad(key, "is no text, it was not written by Dubito") from None
        except sqlite3.OperationalError as error:
            if "decode" in str(error):  # SQLite's word for a text that is none
                raise self._bad(key, "is not UTF-8 text, it was changed or is damaged") from None
            raise RunStopped(f"cannot read the cache {self.folder}: {one_line(str(error))}") from None
        except (OSError, sqlite3.Error, diskcache.Timeout) as error:
            raise RunStopped(f"cannot read the cache {self.folder}: {one_line(str(error))}") from None

    def _received(self, key: str, text: str, server: str, request: str, draw: str) -> RawReply:
        """An entry that names another request than its key does was tampered with."""
        content, received = self._checked_entry(key, text)
        if (content.get("server"), content.get("request"), content.get("draw")) != (server, request, draw):
            raise self._tampered(key)
        return received

    def _checked_entry(self, key: str, text: str) -> tuple[dict[str, Any], RawReply]:
        seal, _, packed = text.partition("\n")
        if seal != compute_digest(packed):
            raise self._tampered(key)
        try:
            content: dict[str, Any] = json.loads(packed)
            received = RawReply(content["status"], content["raw"], dict(content["headers"]))
        except (ValueError, LookupError, TypeError, RecursionError):
            raise self._tampered(key) from None
        texts = (received.raw, *received.headers, *received.headers.values())
        if type(received.status) is not int or not all(type(text) is str for text in texts):
            raise self._tampered(key)
        return content, received

    def _tampered(self, key: str) -> RunStopped:
        return self._bad(key, "was changed or is damaged")

    def _bad(self, key: str, what: str) -> RunStopped:
        where = "" if str(self.folder) == "cache" else f" --cache {quote(str(self.folder))}"
        return RunStopped(
            f"entry {key} of the cache {self.folder} {what}: `dubito cache drop {key[:_PREFIX]}{where}` puts it "
            "aside, and it is asked for anew"
        )


def _check_folder(folder: Path) -> None:
    """Raise UsageError for a folder of something else, and for a cache that has lost what it held."""
    contents = {path.name for path in folder.iterdir()} if folder.exists() else set()
    database, others = folder / _DATABASE, {name for name in contents if not name.startswith(_DATABASE)} - _BESIDE
    if others and _DATABASE not in contents:
        lost = f"has lost its {_DATABASE}" if _LOCKS in others else "exists and is not a cache of replies"
        raise UsageError(f"{folder} {lost}: choose another --cache")
    journal = folder / f"{_DATABASE}-wal"
    if _DATABASE in contents and database.stat().st_size == 0:
        if others or (journal.exists() and journal.stat().st_size):
            raise UsageError(f"{database} was emptied, and its replies are lost: restore it, or choose another --cache")
    elif others and _DATABASE in contents:
        with closing(sqlite3.connect(readable(database), uri=True)) as connection:
            _check_settings(folder, connection)


def _check_settings(folder: Path, connection: sqlite3.Connection) -> None:
    """Raise UsageError where the tables are gone, or a setting is what diskcache never writes."""
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not {"Cache", "Settings"} <= tables:
        raise UsageError(
            f"the cache {folder} has lost its tables, and its replies: restore it, or choose another --cache"
        )
    known = diskcache.core.DEFAULT_SETTINGS | diskcache.core.METADATA
    kept = dict(connection.execute("SELECT key, value FROM Settings"))
    wrong = [name for name, value in known.items() if type(kept.get(name)) is not type(value)]
    if wrong := sorted({*wrong, *(kept.keys() - known.keys())}, key=str):
        shown = one_line(str(wrong[0]), 40)
        raise UsageError(
            f"the settings of the cache {folder} were changed or are damaged ({shown}): choose another --cache"
        )


def _packed(server: str, request: Request, draw: str, received: RawReply) -> str:
    """An entry's text: a digest of the rest, so that a change by hand shows; then what was asked and replied."""
    packed = json.dumps(
        {
            "format": _FORMAT,
            "server": server,
            "request": request.digest,
            "draw": draw,
            "asked": request.text,
            "status": received.status,
            "raw": received.raw,
            "headers": dict(received.headers),
        }
    )
    return f"{compute_digest(packed)}\n{packed}"
