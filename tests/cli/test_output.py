"""Output on terminals of any width and in logs, and Ctrl-C."""

import re
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from dubito.__main__ import main as begin
from dubito.cli.main import main
from dubito.cli.output import GamesProgress, table
from dubito.experiment.progress import ModelProgress
from dubito.llm.forecast import Forecast, PastGames

HEADERS = ["bot", "size", "Score %", "hard %", "soft %", "loss %"]
ROWS = [[name, size, *(f"{n}{size}.1 ±0.2" for n in range(4))] for name in ("ClaudeBot", "StefaBot") for size in "34"]
Prints = Callable[..., list[str]]


@pytest.fixture
def prints(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Prints:
    """Return a function that prints a table on a terminal of a given width and returns its lines."""

    def printed(columns: int, rows: Sequence[Sequence[str]] = ROWS, headers: Sequence[str] = HEADERS) -> list[str]:
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        table("Title", headers, rows)
        return re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).splitlines()

    return printed


def words(lines: Sequence[str]) -> list[list[str]]:
    return [re.split(r"\s{2,}", line.strip()) for line in lines if line.strip("─ ")]


def test_table_that_fits_is_not_split(prints: Prints) -> None:
    assert words(prints(100)) == [["Title"], HEADERS, *ROWS]


@pytest.mark.parametrize("columns", [30, 40, 50, 60])
def test_wide_table_is_split_without_truncated_cells(prints: Prints, columns: int) -> None:
    """Each part of a split table repeats the columns that identify a row, here the bot and the table size."""
    lines = prints(columns)
    assert max(map(len, lines)) <= columns
    found = words(lines)[1:]
    parts = [found[start : start + 5] for start in range(0, len(found), 5)]
    assert len(parts) > 1
    assert {(line[0], line[1]) for part in parts for line in part[1:]} == {(row[0], row[1]) for row in ROWS}
    for place, row in enumerate([HEADERS, *ROWS]):
        assert [cell for part in parts for cell in part[place][2:]] == row[2:]


def test_a_long_name_leaves_room_for_numbers(prints: Prints) -> None:
    lines = prints(60, [["x" * 100, "3", "50.0 ±1.0", "20.0 ±1.0", "30.0 ±1.0", "-"]])
    assert max(map(len, lines)) <= 60
    text = "\n".join(lines)
    assert text.count("x") >= 100
    assert all(cell in text for cell in ("50.0 ±1.0", "20.0 ±1.0", "30.0 ±1.0"))


@pytest.mark.parametrize("rows", [[], [["a", "1"]], [["a", "1"], ["a", "1"]]])
def test_few_columns_and_equal_rows(prints: Prints, rows: list[list[str]]) -> None:
    assert words(prints(80, rows, ["bot", "games"])) == [["Title"], ["bot", "games"], *rows]


def test_without_a_terminal_a_row_is_a_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    table("Title", HEADERS, ROWS)
    out = capsys.readouterr().out
    assert words(out.splitlines()) == [["Title"], HEADERS, *ROWS]
    assert "\x1b" not in out


