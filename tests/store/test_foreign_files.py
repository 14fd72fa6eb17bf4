"""Files from elsewhere: invalid runs, exports and configs are rejected with one sentence.

Links in them are not followed, and they are neither waited for nor loaded into memory first.
"""

import csv
import io
import os
import re
import sqlite3
import tempfile
import zipfile
from contextlib import closing
from pathlib import Path
from shutil import copytree

import pytest
import yaml

from dubito import files
from dubito.errors import UsageError
from dubito.files import from_yaml
from dubito.plugins.study.dataset import _escape
from dubito.report.tables import Column, ResultTable
from dubito.store.folder import to_yaml
from tests.cli.kit import REPO, Shell

FINISHED = REPO / "tests" / "freeze" / "finished"
LAUGH = "sizes: &a [3, 3, 3, 3, 3, 3, 3, 3, 3]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
READING = (
    ("replay", "theirs"),
    ("report", "theirs"),
    ("status", "theirs"),
    ("compare", "theirs", "ours"),
    ("status", "."),
)
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS"


@pytest.fixture
def runs(shell: Shell) -> Shell:
    copytree(FINISHED, "ours")
    copytree(FINISHED, "theirs")
    return shell


def refused(shell: Shell, *words: str) -> str:
    result = shell(*words)
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1), result
    return result.err


def change(statement: str, *values: object) -> None:
    """Change the run's database directly, even against its schema, which stays the same to the letter."""
    with closing(sqlite3.connect("theirs/run.db")) as connection, connection:
        connection.executescript("PRAGMA writable_schema=ON")
        schema = connection.execute("SELECT sql, name FROM sqlite_master WHERE sql LIKE '%NOT NULL%'").fetchall()
        connection.execute("UPDATE sqlite_master SET sql = replace(sql, 'NOT NULL', '')")
    with closing(sqlite3.connect("theirs/run.db")) as connection, connection:
        connection.execute(statement, values)
    with closing(sqlite3.connect("theirs/run.db")) as connection, connection:
        connection.executescript("PRAGMA writable_schema=ON")
        if statement.startswith("UPDATE"):
            connection.executemany("UPDATE sqlite_master SET sql = ? WHERE name = ?", schema)


def test_large_yaml_aliases_are_refused(shell: Shell) -> None:
    Path("laugh.yaml").write_text(LAUGH.replace("sizes", "table_sizes", 1) + "bots: *i\n")
    message = refused(shell, "run", "laugh.yaml")
    assert re.match(r"dubito: laugh.yaml, line \d+: not valid YAML: it has more than 50,000 values\n", message)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: &x [1, 2]\nb: *x", {"a": [1, 2], "b": [1, 2]}),
        ("{a: &x {k: 1}, b: {<<: *x, l: 2}}", {"a": {"k": 1}, "b": {"k": 1, "l": 2}}),
        ("a: &a {x: 1}\np: {b: &b {<<: *a, x: 2}}\nc: {<<: *b}", {"a": {"x": 1}, "p": {"b": {"x": 2}}, "c": {"x": 2}}),
        (
            "a: &a {x: 1}\nb: &b {x: 2, y: 3}\nc: {<<: [*a, *b]}",
            {"a": {"x": 1}, "b": {"x": 2, "y": 3}, "c": {"x": 1, "y": 3}},
        ),
    ],
)
def test_yaml_alias_is_resolved(text: str, value: object) -> None:
    assert from_yaml(text, "mine") == value


def test_an_alias_inside_its_own_part_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^mine, line 1: not valid YAML: `\*x` refers to a part that contains it"):
        from_yaml("a: &x {k: [*x]}", "mine")


@pytest.mark.parametrize(
    ("number", "base"),
    [("010", 8), ("-07", 8), ("0_10", 8), ("00", 8), ("1:30", 60), ("+190:20:30", 60), ("-1:30.5", 60)],
)
def test_a_number_that_yaml_reads_in_another_base_is_refused(number: str, base: int) -> None:
    with pytest.raises(UsageError, match=r"^mine, line 2: not valid YAML: ") as refused:
        from_yaml(f"games: 5\nseed: {number}", "mine")
    assert f"YAML reads {number} in base {base}: write the number in base 10, or quote it" in str(refused.value)
    assert from_yaml(f"seed: '{number}'", "mine") == {"seed": number}


@pytest.mark.parametrize(
    ("text", "value"), [("0", 0), ("-0.5", -0.5), ("0x1f", 31), ("1_000", 1000), ("1.0e+3", 1000.0), ("0.0", 0.0)]
)
def test_other_numbers_are_unchanged(text: str, value: float) -> None:
    assert from_yaml(f"seed: {text}", "mine") == {"seed": value}


