"""`dubito replay` detects a change of any value in a run, except those listed in docs/runs.md."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from shutil import copytree
from tempfile import gettempdir
from typing import Any, Final

import pytest

from dubito.errors import UsageError
from dubito.experiment.replay import replay
from dubito.experiment.stored import read_replayable_run
from dubito.store.run_db import UNPROVEN, _expected_schema
from tests.cli.kit import REPO, Shell
from tests.conftest import in_gate
from tests.experiment.kit import experiment
from tests.llm.kit import contender, run_games

_FAULTY: Final = "house?faults=fenced:0.2,refusal:0.1,no_usage:0.1,truncated_json:0.1,rate_limit:0.2"
_WAITS: Final = {"prompt": "reasoned", "wait": "batch", "base_url": "house?faults=fenced:0.3,no_usage:0.1"}
CONFIGS: Final[dict[str, dict[str, Any]]] = {
    "by hand": {"contenders": ["ClaudeBot", "AdaptyBoi"], "games": 2004, "turns": 1},
    "stopped": {"contenders": ["ClaudeBot", "RandomBoi"], "stop": {"within": 0.3, "most": 4000}, "turns": 20},
    "models": {
        "contenders": [
            contender("one", "house-sharp", prompt="reasoned", base_url=_FAULTY, reasks=0),
            contender("two", bot="AnthropicBot", base_url=_FAULTY),
        ],
        "games": 8,
    },
    "waves": {"contenders": [contender("one", **_WAITS)], "games": 2, "turns": 5},
}


Get = Callable[[str], Path]


@pytest.fixture(scope="module")
def run_of(tmp_path_factory: pytest.TempPathFactory) -> Get:
    """Return a function that plays a config's run once and returns its folder."""
    home = tmp_path_factory.mktemp("runs")

    def get(name: str) -> Path:
        if not (home / name).exists():
            config = {**CONFIGS[name]}
            contenders, turns = config.pop("contenders"), config.pop("turns", 9)
            base = {"table_sizes": [3], "bots": ["StefaBot", "UsualBot"], "rules": {"max_turns": turns}}
            of = experiment(contenders=contenders, **base | config)
            assert run_games(of, home / name, on_unusable="fallback").failure is None
        return home / name

    return get


def columns_of(folder: Path, table: str) -> list[str]:
    with closing(sqlite3.connect(folder / "run.db")) as db:
        return [name for (name,) in db.execute("SELECT name FROM pragma_table_info(?)", (table,))]


def other_values(value: Any) -> list[Any]:
    """Return possible replacements for a value: another one, null, another type, and damaged text."""
    if isinstance(value, int | float):
        return [value + 1, 3 * value + 7, -5, None, "x", 1.5]
    if isinstance(value, str):
        flipped = value[:-1] + chr(ord(value[-1]) ^ 1) if value else "x"
        return [flipped, None, f"{value} ", "", 7, b"\x00\xff"]
    if isinstance(value, bytes):
        return [value[:-1] + bytes([value[-1] ^ 1]), None, value[: len(value) // 2], b"", "x", 3]
    return [1, "x", b"x", 0.5, ""]


def mutations(folder: Path, table: str, column: str, offset: int, most: int) -> Iterator[object]:
    """Change one value of one row in each way that SQLite allows, and restore it."""
    with closing(sqlite3.connect(folder / "run.db", isolation_level=None)) as db:
        keys = [name for (name,) in db.execute("SELECT name FROM pragma_table_info(?) WHERE pk ORDER BY pk", (table,))]
        key, marks = ", ".join(keys), ", ".join("?" * len(keys))
        rows = db.execute(f"SELECT * FROM {table} ORDER BY {key}").fetchall() if keys else []  # noqa: S608
        names = [name for (name,) in db.execute("SELECT name FROM pragma_table_info(?)", (table,))]
        row = dict(zip(names, rows[offset % len(rows)], strict=True)) if rows else {}
        for other in other_values(row[column]) if rows else ():
            values = [other, *(row[name] for name in keys)]
            try:
                db.execute(f"UPDATE {table} SET {column} = ? WHERE ({key}) = ({marks})", values)  # noqa: S608
            except sqlite3.IntegrityError:
                continue
            if most and db.execute(f"SELECT * FROM {table} ORDER BY {key}").fetchall() != rows:  # noqa: S608
                most -= 1
                yield other
            db.execute(f"DELETE FROM {table}")  # noqa: S608
            db.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(names))})", rows)  # noqa: S608


