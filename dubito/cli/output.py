"""What the commands print: tables that fit a terminal, plain lines for everything else."""

import sys
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Final

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console, JustifyMethod
from rich.progress import BarColumn, Progress, ProgressColumn, Task
from rich.table import Table
from rich.text import Text

from dubito.errors import one_line
from dubito.experiment.statistics import Rate
from dubito.report.parts import Words
from dubito.report.result_table import ResultTable

_ANY: Final = 10_000  # columns that are enough for any table
_NAME: Final = 12  # columns that a name has at least
_BAR: Final = 16  # columns of the bar of a progress
_NUMERIC: Final = ("", *"0123456789-+$")  # how a cell of a column of numbers may begin


def say(text: str = "") -> None:
    """A line of the result, to standard output."""
    click.echo(text)


def note(text: str) -> None:
    """A line about the work, to standard error."""
    click.echo(text, err=True)


def table(title: str, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table, texts left and numbers right. No terminal: a record a line, never wrapped or cut."""
    cells = [[one_line(cell) for cell in row] for row in rows]
    numeric = [all(row[column][:1] in _NUMERIC for row in cells) for column in range(len(headers))]
    if sys.stdout.isatty():
        _drawn(title, headers, cells, numeric)
        return
    say(title)
    widths = [max(len(row[column]) for row in [headers, *cells]) for column in range(len(headers))]
    for row in [headers, *cells]:
        columns = zip(row, widths, numeric, strict=True)
        say("  ".join(cell.rjust(width) if right else cell.ljust(width) for cell, width, right in columns).rstrip())


def show(*blocks: ResultTable | Words | None, notes: bool = True) -> None:
    """Tables and sentences of a report, as a terminal has them; where there is none, nothing."""
    for block in blocks:
        if isinstance(block, Words):
            say(f"{'warning: ' if block.warning else ''}{block.text}")
        elif block is not None:
            cells = [[cell for column, cell in row if not column.detail] for row in block.shown()]
            table(block.title, [column.title for column in block.columns if not column.detail], cells)
            for sentence in block.notes if notes else ():
                say(sentence)


def _drawn(title: str, headers: Sequence[str], cells: Sequence[Sequence[str]], numeric: Sequence[bool]) -> None:
    """The table; where the terminal is too narrow for it, some columns after the other, each time beside the first."""
    console, keys = Console(), _keys(cells)

    def part(columns: Sequence[int]) -> Table:
        drawn = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False)
        for column in columns:
            most = max(_NAME, console.width // (2 * keys)) if column < keys else None
            justify: JustifyMethod = "right" if numeric[column] else "left"
            drawn.add_column(Text(headers[column]), justify=justify, overflow="fold", max_width=most)
        for row in cells:
            drawn.add_row(*(Text(row[column]) for column in columns))
        return drawn

    def fits(columns: Sequence[int]) -> bool:
        return Console(width=_ANY).measure(part(columns)).maximum <= console.width

    console.print(Text(title))
    rest = list(range(keys, len(headers)))
    while rest:
        columns = [*range(keys), rest.pop(0)]
        while rest and fits([*columns, rest[0]]):
            columns.append(rest.pop(0))
        console.print(part(columns))


def _keys(cells: Sequence[Sequence[str]]) -> int:
    """How many of the first columns it takes to tell the rows apart."""
    most = len(cells[0]) - 1 if cells else 1
    return next((n for n in range(1, most) if len({tuple(row[:n]) for row in cells}) == len(cells)), most)


def percent(value: float | None) -> str:
    """A rate in percent, one decimal; a dash for none."""
    return "-" if value is None else f"{100 * value:.1f}"


def percent_with_interval(rate: Rate) -> str:
    """A rate with its 95 % interval, both in percent: `52.9 [52.5, 53.3]`. Few are symmetric."""
    if rate.value is None:
        return "-"
    return f"{100 * rate.value:.1f} [{100 * rate.low:.1f}, {100 * rate.high:.1f}]"


class _Line(ProgressColumn):
    """How far it is and what else there is to say, the most important first, as much of it as fits."""

    def __init__(self, console: Console, parts: Callable[[Task], Sequence[str]]) -> None:
        super().__init__()
        self._console, self._parts = console, parts

    def render(self, task: Task) -> Text:
        text = Text(", ".join(self._parts(task)), no_wrap=True)
        text.truncate(max(1, self._console.width - _BAR - 2), overflow="ellipsis")
        return text


class GamesProgress:
    """Games played of all: a live line on a terminal, a plain one each tenth in a log, or nothing."""

    def __init__(
        self, games: int, quiet: bool, clock: Callable[[], float], more: Callable[[], Sequence[str]] = tuple
    ) -> None:
        """`more` is what else there is to say, the most important first: of models, how their decisions go."""
        self._games, self._clock, self._more = max(1, games), clock, more
        self._start = clock()
        self._before: int | None = None  # games that were there already
        self._said = 0
        self._bar: Progress | None = None
        self._quiet = quiet
        if not quiet and sys.stderr.isatty():
            console = Console(stderr=True)
            line = _Line(console, lambda task: self._said_of(int(task.completed), task.speed or 0.0))
            self._bar = Progress(BarColumn(_BAR), line, console=console, transient=True)
            self._task = self._bar.add_task("", total=games)

    def __enter__(self) -> "GamesProgress":
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, games: int) -> None:
        """Say how many games there are so far; the first time, how many there were before."""
        if self._before is None:
            self._before = games
            self._said = games * 10 // self._games
        if self._bar is not None:
            self._bar.update(self._task, completed=games)
        elif not self._quiet and games * 10 // self._games > self._said:
            self._said = games * 10 // self._games
            speed = (games - self._before) / max(self._clock() - self._start, 1e-9)
            note(", ".join(self._said_of(games, speed)))

    def _said_of(self, games: int, speed: float) -> list[str]:
        said = [f"{games:,} of {self._games:,} games"]
        if speed:
            left = (self._games - games) / speed
            said += [f"{speed:,.0f} games/s" if speed >= 10 else f"{speed:.1f} games/s", f"{left:,.0f} s left"]
        return [*said, *self._more()]
