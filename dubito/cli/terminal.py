"""What needs a terminal: drawn tables and a live line; the library for them is loaded where there is one."""

from collections.abc import Callable, Sequence
from typing import Final

from rich.box import SIMPLE_HEAD
from rich.console import Console, JustifyMethod
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID
from rich.table import Table
from rich.text import Text

_ANY: Final = 10_000  # columns that are enough for any table
_NAME: Final = 12  # columns that a name has at least
_BAR: Final = 16  # columns of the bar of a progress


def draw_table(title: str, headers: Sequence[str], cells: Sequence[Sequence[str]], numeric: Sequence[bool]) -> None:
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


class _Line(ProgressColumn):
    """How far it is and what else there is to say, the most important first, as much of it as fits."""

    def __init__(self, console: Console, parts: Callable[[Task], Sequence[str]]) -> None:
        super().__init__()
        self._console, self._parts = console, parts

    def render(self, task: Task) -> Text:
        text = Text(", ".join(self._parts(task)), no_wrap=True)
        text.truncate(max(1, self._console.width - _BAR - 2), overflow="ellipsis")
        return text


class LiveLine:
    """A bar on standard error, and beside it what there is to say of so many games at that speed."""

    def __init__(self, games: int, said_of: Callable[[int, float], Sequence[str]]) -> None:
        console = Console(stderr=True)
        line = _Line(console, lambda task: said_of(int(task.completed), task.speed or 0.0))
        self._bar = Progress(BarColumn(_BAR), line, console=console, transient=True)
        self._task: TaskID = self._bar.add_task("", total=games)
        self.start, self.stop = self._bar.start, self._bar.stop

    def update(self, games: int) -> None:
        """There are so many games."""
        self._bar.update(self._task, completed=games)
