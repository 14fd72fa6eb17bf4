"""A bot that breaks whatever it can reach: other programs and data, the log, the referee, the rest of the machine."""

import glob
import os
import resource
import signal
import sys
from contextlib import suppress

RUN = os.environ["DUBITO_TOURNAMENT"]


def overwrite() -> None:
    """Overwrite the programs next to this one, the tournament's files, and what other bots left behind."""
    ours = os.path.realpath(sys.argv[0])
    for folder in (os.getcwd(), RUN, os.path.dirname(os.environ["DUBITO_DATA"])):
        for path in glob.glob(f"{folder}/**", recursive=True):
            if os.path.isfile(path) and os.path.realpath(path) != ours:
                with suppress(OSError), open(path, "w") as file:
                    file.write("raise SystemExit(1)\n")
                    print("wrote", path, file=sys.stderr, flush=True)


def cut() -> None:
    for pid in {int(name) for name in os.listdir("/proc") if name.isdigit()} - {os.getpid()}:
        for what in (resource.RLIMIT_NOFILE, resource.RLIMIT_AS, resource.RLIMIT_CPU):
            with suppress(OSError, ValueError):
                resource.prlimit(pid, what, (0, 0))


overwrite()
if sum(name.isdigit() for name in os.listdir("/proc")) > 20:  # not an isolated environment but a real machine
    print("wrote what it likes", file=sys.stderr)
    sys.exit()
cut()
if os.fork() == 0:
    with suppress(OSError):
        os.kill(-1, signal.SIGKILL)
    sys.exit()

input(), input()
while not (line := input()).startswith("end of game"):
    if actions := line.split()[1:]:
        print(actions[0], flush=True)
