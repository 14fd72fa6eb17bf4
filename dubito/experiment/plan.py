"""Turn a config into a run that can start: the experiment, its folder and its executor."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import chain, count
from pathlib import Path

from dubito.errors import DubitoError, UsageError, one_line
from dubito.experiment.call_options import CallOptions
from dubito.experiment.config import Config
from dubito.experiment.experiment import FOLDER_NAME, Experiment
from dubito.experiment.processes import check_can_start
from dubito.experiment.resolve import resolve
from dubito.experiment.resolved import ResolvedRun
from dubito.experiment.saved_config import continue_command
from dubito.experiment.secret_seeds import choose_seed
from dubito.experiment.workers import WorkerPool, core_count
from dubito.game.find import Registry
from dubito.hooks import find_executor
from dubito.store.folder import MANIFEST, RUNS, load_manifest


def plan_experiment(
    config: Config, shard: str | None, registry: Registry, calls: CallOptions, started: Path | None = None
) -> tuple[ResolvedRun, CallOptions]:
    """Return the run, or a shard of it with its share of the budget.

    `started` is the folder of a run to continue. Raises UsageError if the experiment cannot be played.
    """
    run = resolve(config, registry)
    if run.has_records:
        # Imported late, since runs of bots load no clients.
        from dubito.experiment.model_players import check_models, limit_paid_games

        run = limit_paid_games(check_models(run, calls), config, calls)
    experiment = choose_seed(run.experiment, config, shard, started)
    if shard is not None:
        from dubito.experiment.shards import caps_of_shard, cut_shard, parse_shard  # imported late: most runs are whole

        experiment = cut_shard(experiment, *parse_shard(shard))
        calls = replace(calls, caps=caps_of_shard(calls.caps, experiment))
    if config.executor == "processes":
        if config.scheduler is not None:
            where = config.sources.locate("scheduler")
            raise UsageError("`executor: processes` does not use a scheduler", where=where, hint="add `executor: dask`")
        if config.workers not in (None, 1):
            check_can_start()
    else:
        where = config.sources.locate("executor")
        find_executor(config.executor, where)
        if run.has_records:
            raise UsageError(
                "models and programs run from a single process, which keeps track of the budget and the rate limits",
                where=where,
                hint="remove the executor, or split the run with --shard",
            )
        if config.bot_deadline is not None:
            raise UsageError(f"{config.executor} cannot interrupt a bot", where=where, hint="remove bot_deadline")
    return replace(run, experiment=experiment), calls


def choose_run_folder(output: str | None, config: Path | None, experiment: Experiment) -> Path:
    """Return the folder of a run that starts: `output`, or else one named after the config and the run's identity.

    A new secret seed makes a new run, so it gets a free name. Raises UsageError if `output` contains such a run.
    """
    name, shard = f"{'run' if config is None else config.stem}-{experiment.digest()}", experiment.shard
    folder = Path(output or Path(RUNS) / (FOLDER_NAME.format(name, shard.number, shard.of) if shard else name))
    if not experiment.seed_sha256:
        return folder
    if output is None:
        names = (folder.with_name(f"{name}-{number}") for number in count(2))
        return next(path for path in chain([folder], names) if not (path / MANIFEST).exists())
    if (folder / MANIFEST).exists() and "seed_sha256" in load_manifest(folder)["identity"]:
        command = continue_command(folder, experiment)
        raise UsageError(
            f"{one_line(str(folder))} contains a run with another secret seed",
            hint=f"choose another --output{f'; `{command}` continues that run' if command else ''}",
        )
    return folder


@contextmanager
def open_executor(config: Config, notify: Callable[[str], None] = lambda text: None) -> Iterator[WorkerPool | None]:
    """Open the config's executor, or return None to use our own processes. Raises UsageError on failure."""
    if config.executor == "processes":
        yield None
        return
    start = find_executor(config.executor, config.sources.locate("executor"))
    with ExitStack() as opened:
        try:
            pool = opened.enter_context(start(config.scheduler, config.workers or core_count()))
        except DubitoError:
            raise
        except Exception as error:  # an executor is code of a plugin, which can raise anything
            problem = f"the executor {config.executor} raised {one_line(f'{type(error).__name__}: {error}', 200)}"
            raise UsageError(problem, where=config.sources.locate("executor"), hint="reinstall its package") from None
        if not pool.capacity():
            notify("waiting for the first worker to join the scheduler")
        yield pool
