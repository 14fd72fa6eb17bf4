"""Ends what is left of bots once the referee is gone, however it went: run as a script, a process of its own.

    python warden.py MARK     kills every process with the mark in its environment, once its input is closed

Bots inherit the mark from the referee, and so do their children, whatever session or parent they chose. Nothing but
the standard library is imported, so that it starts at once.
"""

import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

MARK = "DUBITO_TOURNAMENT"  # environment variable: the folder of the run
_LOOKS, _CLEAN, _PAUSE = 100, 5, 0.05  # at most; in a row without a find; seconds between, for what is just being made


def sweep(mark: str) -> int:
    """Kill every process with this mark that we may kill, but ourselves; how many were there."""
    wanted, found = f"{MARK}={mark}".encode(), 0
    for entry in Path("/proc").glob("[0-9]*"):
        pid = int(entry.name)
        if pid != os.getpid() and _is_marked(entry, wanted):
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
                found += 1
    return found


def _is_marked(entry: Path, wanted: bytes) -> bool:
    try:
        return wanted in (entry / "environ").read_bytes().split(b"\0")
    except OSError:  # it has ended, or is somebody else's
        return False


def main(mark: str) -> None:
    """Wait for the referee's end, then sweep until nothing was found for a while: a process that is just being made has
    no mark yet."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(OSError):
        while os.read(0, 1):
            pass
    clean = 0
    for _ in range(_LOOKS):
        clean = 0 if sweep(mark) else clean + 1
        if clean == _CLEAN:
            break
        time.sleep(_PAUSE)


if __name__ == "__main__":
    main(sys.argv[1])
