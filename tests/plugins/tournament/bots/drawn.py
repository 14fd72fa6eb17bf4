"""An honest bot that draws its actions from the seed that it received, and stores a file."""

import os
import random

input(), input()
stream = random.Random(os.environ["DUBITO_SEED"])
while not (line := input()).startswith("end of game"):
    if actions := line.split()[1:]:
        print(stream.choice(actions), flush=True)
with open(os.path.join(os.environ["DUBITO_DATA"], "played"), "w") as file:
    file.write("x")
