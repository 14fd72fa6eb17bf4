"""Interfaces that only games with their own page or with bots for another harness implement."""

import ast
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from dubito.game.words import Label


class OwnPage(Protocol):
    """The data of a game's own page in the browser. Frames contain nothing that is hidden from the person."""

    @property
    def WORDS(self) -> Mapping[str, Any]:  # noqa: N802, a constant
        """Labels for the page."""

    def first_frame(self, state: Any, label: "Label", me: int) -> "DataclassInstance":
        """Return what the person sees of the dealt game."""

    def next_frame(
        self, state: Any, mover: int | None, output: Any, events: Sequence[Any], lines: list[str], me: int
    ) -> "DataclassInstance":
        """Return what the person sees after a move."""


class SourceReader(Protocol):
    """Finds and converts the files of bots that were written for another harness."""

    def convert_source(self, source: bytes) -> ast.Module | None:
        """Return the code of such a bot with other imports, or None for all other files."""

    def seat_bots(self, module: ModuleType) -> None:
        """Replace the bot classes of a module by bots of the game."""
