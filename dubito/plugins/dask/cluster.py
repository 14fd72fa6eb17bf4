"""The workers of a Dask cluster: one that is there already, or one on this machine for as long as a run is played.

When a worker dies, Dask gives its tasks to another. A worker that joins is given some.
"""

import logging
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, CancelledError
from contextlib import ExitStack, contextmanager
from typing import Any, Final

from dubito.errors import UsageError, one_line
from dubito.experiment.workers import WorkerPool, block_signals

_OF_THIS_MACHINE: Final = {
    "distributed.scheduler.allowed-failures": 20,  # workers that die with a chunk, before it is taken for the cause
    "distributed.worker.profile.enabled": False,  # nobody looks at how it does: to look took a tenth of a core
    "distributed.worker.memory.monitor-interval": "2s",
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.admin.tick.interval": "1s",
}
_HERE: Final = "127.0.0.1"
_PATIENCE: Final = 10  # seconds for a scheduler to answer


@contextmanager
def open_pool(scheduler: str | None, workers: int) -> Iterator[WorkerPool]:
    """The workers of the scheduler at this address, or so many processes of this machine; raises UsageError.

    Raises it where Dask is not installed, and where no scheduler answers.
    """
    try:
        from distributed import Client
        from distributed.scheduler import KilledWorker
    except ModuleNotFoundError as error:
        raise UsageError(
            f"executor: dask needs {error.name}, which the extra has: pip install 'dubito[dask]'"
        ) from None
    loss_errors = (BrokenExecutor, CancelledError, KilledWorker, OSError, TimeoutError)
    with ExitStack() as stack:
        with block_signals():  # so are its threads, and the workers that these start
            address = scheduler or stack.enter_context(_start_cluster(workers))
            try:
                client = stack.enter_context(Client(address, timeout=_PATIENCE, set_as_default=False))
            except (OSError, ValueError, TimeoutError, ImportError) as error:
                said = one_line(f"{scheduler!r}: no Dask scheduler answers there ({error})")
                raise UsageError(f"--scheduler {said}") from None
        yield WorkerPool(
            client.get_executor(pure=False), lambda: sum(client.nthreads().values()), loss_errors=loss_errors
        )


def _start_cluster(workers: int) -> Any:
    """A scheduler and so many workers, each a process, on loopback; to be closed."""
    import dask
    from distributed import LocalCluster

    with dask.config.set(_OF_THIS_MACHINE):
        return LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            host=_HERE,
            dashboard_address=f"{_HERE}:0",
            worker_dashboard_address=f"{_HERE}:0",
            silence_logs=logging.ERROR,
        )