@pytest.mark.parametrize(
    "value",
    [
        *("!!bool maybe", "!!int ''", "!!float ''", "!!timestamp never", "!!map [1]", "!!set [1]", "{? !!set {a} : 1}"),
        *("1" + ":1" * 300 + ".5", "1" + ":1" * 100_000, "0x" + "f" * 6000, "1" + "0" * 5000 + ".0"),
    ],
)
def test_invalid_yaml_values_are_refused_in_a_sentence(value: str) -> None:
    with pytest.raises(UsageError, match=r"^theirs(, line 1)?: not valid YAML: ") as refused:
        from_yaml(f"seed: {value}", "theirs")
    assert len(str(refused.value)) < 400


@pytest.mark.parametrize(
    ("format", "shown"), [(3, "format 3"), (5, "format 5"), ("4", "format 4"), (None, "no format")]
)
def test_run_of_another_format_is_refused_by_every_command(runs: Shell, format: object, shown: str) -> None:
    result = runs("export", "theirs", "theirs.zip")
    assert result.code == 0, result.err
    content = yaml.safe_load(Path("theirs/manifest.yaml").read_text())
    assert content.pop("format") == 4
    manifest = to_yaml(content if format is None else content | {"format": format})
    Path("theirs/manifest.yaml").write_text(manifest)
    zipped("theirs.zip", [("manifest.yaml", manifest.encode()), ("run.db", Path("ours/run.db").read_bytes())])
    for file in ("theirs", "theirs.zip"):
        words = f"{file}/manifest.yaml was written by another version of Dubito ({shown}; this one reads 4): use that"
        for command in READING[:4]:
            assert words in refused(runs, *(file if word == "theirs" else word for word in command))
    assert "another version of Dubito" in refused(runs, "run", "--bots", "StefaBot,UsualBot", "--output", "theirs")


@pytest.mark.parametrize("version", [3, 5])
def test_store_of_another_format_in_a_run_is_refused(runs: Shell, version: int) -> None:
    with closing(sqlite3.connect("theirs/run.db")) as connection:
        connection.execute(f"PRAGMA user_version={version}")
    words = f"theirs/run.db was written by another version of Dubito (format {version}; this one reads 4): use that"
    for command in READING[:4]:
        assert words in refused(runs, *command)


def test_large_yaml_aliases_are_refused_in_a_run(runs: Shell) -> None:
    manifest = Path("theirs/manifest.yaml")
    manifest.write_text(LAUGH + manifest.read_text() + "provider: *i\n")
    for words in READING[:4]:
        message = refused(runs, *words)
        assert re.search(r"manifest.yaml is damaged: it is not valid YAML \(line \d+: it has more than 50,000", message)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("games: *nothing", "line 1: not valid YAML: found undefined alias 'nothing'"),
        ("bots: [{<<: bot}]", "line 1: not valid YAML: `<<` requires a mapping or a list of mappings"),
        ("[" * 3000, "not valid YAML: maximum recursion depth"),
        ("seed: 1" + "0" * 5000, "not valid YAML: "),
    ],
)
def test_size_of_yaml_is_bounded(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        from_yaml(text, "c.yaml")


def test_number_of_yaml_values_is_bounded(monkeypatch: pytest.MonkeyPatch, at_length: bool) -> None:
    assert files._MAX_YAML_VALUES == 50_000
    if not at_length:
        monkeypatch.setattr(files, "_MAX_YAML_VALUES", 500)
    most = files._MAX_YAML_VALUES
    with pytest.raises(UsageError, match=f"line 3: not valid YAML: it has more than {most:,} values"):
        from_yaml("\n\nbots: [" + "1," * (most + 1) + "]", "c.yaml")


def test_written_yaml_has_no_aliases() -> None:
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


def test_pipe_of_the_shell_is_read(shell: Shell) -> None:
    """`<(echo 'gammes: 1')` creates such a pipe."""
    reads, writes = os.pipe()
    with open(reads), open(writes, "w") as pipe:
        pipe.write("gammes: 1\n")
        pipe.close()
        assert "unknown key 'gammes': did you mean 'games'?" in refused(shell, "run", f"/dev/fd/{reads}")


def test_file_over_the_limit_is_not_loaded(runs: Shell) -> None:
    with Path("large.yaml").open("wb") as file:
        file.truncate(2 << 30)
    for words in (("run", "large.yaml"), ("replay", "large.yaml")):
        assert "large.yaml is too large: Dubito reads at most 16 MB" in refused(runs, *words)
    Path("theirs/manifest.yaml").unlink()
    Path("large.yaml").rename("theirs/manifest.yaml")
    assert "theirs/manifest.yaml is damaged" in refused(runs, "replay", "theirs")


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        (
            f"CREATE VIEW games AS {ENDLESS} game, x'01' AS outcome, NULL AS decisions, NULL AS record FROM n",
            "unexpected view",
        ),
        ("CREATE TRIGGER t AFTER INSERT ON ended BEGIN DELETE FROM games; END", "unexpected trigger 't'"),
        ("CREATE TABLE more (x)", "unexpected table 'more'"),
        ("CREATE INDEX slow ON games (hex(zeroblob(100)))", "unexpected index 'slow'"),
        ("ALTER TABLE games ADD COLUMN more TEXT AS (hex(zeroblob(game))) VIRTUAL", "unexpected column 'more'"),
    ],
)
def test_foreign_schema_is_refused_before_any_query(runs: Shell, statement: str, words: str) -> None:
    if "VIEW" in statement:
        change(f"ALTER TABLE {statement.split()[2]} RENAME TO ended_too")
        change("DROP TABLE ended_too")
    change(statement)
    for command in READING[:4]:
        assert "theirs/run.db is damaged or not a run store: " in (message := refused(runs, *command))
        assert words in message
    assert "cannot be read: theirs/run.db is damaged or not a run store" in runs("status", ".").err


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("games.outcome", "text"),
        ("chunks.games", 2**62),
        ("chunks.digest", None),
        ("texts.text", "no blob"),
        ("decisions.p_bluff", float("inf")),
        ("decisions.answer", "yes"),
        ("attempts.input", -5),
        ("tries.seconds", "long"),
        ("tries.player", None),
    ],
)
def test_rows_with_invalid_values_are_refused(runs: Shell, column: str, value: object) -> None:
    table, _, name = column.partition(".")
    change(f"UPDATE {table} SET {name} = ?", value)  # noqa: S608
    for command in READING[:4]:
        assert f"invalid value of {name} in {table}" in refused(runs, *command)


