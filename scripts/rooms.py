"""Prints how large the rooms are and what is crowded in them: `python scripts/rooms.py [ROOT]`.

The table is looked at, not enforced. A budget is what a room may have in lines; docs/decisions/0034 says why.
"""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final

BUDGET: Final = {  # lines, by room; one that grows by more than a twentieth says why in a decision
    "errors": 100,
    "files": 150,
    "serve": 90,
    "doors": 12,
    "store": 1500,
    "game": 2400,
    "games/dubito": 3250,
    "games/bs": 1800,
    "games/defuse": 1600,
    "games/openspiel": 1700,
    "house": 1800,
    "llm": 5500,
    "stats": 1200,
    "training": 700,
    "experiment": 3000,
    "show": 1000,
    "workshop": 1400,
    "policy": 750,
    "report": 2300,
    "web": 1250,
    "referee": 3900,
    "cli": 3800,
    "bots": 1500,
}
SMALL, LARGE, MANY = 25, 700, 16
WORDS: Final = re.compile(r"bluff|doubt|joker|win_rule|max_turns", re.IGNORECASE)  # Dubito's
OWN: Final = ("games/dubito", "games/bs", "training", "bots", "doors")  # rooms where they may stand


def room_of(path: Path, root: Path) -> str:
    """The room of a module: a folder, a game's folder, or the module itself."""
    parts = path.relative_to(root).with_suffix("").parts
    if parts[0] == "bots":
        return "bots"
    if parts[1] == "games" and len(parts) > 3:
        return f"games/{parts[2]}"
    return "doors" if parts[-1] in ("game_data", "facts", "player") and len(parts) == 2 else parts[1]


def functions(path: Path) -> Iterator[str]:
    """The public functions of a module."""
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            yield node.name


def main(root: Path) -> None:
    """Print a line a room, then what is small, large, said twice, or said of one game in rooms that serve all."""
    lines, files, words = defaultdict[str, int](int), defaultdict[str, int](int), defaultdict[str, int](int)
    owners, odd, imports = defaultdict[str, list[str]](list), list[str](), 0
    for path in sorted([*(root / "dubito").rglob("*.py"), *(root / "bots").rglob("*.py")]):
        text, room = path.read_text("utf-8"), room_of(path, root)
        count = len(text.splitlines())
        lines[room] += count
        files[room] += 1
        imports += sum(node.end_lineno - node.lineno + 1 for node in ast.walk(ast.parse(text))
                       if isinstance(node, ast.Import | ast.ImportFrom) and node.end_lineno)  # fmt: skip
        if count > LARGE or (count < SMALL and path.name not in ("__init__.py", "__main__.py") and room != "doors"):
            odd.append(f"{path.relative_to(root)} ({count})")
        if room not in OWN:
            words[room] += sum(1 for line in text.splitlines() if WORDS.search(line))
        if not room.startswith(("games", "bots")):
            for name in functions(path):
                owners[name].append(path.stem)
    for room in sorted(lines, key=lambda room: -lines[room]):
        over = "" if lines[room] <= BUDGET.get(room, 0) * 1.05 else f"  over {BUDGET.get(room, 0)}"
        crowded = "  many files" if files[room] > MANY + 5 * (room == "cli") and room != "bots" else ""
        print(f"{room:16} {lines[room]:6} lines {files[room]:4} files {words[room]:4} words{over}{crowded}")
    print(
        f"in all {sum(lines.values())} lines in {sum(files.values())} files, "
        f"of them imports {imports / sum(lines.values()):.1%}"
    )
    print("small or large:", ", ".join(odd) or "none")
    print("functions of several owners:", ", ".join(f"{n} {len(o)}" for n, o in sorted(owners.items()) if len(o) > 1))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
