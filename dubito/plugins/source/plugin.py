"""Finds bots written for the 2026 version of the source project (github.com/isBre/Dubito), and redirects their imports.

Like our own bots, their files import `BotBase` from `bots.base` and types from `dubito.game_data`. The source project's
versions of these are in `interface.py`, which is loaded only if needed, because many commands look at all bot files.
"""

import ast
import re
from collections.abc import Mapping
from types import ModuleType
from typing import Final

from dubito.hooks import hookimpl

_TYPES_MODULE: Final = "dubito.plugins.source.interface"
_MODULES: Final = ("bots.base", "dubito.game_data", "dubito.player", "dubito.hand")
_HELPERS: Final = {"honest_times", "dishonest_times", "doubts_count", "turns_count"}
_METHODS: Final = {"play_first_turn", "play_regular_turn"}
_FACTS: Final = {"my_cards", "player_card_counts", "my_player_id", "prev_player_id", "next_player_id", "history"}
_OUR_FACTS: Final = {"me", "prev", "next", "can_doubt", "last_player_id", "my_n_cards", "rng", "observe"}
# Matches a plain name, or an attribute.
_ANY_WORD: Final = re.compile(
    rf"(?<!\.)\b({'|'.join(sorted(_HELPERS | _METHODS))})\b|\.\s*({'|'.join(sorted(_FACTS))})\b".encode()
)


def _is_for_source(tree: ast.Module) -> bool:
    """Return whether a bot file uses names that exist only in that version, and none that exist only in ours."""
    nodes = list(ast.walk(tree))
    imports = {alias.name for node in nodes if isinstance(node, ast.Import | ast.ImportFrom) for alias in node.names}
    modules = {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    methods = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    facts = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    if "bots.base" not in modules or (facts | methods) & _OUR_FACTS:
        return False
    return bool(imports & _HELPERS or methods & _METHODS or facts & _FACTS)


class _Rebase(ast.NodeTransformer):
    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.ImportFrom:
        if node.module in _MODULES:
            node.module = _TYPES_MODULE
        return node


class Reader:
    """See `dubito.hooks.SourceReader`."""

    def convert_source(self, source: bytes) -> ast.Module | None:
        """Return a bot for that version as code whose imports refer to this module, or None for other files."""
        # For speed, files without any of these words are not parsed.
        if not _ANY_WORD.search(source):
            return None
        tree = ast.parse(source)
        return ast.fix_missing_locations(_Rebase().visit(tree)) if _is_for_source(tree) else None

    def seat_bots(self, module: ModuleType) -> None:
        """Replace each bot class in a module with its seat class, but not those that others inherit from."""
        from dubito.plugins.source.interface import BotBase, SourceSeat

        bots = {
            name: value
            for name, value in vars(module).items()
            if isinstance(value, type) and issubclass(value, BotBase) and value.__module__ == module.__name__
        }
        for name, bot in bots.items():
            if not any(other is not bot and issubclass(other, bot) for other in bots.values()):
                shown = {"__doc__": bot.__doc__, "__module__": bot.__module__, "origin": bot.origin}
                setattr(module, name, type(name, (SourceSeat,), {**shown, "source": bot}))


READER: Final = Reader()


@hookimpl
def source_readers() -> Mapping[str, str]:
    return {"dubito": "dubito.plugins.source.plugin:READER"}