def test_invalid_text_is_reported_in_one_sentence(runs: Shell) -> None:
    change("UPDATE tries SET player = CAST(x'ff' AS TEXT)")
    for command in READING[1:4]:
        assert "cannot read theirs/run.db: Could not decode to UTF-8" in refused(runs, *command)


def zipped(file: str, parts: list[tuple[str, bytes]], method: int = zipfile.ZIP_DEFLATED) -> None:
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in parts:
            archive.writestr(name, content)


def bomb(file: str, megabytes: int) -> None:
    """Return an export whose database is a long run of zeros."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(FINISHED / "manifest.yaml", "manifest.yaml")
        with archive.open("run.db", "w", force_zip64=True) as part:
            for _ in range(megabytes):
                part.write(bytes(1 << 20))


def test_export_unpacks_to_a_normal_run(runs: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bombs are rejected before they are unpacked, even if a header states a smaller size."""
    bomb("bomb.zip", 32)
    size = Path("bomb.zip").stat().st_size
    data = Path("bomb.zip").read_bytes()
    text = (32 << 20).to_bytes(4, "little")
    assert data.count(text)
    Path("lies.zip").write_bytes(data.replace(text, (4 << 20).to_bytes(4, "little")))
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratch"))
    for name, words in (("bomb.zip", "unpacks to more than 50 times its size"), ("lies.zip", "is")):
        assert refused(runs, "replay", name).startswith(f"dubito: {name} {words}")
    assert size < 100_000
    assert not [*(tmp_path / "scratch").iterdir()]


@pytest.mark.parametrize("name", ["../run.db", "/run.db", "RUN.DB", "run.db/", "manifest.yaml", "evil.py"])
def test_export_contains_exactly_three_parts(runs: Shell, name: str) -> None:
    manifest = (FINISHED / "manifest.yaml").read_bytes()
    with pytest.warns(UserWarning, match="Duplicate") if name == "manifest.yaml" else pytest.MonkeyPatch.context():
        zipped("odd.zip", [("manifest.yaml", manifest), (name, b"x")])
    assert "odd.zip is not an exported run: it should contain" in refused(runs, "replay", "odd.zip")


