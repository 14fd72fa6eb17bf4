"""Find bots written for the 2026 version of the source project (github.com/isBre/Dubito), and redirect their imports.

Like our own bots, their files import `BotBase` from `bots.base` and types from `dubito.game_data`. The source project's
versions of these are in `source_bots.py`, which is loaded only if needed, because many commands look at all bot files.
"""

import ast
import re
from types import ModuleType
from typing import Any, Final

_WORDS_MODULE: Final = "dubito.games.dubito.source_bots"
UNSEEDED: Final = ("secrets", "numpy")  # modules whose random functions are not replaced
_MODULES: Final = ("bots.base", "dubito.game_data", "dubito.player", "dubito.hand")
_HELPERS: Final = {"honest_times", "dishonest_times", "doubts_count", "turns_count"}
_METHODS: Final = {"play_first_turn", "play_regular_turn"}
_FACTS: Final = {"my_cards", "player_card_counts", "my_player_id", "prev_player_id", "next_player_id", "history"}
_OUR_FACTS: Final = {"me", "prev", "next", "can_doubt", "last_player_id", "my_n_cards", "rng", "observe"}
# Matches a plain name, or an attribute.
_ANY_WORD: Final = re.compile(
    rf"(?<!\.)\b({'|'.join(sorted(_HELPERS | _METHODS))})\b|\.\s*({'|'.join(sorted(_FACTS))})\b".encode()
)


def convert_source(source: bytes) -> ast.Module | None:
    """Return a bot for that version as code whose imports refer to this module, or None for other files."""
    # For speed, files without any of these words are not parsed.
    if not _ANY_WORD.search(source):
        return None
    tree = ast.parse(source)
    return ast.fix_missing_locations(_Rebase().visit(tree)) if _is_for_source(tree) else None


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
    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
        if node.module in _MODULES:
            node.module = _WORDS_MODULE
        if node.module != "random":
            return node
        names = [(alias.asname or alias.name, alias.name) for alias in node.names]
        code = "\n".join(
            f"from {_WORDS_MODULE} import random as _random\n{here} = _random.{name}" for here, name in names
        )
        return [ast.copy_location(statement, node) for statement in ast.parse(code).body]

    def visit_Import(self, node: ast.Import) -> Any:
        others = [alias for alias in node.names if alias.name != "random"]
        drawing = [ast.alias("random", alias.asname) for alias in node.names if alias.name == "random"]
        statements: list[ast.stmt] = [ast.Import(others)] if others else []
        statements += [ast.ImportFrom(_WORDS_MODULE, [alias], 0) for alias in drawing]
        return [ast.copy_location(statement, node) for statement in statements]


def seat_bots(module: ModuleType) -> None:
    """Replace each bot class in a module with its seat class."""
    from dubito.games.dubito.source_bots import BotBase, SourceSeat

    for name, value in list(vars(module).items()):
        if isinstance(value, type) and issubclass(value, BotBase) and value.__module__ == module.__name__:
            shown = {key: getattr(value, key) for key in ("__doc__", "__module__", "origin") if hasattr(value, key)}
            setattr(module, name, type(name, (SourceSeat,), {**shown, "source": value}))
