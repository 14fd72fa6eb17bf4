"""A read-only or partly damaged cache: damaged entries are named and can be dropped, others work."""

import os
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from shutil import copytree, rmtree
from tempfile import mkdtemp
from typing import Any

import pytest
import yaml

from dubito.errors import RunStopped
from dubito.llm.cache import ReplyCache
from tests.cli.kit import Shell, run_in
from tests.conftest import in_gate
from tests.llm.conftest import unhurried
from tests.llm.test_cache import GOOD, PARTS, change, says

__all__ = ["unhurried"]
CONFIG = {"bots": ["StefaBot", "UsualBot"], "contenders": ["house:house-sharp"], "games": 1, "table_sizes": [3]}


def keys(folder: Path) -> list[str]:
    with closing(sqlite3.connect(folder / "cache.db")) as connection:
        return [key for (key,) in connection.execute("SELECT key FROM Cache WHERE key <> 'written' ORDER BY rowid")]


def in_row(column: str, value: str) -> Callable[[str], None]:
    return lambda key: change(Path("cache"), f"UPDATE Cache SET {column} = {value} WHERE key = ?", key)  # noqa: S608


DAMAGES = {
    "a byte that is no UTF-8": in_row("value", "CAST(x'ff' || substr(CAST(value AS BLOB), 2) AS TEXT)"),
    "half of it": in_row("value", "substr(value, 1, length(value) / 2)"),
    "bytes": in_row("value", "substr(value, 2)"),
    "a number": in_row("value", "7"),
    "a pickle": in_row("mode", "4"),
    "a mode that is none": in_row("mode", "'x'"),
    "a file that is not there": in_row("mode = 3, value = NULL, filename", "'no/such.val'"),
    "somebody else's file": in_row("mode = 3, value = NULL, filename", "'../mine.txt'"),
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Set up a folder in which a run with a model was played."""
    home = tmp_path_factory.mktemp("home")
    (home / "c.yaml").write_text(yaml.safe_dump(CONFIG))
    run_in(home, "run", "c.yaml", "--output", "r", "--quiet", "--no-report")
    return home


@pytest.fixture
def played(home: Path, shell: Shell, unhurried: None) -> Shell:
    copytree(home, shell.folder, dirs_exist_ok=True)
    return shell


@pytest.mark.parametrize("damage", in_gate(DAMAGES, 2))
def test_a_damaged_entry_is_named_and_can_be_dropped(played: Shell, damage: str) -> None:
    Path("mine.txt").write_text("mine")
    bad, other, *_ = found = keys(Path("cache"))
    DAMAGES[damage](bad)
    DAMAGES["half of it"](other)
    result = played("cache", "verify")
    assert result.code == 1
    lines = result.out.splitlines()
    assert [key in line for key, line in zip((bad, other), lines, strict=False)] == [True, True]
    assert f"`dubito cache drop {bad[:16]} --cache cache`" in lines[0]
    assert lines[-1] == f"{len(found):,} replies, 2 damaged"
    asked = played("run", "c.yaml", "--output", "s", "--quiet", "--offline")
    assert (asked.code, asked.err.count("\n")) in ((3, 1), (3, 2))
    assert played("cache", "drop", bad[:16]).code == 0
    assert played("cache", "drop", other[:16]).code == 0
    assert played("cache", "verify").out == f"{len(found) - 2:,} replies, 0 damaged\n"
    assert Path("mine.txt").read_text() == "mine"


@pytest.mark.parametrize("key", in_gate(["x'ff'", "CAST(x'ff' AS TEXT)", "7"], 1))
def test_invalid_key_hides_no_other_entry(played: Shell, key: str) -> None:
    bad, other, *_ = keys(Path("cache"))
    DAMAGES["half of it"](other)
    change(Path("cache"), f"UPDATE Cache SET key = {key} WHERE key = ?", bad)  # noqa: S608
    result = played("cache", "verify")
    first, second, _ = result.out.splitlines()
    assert (result.code, first) == (1, "an entry of the cache cache is ignored, since its key is not a string")
    assert f"entry {other} of the cache" in second


@contextmanager
def as_nobody() -> Iterator[None]:
    """Drop root privileges within the context, since root can write everywhere."""
    if os.getuid() != 0:
        yield
        return
    os.setresgid(65534, 65534, 0)
    os.setresuid(65534, 65534, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)
        os.setresgid(0, 0, 0)


def test_read_only_cache_can_be_read(tmp_path: Path) -> None:
    """A run writes nothing to a read-only cache, and sends no request."""
    outside = Path(mkdtemp())  # a folder that other users can enter
    try:
        with closing(ReplyCache(outside / "cache")) as cache:
            cache.get_or_ask(*PARTS, says(GOOD))
        for path in [*(outside / "cache").rglob("*"), outside / "cache", outside]:
            path.chmod(0o555 if path.is_dir() else stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH)

        def asked() -> Any:
            raise RunStopped("it was asked")

        with as_nobody(), closing(ReplyCache(outside / "cache", writes=False)) as cache:
            assert cache.get_or_ask(*PARTS, asked) == (GOOD, True)
            with pytest.raises(RunStopped, match="it was asked"):
                cache.get_or_ask(PARTS[0], PARTS[1], "another draw", asked)
            (key,) = cache
            assert (len(cache), key in cache, [*cache.faults()], cache.bytes > 0) == (1, True, [], True)
    finally:
        for path in [outside, outside / "cache"]:
            path.chmod(0o755)
        rmtree(outside)