def test_export_with_foreign_packing_is_refused(runs: Shell) -> None:
    """Compression methods other than deflate can use more memory than the sizes suggest."""
    zipped("odd.zip", [("manifest.yaml", (FINISHED / "manifest.yaml").read_bytes())], zipfile.ZIP_LZMA)
    assert "odd.zip is not an exported run: its manifest.yaml uses an unknown compression method" in refused(
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
    assert Path("r/run.db").stat().st_size < 20 * Path("r.zip").stat().st_size, (
        "even a repetitive run has a lower ratio"
    )


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        (
            "UPDATE games SET outcome = x'00ff'",
            "theirs/run.db is damaged: the row of a game is invalid|theirs/run.db: games 0 to 5 were changed",
        ),
        ("UPDATE chunks SET games = 1000000000000", "its chunks have 1,000,000,000,000 games, but only 6 are stored"),
        ("UPDATE decisions SET node = 'nowhere'", "dubito has no node 'nowhere'|the decision differs"),
        ("UPDATE tries SET usage = '[1, 2]' WHERE usage IS NOT NULL", "is damaged: a row has invalid token counts"),
        ("UPDATE tries SET usage = replace(hex(zeroblob(50000)), '0', '[')", "a row contains invalid JSON"),
    ],
)
def test_invalid_rows_are_reported_in_one_sentence(runs: Shell, statement: str, words: str) -> None:
    change(statement)
    for command in (("report", "theirs"), ("export", "theirs", "--dataset", "d", "--quiet")):
        if command[0] == "export" and "usage" in statement:  # a dataset does not include usage
            continue
        result = runs(*command)
        assert (result.code, result.err.count("\n")) in ((2, 1), (3, 1)), result
        assert re.search(words, result.err), result.err


def test_report_without_games_names_the_damage(runs: Shell) -> None:
    change("UPDATE decisions SET answer = x'00ff'")
    assert runs("report", "theirs").code == 0
    assert "is damaged: a row contains invalid JSON" in Path("theirs/report/games.html").read_text()
    result = runs("export", "theirs", "--dataset", "d", "--quiet")
    assert (result.code, "is damaged: a row contains invalid JSON" in result.err) == (3, True)


@pytest.mark.parametrize("record", ["-5", '{"outputs": 7}', "[" * 100_000])
def test_invalid_record_is_not_shown(runs: Shell, record: str) -> None:
    change("UPDATE games SET record = ?", record)
    assert runs("report", "theirs").code == 0


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("table_sizes", 3, "identity.table_sizes"),
        ("table_sizes", [10**9], "identity.table_sizes.0"),
        ("bots", [], "identity.bots"),
        ("contenders", 7, "identity.contenders"),
        ("shard", {"number": 1, "of": 10**18, "games": 6, "first_game": 0}, "identity.shard.of"),
    ],
)
def test_impossible_manifest_is_refused(runs: Shell, key: str, value: object, words: str) -> None:
    content = yaml.safe_load(Path("theirs/manifest.yaml").read_text())
    content["identity"][key] = value
    Path("theirs/manifest.yaml").write_text(yaml.safe_dump(content))
    for command in (*READING[:4], ("merge", "theirs")):
        assert f"theirs/manifest.yaml is damaged: {words}: " in refused(runs, *command)


def test_invalid_address_causes_no_traceback(runs: Shell) -> None:
    content = yaml.safe_load(Path("theirs/manifest.yaml").read_text())
    content["identity"]["contenders"][0]["settings"]["base_url"] = -1
    Path("theirs/manifest.yaml").write_text(yaml.safe_dump(content))
    assert runs("status", "theirs").code == 0


@pytest.mark.parametrize("name", ["=HYPERLINK(1)", "+1+cmd|' /C calc'!A0", "-2+3", "@SUM(1)", "\t=1"])
def test_names_are_not_spreadsheet_formulas(name: str) -> None:
    table = ResultTable("t", "T", [Column("bot", "bot", "text", [name, "B"]), Column("x", "x", "count", [-5, 7])])
    first, second = list(csv.reader(io.StringIO(table.to_csv())))[1:]
    assert (first, second) == ([f"'{name}", "-5"], ["B", "7"])


def test_names_are_escaped_in_a_dataset_card() -> None:
    text = _escape("[x](https://x.org) <img src=x> `a` **b**\n# c www.d.org @e | f")
    assert not re.search(r"(?<!\\)[\[\]()<>`*#@|:.]", text)
    assert text.count("\n") == 0


def test_report_does_not_follow_a_runs_symlink(runs: Shell) -> None:
    kept = Path("mine/index.html")
    kept.parent.mkdir()
    Path("mine/.dubito-report").touch()
    kept.write_text("mine")
    Path("theirs/report").symlink_to(kept.parent.absolute())
    assert refused(runs, "report", "theirs").startswith("dubito: theirs/report is a symbolic link; ")
    assert kept.read_text() == "mine"
    assert runs("report", "theirs", "--output", "theirs/report").code == 0
    assert kept.read_text() != "mine"


def test_non_text_schema_is_refused(runs: Shell) -> None:
    database = Path("theirs/run.db")
    database.write_bytes(database.read_bytes().replace(b"CREATE TABLE games", b"CREATE TABL\xc7 games"))
    message = "theirs/run.db is damaged or not a run store: its schema is not text"
    for words in READING[:4]:
        assert message in refused(runs, *words)
