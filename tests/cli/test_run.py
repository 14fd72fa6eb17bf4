"""`dubito run`: its output, its files, its errors, and how it stops."""

import re
import resource
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dubito.commands import called_program
from dubito.experiment.stored import open_recorded_run
from dubito.files import read_yaml
from dubito.games.dubito.engine import RESULTS
from dubito.stats.tally import unpack_outcome
from dubito.store.run_db import RunDb
from tests.cli.kit import Result, Shell, start
from tests.conftest import in_gate

FIELD = ("--bots", "StefaBot,ClaudeBot,RandomBoi")
SHORT = (*FIELD, "--games", "60", "--table-sizes", "3", "--quiet")

FAULTY = '''
from bots.base import BotBase
class Faulty(BotBase):
    """Never doubts by the book: answers one node with no bool."""
    def bluff_first_hand(self, p): return False
    def maximize_first_hand(self, p): return True
    def should_doubt(self, p): return 1 if self.rng.random() < 0.001 else False
    def bluff_regular(self, p): return False
    def maximize_regular(self, p): return True
'''


def digest(result: Result) -> str:
    """Return the results digest from its line."""
    (line,) = [line for line in result.out.splitlines() if line.startswith("results digest: ")]
    hexadecimal = line.removeprefix("results digest: ")
    assert len(hexadecimal) == 64
    assert set(hexadecimal) <= set("0123456789abcdef")
    return hexadecimal


def rows(result: Result, title: str) -> dict[str, list[str]]:
    """Return the other cells by first cell for the table under a title."""
    lines = result.out.splitlines()
    start = next(place for place, line in enumerate(lines) if line.startswith(title))
    cells = [line.replace("[", "").replace("]", "").replace(",", "").split() for line in lines[start + 2 : start + 5]]
    return {first: rest for first, *rest in cells}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--max-rounds", "5"), "--max-rounds: dubito has no such rule; did you mean 'max_turns'?"),
        (("--temperature", "1"), "--temperature is not a flag; set `parameters: {temperature: ...}` on the player"),
        (("--reasks", "2"), "--reasks is not a flag; set `reasks` on the player in the config file"),
        (("--base_url", "http://127.0.0.1:1"), "No such option: --base_url. Did you mean --base-url?"),
        (("--game", "20"), "unknown game '20': to play that many games, use --games 20"),
        (("--bots", "A", "B", "C"), "Got unexpected extra argument (C); separate the names in a list with commas"),
        (("--contenders", "house:house-sharp@nothing"), "no prompt is named 'nothing': choose from"),
    ],
)
def test_misplaced_flag_gets_a_hint(shell: Shell, words: tuple[str, ...], message: str) -> None:
    ended = shell("run", *words)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"dubito: {message}")


def test_only_commands_with_lists_get_the_hint_about_commas(shell: Shell) -> None:
    assert shell("share", "a.json", "b.json").err == "dubito: Got unexpected extra argument (b.json)\n"


def test_single_bot_has_no_comparison(shell: Shell) -> None:
    result = shell("run", "--bots", "ClaudeBot", "--games", "4", "--output", "r", "--quiet")
    assert result.err == "note: ClaudeBot only plays against itself; add another bot to compare it\n"


def test_a_run_prints_its_ranking_and_keeps_it_on_disk(shell: Shell) -> None:
    result = shell("run", *SHORT, "--output", "mine")
    assert result.code == 0
    assert result.err == ""
    ranking = rows(result, "60 games")
    results = read_yaml(Path("mine/all_games.yaml"))
    assert set(ranking) == set(results) == {"StefaBot", "ClaudeBot", "RandomBoi"}
    for name, (_, _, games, *_) in ranking.items():
        assert int(games) == results[name]["total"]["games"]
    for name, (_, _, _, score, low, high, *_) in ranking.items():
        assert float(low) <= float(score) <= float(high)
        hard = results[name]["hard_wins"]["games"] / results[name]["total"]["games"]
        assert float(score) == pytest.approx(100 * hard, abs=0.06), "there are no soft wins with three players"
    assert "turns per game: " in result.out
    assert "run folder: mine" in result.out
    files = sorted(path.name for path in Path("mine").iterdir())
    assert files == ["all_games.yaml", "config.yaml", "lock", "manifest.yaml", "run.db", "run.log"]
    assert len(digest(result)) == 64


