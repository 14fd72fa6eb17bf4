"""Kill leftover bots when the referee is gone, no matter why. Runs as a script.

After its input closes, `python warden.py MARK` kills every process that has the mark in its environment.

Bots inherit the mark from the referee, and so do their children, whatever session or parent they have. Only the
standard library is imported, so that it starts fast.
"""

import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

MARK = "DUBITO_TOURNAMENT"  # environment variable: the run's folder
# Maximum number of sweeps; empty sweeps after which to stop; seconds between sweeps, for processes that are just
# starting.
_MAX_SWEEPS, _CLEAN_SWEEPS, _PAUSE_SECONDS = 100, 5, 0.05


def sweep(mark: str) -> int:
    """Kill every other process with this mark, if permitted. Return the number of killed processes."""
    wanted = f"{MARK}={mark}".encode()
    return _kill_processes("environ", lambda words: wanted in words)


def end_earlier_wardens(mark: str) -> None:
    """Kill the wardens of killed runs with this mark, which could still kill the bots of the next run."""
    wanted = [__file__.encode(), mark.encode()]
    _kill_processes("cmdline", lambda words: words[-3:-1] == wanted)


def _kill_processes(file: str, is_meant: Callable[[list[bytes]], bool]) -> int:
    """Kill other processes by the words of a file in their folder in /proc. Return the number of killed processes."""
    count = 0
    for entry in Path("/proc").glob("[0-9]*"):
        pid = int(entry.name)
        with suppress(OSError):  # the process has ended, or belongs to another user
            if pid != os.getpid() and is_meant((entry / file).read_bytes().split(b"\0")):
                os.kill(pid, signal.SIGKILL)
                count += 1
    return count


def main(mark: str) -> None:
    """Wait until the referee is gone, then sweep until no process is found for a while.

    A process that is just starting has no mark yet.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(OSError):
        while os.read(0, 1):
            pass
    clean = 0
    for _ in range(_MAX_SWEEPS):
        clean = 0 if sweep(mark) else clean + 1
        if clean == _CLEAN_SWEEPS:
            break
        time.sleep(_PAUSE_SECONDS)


if __name__ == "__main__":
    main(sys.argv[1])
