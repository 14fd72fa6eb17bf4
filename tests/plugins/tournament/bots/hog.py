"""A bot whose children keep every core of the machine busy, in any session."""

import os
import sys
from contextlib import suppress

CHILDREN = int(sys.argv[1])


def spin(start: int) -> None:
    """Use a core until killed, once all children have started."""
    os.read(start, 1)
    with suppress(OSError):
        os.setsid()
    with suppress(OSError):
        os.sched_setaffinity(0, range(os.cpu_count() or 1))
        print("has every core", file=sys.stderr, flush=True)
    while True:
        pass


reads, writes = os.pipe()
for _ in range(CHILDREN):
    if os.fork() == 0:
        os.close(writes)
        spin(reads)
os.close(writes)

input(), input()
while not (line := input()).startswith("end of game"):
    if actions := line.split()[1:]:
        print(actions[0], flush=True)