@pytest.mark.parametrize("columns", [30, 80, 200])
def test_model_progress_is_a_bar_above_other_output(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The bar is not truncated even on a narrow terminal."""
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    more = ("fallback 1.5 %", "3 waiting for https://models.example/v1 (SOME_KEY) (rate limit)", "12 calls")
    with GamesProgress(80, False, lambda: 0.0, lambda: more) as progress:
        progress(0)
        progress(40)
    drawn = capsys.readouterr().err
    last = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", drawn).rpartition(" 40 of 80 games")[2]
    below = [line.rstrip() for line in re.split(r"[\r\n]+", last) if line.strip()]
    assert all(len(line) <= columns for line in below)
    assert "".join(below).replace(" ", "") == ", ".join(more).replace(" ", "")
    assert len(below) == {30: 4, 80: 2, 200: 1}[columns]


@pytest.mark.parametrize(
    ("course", "parts"),
    [
        (((10, 1), (20, 11)), ["", ", 29 s left"]),  # a machine that is still loading
        # The first answers are from the cache.
        (((4, 20), (20, 22), (40, 24)), [", 4 s left", ", 2 min left", ", 3 min left"]),
        (((80, 1),), [", 52 min left"]),  # after a minute, one game of a slow server is enough
    ],
)
def test_time_left_follows_the_recent_speed(
    course: tuple[tuple[int, int], ...], parts: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    clock = iter((0.0, 0.0, *(float(seconds) for seconds, _ in course)))
    with GamesProgress(40, False, lambda: next(clock)) as progress:
        for _, games in ((0, 0), *course):
            progress(games)
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(" games/s")[2] for line in lines] == parts


def test_games_without_models_do_not_affect_time_left() -> None:
    """Of 40 games, ten end at once and a short one is over; another has asked 12 of its questions."""
    forecast = Forecast(PastGames())
    for game in range(10):
        forecast.start(game)
        forecast.end(game)
    assert forecast.parts(40)[0] == 0
    for game, questions in ((10, 20), (11, 12)):
        forecast.start(game)
        for _ in range(questions):
            forecast.count_question(game)
    forecast.end(10)
    played, left = forecast.parts(40)
    assert played == 1 + 12 / 32  # the usual number is at least what every game has asked
    assert left == pytest.approx(20 / 32 + 28 * 2 / 12)  # most games that have not started will ask nothing either


def test_first_game_has_as_many_questions_as_a_sample() -> None:
    forecast = Forecast(PastGames())
    forecast.sampled_questions = 20
    forecast.start(0)
    for _ in range(5):
        forecast.count_question(0)
    assert forecast.parts(4) == (5 / 20, 3.75)


def test_progress_omits_calls_before_the_first_request() -> None:
    assert ModelProgress().sentence() == "fallback 0.0 %, 0 decisions, 0/s, cache 0.0 %"


@pytest.mark.parametrize(("seconds", "processor", "is_busy"), [(4, 4, False), (20, 18.5, True), (20, 9, False)])
def test_progress_shows_that_one_process_is_the_limit(seconds: float, processor: float, is_busy: bool) -> None:
    now = [0.0, 0.0]
    progress = ModelProgress(lambda: now[0], lambda: now[1])
    progress.count_outcome("model")
    now[:] = seconds, processor
    assert ("limited by the speed of one process" in progress.figures()) is is_busy


def test_model_progress_in_a_log_is_complete_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """A line appears every five seconds, and numbers never decrease."""
    clock = iter((0.0, 1.0, 10.0, 14.0, 20.0, 24.0))
    with GamesProgress(4, False, lambda: next(clock), lambda: ["fallback 0.0 %", "x" * 300]) as progress:
        for games in (0, 2, 3, 4, 3):
            progress(games)
    first, second = (f"{games} of 4 games, 0.2 games/s, {left} s left" for games, left in ((2, 9), (4, 0)))
    assert capsys.readouterr().err == f"{first}, fallback 0.0 %, {'x' * 300}\n{second}, fallback 0.0 %, {'x' * 300}\n"


def test_ctrl_c_during_startup_has_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Interrupts:
        """Sends Ctrl-C while modules are being found."""

        def find_spec(self, name: str, *_: object) -> None:
            if name == "dubito.cli.main":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "dubito.cli.main")
    monkeypatch.setattr(sys, "meta_path", [Interrupts(), *sys.meta_path])
    with pytest.raises(SystemExit) as ended:
        begin()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "dubito: stopped by Ctrl-C\n"


def test_impossible_file_name_is_reported_in_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (("status", "a" * 300), ("compare", "a" * 300, "b")):
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert ended.value.code == 2
        assert capsys.readouterr().err == f"dubito: the file name is too long: {'a' * 59}…\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_output_to_a_full_disk_is_reported_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with suppress(OSError), open("/dev/full", "w", buffering=1) as full:  # it cannot be closed either
        monkeypatch.setattr(sys, "stdout", full)
        with pytest.raises(SystemExit) as ended:
            main(["bots"])
    assert ended.value.code == 3
    assert capsys.readouterr().err == "dubito: cannot write the output: the disk is full\n"


def test_progress_in_a_log_advances_during_long_games(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Counts are exact from before the first game, because a slow model may think for minutes."""
    monkeypatch.setattr("dubito.cli.output._LOG_INTERVAL", 0.01)
    make_pause, waited = ["5 calls"], threading.Event()

    def more() -> list[str]:
        if make_pause[-1] == "seen":
            waited.set()
        return make_pause

    with GamesProgress(40, False, time.monotonic, more) as progress:
        progress(7)
        make_pause.append("seen")
        assert waited.wait(30)
        waited.clear()
        assert waited.wait(30), "the second message is missing"
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) >= 2
    assert "7 of 40 games, 5 calls, seen" in lines[-1]
