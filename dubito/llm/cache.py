"""The on-disk cache of replies, keyed by server, request and draw, so that nothing is paid for twice.

It is a diskcache that evicts nothing and stores only text. By default, diskcache would silently evict entries above one
gigabyte, and would unpickle whatever a row contains (CVE-2025-69872).
"""

import json
import os
import sqlite3
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import diskcache

from dubito.commands import build_command
from dubito.errors import RunStopped, UsageError, one_line
from dubito.files import check_format, check_is_file
from dubito.llm.request import RawReply, Request, canonical_json, compute_digest
from dubito.store.guarded import SchemaObject, check_database_schema, open_guarded, read_database_schema
from dubito.store.lock import ByteLocks
from dubito.store.model_log import decompress

_FORMAT: Final = 4  # version of the entry format; part of each key
_WRITE_TEST_KEY: Final = "written"  # written at each start, to check that the folder is writable
_DATABASE: Final = "cache.db"
SOLVED: Final = "solved"  # the subfolder for solved games (dubito/plugins/openspiel/policy)
_OTHER_CONTENTS: Final = {".gitkeep", SOLVED}
_DROPPED: Final = "dropped"  # the subfolder for removed entries
_SHOWN_DIGITS: Final = 16  # characters of a key that are enough to identify it
_LOCKS: Final = "locks"  # a file with one locked byte for each key that is being requested
_POLL_SECONDS: Final = 0.1  # seconds between checks whether another process has finished
_COMPRESSION: Final = 1  # the best level saves another tenth but takes twice as long
_LOCK_DIGITS: Final = 15  # hex digits of a key that select its byte
# Each thread has its own connection. By default, its mapped and cached pages can take 96 MB.
_MEMORY: Final = {"sqlite_mmap_size": 0, "sqlite_cache_size": 256}  # pages
_SETTINGS: Final = {"eviction_policy": "none", "cull_limit": 0, "size_limit": 2**40, **_MEMORY}


# The schema of a diskcache. Another one could drop replies, or execute code from somebody else's file.
_TABLES: Final = (
    "CREATE TABLE Settings ( key TEXT NOT NULL UNIQUE, value)",
    "CREATE TABLE Cache ( rowid INTEGER PRIMARY KEY, key BLOB, raw INTEGER, store_time REAL, expire_time REAL, "
    "access_time REAL, access_count INTEGER DEFAULT 0, tag BLOB, size INTEGER DEFAULT 0, mode INTEGER DEFAULT 0, "
    "filename TEXT, value BLOB)",
    "CREATE UNIQUE INDEX Cache_key_raw ON Cache(key, raw)",
    "CREATE INDEX Cache_expire_time ON Cache (expire_time)",
)
_TRIGGERS: Final = (
    ("count_insert", "INSERT", "+ 1", "count"),
    ("count_delete", "DELETE", "- 1", "count"),
    ("size_insert", "INSERT", "+ NEW.size", "size"),
    ("size_update", "UPDATE", "+ NEW.size - OLD.size", "size"),
    ("size_delete", "DELETE", "- OLD.size", "size"),
)


class _NotTextError(Exception):
    """An entry that was not written by Dubito."""


class _TextDisk(diskcache.Disk):  # type: ignore[misc]  # diskcache has no types
    """Stores only text, compressed, using a separate file for long texts.

    Rows of other modes, such as pickles, are refused.
    """

    def put(self, key: Any) -> Any:
        if type(key) is not str:
            raise TypeError("cache keys must be strings")
        return super().put(key)

    def get(self, key: Any, raw: Any) -> Any:
        if not raw or type(key) is not str:
            raise RunStopped("a cache entry has a key that is not a string, so Dubito did not write it")
        return key

    def store(self, value: Any, read: bool, key: Any = diskcache.UNKNOWN) -> Any:
        if read or type(value) is not str:
            raise TypeError("cache values must be strings")
        packed = zlib.compress(value.encode("utf-8", "surrogatepass"), _COMPRESSION)
        return super().store(packed if len(packed) < self.min_file_size else value, False, key)

    def fetch(self, mode: int, filename: Any, value: Any, read: bool) -> Any:
        if mode not in (diskcache.core.MODE_RAW, diskcache.core.MODE_TEXT) or read or not self._is_inside(filename):
            raise _NotTextError
        stored = super().fetch(mode, filename, value, False)
        try:
            text = decompress(stored).decode("utf-8", "surrogatepass") if isinstance(stored, bytes) else stored
        except zlib.error:
            raise _NotTextError from None
        if type(text) is not str:
            raise _NotTextError
        return text

    def remove(self, file_path: Any) -> None:
        if self._is_inside(file_path):
            super().remove(file_path)

    def _is_inside(self, filename: Any) -> bool:
        """Return whether an entry's file is inside the cache folder. A row can name any file."""
        # Most entries have no file, and the check below is slower than reading one.
        if filename is None:
            return True
        folder = Path(self._directory).resolve()
        return type(filename) is str and (folder / filename).resolve().is_relative_to(folder)


