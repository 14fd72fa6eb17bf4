"""Learn to beat StefaBot by a policy gradient over a table (dubito/plugins/openspiel/docs/training.md)."""

import random
from collections import defaultdict
from math import exp

import pyspiel
from open_spiel.python.observation import make_observation

from dubito.plugins.openspiel.spiel import HarnessState, SeatedBot

game = pyspiel.load_game("dubito(players=3,max_turns=200)")
rivals = [SeatedBot(game, seat, "StefaBot") for seat in (1, 2)]
observer, chance = make_observation(game), random.Random(7)
leaning = defaultdict[tuple[int, ...], float](float)  # towards yes, by what the agent sees


def glance(state: HarnessState) -> tuple[int, ...]:
    observer.set_from(state, 0)
    seen = observer.dict
    number = seen["number"].argmax()
    return int(seen["asked"].argmax()), int(seen["last_play"].argmax()), int(number and seen["hand"][number])


def play() -> float:
    state: HarnessState = game.new_initial_state()
    decisions = []
    while not state.is_terminal():
        if state.is_chance_node():
            action = chance.choices(*zip(*state.chance_outcomes(), strict=True))[0]
        elif seat := state.current_player():
            action = rivals[seat - 1].step(state)
        else:
            key = glance(state)
            yes = 1 / (1 + exp(-leaning[key]))
            action = int(chance.random() < yes)
            decisions.append((key, action - yes))
        state.apply_action(action)
    for key, surprise in decisions:
        leaning[key] += (state.returns()[0] - 1 / 3) * surprise
    return state.returns()[0]


for _ in range(4):
    print(f"{sum(play() for _ in range(40)) / 40:.2f}")
