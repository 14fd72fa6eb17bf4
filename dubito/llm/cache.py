"""Replies on disk, by server, request and draw: what was paid for once is never asked for again.

A diskcache that evicts nothing and holds text only. Its default would drop entries at a gigabyte in
silence, and unpickle whatever an entry's row says (CVE-2025-69872).
"""

import json
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import diskcache

from dubito.errors import RunStopped, UsageError
from dubito.llm.wire import Received, canonical, digest_of

_VERSION: Final = 1
_SETTINGS: Final = {"eviction_policy": "none", "cull_limit": 0, "size_limit": 2**40}


class _TextDisk(diskcache.Disk):  # type: ignore[misc]
    """Text in, text out; a row of any other mode, a pickle above all, is refused."""

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
        return super().store(value, False, key)

    def fetch(self, mode: int, filename: Any, value: Any, read: bool) -> Any:
        if mode not in (diskcache.core.MODE_RAW, diskcache.core.MODE_TEXT) or read:
            raise RunStopped("an entry of the cache is no text: it was not written by Dubito")
        text = super().fetch(mode, filename, value, False)
        if type(text) is not str:
            raise RunStopped("an entry of the cache is no text: it was not written by Dubito")
        return text


class ReplyCache:
    """The open cache; shared by all threads, and by runs one after the other."""

    def __init__(self, folder: Path) -> None:
        """Open or make it; raises UsageError if the folder is something else, or cannot be written."""
        self.folder = folder
        self._flights: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()
        try:
            contents = {path.name for path in folder.iterdir()} if folder.exists() else set()
            if contents - {".gitkeep"} and "cache.db" not in contents:
                raise UsageError(f"{folder} is there and is no cache of replies: choose another --cache")
            self._cache = diskcache.Cache(str(folder), disk=_TextDisk, **_SETTINGS)
            self._cache.set("written", "yes")
        except (OSError, sqlite3.Error) as error:
            raise UsageError(f"cannot use the cache {folder}: {error}; choose another --cache") from None
        kept = {name: getattr(self._cache, name) for name in _SETTINGS}
        if kept != _SETTINGS:
            raise UsageError(f"the cache {folder} would drop replies ({kept}): choose another --cache")

    def close(self) -> None:
        """Close the files."""
        self._cache.close()

    def key(self, server: str, request: str, draw: str) -> str:
        """The key of a reply."""
        return digest_of(canonical([_VERSION, server, request, draw]))

    def once(self, server: str, request: str, draw: str, ask: Callable[[], Received]) -> tuple[Received, bool]:
        """The stored reply, or the asked one, stored before it is used; and whether it was stored already.

        Each key flies once: whoever else wants it waits and gets the first one's. Errors are not stored.
        """
        key = self.key(server, request, draw)
        with self._lock:
            flight = self._flights.setdefault(key, threading.Lock())
        with flight:
            entry = self._cache.get(key)
            if entry is not None:
                return self._read(key, entry, server, request, draw), True
            received = ask()
            entry = {"server": server, "request": request, "draw": draw}
            reply = {"status": received.status, "raw": received.raw, "headers": dict(received.headers)}
            try:
                self._cache.set(key, json.dumps(entry | reply))
            except (OSError, sqlite3.Error) as error:
                raise RunStopped(f"cannot write the cache {self.folder}: {error}; is the disk full?") from None
            return received, False

    def find(self, server: str, request: str, draw: str) -> bool:
        """Whether there is a reply."""
        return self.key(server, request, draw) in self._cache

    def _read(self, key: str, entry: str, server: str, request: str, draw: str) -> Received:
        """An entry that names another request than its key does was tampered with."""
        try:
            content = json.loads(entry)
            named = (content["server"], content["request"], content["draw"])
            received = Received(content["status"], content["raw"], content["headers"])
        except (ValueError, KeyError, TypeError):
            named, received = None, Received(0, "")
        if named != (server, request, draw) or type(received.raw) is not str:
            raise RunStopped(
                f"entry {key} of the cache {self.folder} was changed by hand: delete it, or use another --cache"
            )
        return received