class _ReadOnly:
    """A cache whose folder is not writable."""

    def __init__(self, folder: Path) -> None:
        self.disk = _TextDisk(str(folder))
        self._connection = open_guarded(folder / _DATABASE)
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
    """A stored reply with its request."""

    server: str
    request: str  # the request's canonical text
    draw: str
    received: RawReply

    @property
    def key(self) -> str:
        return compute_key(self.server, compute_digest(self.request), self.draw)


def compute_key(server: str, request: str, draw: str) -> str:
    return compute_digest(canonical_json([_FORMAT, server, request, draw]))


class ReplyCache:
    """An open cache, shared by threads and processes.

    If processes cannot share it, `unshared` contains the reason.
    """

    def __init__(self, folder: Path, *, writes: bool = True) -> None:
        """Open or create the cache.

        Raises UsageError if the folder is not a cache or is not writable. If `writes` is false, a read-only folder is
        accepted.
        """
        self.folder = folder
        self._flights: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()
        self._locks: ByteLocks | None = None
        self.unshared: str | None = None
        # When the oldest used reply was stored, in seconds since 1970.
        self.oldest: float | None = None
        # A diskcache, which is untyped, or a _ReadOnly.
        self._cache: Any
        read_only = not writes and not all(os.access(path, os.W_OK) for path in (folder, folder / _DATABASE))
        try:
            _check_folder(folder)
            if read_only and (folder / _DATABASE).exists():
                self._cache = _ReadOnly(folder)
                return
            self._cache = diskcache.Cache(str(folder), disk=_TextDisk, **_SETTINGS)
            self._cache.set(_WRITE_TEST_KEY, "yes")
        except (OSError, sqlite3.Error) as error:
            raise UsageError(f"cannot use the cache {folder}: {one_line(str(error))}; choose another --cache") from None
        settings = {name: getattr(self._cache, name) for name in _SETTINGS}
        if settings != _SETTINGS:
            raise UsageError(f"the cache {folder} is set to drop replies ({settings}): choose another --cache")
        check_is_file(folder / _LOCKS)
        try:
            self._locks = ByteLocks(folder / _LOCKS)
        except OSError as error:
            self.unshared = (
                f"the cache {folder} does not support locks ({error.strerror}), so two processes may both pay for the "
                "same "
                "request: run them one after the other"
            )

    def close(self) -> None:
        if isinstance(self._cache, diskcache.Cache):
            # Threads that have ended may keep the write-ahead log open, so merge it here.
            with suppress(sqlite3.Error, diskcache.Timeout):
                self._cache._con.executescript("PRAGMA busy_timeout=0; PRAGMA wal_checkpoint(TRUNCATE)")
        self._cache.close()
        if self._locks is not None:
            self._locks.close()

    def get_or_ask(
        self,
        server: str,
        request: Request,
        draw: str,
        ask: Callable[[], RawReply],
        waiting: Callable[[], AbstractContextManager[object]] = nullcontext,
        check_stop: Callable[[], None] = lambda: None,
        is_usable: Callable[[RawReply], bool] = lambda received: True,
    ) -> tuple[RawReply, bool]:
        """Return a reply, and whether it was already stored. If it was not, ask for it and store it.

        If several threads or processes want the same key, one asks and the rest wait. Errors are not stored.

        Args:
            server: The account's server.
            request: The request.
            draw: The sample of the request.
            ask: Returns a new reply.
            waiting: The context in which to wait for another process.
            check_stop: Raises an exception to end such a wait.
            is_usable: Whether a stored reply can be used. If not, a new one is requested.
        """
        key = compute_key(server, request.digest, draw)
        with self._lock:
            flight = self._flights.setdefault(key, threading.Lock())
        with flight:
            entry = self._find(key, server, request, draw)
            if entry is None or not is_usable(entry[0]):
                with self._lock_key(key, waiting, check_stop):
                    # Another process may have stored the reply by now.
                    entry = self._find(key, server, request, draw)
                    if entry is None or not is_usable(entry[0]):
                        received = ask()
                        self._store(key, _serialize(server, request, draw, received))
                        return received, False
            reply, stored_at = entry
            if isinstance(stored_at, float):
                with self._lock:
                    self.oldest = min(stored_at, self.oldest or stored_at)
            return reply, True

    def find(self, server: str, request: Request, draw: str) -> RawReply | None:
        entry = self._find(compute_key(server, request.digest, draw), server, request, draw)
        return None if entry is None else entry[0]

    def _find(self, key: str, server: str, request: Request, draw: str) -> tuple[RawReply, object] | None:
        """Return the reply stored under a key and when it was stored. In a damaged row, the time can be any value.

        Raises RunStopped if the entry is damaged or belongs to another request.
        """
        row = self._text_and_time(key)
        if row is None:
            return None
        text, stored_at = row
        content, received = self._parse_entry(key, text)
        if (content.get("server"), content.get("request"), content.get("draw")) != (server, request.digest, draw):
            raise self._damaged(key)
        return received, stored_at

    @contextmanager
    def _lock_key(
        self, key: str, waiting: Callable[[], AbstractContextManager[object]], check_stop: Callable[[], None]
    ) -> Iterator[None]:
        """Prevent other processes from requesting this key inside the context."""
        locks, byte = self._locks, 1 + int(key[:_LOCK_DIGITS], 16)
        if locks is None:
            yield
            return
        if not locks.acquire(byte):
            with waiting():
                while not locks.acquire(byte):
                    check_stop()
                    time.sleep(_POLL_SECONDS)
        try:
            yield
        finally:
            locks.release(byte)

    def _store(self, key: str, text: str) -> None:
        try:
            self._cache.set(key, text)
        except (OSError, sqlite3.Error, diskcache.Timeout) as error:
            reason = str(error) or "another process has locked it"
            raise RunStopped(f"cannot write the cache {self.folder}: {reason}; is the disk full?") from None

    def __contains__(self, key: str) -> bool:
        return key != _WRITE_TEST_KEY and key in self._cache

    def __len__(self) -> int:
        return len(self._cache) - 1  # does not count _WRITE_TEST_KEY

    @property
    def bytes(self) -> int:
        return int(self._cache.volume())

    def __iter__(self) -> Iterator[str]:
        return (key for key in self._keys() if key not in (None, _WRITE_TEST_KEY))

    def _keys(self) -> Iterator[str | None]:
        """Yield all keys, with None for keys that are not text."""
        for key, raw in self._cache._sql(
            "SELECT CAST(key AS BLOB), raw AND typeof(key) = 'text' FROM Cache ORDER BY rowid"
        ):
            try:
                yield key.decode() if raw else None
            except UnicodeDecodeError:
                yield None

    def entry(self, key: str) -> CacheEntry | None:
        """Return the entry with this key, or None if it is missing.

        Raises RunStopped if it was changed or is damaged, and UsageError if it has another format.
        """
        text = None if key == _WRITE_TEST_KEY else self._text(key)
        if text is None:
            return None
        content, received = self._parse_entry(key, text)
        check_format(content.get("format"), _FORMAT, f"entry {key} of the cache {self.folder}")
        try:
            entry = CacheEntry(content["server"], str(content["asked"]), content["draw"], received)
        except (KeyError, TypeError):
            raise self._damaged(key) from None
        if entry.key != key:
            raise self._damaged(key)
        return entry

    def drop(self, key: str) -> Path | None:
        """Remove an entry. If it is readable, save it as a file and return the file's path. Raises RunStopped."""
        try:
            text = self._text(key)
        except RunStopped:
            text = None
        saved = self.folder / _DROPPED / f"{key}.txt" if text is not None else None
        try:
            if saved is not None:
                saved.parent.mkdir(exist_ok=True)
                saved.write_text(text or "", encoding="utf-8", errors="surrogatepass")
            del self._cache[key]
        except (OSError, sqlite3.Error, diskcache.Timeout) as error:
            raise RunStopped(f"cannot drop {key} from the cache {self.folder}: {error}") from None
        return saved

    def faults(self) -> Iterator[str]:
        """Read all entries and yield a description of each damaged one, which will never be used."""
        for key in self._keys():
            try:
                if key is None:
                    yield f"an entry of the cache {self.folder} is ignored, since its key is not a string"
                elif self.entry(key) is None and self._text(key) is None and key != _WRITE_TEST_KEY:
                    yield str(self._bad(key, "has lost its file"))
            except (RunStopped, UsageError) as error:
                yield str(error)

    def _text(self, key: str) -> str | None:
        row = self._text_and_time(key)
        return None if row is None else row[0]

    def _text_and_time(self, key: str) -> tuple[str, object] | None:
        """Return the text stored under a key and when it was stored.

        Raises RunStopped if the row contains anything other than text.
        """
        query = "SELECT mode, filename, value, store_time FROM Cache WHERE key = ? AND raw = 1"
        try:
            for mode, filename, value, stored_at in self._cache._sql(query, (key,)):
                # The file of a long text may have been deleted.
                with suppress(FileNotFoundError):
                    return self._cache.disk.fetch(mode, filename, value, False), stored_at
            return None
        except (_NotTextError, ValueError):
            raise self._bad(key, "is not a string, so Dubito did not write it") from None
        except sqlite3.OperationalError as error:
            # SQLite's message for a text that is not UTF-8.
            if "decode" in str(error):
                raise self._bad(key, "is not UTF-8 text: it was changed or is damaged") from None
            raise RunStopped(f"cannot read the cache {self.folder}: {one_line(str(error))}") from None
        except (OSError, sqlite3.Error, diskcache.Timeout) as error:
            raise RunStopped(f"cannot read the cache {self.folder}: {one_line(str(error))}") from None

    def _parse_entry(self, key: str, text: str) -> tuple[dict[str, Any], RawReply]:
        digest, _, content_text = text.partition("\n")
        if digest != compute_digest(content_text):
            raise self._damaged(key)
        try:
            content: dict[str, Any] = json.loads(content_text)
            received = RawReply(content["status"], content["raw"], dict(content["headers"]))
        except (ValueError, LookupError, TypeError, RecursionError):
            raise self._damaged(key) from None
        texts = (received.raw, *received.headers, *received.headers.values())
        if type(received.status) is not int or not all(type(text) is str for text in texts):
            raise self._damaged(key)
        return content, received

    def _damaged(self, key: str) -> RunStopped:
        return self._bad(key, "was changed or is damaged")

    def _bad(self, key: str, what: str) -> RunStopped:
        drop = build_command("cache", "drop", key[:_SHOWN_DIGITS], "--cache", self.folder)
        return RunStopped(
            f"entry {key} of the cache {self.folder} {what}",
            hint=f"remove it with `{drop}` to have it requested again",
        )


