"""Solved, a near-equilibrium policy for a small game, found by counterfactual regret minimisation."""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from dubito.errors import UsageError
from dubito.plugins.openspiel.bot import OpenSpielBot
from dubito.plugins.openspiel.engine import pyspiel
from dubito.plugins.openspiel.policy.solver import ITERATIONS, Solution, solution_in
from dubito.plugins.openspiel.policy.tree import Tree
from dubito.plugins.openspiel.state import View

FOLDER = "cache/solved"  # of computed solutions


class Solved(OpenSpielBot):
    """Plays a CFR+ solution (the run reports its nash_conv), in games of at most 2,000 states."""

    origin = "OpenSpiel"

    def __init__(self, id: int, algorithm: str = "cfr+", iterations: int = ITERATIONS, folder: str = FOLDER) -> None:
        """Take the algorithm, `cfr+` or `linear cfr`, and a folder within the working directory."""
        super().__init__(id)
        self._how = folder, algorithm, iterations

    @classmethod
    def cannot_play(cls, engine: Any) -> str | None:
        return _no_tree(str(engine))

    @classmethod
    def describe(cls, engine: Any, settings: Mapping[str, Any]) -> str | None:
        """Describe the solution and its quality."""
        of = {"folder": FOLDER, "algorithm": "cfr+", "iterations": ITERATIONS} | dict(settings)
        found = _solution(str(engine), of["folder"], of["algorithm"], of["iterations"])
        return f"{found.algorithm}, {found.iterations:,} iterations: nash_conv {found.nash_conv:.6f}"

    def chances(self, view: View) -> dict[int, float]:
        """Return the probability of each action, for `dubito policy`."""
        return dict(_solution(view.game, *self._how).table[view.sees])

    def act(self, view: View) -> int:
        row = self.chances(view)
        return self.rng.choices([*row], [*row.values()])[0]


@lru_cache(maxsize=16)
def _solution(game: str, folder: str, algorithm: str, iterations: int) -> Solution:
    return solution_in(Path(str(folder)), pyspiel().load_game(game), algorithm, iterations)


@lru_cache(maxsize=256)
def _no_tree(game: str) -> str | None:
    try:
        Tree(pyspiel().load_game(game))
    except UsageError as error:
        return f"cannot play this game: {error}"
    return None
