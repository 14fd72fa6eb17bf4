"""An honest bot that needs its core: each answer takes some milliseconds of work."""

import sys
import time


def think() -> None:
    until = time.process_time() + float(sys.argv[1]) / 1000
    while time.process_time() < until:
        pass


input(), input()
while not (line := input()).startswith("end of game"):
    if actions := line.split()[1:]:
        think()
        print(actions[0], flush=True)
