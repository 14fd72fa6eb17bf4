"""The reply cache: one request per key, no eviction, no unpickling, and damaged entries are rejected."""

import json
import os
import pickle
import sqlite3
import threading
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import diskcache
import pytest

from dubito.errors import RunStopped, UsageError
from dubito.llm.cache import ReplyCache, compute_key
from dubito.llm.request import AccountFault, AttemptFailed, RawReply, Request, compute_digest
from tests.llm.kit import ask

ASKED = ask(1).request
OTHER = ask(2).request
PARTS = ("http://127.0.0.1:1/v1", ASKED, "draw")
KEY = compute_key(PARTS[0], ASKED.digest, PARTS[2])
OTHER_REPLY = RawReply(200, "another")
GOOD = RawReply(200, '{"text": "\ufffd é\\ud800"}', {"request-id": "1"})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def cache(folder: Path) -> Iterator[ReplyCache]:
    with closing(ReplyCache(folder)) as cache:
        yield cache


def says(received: RawReply) -> Callable[[], RawReply]:
    return lambda: received


def never() -> RawReply:
    raise AssertionError("a request was sent although the reply is cached")


def test_first_reply_is_always_reused(cache: ReplyCache, folder: Path) -> None:
    assert KEY not in cache
    assert cache.get_or_ask(*PARTS, says(GOOD)) == (GOOD, False)
    assert cache.get_or_ask(*PARTS, never) == (GOOD, True)
    assert KEY in cache
    with closing(ReplyCache(folder)) as again:
        assert again.get_or_ask(*PARTS, never) == (GOOD, True)


def test_stored_reply_is_read_with_its_age_in_one_query(cache: ReplyCache, folder: Path) -> None:
    cache.get_or_ask(*PARTS, says(GOOD))
    with closing(sqlite3.connect(folder / "cache.db")) as db, db:
        db.execute("UPDATE Cache SET store_time = 1000.5 WHERE key = ?", (KEY,))
    queries: list[str] = []
    cache._cache._con.set_trace_callback(queries.append)
    assert cache.get_or_ask(*PARTS, never) == (GOOD, True)
    assert cache.oldest == 1000.5
    assert len(queries) == 1, queries


@pytest.mark.parametrize("other", [("house", *PARTS[1:]), (PARTS[0], OTHER, PARTS[2]), (*PARTS[:2], "other")])
def test_server_request_and_draw_are_the_key(cache: ReplyCache, other: tuple[str, Request, str]) -> None:
    cache.get_or_ask(*PARTS, says(GOOD))
    different = RawReply(200, "different")
    assert cache.get_or_ask(*other, says(different)) == (different, False)
    assert cache.get_or_ask(*PARTS, never) == (GOOD, True)


def test_parts_of_a_key_are_unambiguous() -> None:
    keys = {compute_key(*parts) for parts in [("ab", "c", "d"), ("a", "bc", "d"), ("a", "b", "cd"), ("abcd", "", "")]}
    assert len(keys) == 4


def test_cache_keys_are_stable() -> None:
    assert KEY == "0371e5f4dbd576dfcd70a1e335ba9cc7b3be6b78a3f55ac93d246a170903a8eb"
    assert ASKED.digest == "5ee33ff63cac751285f67cf5d656cacf4382520b4dd9adaf3bd433e7ef1cc502"


def test_entry_contains_its_request(cache: ReplyCache, folder: Path) -> None:
    cache.get_or_ask(*PARTS, says(GOOD))
    with closing(ReplyCache(folder)) as again:
        entry = again.entry(KEY)
    assert entry is not None
    assert (entry.server, entry.request, entry.draw) == (PARTS[0], ASKED.text, PARTS[2])
    assert (entry.received, entry.key) == (GOOD, KEY)
    assert cache.entry("another") is None


def test_all_keys_and_nothing_else_are_listed_and_counted(cache: ReplyCache) -> None:
    assert (list(cache), len(cache)) == ([], 0)
    for number in range(3):
        cache.get_or_ask("s", ask(number).request, "d", says(GOOD))
    assert list(cache) == [compute_key("s", ask(number).request.digest, "d") for number in range(3)]
    assert len(cache) == 3
    assert [key for key in (*cache, "written") if key not in cache] == ["written"]
    assert cache.entry("written") is None
    assert cache.bytes > 0


def test_one_request_in_flight_per_key(cache: ReplyCache) -> None:
    all_want_it, calls, wanting = threading.Event(), list[int](), list[int]()

    def ask() -> RawReply:
        calls.append(1)
        assert all_want_it.wait(20)
        return RawReply(200, f"the {len(calls)}. answer")

    def one(number: int) -> tuple[RawReply, bool]:
        wanting.append(number)
        if len(wanting) == 64:
            all_want_it.set()
        return cache.get_or_ask(*PARTS, ask)

    with ThreadPoolExecutor(64) as pool:
        answers = list(pool.map(one, range(64)))
    assert calls == [1]
    assert {received.raw for received, _ in answers} == {"the 1. answer"}
    assert sorted(stored for _, stored in answers) == [False] + [True] * 63


