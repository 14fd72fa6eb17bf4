"""CounterBot, the best response to how one player plays a small game. `dubito rate` fits it."""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from dubito.plugins.openspiel.bot import OpenSpielBot
from dubito.plugins.openspiel.bots.manual.openspiel.solved import Solved
from dubito.plugins.openspiel.engine import pyspiel
from dubito.plugins.openspiel.policy.luck import fitted
from dubito.plugins.openspiel.policy.tree import Tree, uniform
from dubito.plugins.openspiel.policy.values import best_response
from dubito.plugins.openspiel.state import View


class CounterBot(OpenSpielBot):
    """Plays the best response to one player's observed policy, in games of at most 2,000 states."""

    origin, usual = "Dubito", False
    cannot_play = Solved.cannot_play

    def __init__(self, id: int, choices: Sequence[int] = ()) -> None:
        """Take an action for each information state, in their order; without any, play at random."""
        super().__init__(id)
        self._choices = choices

    @classmethod
    def fitted(cls, moves: Iterable[tuple[Any, Any]]) -> dict[str, Any]:
        """Return the settings that respond best to a player's moves, each with the state before it."""
        done, game = [], ""
        for state, output in moves:
            view = state.view()
            game = view.game
            done.append((view.sees, next(action for action, name in view.names.items() if name == output)))
        if not done:
            return {}
        tree = _tree(game)
        table = fitted(tree, done, uniform(tree))
        best: dict[str, int] = {}
        for seat in range(tree.players):
            best |= best_response(tree, seat, [table] * tree.players).choices
        return {"choices": [best[state.string] for state in tree.states]}

    def act(self, view: View) -> int:
        if not self._choices:
            return self.rng.choice([*view.names])
        return self._choices[_places(view.game)[view.sees]]


@lru_cache(maxsize=4)
def _tree(game: str) -> Tree:
    return Tree(pyspiel().load_game(game))


@lru_cache(maxsize=4)
def _places(game: str) -> Mapping[str, int]:
    return {state.string: place for place, state in enumerate(_tree(game).states)}
