"""Workers of an existing Dask cluster, or of a local one that lasts as long as the run.

If a worker dies, Dask moves its tasks to another one. Workers can join at any time.
"""

import logging
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, CancelledError
from contextlib import ExitStack, contextmanager
from typing import Any, Final

from dubito.errors import RunStopped, UsageError, one_line
from dubito.experiment.processes import WorkerDied, WorkerProcess
from dubito.experiment.workers import WorkerPool, block_signals

_LOCAL_CONFIG: Final = {
    # How many workers can die while playing a chunk before the chunk is considered the cause.
    "distributed.scheduler.allowed-failures": 20,
    # Profiling takes a tenth of a core.
    "distributed.worker.profile.enabled": False,
    "distributed.worker.memory.monitor-interval": "2s",
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.admin.tick.interval": "1s",
}
_LOCALHOST: Final = "127.0.0.1"
_CONNECT_TIMEOUT: Final = 10  # seconds


@contextmanager
def open_pool(scheduler: str | None, workers: int) -> Iterator[WorkerPool]:
    """Connect to a scheduler's workers or, without an address, start this many local processes.

    Raises UsageError if Dask is not installed or the scheduler does not respond.
    """
    try:
        from distributed import Client
        from distributed.scheduler import KilledWorker
    except ModuleNotFoundError as error:
        raise UsageError(f"executor: dask needs {error.name}", hint="pip install 'dubito[dask]'") from None
    loss_errors = (BrokenExecutor, CancelledError, KilledWorker, OSError, TimeoutError)
    with ExitStack() as stack:
        # The cluster's threads and workers must also ignore signals.
        with block_signals():
            address = scheduler or stack.enter_context(_run_cluster(workers))
            try:
                client = stack.enter_context(Client(address, timeout=_CONNECT_TIMEOUT, set_as_default=False))
            except (OSError, ValueError, TimeoutError, ImportError) as error:
                problem = one_line(f"{scheduler!r}: the Dask scheduler does not respond ({error})")
                raise UsageError(f"--scheduler {problem}") from None
        yield WorkerPool(
            client.get_executor(pure=False), lambda: sum(client.nthreads().values()), loss_errors=loss_errors
        )


@contextmanager
def _run_cluster(workers: int) -> Iterator[str]:
    """Run a scheduler and worker processes on loopback, and yield the scheduler's address.

    They are children of a process of our own, since Dask starts workers with `multiprocessing`, which imports the main
    module again.
    """
    process = WorkerProcess()
    try:
        yield process.call(_start_cluster, workers)
        process.call(_close_cluster)
    except WorkerDied as error:
        raise RunStopped(f"Dask's scheduler: {error}") from None
    finally:
        process.close()


_clusters: Final = list[Any]()  # in the process of the scheduler


def _start_cluster(workers: int) -> str:
    import dask
    from distributed import LocalCluster

    with dask.config.set(_LOCAL_CONFIG):
        cluster = LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            host=_LOCALHOST,
            dashboard_address=f"{_LOCALHOST}:0",
            worker_dashboard_address=f"{_LOCALHOST}:0",
            silence_logs=logging.ERROR,
        )
    _clusters.append(cluster)
    return str(cluster.scheduler_address)


def _close_cluster() -> None:
    _clusters.pop().close()