def test_different_keys_are_requested_in_parallel(cache: ReplyCache) -> None:
    both = threading.Barrier(2)

    def ask() -> RawReply:
        both.wait(20)
        return GOOD

    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda draw: cache.get_or_ask("s", ASKED, draw, ask), "12"))
    assert answers == [(GOOD, False), (GOOD, False)]


@pytest.mark.parametrize("error", [AttemptFailed("unreachable", "x"), AccountFault("x"), RunStopped("x")])
def test_error_is_not_cached(cache: ReplyCache, error: Exception) -> None:
    def fails() -> RawReply:
        raise error

    for _ in range(2):
        with pytest.raises(type(error)):
            cache.get_or_ask(*PARTS, fails)
    assert cache.get_or_ask(*PARTS, says(GOOD)) == (GOOD, False)


def test_cache_never_evicts(cache: ReplyCache, folder: Path) -> None:
    cache.get_or_ask(*PARTS, says(GOOD))
    with closing(diskcache.Cache(str(folder))) as theirs:
        assert (theirs.eviction_policy, theirs.cull_limit, theirs.size_limit) == ("none", 0, 2**40)


def test_eviction_setting_is_corrected(folder: Path) -> None:
    diskcache.Cache(str(folder)).close()  # diskcache's defaults: least recently stored, 1 GB
    ReplyCache(folder).close()
    with closing(diskcache.Cache(str(folder))) as theirs:
        assert (theirs.eviction_policy, theirs.cull_limit) == ("none", 0)


