"""Measure what a replay costs, and how soon a stopped run resumes.

`python benchmarks/replay.py` takes about a minute.

A run of 200 games with two model players is played with the built-in model server, then replayed from its recording. A
run of hand-written bots is stopped after most of its million games (or --games), and resumed.
"""

import argparse
import tempfile
import threading
import time
from pathlib import Path

from pipeline import USUAL
from speed import time_call

from dubito.experiment import replay
from dubito.experiment import run as runner
from dubito.experiment.call_options import CallOptions
from dubito.experiment.config import Config
from dubito.experiment.model_players import check_models
from dubito.experiment.resolve import resolve
from dubito.experiment.stored import read_replayable_run
from dubito.game.find import Registry, find_bots

HERE = Path(__file__).resolve().parent.parent
MODELS = [
    {"bot": "OpenAIBot", "name": "one", "model": "house-sharp", "base_url": "house"},
    {"bot": "AnthropicBot", "name": "two", "model": "house-sharp", "base_url": "house", "prompt": "reasoned"},
]


def time_replay(registry: Registry, folder: Path) -> None:
    """Print the CPU time per replayed decision."""
    config = Config(games=200, table_sizes=[3, 4, 5], bots=["StefaBot", "UsualBot", "ClaudeBot"], contenders=[*MODELS])
    calls = CallOptions(32, folder / "cache", False, preflight=False)
    experiment = check_models(resolve(config, registry), calls)
    run = runner.play(experiment, folder / "run", runner.RunOptions(1, calls, threading.Event()))
    kept = read_replayable_run(folder / "run", registry.working_directory)
    found, seconds, iterations = time_call(lambda: replay.replay(kept, 1, lambda games: None))
    assert found.difference is None, found.difference
    assert found.results_digest == run.results_digest
    ms, iterations = seconds / found.decisions * 1e3, iterations / found.decisions
    print(f"replay: {found.games} games, {found.decisions:,} decisions, {ms:.2f} ms of CPU per decision "
          f"(target 0.5), {iterations:,.0f} iterations of the function's loop (target {USUAL * 500:,})")  # fmt: skip


def time_resume(registry: Registry, folder: Path, games: int) -> None:
    """Print the seconds from the command to the first new games."""
    experiment = resolve(Config(games=games, bots=["StefaBot", "RandomBoi"], table_sizes=[3]), registry)
    calls = CallOptions(1, folder / "cache", True)
    stop = threading.Event()

    def until(done: int) -> None:
        if done >= games * 9 // 10:
            stop.set()

    runner.play(experiment, folder / "long", runner.RunOptions(2, calls, stop, until))
    start, first = time.perf_counter(), 0.0
    before: int | None = None

    def watch(done: int) -> None:
        nonlocal before, first
        before = done if before is None else before
        if done > before and not first:
            first = time.perf_counter() - start

    runner.play(experiment, folder / "long", runner.RunOptions(2, calls, threading.Event(), watch))
    print(f"resumed with {before or 0:,} of {games:,} games: first new games after {first:.1f} s")


def main() -> None:
    """Print every figure."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--games", type=int, default=1_000_000)
    games: int = parser.parse_args().games
    registry = find_bots(HERE)
    with tempfile.TemporaryDirectory() as scratch:
        time_replay(registry, Path(scratch))
        time_resume(registry, Path(scratch), games)


if __name__ == "__main__":
    main()
