"""`--executor` and `--scheduler`: who plays the chunks of a run."""

from collections.abc import Iterator
from contextlib import contextmanager

from dubito.cli.output import note
from dubito.errors import UsageError
from dubito.experiment.config import Config
from dubito.experiment.experiment import Experiment
from dubito.experiment.model_checks import model_specs
from dubito.experiment.workers import Crew, cores
from dubito.registry import Registry


def check_executor(config: Config, experiment: Experiment, registry: Registry) -> None:
    """Refuse an executor that cannot play this experiment; raises UsageError."""
    if config.executor == "processes":
        if config.scheduler is not None:
            raise UsageError(f"{config.where('scheduler')}: it is one of Dask: say `executor: dask` too")
        return
    where = config.where("executor")
    if model_specs(experiment, registry):
        raise UsageError(
            f"{where}: model players are asked from one process, which holds budget and pace: leave it out, or cut the "
            "run with --shard"
        )
    if config.bot_deadline is not None:
        raise UsageError(
            f"{where}: workers of Dask are threads, where no bot can be interrupted: leave bot_deadline out"
        )


@contextmanager
def crew_of(config: Config) -> Iterator[Crew | None]:
    """Who plays, while it is needed; None for processes of our own. Raises UsageError where it cannot be had."""
    if config.executor == "processes":
        yield None
        return
    from dubito.experiment.dask_crew import dask_crew  # late: it takes a second to load

    with dask_crew(config.scheduler, config.workers or cores()) as crew:
        if not crew.at_once():
            note("no worker has joined the scheduler yet: waiting for one")
        yield crew