def test_r32_names_the_turns_it_counts(shell: Shell) -> None:
    result = shell("run", *SHORT, "--output", "mine")
    with RunDb.open(Path("mine/run.db")) as db:
        games = [unpack_outcome(row, RESULTS) for row in db.outcomes()]
    turns, free = (sum(counts) for counts in zip(*(game.game_counts for game in games), strict=True))
    assert free > 0
    expected = f"turns per game: {turns / 60:.1f} without free turns, {(turns + free) / 60:.1f} with them"
    assert expected in result.out.splitlines()


def test_the_same_command_prints_a_finished_run_again(shell: Shell) -> None:
    first, again = shell("run", *SHORT), shell("run", *SHORT)
    assert again.out == first.out
    assert "this run is already finished in" in again.err


def test_the_default_folder_is_named_after_config_and_identity(shell: Shell) -> None:
    Path("tour.yaml").write_text("bots: [StefaBot, ClaudeBot]\ngames: 10\n")
    result = shell("run", "tour.yaml", "--quiet")
    (folder,) = Path("runs").iterdir()
    name, _, identity = folder.name.rpartition("-")
    assert (name, len(identity)) == ("tour", 8)
    assert f"run folder: runs/{folder.name}" in result.out
    shell("run", "tour.yaml", "--quiet", "--seed", "1")
    assert len(list(Path("runs").iterdir())) == 2


def test_tables_by_size_are_optional(shell: Shell) -> None:
    result = shell("run", *FIELD, "--games", "40", "--table-sizes", "3,6", "--quiet", "--by-table-size")
    sizes = [line.split()[2] for line in result.out.split("All bots by table size\n")[1].splitlines()[1:7]]
    assert sizes == ["3", "3", "3", "6", "6", "6"]


def test_progress_is_plain_lines_in_a_log_and_absent_if_quiet(shell: Shell) -> None:
    result = shell("run", *FIELD, "--games", "40")
    assert result.err.startswith("40 of 40 games, ")
    assert shell("run", *FIELD, "--games", "40", "--seed", "2", "--quiet").err == ""


def test_tie_suggests_how_to_continue(shell: Shell) -> None:
    words = ("run", *FIELD, "--contenders", "ClaudeBot,StefaBot", "--quiet", "--no-report")
    output = shell(*words, "--games", "40").out
    (more,) = re.findall(r"^to settle first place: dubito run runs/run-\w+ --games (\d+)$", output, re.MULTILINE)
    assert int(more) % 2 == 0
    assert int(more) > 40
    assert "to settle first place" not in shell(*words, "--stop", "within=30,most=60").out


def test_contenders_and_pairs_have_separate_tables(shell: Shell) -> None:
    result = shell("run", *FIELD, "--contenders", "ClaudeBot,RandomBoi", "--games", "80", "--quiet")
    lines = result.out.split("Contenders, in the same seat")[1].splitlines()[2:7]
    assert [line.split()[2:4] for line in lines[:2]] == [["1", "40"], ["2", "40"]]
    assert lines[2].startswith("Pairs: differences in points on 40 common deals; ")
    assert lines[4].split()[:3:2] == ["ClaudeBot", "RandomBoi"]


