"""Draw the rooms (packages) of `dubito` and their imports.

`python scripts/draw_rooms.py` writes docs/images/rooms.svg. A room imports rooms above it; an arrow that other arrows
imply is left out.
"""

import ast
from collections import defaultdict
from html import escape
from pathlib import Path
from typing import Final

REPO: Final = Path(__file__).resolve().parent.parent
FILE: Final = REPO / "docs" / "images" / "rooms.svg"
WIDTH, ROW, BOX, GAP = 1000, 84, 34, 14  # pixels
DOORS: Final = ("__init__", "__main__", "game_data", "facts", "player")


def room_of(parts: tuple[str, ...]) -> str | None:
    """Return a module's room, given its name's parts after `dubito`; None for entry modules and the package."""
    if not parts or parts[0] in DOORS:
        return None
    return "/".join(parts[:2]) if parts[0] in ("plugins", "games") and len(parts) > 1 else parts[0]


def read_imports() -> dict[str, set[str]]:
    """Return the rooms that each room imports."""
    imports = dict[str, set[str]]()
    for path in sorted((REPO / "dubito").rglob("*.py")):
        room = room_of(path.relative_to(REPO / "dubito").with_suffix("").parts)
        if room in (None, "plugins", "games", "plugins/__init__", "games/__init__"):
            continue
        found = imports.setdefault(room, set())
        tree = ast.parse(path.read_text("utf-8"))
        if room == "hooks":  # type-only imports from all rooms whose hooks it lists
            tree.body = [node for node in tree.body if not isinstance(node, ast.If)]
        for node in ast.walk(tree):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                first, *rest = name.split(".")
                used = room_of(tuple(rest)) if first == "dubito" else None
                if used not in (None, room):
                    found.add(used)
    return {room: used & imports.keys() for room, used in imports.items()}


def reduce_arrows(imports: dict[str, set[str]]) -> dict[str, set[str]]:
    """Leave out an import if another of the room's imports leads to the same room."""

    def reach(room: str) -> set[str]:
        return set().union(*({used} | reach(used) for used in imports[room]))

    return {room: used - set().union(*map(reach, used)) for room, used in imports.items()}


def rank_rooms(imports: dict[str, set[str]]) -> dict[str, int]:
    """Return each room's row: one below the lowest room it imports. Plugins come last."""

    def rank(room: str) -> int:
        return 1 + max(map(rank, imports[room]), default=-1)

    ranks = {room: rank(room) for room in imports}
    last = max(row for room, row in ranks.items() if not room.startswith("plugins/"))
    return {room: max(row, last + 1) if room.startswith("plugins/") else row for room, row in ranks.items()}


def draw() -> str:
    imports = read_imports()
    arrows, ranks = reduce_arrows(imports), rank_rooms(imports)
    rows = defaultdict[int, list[str]](list)
    for room in sorted(imports, key=lambda room: (ranks[room], room)):
        rows[ranks[room]].append(room)
    places: dict[str, tuple[float, float, float]] = {}  # left, top, width
    for number, row in enumerate(rows[rank] for rank in sorted(rows)):
        widths = [9 * len(room.rpartition("/")[2]) + 30 for room in row]
        left = (WIDTH - sum(widths) - GAP * (len(row) - 1)) / 2
        for room, width in zip(row, widths, strict=True):
            places[room] = left, 16 + number * ROW, width
            left += width + GAP
    height = 32 + BOX + ROW * (len(rows) - 1)
    font = 'font-family="sans-serif" font-size="15"'
    svg = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" {font}>']
    svg += ["<title>The rooms of dubito: a room imports rooms above it; plugins are at the bottom</title>"]
    svg += [f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>']
    for room, used in sorted(arrows.items()):
        for other in sorted(used):
            (x, y, width), (x2, y2, width2) = places[room], places[other]
            start, end = x + width / 2, x2 + width2 / 2
            middle = (y + y2 + BOX) / 2
            curve = f"M{start:.0f} {y:.0f} C{start:.0f} {middle:.0f} {end:.0f} {middle:.0f} {end:.0f} {y2 + BOX:.0f}"
            svg.append(f'<path d="{curve}" fill="none" stroke="#94a3b8" stroke-width="1.2"/>')
    for room, (x, y, width) in places.items():
        fill = "#fef3c7" if room.startswith("plugins/") else "#dcfce7" if room.startswith("games/") else "#e0f2fe"
        svg.append(
            f'<rect x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{BOX}" rx="5" fill="{fill}" stroke="#475569"/>'
        )
        name = escape(room.rpartition("/")[2])
        svg.append(f'<text x="{x + width / 2:.0f}" y="{y + 22:.0f}" text-anchor="middle" fill="#0f172a">{name}</text>')
    return "\n".join([*svg, "</svg>", ""])


if __name__ == "__main__":
    FILE.write_text(draw(), encoding="utf-8")
