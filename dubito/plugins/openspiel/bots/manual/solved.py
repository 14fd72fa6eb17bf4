"""Solved, a near-equilibrium policy for a small duel, found by counterfactual regret minimisation."""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bots.base import BotBase
from dubito.errors import UsageError
from dubito.game_data import TurnData, TurnOutput

if TYPE_CHECKING:
    from dubito.plugins.openspiel.policy.solver import Solution

FOLDER = "cache/solved"  # of computed solutions
ITERATIONS = 1_000
_NEEDED = "plays duels alone: set `duel`, and `ranks`, `copies` and `max_turns` small enough"


class Solved(BotBase):
    """Plays a CFR+ solution of a duel with at most 2,000 information states; only if named."""

    origin, usual, reads_log = "Dubito", False, True

    @classmethod
    def rules_incompatibility(cls, rules: Any) -> str | None:
        if rules.duel and (why := _no_tree(tuple(rules.model_dump().items()))) is None:
            return None
        return f"{_NEEDED} ({why})" if rules.duel else _NEEDED

    @classmethod
    def describe(cls, rules: Mapping[str, Any], settings: Mapping[str, Any]) -> str:
        """Describe the solution and its quality."""
        of = {"iterations": ITERATIONS, "folder": FOLDER} | dict(settings)
        found = _solution(tuple(rules.items()), of["folder"], of["iterations"])
        return f"{found.algorithm}, {found.iterations:,} iterations: nash_conv {found.nash_conv:.6f}"

    def __init__(self, id: int, iterations: int = ITERATIONS, folder: str = FOLDER) -> None:
        super().__init__(id)
        if not self.rules.duel:
            raise UsageError(f"Solved {_NEEDED}")
        self._how = tuple(self.rules.stored_form().items()), folder, iterations

    def chances(self, view: Any) -> Mapping[int, float]:
        """Return the probability of each action, for `dubito policy`."""
        return _solution(*self._how).table[view.sees]

    def play(self, p: TurnData) -> TurnOutput:
        # Imported late: listing the bots should not load OpenSpiel.
        from dubito.plugins.openspiel.courses.dubito import draw_move

        log = self._seating.log
        assert log is not None
        return draw_move(log.latest(), _solution(*self._how).table, self.rng)


@lru_cache(maxsize=16)
def _solution(rules: tuple[tuple[str, Any], ...], folder: str, iterations: int) -> "Solution":
    from dubito.plugins.openspiel.policy.solver import solution_in  # late, as above

    return solution_in(Path(str(folder)), _engine(rules), iterations=iterations)


@lru_cache(maxsize=16)
def _no_tree(rules: tuple[tuple[str, Any], ...]) -> str | None:
    from dubito.plugins.openspiel.policy.tree import Tree  # late, as above

    try:
        Tree(_engine(rules))
    except UsageError as error:
        return f"{error}"
    return None


def _engine(rules: tuple[tuple[str, Any], ...]) -> Any:
    from dubito.games.dubito.game import GAME  # late, as above
    from dubito.plugins.openspiel.policy.small import small_game

    return small_game(GAME, GAME.rules(**dict(rules))).engine