def test_bot_error_stops_the_run_and_is_reported_r13(shell: Shell) -> None:
    shell.bot("faulty.py", FAULTY)
    result = shell("run", "--bots", "Faulty,StefaBot", "--games", "300", "--quiet", "--output", "out")
    assert result.code == 3
    assert "node C (should_doubt) answered a value of type int, not True or False" in result.err
    assert "Faulty (seat " in result.err
    kept = int(result.err.split("; ")[1].split()[0])
    results = read_yaml(Path("out/all_games.yaml"))
    assert 0 < kept < 300
    assert sum(bot["total"]["games"] for bot in results.values()) >= 3 * kept
    again = shell("run", "--bots", "Faulty,StefaBot", "--games", "300", "--quiet", "--output", "out")
    assert (again.code, again.err) == (3, result.err), "the run continues and fails in the same game"


def test_run_can_resume_after_the_bot_is_fixed(shell: Shell) -> None:
    command = ("run", "--bots", "Faulty,StefaBot", "--games", "60", "--quiet")
    faulty = FAULTY.replace("0.001", "0.01")
    shell.bot("faulty.py", faulty)
    result = shell(*command)
    shell(*command, "--output", "out")
    assert "resumes" not in result.err
    assert "so the same command will start a new run (if you gave --output" in result.err
    shell.bot("faulty.py", faulty.replace("1 if", "True if"))
    assert "Faulty.source is " in shell(*command, "--output", "out").err
    assert shell(*command).code == 0
    assert len(list(Path("runs").iterdir())) == 2


def test_fallback_continues_and_is_shown_r13(shell: Shell) -> None:
    shell.bot("faulty.py", FAULTY)
    result = shell("run", "--bots", "Faulty,StefaBot", "--games", "300", "--quiet", "--on-bot-error", "fallback")
    assert result.code == 0
    (line,) = [line for line in result.out.splitlines() if "The fallback played" in line]
    assert int(line.split("The fallback played ")[1].split()[0].replace(",", "")) > 0
    assert "turns for Faulty after bot errors" in line
    assert "first bot error: Faulty (seat " in result.out


def test_a_bot_that_imports_secrets_runs_with_a_note(shell: Shell) -> None:
    shell.bot("faulty.py", "import secrets\n" + FAULTY.replace("1 if self.rng.random() < 0.001 else False", "False"))
    result = shell("run", "--bots", "Faulty,StefaBot", "--games", "20", "--quiet")
    assert result.code == 0
    assert result.err.count("games with Faulty are not repeatable") == 1


def test_broken_bot_file_affects_only_its_users(shell: Shell) -> None:
    shell.bot("broken.py", "class Broken(:\n")
    assert shell("run", *SHORT).code == 0
    for words in (("--bots", "Broken,StefaBot"), ()):
        result = shell("run", *words, "--games", "10")
        assert result.code == 2
        assert "bots/manual/broken.py: syntax error in line 1" in result.err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--bots", "StefaBott"), "dubito: --bots: no bot is named 'StefaBott': did you mean 'StefaBot'?\n"),
        (("--games", "-3"), "dubito: --games: must be at least 1, not -3\n"),
        (("--games", "many"), "dubito: --games: must be a whole number, not 'many'\n"),
        (("--table-sizes", "3,9"), "dubito: --table-sizes: must be at most 8, not 9\n"),
        (("--win-rule", "x"), "dubito: --win-rule: must be 'immediate' or 'contested', not 'x'\n"),
        (
            ("--gmes", "3"),
            "dubito: No such option '--gmes'. (Did you mean one of: '--game', '--games', '--games-path'?)\n",
        ),
        (("nothing.yaml",), "dubito: cannot read nothing.yaml: No such file or directory\n"),
        (("",), "dubito: Invalid value for '[CONFIG]': the path is empty. Name a file or a folder.\n"),
        (("--seed", "-1"), "dubito: --seed: must be at least 0, not -1\n"),
        (("--output", "/proc/none"), None),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(shell: Shell, words: tuple[str, ...], sentence: str | None) -> None:
    result = shell("run", *words)
    assert (result.code, result.out) == (2, "")
    assert result.err.count("\n") == 1
    assert result.err == sentence or (sentence is None and result.err.startswith("dubito: cannot write /proc/none"))


