"""Solved: what counterfactual regret minimisation finds for a small duel, so that little can be won of it."""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from bots.base import BotBase
from dubito.errors import UsageError
from dubito.game_data import Event, TurnData

FOLDER = "cache/solved"  # where a solution is kept, once computed
ITERATIONS = 1_000


class Solved(BotBase):
    """Plays a solved policy: CFR+, for a duel of at most 2,000 information states; only where it is named."""

    origin, usual = "Dubito", False
    at_usual_tables = False

    def __init__(self, id: int, iterations: int = ITERATIONS, folder: str = FOLDER) -> None:
        """The folder is within the working directory."""
        from dubito.games.dubito.training import Diary  # late: who lists bots needs none of it

        super().__init__(id)
        if not self.rules.duel:
            raise UsageError("Solved plays duels alone: set `duel`, and `ranks`, `copies` and `max_turns` small enough")
        self._how = tuple(self.rules.said().items()), folder, iterations
        self._diary = Diary(id)

    def chances(self, view: Any) -> Mapping[int, float]:
        """Its whole way to play, for `dubito policy`."""
        return _table(*self._how)[view.sees]

    def observe(self, event: Event) -> None:
        self._diary.observe(event, self.cards)

    def bluff_first_hand(self, p: TurnData) -> bool:
        return self._answer("A")

    def maximize_first_hand(self, p: TurnData) -> bool:
        return self._answer("B")

    def should_doubt(self, p: TurnData) -> bool:
        return self._answer("C")

    def bluff_regular(self, p: TurnData) -> bool:
        return self._answer("D")

    def maximize_regular(self, p: TurnData) -> bool:
        return self._answer("E")

    def _answer(self, node: str) -> bool:
        answer = self.rng.random() < _table(*self._how)[self._diary.known(self.cards)][1]
        self._diary.answered(node, answer)
        return answer


@lru_cache(maxsize=16)
def _table(rules: tuple[tuple[str, Any], ...], folder: str, iterations: int) -> Mapping[str, Mapping[int, float]]:
    from dubito.games.dubito.game import GAME  # late, as above
    from dubito.policy.small import small_game
    from dubito.policy.solver import solution_in

    engine = small_game(GAME, GAME.rules(**dict(rules))).engine
    return solution_in(Path(str(folder)), engine, iterations=iterations).table
