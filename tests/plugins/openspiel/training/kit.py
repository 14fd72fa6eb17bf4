"""Random games of Dubito's games in pyspiel."""

from collections.abc import Callable, Iterator
from random import Random
from typing import Any, Final

import pyspiel

import dubito.plugins.openspiel.spiel  # noqa: F401, registers them

DUEL: Final = "dubito(players=2,duel=true,ranks=3,copies=3,jokers=1,win_rule=contested,max_turns=8)"
SHORT: Final = (  # one of each game, with caps that keep it short
    *(f"dubito(players={players},max_turns=8)" for players in range(3, 9)),
    "dubito(players=4,jokers=0,win_rule=contested,max_turns=20)",
    "dubito(moves=cards,max_turns=8)",
    DUEL,
    "dubito_bs(max_rounds=2)",
    "dubito_defuse",
)
WHOLE: Final = (
    "dubito(max_turns=200)",
    "dubito(players=5,win_rule=contested,max_turns=60)",
    "dubito(players=4,moves=cards,max_turns=60)",
    "dubito(players=2,duel=true,ranks=9,copies=3,win_rule=contested,max_turns=60)",
    "dubito_bs(max_rounds=12)",
    "dubito_defuse",
)


def new(name: str) -> Any:
    return pyspiel.load_game(name).new_initial_state()


def draw_step(state: Any, chance: Random) -> int:
    if state.is_chance_node():
        outcomes, odds = zip(*state.chance_outcomes(), strict=True)
        return int(chance.choices(outcomes, odds)[0])
    return int(chance.choice(state.legal_actions()))


def states(name: str, seed: int = 0, pick: Callable[[Any, Random], int] = draw_step) -> Iterator[Any]:
    """Yield a state at each decision of a seat and at the end."""
    state, chance = new(name), Random(seed)
    while not state.is_terminal():
        if not state.is_chance_node():
            yield state
        state.apply_action(pick(state, chance))
    yield state
