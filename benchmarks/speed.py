"""Measure what a game costs, as ratios within one run: `python benchmarks/speed.py [--games N]`.

The yardstick is an iteration of `s += random.random()` in a plain Python loop, measured right before and after each
round, so that a temporary slowdown of the machine affects both. Such a loop is nearly twice as fast inside a function,
where names are locals, as at the top level of a script; both readings are printed. The players are the ten bots other
than ClaudeBot, at 3 to 7 seats; two pools at BS, two bots at draw and defuse. A cost includes statistics and storage.
The benchmark needs an idle core, or two for the line with two workers.

`python benchmarks/speed.py --pair PURE COMPILED` measures two installations instead, given by their Python executables.
It alternates between them and prints the CPU time at each table size: medians of seven rounds, and the ratio's range.
"""

import argparse
import json
import random
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from dubito.experiment import run as runner
from dubito.experiment.call_options import CallOptions
from dubito.experiment.config import Config
from dubito.experiment.play import DEALS_PER_CHUNK, ChunkPlayer
from dubito.experiment.resolve import resolve
from dubito.experiment.resolved import ResolvedRun
from dubito.game.find import Registry, find_bots
from dubito.games.dubito.engine import RESULTS
from dubito.stats.tally import sum_deals, unpack_outcome
from dubito.store.run_db import Chunk, RunDb

HERE = Path(__file__).resolve().parent.parent

T = TypeVar("T")

_ITERATIONS = 1_000_000
_SCRIPT = compile(f"s = 0.0\nfor _ in range({_ITERATIONS}):\n    s += random.random()", "script", "exec")


def script_yardstick() -> float:
    start = time.process_time()
    exec(_SCRIPT, {"random": random})  # noqa: S102, our own text
    return (time.process_time() - start) / _ITERATIONS


def function_yardstick() -> float:
    """Return the CPU seconds of one iteration inside a function."""
    start = time.process_time()
    s = 0.0
    for _ in range(_ITERATIONS):
        s += random.random()
    return (time.process_time() - start) / _ITERATIONS


def time_call(call: Callable[[], T]) -> tuple[T, float, float]:
    """Return a call's result and its CPU time, in seconds and in iterations of a loop timed right before and after."""
    before, start = function_yardstick(), time.process_time()
    returned = call()
    seconds = time.process_time() - start
    return returned, seconds, seconds / statistics.mean((before, function_yardstick()))


SEVEN = ["ConMan", "CalculatingLiar", "Player4", "Player1", "Player3", "Player2", "Hoarder"]
OTHERS = (  # game, players, and the highest cost of a game in iterations of the function's loop
    ("bs", "BS between Player1 to Player4", ["Player1", "Player2", "Player3", "Player4"], 10_000),
    ("bs", "BS between the seven", SEVEN, 30_000),
    ("defuse", "draw and defuse, Simple against Scared", ["Simple", "Scared"], 3_000),
)


def cost_of_other(game: str, field: list[str], rounds: int, folder: Path) -> float:
    registry = find_bots(HERE, game)
    whole = resolve(Config(game=game, games=2 * DEALS_PER_CHUNK, bots=[*field]), registry)
    return cost_per_game(whole, rounds, folder)["function"]


def resolve_run(registry: Registry, games: int) -> ResolvedRun:
    bots = [bot.name for bot in registry.hand_written() if bot.name != "ClaudeBot"]
    return resolve(Config(games=games, table_sizes=[3, 4, 5, 6, 7], bots=[*bots]), registry)


def run(resolved: ResolvedRun, workers: int, folder: Path) -> float:
    """Return the wall-clock seconds of a whole run."""
    start = time.perf_counter()
    calls = CallOptions(in_flight=1, cache=folder / "cache", offline=True)
    runner.play(resolved, folder, runner.RunOptions(workers, calls, threading.Event()))
    return time.perf_counter() - start


def cost_per_game(whole: ResolvedRun, rounds: int, folder: Path) -> dict[str, float]:
    """Return the cost of a game in iterations of both yardsticks and microseconds of CPU, as medians over rounds."""
    costs: dict[str, list[float]] = {"script": [], "function": [], "us": []}
    for number in range(rounds):
        seeded = replace(whole, experiment=replace(whole.experiment, seed=number))
        before = script_yardstick(), function_yardstick()
        start = time.process_time()
        run(seeded, 1, folder / f"cost{number}")
        seconds = (time.process_time() - start) / whole.experiment.games
        after = script_yardstick(), function_yardstick()
        costs["us"].append(seconds * 1e6)
        for place, name in enumerate(("script", "function")):
            costs[name].append(seconds / statistics.mean((before[place], after[place])))
    return {name: statistics.median(values) for name, values in costs.items()}


