#!/usr/bin/env python3
"""The random agent of the competition's announcement, extended to decode observations into OpenSpiel's tensor."""

import base64

import numpy as np
import pyspiel
from open_spiel.python.observation import make_observation

game_name = input()
play_as = int(input())

# Five seconds to prepare begin at the start of the process: load what you need here.
game = pyspiel.load_game(game_name)
observation = make_observation(game)

while True:
    message = input()
    if message.startswith("end of game"):
        break
    encoded, *legal_actions = message.split(" ")
    decoded = np.frombuffer(base64.b64decode(encoded), dtype=np.float32)
    np.copyto(observation.tensor, decoded)
    should_act = len(legal_actions) > 0

    if should_act:  # five seconds; `observation.dict` has the tensor's parts by name
        print(np.random.choice(legal_actions), flush=True)
    else:
        pass  # ponder for as long as the opponent thinks, but print nothing

score = float(message.split(" ")[-1])
