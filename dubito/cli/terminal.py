"""What needs a terminal: drawn tables, a live line, a game in colour; only there is the library for them loaded."""

import re
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, JustifyMethod, RenderableType
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID
from rich.table import Table
from rich.text import Text

from dubito.errors import one_line, printable

_REDRAWN: Final = 0.1  # seconds between two looks of a line that grows
_ANY: Final = 10_000  # columns that are enough for any table
_NAME: Final = 12  # columns that a name has at least
_BAR: Final = 16  # columns of the bar of a progress
_SEATS: Final = ("cyan", "magenta", "yellow", "blue", "bright_cyan", "bright_magenta", "bright_yellow", "bright_blue")
_WORDS: Final = {  # what a reader looks for in any game's sentences
    r"“.*”": "italic",
    r"\bhonest\b": "green",
    r"\b(doubts?|says BS)\b": "bold",
    r"\b(wins?|a hard win|a soft win)\b": "bold green",
    r"^Your (hand|turn)\b.*": "bold",
    r"^ *\d+\. ": "dim",
    r"^1\. .*": "bold green",  # the first place
}
_HEAD: Final = re.compile(r" *\d+\. +|- |")


def draw_table(title: str, headers: Sequence[str], cells: Sequence[Sequence[str]], numeric: Sequence[bool]) -> None:
    """The table; where the terminal is too narrow for it, some columns after the other, each time beside the first."""
    console, keys = Console(), _keys(cells)

    def part(columns: Sequence[int]) -> Table:
        drawn = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False)
        for column in columns:
            most = max(_NAME, console.width // (2 * keys)) if column < keys else None
            justify: JustifyMethod = "right" if numeric[column] else "left"
            drawn.add_column(Text(printable(headers[column])), justify=justify, overflow="fold", max_width=most)
        for row in cells:
            drawn.add_row(*(Text(row[column]) for column in columns))
        return drawn

    def fits(columns: Sequence[int]) -> bool:
        return Console(width=_ANY).measure(part(columns)).maximum <= console.width

    console.print(Text(printable(title)))
    rest = list(range(keys, len(headers)))
    while rest:
        columns = [*range(keys), rest.pop(0)]
        while rest and fits([*columns, rest[0]]):
            columns.append(rest.pop(0))
        console.print(part(columns))


def _keys(cells: Sequence[Sequence[str]]) -> int:
    most = len(cells[0]) - 1 if cells else 1
    return next((n for n in range(1, most) if len({tuple(row[:n]) for row in cells}) == len(cells)), most)


class _Course(ProgressColumn):
    """How far it is."""

    def __init__(self, said: Callable[[int], str]) -> None:
        super().__init__()
        self._said = said

    def render(self, task: Task) -> Text:
        return Text(printable(self._said(int(task.completed))))


class _Lines(Progress):
    """A bar with what there is to say below it, wrapped where a line is too long."""

    def __init__(self, console: Console, course: Callable[[int], str], more: Callable[[], Sequence[str]]) -> None:
        self._below = more
        super().__init__(BarColumn(_BAR), _Course(course), console=console, transient=True)

    def get_renderables(self) -> Iterable[RenderableType]:
        yield from super().get_renderables()
        if said := ", ".join(self._below()):
            yield Text(printable(said))


class LiveLines:
    """A bar on standard error with the course of so many games beside it, and below what else there is to say."""

    def __init__(self, games: int, course: Callable[[int], str], more: Callable[[], Sequence[str]]) -> None:
        self._bar = _Lines(Console(stderr=True), course, more)
        self._task: TaskID = self._bar.add_task("", total=games)
        self.start, self.stop = self._bar.start, self._bar.stop

    def update(self, games: int) -> None:
        self._bar.update(self._task, completed=games)


class TerminalVoice:
    """Says the lines of a game as a terminal has them."""

    def __init__(self, names: Sequence[str], lie: str, console: Console | None = None) -> None:
        self._console = console or Console(highlight=False)
        self._plain = self._console.no_color or self._console.color_system is None
        self._names = list(dict.fromkeys(names))
        self._words = {**_WORDS, rf"\ban? {re.escape(lie)}\b(?!\?)": "bold red"}
        self._waits = False  # the line stands that says who thinks
        self._shown = 0.0  # when it was written last

    def __call__(self, line: str = "") -> None:
        """Say a line, the following ones of it set in under its words."""
        self.heard()
        head = _HEAD.match(line)
        indent = head.end() if head else 0
        for part in line.split("\n"):
            wrapped = self._painted(part).wrap(self._console, max(20, self._console.width - indent))
            for number, piece in enumerate(wrapped):
                piece.rstrip()
                self._console.print(Text(" " * indent if number else "") + piece, soft_wrap=True)

    def thinks(self, name: str, words: str = "") -> None:
        """Say so on a line that goes away, with the last of the words."""
        if words and self._waits and time.monotonic() - self._shown < _REDRAWN:
            return
        self.heard()
        if not self._console.is_dumb_terminal:
            said, self._shown = f"      {name} is thinking ... ", time.monotonic()
            room = self._console.width - 1 - cell_len(said)
            text = self._painted(f"{said}{one_line(words, len(words) + 1)[-max(1, room) :]}".rstrip())
            text.truncate(max(1, self._console.width - 1))
            self._console.print(text, end="\r", soft_wrap=True)
            self._waits = True

    def heard(self) -> None:
        if self._waits:
            self._console.file.write("\r\033[2K")
            self._waits = False

    def _painted(self, line: str) -> Text:
        text = Text(printable(line))
        if not self._plain:
            for pattern, style in self._words.items():
                text.highlight_regex(pattern, style)
            for place, name in enumerate(self._names):
                text.highlight_regex(rf"(?<!\w){re.escape(name)}(?!\w)", f"bold {_SEATS[place % len(_SEATS)]}")
        return text
