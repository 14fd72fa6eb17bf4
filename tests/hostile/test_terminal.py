"""No string in a file from elsewhere can control the terminal.

Output to a pipe would hide such strings, so commands print to a terminal.
"""

import contextlib
import json
import os
import re
import shutil
import sqlite3
import sys
import zipfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Thread
from typing import Any, Final

import pytest
import yaml

from dubito.cli.main import main
from dubito.errors import printable, printable_json
from dubito.report.render import Renderer, Site, embed_json
from dubito.report.tables import Page
from tests.cli.kit import run_in
from tests.conftest import in_gate

# Clipboard, cursor, one-byte forms, text direction, and zero-width characters.
STEERING: Final = (
    "\x1b]52;c;aGk=\x07\x1b[7;7H\x9b7;7H\x9d0;t\x9c\u202e\u2066\u200b\u200d\u2060\ufeff\u034f\U000e0041\x08\r"
)
_OWN: Final = re.compile(r"\x1b\[[0-9;?]*[mKAlhJ]")  # colours, redrawn lines, and hiding the cursor


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Set up a folder with a run, its export, a saved game, a position, and a recorded trial of a prompt."""
    folder = tmp_path_factory.mktemp("stranger")
    players = ["--bots", "StefaBot,UsualBot,RandomBoi", "--contenders", "house:house-sharp@plain", "--table-sizes", "3"]
    run_in(folder, "run", *players, "--games", "2", "--output", "r", "--quiet", "--no-report", "--workers", "1")
    run_in(folder, "export", "r", "r.zip", "--quiet")
    run_in(folder, "prompts", "record", "r", "--count", "2", "--output", "positions")
    trial = ("--model", "house:house-sharp", "--positions", "positions", "--output", "t", "--quiet")
    run_in(folder, "prompts", "test", "plain", *trial)
    run_in(folder, "watch", "StefaBot", "UsualBot", "ClaudeBot", "--save", "game.json", "--seed", "1")
    return folder


@pytest.fixture
def home(stranger: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Copy that folder and make it the working directory."""
    shutil.copytree(stranger, tmp_path / "home")
    monkeypatch.chdir(tmp_path / "home")
    monkeypatch.setenv("TERM", "xterm-256color")
    return tmp_path / "home"


def on_terminal(*words: str) -> str:
    """Return what the command writes to a terminal. Any exit code is accepted, but no traceback."""
    master, slave = os.openpty()
    received = bytearray()

    def listen() -> None:
        with contextlib.suppress(OSError):  # the other end is closed
            while block := os.read(master, 1 << 16):
                received.extend(block)

    reader = Thread(target=listen)
    reader.start()
    with open(slave, "w", encoding="utf-8") as terminal, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", terminal)
        patch.setattr(sys, "stderr", terminal)
        assert sys.stdout.isatty()
        with pytest.raises(SystemExit) as ended:
            main(words)
    reader.join()
    os.close(master)
    assert ended.value.code in (0, 1, 2, 3)
    return received.decode()


def steers(text: str) -> list[str]:
    return [one for one in _OWN.sub("", text.replace("\r\n", "\n")) if printable(one) != one or one == "\t"]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of all strings, but only one for each list."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from places(inner, (*path, key))
    elif isinstance(value, list):
        yield from {
            (*map(str, found),): found for at, one in enumerate(value[:2]) for found in places(one, (*path, at))
        }.values()
    elif isinstance(value, str):
        yield path


def poison(value: Any, path: tuple[Any, ...]) -> Any:
    """Return the value with control characters appended to the string at this path."""
    if not path:
        return value + STEERING
    copy = value.copy()
    copy[path[0]] = poison(value[path[0]], path[1:])
    return copy