def test_foreign_folder_is_refused_and_unchanged(folder: Path) -> None:
    folder.mkdir()
    (folder / "thesis.txt").write_text("mine")
    with pytest.raises(UsageError, match=r"cache exists and is not a reply cache: choose another --cache"):
        ReplyCache(folder)
    assert [path.name for path in folder.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize("contents", [[], [".gitkeep"]])
def test_an_empty_folder_becomes_a_cache(folder: Path, contents: list[str]) -> None:
    folder.mkdir()
    for name in contents:
        (folder / name).touch()
    with closing(ReplyCache(folder)) as cache:
        assert cache.get_or_ask(*PARTS, says(GOOD)) == (GOOD, False)


@pytest.mark.parametrize("content", [b"", b"this is no database, and longer than a header of one" * 9])
def test_file_instead_of_the_cache_folder_is_refused(folder: Path, content: bytes) -> None:
    folder.write_bytes(content)
    with pytest.raises(UsageError, match="choose another --cache"):
        ReplyCache(folder)
    assert folder.read_bytes() == content


@pytest.mark.skipif(os.geteuid() == 0, reason="root can write everywhere")
def test_a_read_only_folder_is_refused(folder: Path) -> None:
    ReplyCache(folder).close()
    for path in (*folder.iterdir(), folder):
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        with pytest.raises(UsageError, match=r"cannot use the cache .*choose another --cache"):
            ReplyCache(folder)
    finally:
        folder.chmod(0o755)


def test_impossible_cache_folder_is_refused() -> None:
    with pytest.raises(UsageError, match=r"cannot use the cache /proc/.*choose another --cache"):
        ReplyCache(Path("/proc/nowhere/cache"))


class Evil:
    """Creates a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self._path,))


def change(folder: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(folder / "cache.db")) as connection, connection:
        assert connection.execute(statement, values).rowcount == 1


@pytest.mark.parametrize("mode", [2, 4])  # diskcache's BINARY and PICKLE
def test_pickle_is_refused_unopened(cache: ReplyCache, folder: Path, tmp_path: Path, mode: int) -> None:
    cache.get_or_ask(*PARTS, says(GOOD))
    evil = pickle.dumps(Evil(tmp_path / "opened"))
    change(folder, "UPDATE Cache SET mode = ?, value = ? WHERE key = ?", mode, evil, KEY)
    with pytest.raises(RunStopped, match="so Dubito did not write it"):
        cache.get_or_ask(*PARTS, never)
    assert not (tmp_path / "opened").exists()


def stored(folder: Path, request: Request = ASKED) -> tuple[str, dict[str, Any]]:
    """Return the seal and the content of an entry."""
    key = compute_key(PARTS[0], request.digest, PARTS[2])
    with closing(sqlite3.connect(folder / "cache.db")) as connection:
        ((value,),) = connection.execute("SELECT value FROM Cache WHERE key = ?", (key,))
    seal, _, packed = zlib.decompress(value).decode().partition("\n")
    return seal, json.loads(packed)


def rewrite(folder: Path, seal_anew: bool = False, **changes: Any) -> None:
    """Change parts of the entry directly in the database."""
    seal, content = stored(folder)
    packed = json.dumps(content | changes)
    text = f"{compute_digest(packed) if seal_anew else seal}\n{packed}"
    change(folder, "UPDATE Cache SET value = ? WHERE key = ?", zlib.compress(text.encode("utf-8", "replace")), KEY)


def noise(length: int) -> str:
    return "".join(map(chr, Random(0).choices(range(0xA1, 0x2000), k=length)))


def refused(cache: ReplyCache) -> None:
    """Check that the entry is neither used nor shown, and is listed as damaged."""
    cure = f"remove it with `dubito cache drop {KEY[:16]} --cache .*`"
    sentence = rf"entry {KEY} of the cache .* was changed or is damaged; {cure}"
    with pytest.raises(RunStopped, match=sentence):
        cache.get_or_ask(*PARTS, never)
    with pytest.raises(RunStopped, match=sentence):
        cache.entry(KEY)
    (fault,) = cache.faults()
    assert KEY in fault


CHANGES: list[dict[str, Any]] = [
    *({"server": "house"}, {"request": "another"}, {"draw": "another"}, {"asked": ""}),
    *({"raw": None}, {"raw": 7}, {"raw": GOOD.raw + " "}, {"status": 201}, {"headers": {}}, {"more": 1}),
]


@pytest.mark.parametrize("changes", CHANGES, ids=str)
def test_a_changed_entry_is_refused(cache: ReplyCache, folder: Path, changes: dict[str, Any]) -> None:
    cache.get_or_ask(*PARTS, says(GOOD))
    rewrite(folder, **changes)
    refused(cache)


@pytest.mark.parametrize("changes", [{"server": "house"}, {"draw": "another"}], ids=str)
def test_sealed_entry_with_other_content_is_refused(cache: ReplyCache, folder: Path, changes: dict[str, Any]) -> None:
    cache.get_or_ask(*PARTS, says(GOOD))
    rewrite(folder, seal_anew=True, **changes)
    refused(cache)


def test_a_request_of_another_entry_is_not_shown(cache: ReplyCache, folder: Path) -> None:
    cache.get_or_ask(*PARTS, says(GOOD))
    cache.get_or_ask(PARTS[0], OTHER, PARTS[2], says(GOOD))
    rewrite(folder, seal_anew=True, asked=stored(folder, OTHER)[1]["asked"])
    with pytest.raises(RunStopped, match="was changed or is damaged"):
        cache.entry(KEY)


@pytest.mark.parametrize("text", ["", "null", "[]", "7", '"text"', "\n{}", "a seal\n{}"])
def test_invalid_entry_text_is_refused(cache: ReplyCache, folder: Path, text: str) -> None:
    cache.get_or_ask(*PARTS, says(GOOD))
    change(folder, "UPDATE Cache SET value = ? WHERE key = ?", text, KEY)
    refused(cache)


def test_unchanged_entries_have_no_faults(cache: ReplyCache, folder: Path) -> None:
    """Check that the tests above fail because of their changes."""
    cache.get_or_ask(*PARTS, says(GOOD))
    cache.get_or_ask(PARTS[0], OTHER, PARTS[2], says(GOOD))
    rewrite(folder)
    assert cache.get_or_ask(*PARTS, never) == (GOOD, True)
    assert list(cache.faults()) == []


def test_a_long_reply_is_kept_whole(cache: ReplyCache, folder: Path) -> None:
    """Above 32 KiB, diskcache stores the value in a separate file."""
    long = RawReply(200, json.dumps({"text": noise(200_000)}), {})
    cache.get_or_ask(*PARTS, says(long))
    assert cache.get_or_ask(*PARTS, never) == (long, True)
    with closing(ReplyCache(folder)) as again:
        assert again.get_or_ask(*PARTS, never) == (long, True)


def test_dropped_entry_is_moved_and_requested_again(cache: ReplyCache, folder: Path) -> None:
    cache.get_or_ask(*PARTS, says(GOOD))
    cache.get_or_ask("house", *PARTS[1:], says(GOOD))
    rewrite(folder, raw="changed")
    with pytest.raises(RunStopped):
        cache.get_or_ask(*PARTS, never)
    aside = cache.drop(KEY)
    assert aside is not None
    assert '"changed"' in aside.read_text()
    assert cache.get_or_ask("house", *PARTS[1:], never) == (GOOD, True)
    assert cache.get_or_ask(*PARTS, says(OTHER_REPLY)) == (OTHER_REPLY, False)
    with closing(ReplyCache(folder)) as again:
        assert again.get_or_ask(*PARTS, never) == (OTHER_REPLY, True)


def test_changed_value_file_is_refused_by_name(cache: ReplyCache, folder: Path) -> None:
    cache.get_or_ask(*PARTS, says(RawReply(200, noise(200_000))))
    (file,) = folder.glob("*/*/*.val")
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(RunStopped, match=f"entry {KEY} of the cache .* is not a string"):
        cache.get_or_ask(*PARTS, never)