def parts(registry: Registry, folder: Path) -> dict[str, float]:
    """Return the CPU seconds of a chunk's parts: play (with statistics), statistics alone, and storage alone."""
    player = ChunkPlayer(resolve_run(registry, DEALS_PER_CHUNK))
    start = time.process_time()
    played = player.play(range(DEALS_PER_CHUNK), lambda: False)
    play = time.process_time() - start
    deals = [[unpack_outcome(row, RESULTS)] for row in played.outcomes]
    start = time.process_time()
    tally = sum_deals(deals, RESULTS)
    tallied = time.process_time() - start
    with RunDb.create(folder / "parts.db") as db:
        start = time.process_time()
        rows = [outcomes[0].pack() for outcomes in deals]
        db.add_chunk(Chunk(0, DEALS_PER_CHUNK, 0, rows), (tally + tally).to_json(), complete=True)
        store = time.process_time() - start
    return {"play": play, "statistics": tallied, "store": store}


SIZES = (3, 4, 5, 6, 7)


def costs_by_size(round_: int) -> list[float]:
    """Return the microseconds of CPU per game at each table size; a round is a seed."""
    registry = find_bots(HERE)
    bots = [player.bot.name for player in resolve_run(registry, DEALS_PER_CHUNK).players]
    costs = []
    with tempfile.TemporaryDirectory() as folder:
        for size in SIZES:
            config = Config(games=3 * DEALS_PER_CHUNK, seed=round_, table_sizes=[size], bots=[*bots])
            resolved, start = resolve(config, registry), time.process_time()
            run(resolved, 1, Path(folder) / str(size))
            costs.append((time.process_time() - start) / resolved.experiment.games * 1e6)
    return costs


def compare_pythons(pythons: list[str], rounds: int) -> None:
    """Print what a game costs under each of two Pythons, measured alternately."""
    costs: dict[str, list[list[float]]] = {python: [] for python in pythons}
    for number in range(rounds):
        for python in pythons if number % 2 else pythons[::-1]:
            words = [python, __file__, "--round", str(number)]
            costs[python].append(json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout))
    for place, size in enumerate((*SIZES, "all")):
        first, second = ([of(row, place) for row in costs[python]] for python in pythons)
        ratios = [a / b for a, b in zip(first, second, strict=True)]
        spread = f"{statistics.median(ratios):.2f} times [{min(ratios):.2f}, {max(ratios):.2f}]"
        medians = f"{statistics.median(first):,.0f} and {statistics.median(second):,.0f} us of CPU a game"
        print(f"{size} players: {medians}, {spread}")


def of(row: list[float], place: int) -> float:
    return row[place] if place < len(row) else statistics.mean(row)


def figures(games: int, rounds: int) -> None:
    """Print every figure with its target."""
    registry = find_bots(HERE)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        cost = cost_per_game(resolve_run(registry, 3 * DEALS_PER_CHUNK), rounds, folder)
        print(f"per game: {cost['us']:,.0f} us of CPU")
        print(f"per game: {cost['script']:,.0f} iterations of the script's loop (target: at most 5,500)")
        print(f"per game: {cost['function']:,.0f} iterations of the function's loop")
        for game, name, field, most in OTHERS:
            loops = cost_of_other(game, field, rounds, folder / name)
            print(f"per game of {name}: {loops:,.0f} iterations of the function's loop (target: at most {most:,})")
        seconds = parts(registry, folder)
        print(f"statistics: {seconds['statistics'] / seconds['play']:.1%} of it")
        print(f"store: {seconds['store'] / (seconds['play'] + seconds['store']):.1%} (target: at most 15 %)")
        whole = resolve_run(registry, games)
        one = run(whole, 1, folder / "one")
        size = (folder / "one" / "run.db").stat().st_size / games
        print(f"run.db: {size:.0f} bytes per game (target: at most 100)")
        two = run(whole, 2, folder / "two")
        print(f"two workers: {one / two:.2f} times as fast as one (target: at least 1.8)")


def main() -> None:
    """Measure what the flags select."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--games", type=int, default=20_000, help="games in the longer runs")
    parser.add_argument("--rounds", type=int, help="default: nine, or seven with --pair")
    parser.add_argument("--pair", nargs=2, metavar=("PURE", "COMPILED"), help="two Python executables with dubito")
    parser.add_argument("--round", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.round is not None:
        print(json.dumps(costs_by_size(arguments.round)))
    elif arguments.pair:
        compare_pythons(arguments.pair, arguments.rounds or 7)
    else:
        figures(arguments.games, arguments.rounds or 9)


if __name__ == "__main__":
    main()
