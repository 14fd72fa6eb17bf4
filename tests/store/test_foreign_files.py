"""Files from elsewhere: what is no run, export or config of anybody's good will is refused in a sentence.

None of it is followed, waited for, or taken into memory first.
"""

import os
import sqlite3
import subprocess
import sys
import zipfile
from contextlib import closing
from pathlib import Path
from shutil import copytree

import pytest

from dubito.errors import UsageError
from dubito.store.folder import to_yaml
from dubito.user_files import from_yaml
from tests.cli.conftest import shell
from tests.cli.kit import REPO, Shell

__all__ = ["shell"]
FINISHED = REPO / "tests" / "freeze" / "finished"
LAUGH = "sizes: &a [3, 3, 3, 3, 3, 3, 3, 3, 3]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
READING = (
    ("replay", "theirs"),
    ("report", "theirs"),
    ("status", "theirs"),
    ("compare", "theirs", "ours"),
    ("runs", "."),
)
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS"


@pytest.fixture
def runs(shell: Shell) -> Shell:
    """A shell with two finished runs."""
    copytree(FINISHED, "ours")
    copytree(FINISHED, "theirs")
    return shell


def refused(shell: Shell, *words: str) -> str:
    """The one sentence that a command ends with before it begins."""
    said = shell(*words)
    assert (said.code, said.out, said.err.count("\n")) == (2, "", 1), said
    return said.err


def change(statement: str, *values: object) -> None:
    """Change their run by hand, whatever its tables say."""
    with closing(sqlite3.connect("theirs/run.db")) as connection, connection:
        connection.executescript("PRAGMA writable_schema=ON")
        connection.execute("UPDATE sqlite_master SET sql = replace(sql, 'NOT NULL', '')")
    with closing(sqlite3.connect("theirs/run.db")) as connection, connection:
        connection.execute(statement, values)


@pytest.mark.parametrize("words", [("run", "laugh.yaml"), ("estimate", "laugh.yaml")])
def test_aliases_are_refused_in_a_config(runs: Shell, words: tuple[str, ...]) -> None:
    Path("laugh.yaml").write_text(LAUGH.replace("sizes", "table_sizes", 1) + "bots: *i\n")
    assert refused(runs, *words).startswith("dubito: laugh.yaml, line 1: not readable as YAML: `&a` names a part: ")


