"""The interface of a game for which bots of another harness were written."""

import ast
from types import ModuleType
from typing import Protocol


class SourceReader(Protocol):
    """Finds and converts the files of bots that were written for another harness."""

    def convert_source(self, source: bytes) -> ast.Module | None:
        """Return the code of such a bot with other imports, or None for all other files."""

    def seat_bots(self, module: ModuleType) -> None:
        """Replace the bot classes of a module by bots of the game."""
