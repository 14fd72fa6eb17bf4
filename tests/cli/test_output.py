"""What the commands print: tables on terminals of any width, and where there is none; the word of a Ctrl-C."""

import re
import sys
from collections.abc import Callable, Sequence

import pytest

from dubito.__main__ import main as begin
from dubito.cli.output import table

HEADERS = ["bot", "size", "Score %", "hard %", "soft %", "loss %"]
ROWS = [[name, size, *(f"{n}{size}.1 ±0.2" for n in range(4))] for name in ("ClaudeBot", "StefaBot") for size in "34"]
Prints = Callable[..., list[str]]


@pytest.fixture
def prints(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Prints:
    """The lines of a table on a terminal so many columns wide."""

    def printed(columns: int, rows: Sequence[Sequence[str]] = ROWS, headers: Sequence[str] = HEADERS) -> list[str]:
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        table("Title", headers, rows)
        return re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).splitlines()

    return printed


def words(lines: Sequence[str]) -> list[list[str]]:
    """The cells of each line that has any."""
    return [re.split(r"\s{2,}", line.strip()) for line in lines if line.strip("─ ")]


def test_a_table_that_fits_is_one(prints: Prints) -> None:
    assert words(prints(100)) == [["Title"], HEADERS, *ROWS]


@pytest.mark.parametrize("columns", [30, 40, 50, 60])
def test_a_table_that_does_not_fit_goes_on_below_with_no_cell_cut(prints: Prints, columns: int) -> None:
    """What tells the rows apart stands in each part: here the bot and the table's size."""
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
def test_few_columns_and_rows_that_are_alike(prints: Prints, rows: list[list[str]]) -> None:
    assert words(prints(80, rows, ["bot", "games"])) == [["Title"], ["bot", "games"], *rows]


def test_without_a_terminal_a_row_is_a_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    table("Title", HEADERS, ROWS)
    out = capsys.readouterr().out
    assert words(out.splitlines()) == [["Title"], HEADERS, *ROWS]
    assert "\x1b" not in out


def test_ctrl_c_while_the_command_is_loaded_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Interrupts:
        """Where Ctrl-C comes while modules are looked for."""

        def find_spec(self, name: str, *_: object) -> None:
            if name == "dubito.cli.main":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "dubito.cli.main")
    monkeypatch.setattr(sys, "meta_path", [Interrupts(), *sys.meta_path])
    with pytest.raises(SystemExit) as ended:
        begin()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "dubito: stopped by Ctrl-C\n"
