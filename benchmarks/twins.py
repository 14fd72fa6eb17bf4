"""Measure how often an interval falsely separates a model from its twin: `python benchmarks/twins.py [--runs N]`.

Each run has its own seed and its own cache: house-random and its twin (`sample: 1`) play the same deals of three
players. Twins do not differ, so a 95 % interval for their difference should contain 0 in 95 of 100 runs. With these
opponents and this cap, five of six games end before the cap and the twin wins one in five, so results do vary.
"""

import argparse
import tempfile
import threading
import time
from pathlib import Path

from dubito.experiment import run as runner
from dubito.experiment.call_options import CallOptions
from dubito.experiment.config import parse_config
from dubito.experiment.model_players import check_models
from dubito.experiment.resolve import resolve
from dubito.experiment.resolved import ResolvedRun
from dubito.game.find import Registry, find_bots
from dubito.games.dubito.engine import RESULTS
from dubito.stats.ranking import Contender, PairRow, contender_pairs

HERE = Path(__file__).resolve().parent.parent
TARGET = 0.9


def build_twins(seed: int, arguments: argparse.Namespace, registry: Registry) -> ResolvedRun:
    """Return two players that differ only in which samples they receive."""
    twin = {"bot": "OpenAIBot", "model": "house-random", "base_url": "house"}
    config = {
        "seed": seed,
        "games": 2 * arguments.deals,
        "table_sizes": [3],
        "bots": ["RandomBoi", "MrNoDoubt"],
        "contenders": [{**twin, "name": "one"}, {**twin, "name": "twin", "sample": 1}],
        "rules": {"max_turns": arguments.max_turns},
    }
    return resolve(parse_config(config, "benchmarks/twins.py"), registry)


def compare_twins(twins: ResolvedRun, folder: Path) -> PairRow:
    """Return how the twins of one run differ; the run has a new folder and cache."""
    calls = CallOptions(in_flight=16, cache=folder / "cache", offline=False, preflight=False)
    playable = check_models(twins, calls)
    run = runner.play(playable, folder / "run", runner.RunOptions(1, calls, threading.Event()))
    if run.failure is not None:
        raise run.failure
    (pair,) = contender_pairs(run.tally, [Contender(player.name) for player in twins.experiment.contenders], RESULTS)
    return pair


def main() -> None:
    """Play the runs and count the intervals."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--deals", type=int, default=24, help="deals per run")
    parser.add_argument("--max-turns", type=int, default=60)
    arguments = parser.parse_args()
    registry = find_bots(HERE)
    contain = differ = 0
    start = time.perf_counter()
    for seed in range(arguments.runs):
        with tempfile.TemporaryDirectory() as name:
            pair = compare_twins(build_twins(seed, arguments, registry), Path(name))
        rate = pair.differences["score"].difference
        contain += rate.low <= 0 <= rate.high
        differ += rate.value != 0
        shown = f"{rate.value:+.3f} [{rate.low:+.3f}, {rate.high:+.3f}]"
        print(f"seed {seed}: Score {shown}; {contain} of {seed + 1} contain 0", flush=True)
    seconds = time.perf_counter() - start
    print(f"{contain} of {arguments.runs} intervals contain 0 (target: at least {TARGET:.0%})")
    print(f"{arguments.deals} deals per run; the Scores differ in {differ} runs; {seconds:,.0f} s")


if __name__ == "__main__":
    main()
