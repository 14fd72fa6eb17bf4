"""Compute a near-equilibrium table with OpenSpiel's algorithms, and cache it on disk."""

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from importlib import metadata
from math import isclose
from pathlib import Path
from threading import get_ident
from typing import Final

from dubito.errors import RunStopped, UsageError, one_line, suggestion
from dubito.files import write_whole
from dubito.plugins.openspiel.engine_types import TreeGame
from dubito.plugins.openspiel.policy.tree import MAX_STATES, PolicyTable, Tree, explain_incomplete, is_compiled
from dubito.plugins.openspiel.policy.values import nash_conv

ITERATIONS: Final = 1_000  # enough for a nash_conv below 0.001 in Kuhn, Leduc and small liar's dice
_FORMAT: Final = 1
_MAX_ROUNDING: Final = 1e-9


@dataclass(frozen=True)
class Solution:
    """A table, how it was computed, and its distance to an equilibrium."""

    game: str  # with its parameters
    algorithm: str
    iterations: int
    open_spiel: str  # its version
    nash_conv: float
    table: PolicyTable
    note: str | None = None  # what was wrong with the stored file


def solve(game: TreeGame, algorithm: str = "cfr+", iterations: int = ITERATIONS, limit: int = MAX_STATES) -> Solution:
    """Return the average table after `iterations` deterministic iterations.

    `cfr+` is OpenSpiel's C++ implementation, or ours (`regret.py`) for games written in Python. `linear cfr` is
    OpenSpiel's Python implementation, which is about forty times slower. Both approach an equilibrium in two-player
    zero-sum games. There is no guarantee for other games, but the nash_conv is still computed. Raises UsageError for an
    unknown algorithm or a game without a tree.
    """
    make = _algorithm(algorithm)
    if iterations < 1:
        raise UsageError(f"iterations must be above 0, not {iterations}")
    tree = Tree(game, limit)
    table = make(game, tree, iterations)
    return Solution(str(game), algorithm, iterations, _version(), nash_conv(tree, table), table)


def solution_in(
    folder: Path, game: TreeGame, algorithm: str = "cfr+", iterations: int = ITERATIONS, limit: int = MAX_STATES
) -> Solution:
    """Return the solution stored in the folder, or compute and store it.

    A damaged file is replaced and mentioned in the solution's note. Raises UsageError like `solve`, and RunStopped if
    the solution cannot be written.
    """
    if not isinstance(folder, Path) or type(iterations) is not int:
        raise UsageError("`folder` must be a path and `iterations` a whole number")
    _algorithm(algorithm)
    path = folder / _file_name(str(game), algorithm, iterations)
    note = None
    if path.exists():
        stored = _read_solution(path, game, algorithm, iterations, limit)
        if isinstance(stored, Solution):
            return stored
        note = f"{one_line(str(path))} {stored}, so the solution was recomputed"
    solution = solve(game, algorithm, iterations, limit)
    _write_solution(path, _to_json(solution))
    return replace(solution, note=note)


def _write_solution(path: Path, text: str) -> None:
    """Write the file atomically, because several processes may compute the same solution."""
    draft = path.with_name(f"{path.name}.{os.getpid()}-{get_ident()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(draft, text)
        draft.replace(path)
    except OSError as error:
        raise RunStopped(f"cannot write {one_line(str(path))}: {error.strerror}") from None


def _algorithm(name: str) -> Callable[[TreeGame, Tree, int], PolicyTable]:
    if not isinstance(name, str) or name not in _ALGORITHMS:
        raise UsageError(f"unknown algorithm {one_line(repr(name), 40)}: {suggestion(str(name), _ALGORITHMS)}")
    return _ALGORITHMS[name]


def _cfr_plus(game: TreeGame, tree: Tree, iterations: int) -> PolicyTable:
    if not is_compiled(game):
        try:
            from dubito.plugins.openspiel.policy.regret import (
                cfr_plus,
            )  # imported late because numpy comes with OpenSpiel
        except ModuleNotFoundError:
            raise UsageError("solving games needs numpy: pip install 'dubito[openspiel]'") from None

        return cfr_plus(tree, iterations)
    import pyspiel

    solver = pyspiel.CFRPlusSolver(game)
    for _ in range(iterations):
        solver.evaluate_and_update_policy()
    rows = solver.tabular_average_policy().policy_table()
    return {state.string: dict(rows[state.string]) for state in tree.states}


def _linear_cfr(game: TreeGame, tree: Tree, iterations: int) -> PolicyTable:
    from open_spiel.python.algorithms.discounted_cfr import LCFRSolver

    solver = LCFRSolver(game)
    for _ in range(iterations):
        solver.evaluate_and_update_policy()
    average = solver.average_policy()
    rows = {state.string: average.policy_for_key(state.string) for state in tree.states}
    return {state.string: {a: float(rows[state.string][a]) for a in state.actions} for state in tree.states}


_ALGORITHMS: Final[Mapping[str, Callable[[TreeGame, Tree, int], PolicyTable]]] = {
    "cfr+": _cfr_plus,
    "linear cfr": _linear_cfr,
}


def _version() -> str:
    try:
        return metadata.version("open_spiel")
    except metadata.PackageNotFoundError:
        return "none"


def _file_name(game: str, algorithm: str, iterations: int) -> str:
    identity = f"{_FORMAT} {game} {algorithm} {iterations} {_version()}"
    words = re.sub(r"[^a-z0-9]+", "-", f"{game[:40]} {algorithm} {iterations}".lower()).strip("-")
    return f"{words}-{sha256(identity.encode()).hexdigest()[:12]}.json"


def _to_json(solution: Solution) -> str:
    header = {key: value for key, value in vars(solution).items() if key not in ("table", "note")}
    rows = {string: {str(action): chance for action, chance in row.items()} for string, row in solution.table.items()}
    return json.dumps({**header, "table": rows}, indent=1) + "\n"


def _read_solution(path: Path, game: TreeGame, algorithm: str, iterations: int, limit: int) -> Solution | str:
    """Return the stored solution, or what is wrong with the file."""
    try:
        file = json.loads(path.read_text(encoding="utf-8"))
        rows = {string: {int(action): float(p) for action, p in row.items()} for string, row in file["table"].items()}
        stated = float(file["nash_conv"])
        identity = file["game"], file["algorithm"], file["iterations"], file["open_spiel"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return "is damaged"
    if identity != (str(game), algorithm, iterations, _version()):
        return "is for another game or algorithm"
    tree = Tree(game, limit)
    reason = explain_incomplete(tree, rows)
    if reason:
        return f"has {reason}"
    if not isclose(nash_conv(tree, rows), stated, abs_tol=_MAX_ROUNDING):
        return "has a worse table than it claims"
    return Solution(*identity, stated, rows)
