"""Texts that say the same again and again, kept once: a prompt is its lines, and most of them stood in the one before.

A text is cut into pieces; what is kept of it is which runs of pieces it is made of, [first, end, first, end, ...].
"""

import re
from typing import Final

_PIECE: Final = re.compile(r'[^\n]*?(?:\n|,(?=")|$)')  # a line, or one key of JSON
_MOST: Final = 20_000  # characters of a text that are shown


class Texts:
    """A growing list of pieces, and texts as runs of it."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self._places: dict[str, int] = {}
        self._kept: dict[str, list[int]] = {}

    def add(self, text: str) -> list[int]:
        """Keep a text; what is returned gives it back. A very long one is cut, and says so."""
        if text not in self._kept:
            self._kept[text] = self._cut(text)
        return self._kept[text]

    def _cut(self, text: str) -> list[int]:
        if len(text) > _MOST:
            text = f"{text[:_MOST]}\n[cut here: {len(text) - _MOST:,} more characters lie in run.db]"
        runs: list[int] = []
        for piece in _PIECE.findall(text):
            if piece:
                place = self._places.setdefault(piece, len(self.pieces))
                if place == len(self.pieces):
                    self.pieces.append(piece)
                if runs and runs[-1] == place:
                    runs[-1] += 1
                else:
                    runs += [place, place + 1]
        return runs

    def read(self, runs: list[int]) -> str:
        """The text that was kept so."""
        return "".join("".join(self.pieces[first:end]) for first, end in zip(runs[::2], runs[1::2], strict=True))