def test_ctrl_c_stops_and_saves_finished_games(tmp_path: Path) -> None:
    words = (
        *FIELD,
        "--games",
        "10000",
        "--table-sizes",
        "3",
        "--max-turns",
        "12",
        "--workers",
        "2",
        "--no-report",
        "--tables",
    )
    with start(tmp_path, "run", *words, "--output", "out") as process:
        assert process.stderr is not None
        progress = next(line for line in process.stderr if " of 10,000 games, " in line)  # some games are stored
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert progress
    assert process.returncode == 130
    assert "stopped by Ctrl-C" in err
    assert "Traceback" not in err
    kept = int(err.rpartition("Ctrl-C; ")[2].split()[0].replace(",", ""))
    results = read_yaml(tmp_path / "out" / "all_games.yaml")
    assert sum(bot["total"]["games"] for bot in results.values()) == 3 * kept > 0
    assert "results digest: " in out


@contextmanager
def _files_of_at_most(size: int) -> Iterator[None]:
    """Limit the size of files that this process and its children can write, in bytes."""
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limit[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)


@pytest.mark.parametrize("workers", in_gate("21", 1))
def test_full_disk_stops_the_run_cleanly(tmp_path: Path, workers: str) -> None:
    words = (*FIELD, "--games", "60000", "--table-sizes", "3", "--max-turns", "6", "--workers", workers, "--no-report")
    with _files_of_at_most(150_000), start(tmp_path, "run", *words, "--output", "out", "--quiet") as process:
        _, err = process.communicate(timeout=120)
    assert process.returncode == 3
    assert "cannot write out/run.db" in err
    assert "Traceback" not in err
    kept = int(err.rpartition("; ")[0].rpartition("; ")[2].split()[0].replace(",", ""))
    results = read_yaml(tmp_path / "out" / "all_games.yaml")
    with open_recorded_run(tmp_path / "out") as run:
        assert run.game_count == kept
    assert sum(bot["total"]["games"] for bot in results.values()) == 3 * kept > 0


def test_run_writes_its_report_and_prints_the_path(shell: Shell) -> None:
    result = shell("run", *SHORT, "--output", "mine", "--report")
    assert "report: mine/report/index.html" in result.out
    page = Path("mine/report/index.html")
    assert digest(result) in page.read_text()
    page.write_text("kept")
    again = shell("run", *SHORT, "--output", "mine", "--report")
    assert (again.out, page.read_text()) == (result.out, "kept"), "a finished run's report is not written again"


def test_unwritable_report_does_not_affect_the_run(shell: Shell) -> None:
    Path("mine").mkdir()
    shell("run", *SHORT, "--output", "mine")
    (Path("mine") / "report").write_text("mine")
    result = shell("run", *SHORT, "--output", "mine", "--report")
    assert result.code == 0
    assert "no report was written: " in result.err
    assert Path("mine/report").read_text() == "mine"


def test_a_run_ends_in_twelve_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The result comes first, then the first five players, the report, and the next command."""
    with start(tmp_path, "run", "--games", "12", "--workers", "1", "--quiet", "--output", "r") as process:
        out, _ = process.communicate(timeout=60)
    lines = out.splitlines()
    assert len(lines) <= 12
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith("No significant difference among ")
    assert "12 games; the best 5 of 11" in lines[:4]
    assert lines[-2:] == ["run folder: r", "to see more: dubito report r --open, or dubito run r --tables"]
    assert any(line.startswith("report: r/report/") for line in lines)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(tmp_path / ".venv/bin/dubito")])
    assert called_program() == ".venv/bin/dubito"
    monkeypatch.setenv("PATH", str(tmp_path / ".venv/bin"))
    script = tmp_path / ".venv/bin/dubito"
    script.parent.mkdir(parents=True)
    script.touch(0o755)
    assert called_program() == "dubito"