def _check_folder(folder: Path) -> None:
    """Raise UsageError if the folder is not a cache or the cache's replies are missing."""
    contents = {path.name for path in folder.iterdir()} if folder.exists() else set()
    database, others = (
        folder / _DATABASE,
        {name for name in contents if not name.startswith(_DATABASE)} - _OTHER_CONTENTS,
    )
    if others and _DATABASE not in contents:
        lost = f"has lost its {_DATABASE}" if _LOCKS in others else "exists and is not a reply cache"
        raise UsageError(f"{folder} {lost}: choose another --cache")
    journal = folder / f"{_DATABASE}-wal"
    if _DATABASE in contents and database.stat().st_size == 0:
        if others or (journal.exists() and journal.stat().st_size):
            raise UsageError(f"{database} was emptied, and its replies are lost: restore it, or choose another --cache")
    elif others and _DATABASE in contents:
        with closing(open_guarded(database)) as connection:
            _check_settings(folder, connection)
            check_database_schema(connection, _expected_schema())


@cache
def _expected_schema() -> Mapping[str, SchemaObject]:
    triggers = [
        f"CREATE TRIGGER Settings_{name} AFTER {event} ON Cache FOR EACH ROW BEGIN "  # noqa: S608, its parts are ours
        f'UPDATE Settings SET value = value {change} WHERE key = "{key}"; END'
        for name, event, change, key in _TRIGGERS
    ]
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(";".join((*_TABLES, *triggers)))
        return read_database_schema(connection)


def _check_settings(folder: Path, connection: sqlite3.Connection) -> None:
    """Raise UsageError if tables are missing or a setting has a value that diskcache never writes."""
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not {"Cache", "Settings"} <= tables:
        raise UsageError(f"the cache {folder} has lost its tables and replies: restore it, or choose another --cache")
    known = diskcache.core.DEFAULT_SETTINGS | diskcache.core.METADATA
    settings = dict(connection.execute("SELECT key, value FROM Settings"))
    wrong = [name for name, value in known.items() if type(settings.get(name)) is not type(value)]
    if wrong := sorted({*wrong, *(settings.keys() - known.keys())}, key=str):
        shown = one_line(str(wrong[0]), 40)
        raise UsageError(
            f"the settings of the cache {folder} were changed or are damaged ({shown}): choose another --cache"
        )


def _serialize(server: str, request: Request, draw: str, received: RawReply) -> str:
    """Return an entry's text: the request and the reply, preceded by a digest that detects changes."""
    content = json.dumps(
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
    return f"{compute_digest(content)}\n{content}"
