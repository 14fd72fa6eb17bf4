"""Budgets for each part of the code, in lines without blank lines, comments and docstrings.

Raise a budget in the commit that needs it, and explain why in its message.
"""

import ast
import importlib.util
from collections import Counter
from pathlib import Path
from typing import Any, Final

from tests.test_project import parsed

REPO = Path(__file__).resolve().parent.parent
DOCUMENTED: Final = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
BUDGETS: Final = {
    "bots": 963,
    "dubito": 1337,
    "dubito/cli": 4327,
    "dubito/experiment": 4752,  # includes the worker processes, secret seeds and `replay --programs`
    "dubito/game": 2468,
    "dubito/games": 0,
    "dubito/games/bs": 1151,
    "dubito/games/defuse": 826,
    "dubito/games/dubito": 2199,
    "dubito/house": 1819,
    "dubito/llm": 6720,  # a row per known error of twelve servers, with its source
    "dubito/plugins": 0,
    "dubito/plugins/batch": 1008,
    "dubito/plugins/dask": 68,
    "dubito/plugins/deception": 842,
    "dubito/plugins/forge": 898,
    "dubito/plugins/study": 552,
    "dubito/plugins/gamecheck": 2011,
    "dubito/plugins/inspect": 85,
    "dubito/plugins/leaderboard": 1634,
    "dubito/plugins/local": 280,
    "dubito/plugins/mcp": 76,
    "dubito/plugins/openspiel": 4748,
    "dubito/plugins/source": 281,
    "dubito/plugins/tournament": 2276,
    "dubito/report": 4206,
    "dubito/sandbox": 1466,
    "dubito/seats": 943,
    "dubito/show": 1331,
    "dubito/stats": 1336,
    "dubito/store": 1543,
    "dubito/web": 1447,
    "dubito/workshop": 1646,  # includes the checks of a server, `dubito models check`
    "tests": 51208,
}


def count_code_lines(source: str, module: ast.Module) -> int:
    code = {
        number
        for number, line in enumerate(source.splitlines(), start=1)
        if (text := line.strip()) and not text.startswith("#")
    }
    to_visit: list[Any] = [module]
    while to_visit:
        node = to_visit.pop()
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
            code.difference_update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
        # Docstrings are expression statements, so other expressions need not be visited.
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            nodes = getattr(node, name, None)
            to_visit += nodes if isinstance(nodes, list) else []
    return len(code)


def room_of(path: Path) -> str:
    """Return a file's folder, or inside `dubito` its part, such as dubito/llm or dubito/games/bs."""
    parts = path.relative_to(REPO).parts
    depth = 3 if parts[:2] in (("dubito", "games"), ("dubito", "plugins")) else 2
    return "/".join(parts[: min(depth, len(parts) - 1)]) if parts[0] == "dubito" else parts[0]


def test_no_room_exceeds_its_budget() -> None:
    sizes = Counter[str]()
    for top in ("dubito", "bots", "tests"):
        for path in (REPO / top).rglob("*.py"):
            sizes[room_of(path)] += count_code_lines(path.read_text("utf-8"), parsed(path))
    assert sizes.keys() == BUDGETS.keys()
    over = {room: f"{size} of {BUDGETS[room]}" for room, size in sizes.items() if size > BUDGETS[room]}
    assert over == {}, "make it smaller, or raise the budget and say why"


def test_docstrings_comments_and_blank_lines_are_not_counted() -> None:
    source = '"""Doc."""\n\n# why\nx = 1  # what\n\n\ndef f():\n    """Doc\n    more."""\n    return x\n'
    assert count_code_lines(source, ast.parse(source)) == 3


def test_the_picture_of_the_rooms_is_drawn_from_the_imports() -> None:
    spec = importlib.util.spec_from_file_location("draw_rooms", REPO / "scripts" / "draw_rooms.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert script.FILE.read_text("utf-8") == script.draw(), "run: python scripts/draw_rooms.py"
