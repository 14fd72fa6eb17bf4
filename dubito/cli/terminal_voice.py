"""A game told on a terminal: broken between words, and in colour unless the terminal or its user wants none."""

import re
from collections.abc import Sequence
from typing import Final

from rich.console import Console
from rich.text import Text

from dubito.cli.voice import Voice

_SEATS: Final = ("cyan", "magenta", "yellow", "blue", "bright_cyan", "bright_magenta", "bright_yellow", "bright_blue")
_WORDS: Final = {  # what a reader looks for in any game's sentences
    r"“.*”": "italic",
    r"\b(a bluff|a lie)\b(?!\?)": "bold red",
    r"\bhonest\b": "green",
    r"\b(doubts?|says BS)\b": "bold",
    r"\b(wins?|a hard win|a soft win)\b": "bold green",
    r"^Your (hand|turn)\b.*": "bold",
    r"^ *\d+\. ": "dim",
    r"^1\. .*": "bold green",  # the first place
}
_HEAD: Final = re.compile(r" *\d+\. +|- |")


class TerminalVoice(Voice):
    """Says the lines of a game as a terminal has them."""

    def __init__(self, names: Sequence[str], console: Console | None = None) -> None:
        self._console = console or Console(highlight=False)
        self._plain = self._console.no_color or self._console.color_system is None
        self._names = list(dict.fromkeys(names))
        self._waits = False  # the line stands that says who thinks

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

    def thinks(self, name: str) -> None:
        """Say so on a line that goes away."""
        self.heard()
        if not self._console.is_dumb_terminal:
            text = self._painted(f"      {name} is thinking ...")
            text.truncate(max(1, self._console.width - 1))
            self._console.print(text, end="\r", soft_wrap=True)
            self._waits = True

    def heard(self) -> None:
        """Take the line away that says who thinks."""
        if self._waits:
            self._console.file.write("\r\033[2K")
            self._waits = False

    def _painted(self, line: str) -> Text:
        text = Text(line)
        if not self._plain:
            for pattern, style in _WORDS.items():
                text.highlight_regex(pattern, style)
            for place, name in enumerate(self._names):
                text.highlight_regex(rf"(?<!\w){re.escape(name)}(?!\w)", f"bold {_SEATS[place % len(_SEATS)]}")
        return text