def finding(folder: Path) -> str:
    """Replay the run and return the difference, or an empty text if it is identical."""
    try:
        run = read_replayable_run(folder, REPO)
    except UsageError as error:
        return str(error)
    with run.db:
        return str(replay(run, 1, lambda games: None).difference or "")


TABLES: Final = [*_expected_schema()[1]]  # every table, since a run with others cannot be opened
CASES: Final = [(name, table, offset) for name in CONFIGS for table in TABLES for offset in (0, 1, -1)]


@pytest.mark.parametrize(("name", "table", "offset"), in_gate(CASES, [("waves", table, 1) for table in TABLES]))
def test_changed_value_in_any_column_is_detected(
    run_of: Get, tmp_path: Path, name: str, table: str, offset: int, at_length: bool
) -> None:
    """All existing columns are tested, so a new column fails here until replay checks it."""
    folder = Path(copytree(run_of(name), tmp_path / "run"))
    unnoticed = [
        (column, value)
        for column in columns_of(folder, table)
        for value in mutations(folder, table, column, offset, 99 if at_length else 1)
        if (table, column) not in UNPROVEN and not finding(folder)
    ]
    assert unnoticed == []
    assert finding(folder) == ""


def test_test_runs_cover_every_column(run_of: Get) -> None:
    with closing(sqlite3.connect(run_of("waves") / "run.db")) as db:
        for table in ("decisions", "attempts", "tries", "texts", "prompts", "ended", "batches"):
            assert db.execute(f"SELECT count(*) FROM {table}").fetchone() > (1,) or table == "batches", table  # noqa: S608
    with closing(sqlite3.connect(run_of("models") / "run.db")) as db:
        for what in (
            "attempts WHERE attempt > 0",
            "decisions WHERE outcome LIKE 'fallback:%'",
            "decisions WHERE p_bluff IS NOT NULL",
            "tries WHERE state = 'failed'",
        ):
            assert db.execute(f"SELECT count(*) FROM {what}").fetchone() > (0,), what  # noqa: S608


def test_unverified_columns_are_documented() -> None:
    page = (REPO / "docs" / "runs.md").read_text()
    assert [f"`{table}.{column}`" for table, column in sorted(UNPROVEN) if f"`{table}.{column}`" not in page] == []


@pytest.mark.parametrize("name", in_gate(CONFIGS, ["models"]))
def test_false_ranking_is_detected(run_of: Get, tmp_path: Path, shell: Shell, name: str) -> None:
    """The sums behind the tables are edited so that they are still consistent."""
    copytree(run_of(name), "r")
    with closing(sqlite3.connect("r/run.db")) as db, db:
        for table in ("contended", "pairs", "differences"):
            query = "SELECT key, value FROM json_each((SELECT sums FROM tally WHERE chunks = 'all'), ?)"
            rows = db.execute(query, (f"$.{table}",)).fetchall()
            for number, _ in rows:
                path = f"$.{table}[{number}][#-1][0]"
                change = "UPDATE tally SET sums = json_set(sums, ?1, 1 + json_extract(sums, ?1)) WHERE chunks = 'all'"
                assert db.execute(change, (path,)).rowcount == 1
    result = shell("replay", "r", "--quiet")
    assert (result.code, result.out.splitlines()[0]) == (1, "differs: run.db: its sums do not match its games")


