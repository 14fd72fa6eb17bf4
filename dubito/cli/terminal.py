"""Output on a terminal: tables, live progress and games in colour. Only this module imports Rich."""

import re
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, JustifyMethod, RenderableType
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.table import Column, Table
from rich.text import Text

from dubito.errors import one_line, printable
from dubito.game.words import HAND

_REDRAW_SECONDS: Final = 0.1
# Widths in characters.
_MAX_TABLE_WIDTH: Final = 10_000
_MIN_NAME_WIDTH: Final = 12
_BAR_WIDTH: Final = 16
_SEATS: Final = ("cyan", "magenta", "yellow", "blue", "bright_cyan", "bright_magenta", "bright_yellow", "bright_blue")
# Styles for words in sentences of all games.
_WORDS: Final = {
    r"“.*”": "italic",
    r"\bhonest\b": "green",
    r"\b(doubts?|says BS)\b": "bold",
    r"\b(wins?|a hard win|a soft win)\b": "bold green",
    r"^Your (hand|turn)\b.*": "bold",
    r"^ *\d+\. ": "dim",
    # The winner in the final ranking.
    r"^1\. .*": "bold green",
}
# Card names and the symbols drawn on cards. As on pages, odd numbers are red.
_WORDS_ON_CARDS: Final = {"ace": "A", "jack": "J", "queen": "Q", "king": "K", "joker": "★"}
_SIGNS: Final = {sign: sign for sign in (*map(str, range(2, 11)), *"AJQK")} | _WORDS_ON_CARDS
_RED: Final = {"A", "3", "5", "7", "9", "J", "K"}
_HEAD: Final = re.compile(r" *\d+\. +|- |")


def draw_table(title: str, headers: Sequence[str], cells: Sequence[Sequence[str]], numeric: Sequence[bool]) -> None:
    """Print a table. On a narrow terminal it is split into several, which all start with the key columns."""
    console = Console()
    # As many leading columns as are needed to identify each row.
    limit = len(cells[0]) - 1 if cells else 1
    keys = next((n for n in range(1, limit) if len({tuple(row[:n]) for row in cells}) == len(cells)), limit)

    def part(columns: Sequence[int]) -> Table:
        drawn = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False)
        for column in columns:
            most = max(_MIN_NAME_WIDTH, console.width // (2 * keys)) if column < keys else None
            justify: JustifyMethod = "right" if numeric[column] else "left"
            drawn.add_column(Text(printable(headers[column])), justify=justify, overflow="fold", max_width=most)
        for row in cells:
            drawn.add_row(*(Text(row[column]) for column in columns))
        return drawn

    console.print(Text(printable(title)))
    rest = list(range(keys, len(headers)))
    while rest:
        columns = [*range(keys), rest.pop(0)]
        while rest:
            wider = part([*columns, rest[0]])
            if Console(width=_MAX_TABLE_WIDTH).measure(wider).maximum > console.width:
                break
            columns.append(rest.pop(0))
        console.print(part(columns))


class LiveLines(Progress):
    """Live progress on standard error: a bar, and below it a line of figures, wrapped if necessary.

    `describe` returns the text next to the bar, and `more` the figures.
    """

    def __init__(self, games: int, describe: Callable[[int], str], more: Callable[[], Sequence[str]]) -> None:
        self._describe, self._more = describe, more
        text = TextColumn("{task.description}", markup=False, table_column=Column())
        super().__init__(BarColumn(_BAR_WIDTH), text, console=Console(stderr=True), transient=True)
        self._games: TaskID = self.add_task("", total=games)

    def show_games(self, games: int) -> None:
        self.update(self._games, completed=games)

    def get_renderables(self) -> Iterable[RenderableType]:
        for task in self.tasks:
            task.description = printable(self._describe(int(task.completed)))
        yield from super().get_renderables()
        if figures := ", ".join(self._more()):
            yield Text(printable(figures))


class TerminalVoice:
    """Prints the lines of a game in colour, wrapped to the terminal."""

    def __init__(self, names: Sequence[str], lie: str, console: Console | None = None) -> None:
        self._console = console or Console(highlight=False)
        self._plain = self._console.no_color or self._console.color_system is None
        self._names = list(dict.fromkeys(names))
        self._words = {**_WORDS, rf"\ban? {re.escape(lie)}\b(?!\?)": "bold red"}
        self._thinking_shown = False
        self._thinking_drawn_at = 0.0

    def __call__(self, line: str = "") -> None:
        """Print a line. Continuation lines are indented to line up with the text."""
        self.hide_thinking()
        head = _HEAD.match(line)
        indent = head.end() if head else 0
        for part in line.split("\n"):
            wrapped = self._colour(part).wrap(self._console, max(20, self._console.width - indent))
            for number, piece in enumerate(wrapped):
                if number < len(wrapped) - 1:
                    piece.rstrip()
                self._console.print(Text(" " * indent if number else "") + piece, soft_wrap=True)

    def show_thinking(self, name: str, words: str = "") -> None:
        """Show a temporary line with the end of the words."""
        if words and self._thinking_shown and time.monotonic() - self._thinking_drawn_at < _REDRAW_SECONDS:
            return
        self.hide_thinking()
        if not self._console.is_dumb_terminal:
            label, self._thinking_drawn_at = f"      {name} is thinking ... ", time.monotonic()
            room = self._console.width - 1 - cell_len(label)
            text = self._colour(f"{label}{one_line(words, len(words) + 1)[-max(1, room) :]}".rstrip())
            text.truncate(max(1, self._console.width - 1))
            self._console.print(text, end="\r", soft_wrap=True)
            self._thinking_shown = True

    def hide_thinking(self) -> None:
        if self._thinking_shown:
            self._console.file.write("\r\033[2K")
            self._thinking_shown = False

    def _colour(self, line: str) -> Text:
        cards = line.removeprefix(HAND).split()
        if not self._plain and line.startswith(HAND) and {*cards} <= _SIGNS.keys():
            drawn = [Text(HAND.rstrip(), "bold")]
            for sign in (_SIGNS[card] for card in cards):
                ink = "magenta" if sign == "★" else "red" if sign in _RED else "black"
                drawn.append(Text(f" {sign} ", f"bold {ink} on white"))
            return Text(" ").join(drawn)
        text = Text(printable(line))
        if not self._plain:
            for pattern, style in self._words.items():
                text.highlight_regex(pattern, style)
            for place, name in enumerate(self._names):
                text.highlight_regex(rf"(?<!\w){re.escape(name)}(?!\w)", f"bold {_SEATS[place % len(_SEATS)]}")
        return text
