"""Play a million games with two workers in constant memory: `python benchmarks/million.py [--games N]`.

Prints, after each tenth, games, games per second, and the resident memory of the main process and its workers.
"""

import argparse
import os
import resource
import tempfile
import threading
import time
from pathlib import Path

from dubito.experiment import run as runner
from dubito.experiment.call_options import CallOptions
from dubito.experiment.config import Config
from dubito.experiment.resolve import resolve
from dubito.game.find import find_bots

HERE = Path(__file__).resolve().parent.parent


def resident(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def workers() -> list[int]:
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    return [int(child) for child in children if resident(int(child)) > 20]


def main() -> None:
    """Play the games and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--games", type=int, default=1_000_000)
    games = parser.parse_args().games
    registry = find_bots(HERE)
    experiment = resolve(Config(games=games, table_sizes=[3, 4, 5, 6, 7]), registry)
    start, reported = time.perf_counter(), 0

    def progress(kept: int) -> None:
        nonlocal reported
        if kept * 10 // games > reported:
            reported = kept * 10 // games
            theirs = ", ".join(f"{resident(pid):.0f}" for pid in workers())
            speed = kept / (time.perf_counter() - start)
            print(f"{kept:,} games, {speed:,.0f} games/s, main {resident(os.getpid()):.0f} MB, workers {theirs} MB")

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "run"
        calls = CallOptions(in_flight=1, cache=folder / "cache", offline=True)
        runner.play(experiment, folder, runner.RunOptions(2, calls, threading.Event(), progress))
        size = (folder / "run.db").stat().st_size
    print(f"run.db: {size / 1e6:.1f} MB, {size / games:.0f} bytes per game")


if __name__ == "__main__":
    main()