@pytest.mark.parametrize("words", READING[:4])
def test_aliases_are_refused_in_a_run(runs: Shell, words: tuple[str, ...]) -> None:
    manifest = Path("theirs/manifest.yaml")
    manifest.write_text(LAUGH + manifest.read_text() + "provider: *i\n")
    assert "theirs/manifest.yaml is damaged: it is not readable as YAML (line 1: `&a` names" in refused(runs, *words)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("games: *nothing", "line 1: not readable as YAML: `.nothing` names a part"),
        ("bots: [{<<: &x {bot: A}}]", "line 1: not readable as YAML: `&x` names a part"),
        ("\n\nbots: [" + "1," * 50_001 + "]", "line 3: not readable as YAML: it has more than 50,000 values"),
        ("[" * 3000, "not readable as YAML: maximum recursion depth"),
        ("seed: 1" + "0" * 5000, "not readable as YAML: "),
    ],
)
def test_what_yaml_may_hold_is_bounded(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        from_yaml(text, "c.yaml")


def test_our_own_yaml_has_no_aliases() -> None:
    twice = {"parameters": {"top_k": 1, "stop": ["a: #"]}}
    text = to_yaml({"bots": [twice, twice], "rules": twice["parameters"]})
    assert from_yaml(text, "c.yaml") == {"bots": [twice, twice], "rules": twice["parameters"]}


def test_pipes_and_devices_are_not_waited_for(runs: Shell) -> None:
    os.mkfifo("pipe")
    for words in (
        ("run", "pipe"),
        ("replay", "pipe"),
        ("run", "/dev/zero"),
        ("replay", "/dev/zero"),
        ("report", "pipe"),
    ):
        assert f"cannot read {words[1]}: it is a pipe or a device; save it as a file" in refused(runs, *words)
    for name in ("manifest.yaml", "run.db"):
        Path(f"theirs/{name}").rename("aside")
        os.mkfifo(f"theirs/{name}")
        for command in READING[:4]:
            assert f"cannot read theirs/{name}: it is a pipe or a device" in refused(runs, *command)
        Path("aside").rename(f"theirs/{name}")
    Path("theirs/lock").unlink(missing_ok=True)
    os.mkfifo("theirs/lock")
    assert runs("status", "theirs").code == 0


def test_a_shells_own_pipe_is_read(tmp_path: Path) -> None:
    command = f"{sys.executable} -m dubito run <(echo 'gammes: 1')"
    done = subprocess.run(["/bin/bash", "-c", command], cwd=REPO, capture_output=True, text=True, check=False)
    assert "unknown key 'gammes': did you mean 'games'?" in done.stderr


def test_a_file_that_is_too_large_is_not_taken_into_memory(runs: Shell) -> None:
    with Path("large.yaml").open("wb") as file:
        file.truncate(2 << 30)
    for words in (("run", "large.yaml"), ("replay", "large.yaml")):
        assert "large.yaml is too large: what is read from it has at most 16 MB" in refused(runs, *words)
    Path("theirs/manifest.yaml").unlink()
    Path("large.yaml").rename("theirs/manifest.yaml")
    assert "theirs/manifest.yaml is damaged" in refused(runs, "replay", "theirs")


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        (
            f"CREATE VIEW games AS {ENDLESS} game, x'01' AS outcome, NULL AS decisions, NULL AS record FROM n",
            "the view",
        ),
        (f"CREATE VIEW chunks AS {ENDLESS} chunk, 1 AS deals, 1 AS games, x'00' AS digest FROM n", "the view 'chunks'"),
        ("CREATE TRIGGER t AFTER INSERT ON ended BEGIN DELETE FROM games; END", "the trigger 't'"),
        ("CREATE TABLE more (x)", "the table 'more'"),
        ("CREATE VIRTUAL TABLE found USING fts5(x)", "the table 'found'"),
        ("CREATE INDEX slow ON games (hex(zeroblob(100)))", "the index 'slow'"),
        ("ALTER TABLE games ADD COLUMN more TEXT AS (hex(zeroblob(game))) VIRTUAL", "the column 'more'"),
    ],
)
def test_what_no_run_has_is_refused_before_it_is_asked(runs: Shell, statement: str, words: str) -> None:
    if "VIEW" in statement:
        change(f"ALTER TABLE {statement.split()[2]} RENAME TO ended_too")
        change("DROP TABLE ended_too")
    change(statement)
    for command in READING[:4]:
        assert "theirs/run.db is damaged or not a run store: it" in (said := refused(runs, *command))
        assert words in said
    assert "cannot be read: theirs/run.db is damaged or not a run store" in runs("runs", ".").err


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("games.outcome", "text"),
        ("games.record", b"\x00"),
        ("chunks.games", 2**62),
        ("chunks.digest", None),
        ("tally.sums", b"7"),
        ("texts.text", "no blob"),
        ("decisions.p_bluff", float("inf")),
        ("decisions.answer", "yes"),
        ("attempts.input", -5),
        ("attempts.player", b"one"),
        ("tries.tokens", "many"),
        ("tries.seconds", "long"),
        ("tries.usage", b"5"),
        ("tries.picodollars", 2**61),
        ("tries.player", None),
    ],
)
def test_rows_are_read_as_what_they_are(runs: Shell, column: str, value: object) -> None:
    table, _, name = column.partition(".")
    change(f"UPDATE {table} SET {name} = ?", value)  # noqa: S608
    for command in READING[:4]:
        assert f"its {table} hold something that no run writes as {name}" in refused(runs, *command)