def test_saved_game_cannot_steer_the_terminal(home: Path, at_length: bool) -> None:
    game = json.loads((home / "game.json").read_text())
    found = [*places(game)]
    assert {("story", 1), ("players", 0)} <= {*found}
    for path in found if at_length else [("story", 1), ("players", 0), ("format",)]:
        (home / "game.json").write_text(json.dumps(poison(game, path)))
        assert steers(on_terminal("replay", "game.json")) == [], path
    (home / "game.json").write_text(json.dumps(game | {STEERING: STEERING}))
    assert steers(on_terminal("replay", "game.json")) == []


def test_file_of_a_position_cannot_steer_the_terminal(home: Path) -> None:
    file = next((home / "positions").glob("*.json"))
    position = json.loads(file.read_text())
    for path in places(position):
        file.write_text(json.dumps(poison(position, path)))
        assert steers(on_terminal("prompts", "show", "plain", "--position", str(file))) == [], path


def columns(database: Path) -> list[tuple[str, str]]:
    with closing(sqlite3.connect(database)) as db:
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return [(t, c) for t in tables for _, c, kind, *_ in db.execute(f"PRAGMA table_info({t})") if kind == "TEXT"]


_READ: Final = {
    "r": ("status r", "replay r --quiet", "replay r --game 0", "runs .", "report r"),
    "t": ("prompts test plain --model house:house-sharp --positions positions --output t --quiet --offline",),
}


@pytest.mark.parametrize("run", _READ)
def test_a_run_and_a_recorded_trial(home: Path, run: str, at_length: bool) -> None:
    database = home / run / "run.db"
    clean = database.read_bytes()
    found = columns(database)
    assert ("decisions", "outcome") in found
    commands = _READ[run] if at_length else _READ[run][:1]
    for table, column in found if at_length else [("decisions", "outcome"), ("attempts", "player")]:
        database.write_bytes(clean)
        with closing(sqlite3.connect(database)) as db, db, contextlib.suppress(sqlite3.IntegrityError):
            db.execute(f"UPDATE {table} SET {column} = {column} || ?", (STEERING,))  # noqa: S608, names of its own
        for command in commands:
            assert steers(on_terminal(*command.split())) == [], (table, column, command)


def test_exported_run_cannot_steer_the_terminal(home: Path, at_length: bool) -> None:
    with zipfile.ZipFile(home / "r.zip") as export:
        files = {name: export.read(name) for name in export.namelist()}
    name = next(name for name in files if name.endswith("manifest.yaml"))
    manifest = yaml.safe_load(files[name])
    found = [*places(manifest)]
    few_of_them = [("identity", "bots", 0, "name"), ("identity", "contenders", 0, "settings", "model")]
    assert not {*few_of_them} - {*found}
    for path in found if at_length else few_of_them:
        with zipfile.ZipFile(home / "r.zip", "w") as export:
            for other, text in files.items():
                export.writestr(other, yaml.safe_dump(poison(manifest, path)) if other == name else text)
        for command in in_gate(("replay r.zip --quiet", "status r.zip", "report r.zip"), 2):
            assert steers(on_terminal(*command.split())) == [], (path, command)


def test_json_output_is_escaped_and_stays_the_same_value() -> None:
    text = json.dumps({"a": STEERING}, ensure_ascii=False)
    assert [one for one in printable_json(text) if printable(one) != one] == []
    assert json.loads(printable_json(text)) == {"a": STEERING}


def test_users_text_is_shown_unchanged() -> None:
    text = "José ♠️ 梅花 \t a\u00a0b\u3000c\nλ 🂡"
    assert printable(text) is text or printable(text) == text


def test_a_page_shows_it_escaped(tmp_path: Path) -> None:
    page = Renderer(Site(f"run {STEERING}"))(Page("index.html", f"Title {STEERING}", [], {"text": STEERING}))
    assert [one for one in page if printable(one) != one] == []
    assert "\\u202e" in page
    data = json.loads(str(embed_json({STEERING: [STEERING, {"a": STEERING}]})))
    ((key, (first, second)),) = data.items()
    assert key == first == second["a"] == printable(STEERING)
