"""Play a run with MPI: `mpiexec -n 17 python -m mpi4py.futures examples/clusters/mpi.py CONFIG FOLDER`.

One process coordinates and 16 play. You can use any other `concurrent.futures` executor instead.
"""

import sys
import threading
from collections.abc import Callable
from concurrent.futures import Executor
from pathlib import Path

from dubito.experiment.call_options import CallOptions
from dubito.experiment.config import parse_config, read_config
from dubito.experiment.resolve import resolve
from dubito.experiment.run import RunOptions, play
from dubito.experiment.workers import WorkerPool
from dubito.game.find import find_bots


def run(config: Path, folder: Path, executor: Executor, capacity: Callable[[], int]) -> str:
    """Play a config of hand-written bots with these workers, and return the results digest."""
    here = Path.cwd()
    checked = parse_config(read_config(config), str(config))
    registry = find_bots(here, checked.game)
    calls = CallOptions(in_flight=1, cache=Path("cache"), offline=True)
    pool = WorkerPool(executor, capacity)
    run = play(resolve(checked, registry), folder, RunOptions(1, calls, threading.Event(), pool=pool))
    if run.failure is not None:
        raise run.failure
    return run.results_digest


if __name__ == "__main__":
    from mpi4py.futures import MPIPoolExecutor

    with MPIPoolExecutor() as pool:
        pool.bootup()
        print(run(Path(sys.argv[1]), Path(sys.argv[2]), pool, lambda: pool.num_workers))