def test_a_text_that_is_none_is_a_sentence(runs: Shell) -> None:
    change("UPDATE tries SET player = CAST(x'ff' AS TEXT)")
    for command in READING[1:4]:
        assert "cannot read theirs/run.db: Could not decode to UTF-8" in refused(runs, *command)


def zipped(file: str, parts: list[tuple[str, bytes]], method: int = zipfile.ZIP_DEFLATED) -> None:
    """A zip of these parts; with the manifest of a run, unless there is one."""
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in parts:
            archive.writestr(name, content)


def bomb(file: str, megabytes: int) -> None:
    """An export whose database is nothing, many times."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(FINISHED / "manifest.yaml", "manifest.yaml")
        with archive.open("run.db", "w", force_zip64=True) as part:
            for _ in range(megabytes):
                part.write(bytes(1 << 20))


def test_an_export_unpacks_to_what_runs_do(runs: Shell, tmp_path: Path) -> None:
    """A hundredth of what was seen; and a header that says less changes nothing."""
    bomb("bomb.zip", 32)
    size = Path("bomb.zip").stat().st_size
    data = Path("bomb.zip").read_bytes()
    said = (32 << 20).to_bytes(4, "little")
    assert data.count(said)
    Path("lies.zip").write_bytes(data.replace(said, (4 << 20).to_bytes(4, "little")))
    (tmp_path / "scratch").mkdir()
    environment = os.environ | {"TMPDIR": str(tmp_path / "scratch")}
    for name, words in (("bomb.zip", "holds more than 50 times its size"), ("lies.zip", "is")):
        command = [sys.executable, "-m", "dubito", "replay", name]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done
        assert f"dubito: {name} {words}" in done.stderr
    assert size < 100_000
    assert not [*(tmp_path / "scratch").iterdir()]


@pytest.mark.parametrize("name", ["../run.db", "/run.db", "RUN.DB", "run.db/", "manifest.yaml", "evil.py"])
def test_an_export_holds_its_three_parts_and_nothing_else(runs: Shell, name: str) -> None:
    manifest = (FINISHED / "manifest.yaml").read_bytes()
    with pytest.warns(UserWarning, match="Duplicate") if name == "manifest.yaml" else pytest.MonkeyPatch.context():
        zipped("odd.zip", [("manifest.yaml", manifest), (name, b"x")])
    assert "odd.zip is not an exported run: it should hold" in refused(runs, "replay", "odd.zip")


def test_an_export_is_packed_as_ours_are(runs: Shell) -> None:
    """Other methods of zip files take memory that their sizes do not tell."""
    zipped("odd.zip", [("manifest.yaml", (FINISHED / "manifest.yaml").read_bytes())], zipfile.ZIP_LZMA)
    assert "odd.zip is not an exported run: its manifest.yaml is packed in another way" in refused(
        runs, "replay", "odd.zip"
    )
    zipped("cut.zip", [("manifest.yaml", b"x" * 9999), ("run.db", os.urandom(9999))])
    data = bytearray(Path("cut.zip").read_bytes())
    data[60:90] = bytes(30)
    Path("cut.zip").write_bytes(data)
    assert refused(runs, "replay", "cut.zip").startswith("dubito: cut.zip is damaged: ")


def test_a_long_run_of_bots_fits_into_the_bounds(shell: Shell) -> None:
    words = ("--bots", "StefaBot,RandomBoi", "--games", "600", "--table-sizes", "3", "--max-turns", "1")
    assert shell("run", *words, "--quiet", "--output", "r").code == 0
    assert shell("export", "r", "r.zip").code == 0
    assert shell("replay", "r.zip", "--quiet").code == 0
    assert Path("r/run.db").stat().st_size < 20 * Path("r.zip").stat().st_size, "however dull"
