"""Opponents for testing a bot. Run as a script: `python partners.py random`. Only uses the standard library."""

import os
import random
import sys
import time

SLOW = 0.5  # seconds per answer


def main(kind: str) -> None:
    input(), input()  # the game and the seat
    stream = random.Random(
        os.environ.get("DUBITO_SEED")
    )  # set by the referee, so that repeated matches have the same moves
    while not (line := input()).startswith("end of game"):
        _, *legal = line.split()
        if legal or kind == "chatty":
            answer(kind, legal, stream)


def answer(kind: str, legal: list[str], stream: random.Random) -> None:
    if kind == "rude":
        print("none of your business")
    elif kind == "silent":
        return
    elif kind == "gone":
        sys.exit(1)
    elif kind == "chatty":
        print(legal[0] if legal else "nothing to say")
    else:
        if kind == "slow":
            time.sleep(SLOW)
        print(stream.choice(legal))


if __name__ == "__main__":
    main(sys.argv[1])