@pytest.fixture
def killed(run_of: Get, shell: Shell) -> Shell:
    """Return the run of models as `kill -9` leaves it: no game is counted and the last answers are missing."""
    copytree(run_of("models"), "r")
    Path("r/all_games.yaml").unlink()
    with closing(sqlite3.connect("r/run.db")) as db, db:
        for table in ("games", "chunks", "tally", "ended"):
            db.execute(f"DELETE FROM {table}")  # noqa: S608
        db.execute("INSERT INTO ended VALUES (0)")
        last = "(game, seat, decision) IN (SELECT game, seat, max(decision) FROM decisions WHERE game > 3 GROUP BY 1)"
        for table in ("attempts", "decisions"):
            db.execute(f"DELETE FROM {table} WHERE {last}")  # noqa: S608
    return shell


def test_killed_run_is_replayed_up_to_its_end(killed: Shell) -> None:
    result = killed("replay", "r", "--quiet")
    with closing(sqlite3.connect("r/run.db")) as db:
        ((decisions,),) = db.execute("SELECT count(*) FROM decisions")
    assert (result.code, result.out) == (0, f"identical: 0 games, {decisions} decisions\n")
    assert result.err == "the run is unfinished: 0 of 8 games\n"


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ("UPDATE decisions SET turn = turn + 1 WHERE game = 2", "game 2, seat "),
        ("DELETE FROM decisions WHERE game = 0", "game 0, seat "),
        ("UPDATE texts SET text = x'00'", "one, game 0, node A (decision 0): the recorded reply was changed or is"),
        ("INSERT INTO ended VALUES (77)", "game 77: the run has no such game"),
    ],
)
def test_difference_in_a_killed_run_shows_no_temporary_path(killed: Shell, change: str, found: str) -> None:
    with closing(sqlite3.connect("r/run.db")) as db, db:
        db.execute(change)
    assert killed("export", "r", "r.zip").code == 0
    result = killed("replay", "r.zip", "--quiet")
    assert (result.code, result.out.startswith(f"differs: {found}")) == (1, True), result.out
    assert gettempdir() not in result.out + result.err


def test_report_with_a_damaged_text_keeps_its_tables(run_of: Get, shell: Shell) -> None:
    copytree(run_of("models"), "r")
    with closing(sqlite3.connect("r/run.db")) as db, db:
        query = (
            "SELECT digest, text FROM texts WHERE digest IN (SELECT raw FROM attempts WHERE game = 5) "
            "AND digest NOT IN (SELECT raw FROM attempts WHERE game <> 5 AND raw NOT NULL) LIMIT 1"
        )
        ((digest, text),) = db.execute(query)
        flipped = text[:-5] + bytes([text[-5] ^ 4]) + text[-4:]
        db.execute("UPDATE texts SET text = ? WHERE digest = ?", (flipped, digest))
    assert shell("report", "r", "--output", "page").code == 0
    games, whole = Path("page/games.html").read_text(), Path("page/index.html").read_text()
    assert f"1 game is not shown (5): text {digest[:16]} in run.db is missing, changed or damaged." in games
    assert "one" in whole
    assert Path("page/games/4.html").exists()
    assert shell("status", "r").code == 0


def test_comparison_works_without_a_prompts_description(run_of: Get, shell: Shell) -> None:
    for name in ("r", "s"):
        copytree(run_of("models"), name)
    with closing(sqlite3.connect("r/run.db")) as db, db:
        db.execute("UPDATE prompts SET digest = 'x' || digest WHERE file = 'prompt.yaml'")
    result = shell("compare", "r", "s")
    assert (result.code, "prompt.yaml" in result.err, result.err.count("\n")) == (2, True, 1)


def test_changed_sums_are_not_shown(run_of: Get, tmp_path: Path, shell: Shell) -> None:
    """Impossible sums used to cause a traceback, and possible ones a false ranking."""
    folder = Path(copytree(run_of("models"), tmp_path / "run"))
    with closing(sqlite3.connect(folder / "run.db", isolation_level=None)) as db:
        db.execute("UPDATE tally SET sums = replace(sums, '\"pairs\":[[0,1,[4', '\"pairs\":[[0,1,[5')")
    for command in ("report", "compare"):
        result = shell(command, str(folder))
        assert (result.code, result.err.count("\n")) == (2, 1), result
        assert "run.db is damaged: its sums were changed after they were written" in result.err
    assert "its sums do not match its games" in shell("replay", str(folder)).out
