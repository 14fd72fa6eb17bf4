"""A run from start to end: chunks into the store, sums together, results on disk."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from multiprocessing.synchronize import Event
from pathlib import Path
from platform import python_version
from typing import Any

from dubito import __version__
from dubito.errors import BotError, DubitoError, RunStopped
from dubito.experiment.config import Experiment
from dubito.experiment.results import all_games
from dubito.experiment.tally import Tally
from dubito.experiment.workers import play_chunks
from dubito.registry import Registry
from dubito.store import folder as run_folder
from dubito.store.run_db import Chunk, RunDb

Progress = Callable[[int], None]  # called with the games kept so far


@dataclass(frozen=True, slots=True)
class Run:
    """What a run has to show, finished or cut short."""

    folder: Path
    experiment: Experiment
    tally: Tally
    results_digest: str
    first_fallback: BotError | None = None  # under on_bot_error: fallback
    interrupted: bool = False
    failure: DubitoError | None = None  # what stopped it

    @property
    def names(self) -> list[str]:
        """The players' names, in the order of the tally's keys."""
        return [player.name for player in self.experiment.players]


def manifest(experiment: Experiment) -> dict[str, Any]:
    """What the run is: its length, its identity, and what it was made with."""
    return {
        "games": experiment.games,
        "identity": experiment.identity(),
        "versions": {"dubito": __version__, "python": python_version()},
    }


def finished(experiment: Experiment, folder: Path) -> Run | None:
    """The run that stands finished in this folder, or None if the folder is free; raises UsageError if neither."""
    db = run_folder.existing(folder, manifest(experiment))
    if db is None:
        return None
    with db:
        run = Run(folder, experiment, Tally.from_json(db.sums() or "{}"), db.results_digest())
    if not (folder / run_folder.RESULTS).exists():
        publish(run)
    return run


def play(
    experiment: Experiment,
    registry: Registry,
    folder: Path,
    *,
    workers: int,
    working_directory: Path,
    stop: Event,
    progress: Progress,
) -> Run:
    """Play the experiment into a new run folder and publish what was played before it ended or stopped."""
    db = run_folder.create(folder, manifest(experiment))
    with db:
        run = _play_into(db, experiment, registry, folder, workers, working_directory, stop, progress)
    try:
        publish(run)
    except RunStopped as error:
        return run if run.failure else replace(run, failure=error)
    return run


def _play_into(
    db: RunDb,
    experiment: Experiment,
    registry: Registry,
    folder: Path,
    workers: int,
    working_directory: Path,
    stop: Event,
    progress: Progress,
) -> Run:
    tally, games = Tally(), 0
    failure: DubitoError | None = None
    first_fallback, interrupted = None, False
    try:
        for played in play_chunks(experiment, registry, workers, working_directory, stop):
            first_fallback = first_fallback or played.first_fallback
            interrupted, failure = played.stopped, played.error
            if played.deals:
                together = tally + played.tally
                db.add_chunk(Chunk(played.number, played.deals, games, played.outcomes), together.to_json())
                tally, games = together, games + len(played.outcomes)
                progress(games)
    except RunStopped as error:
        failure = error
    return Run(folder, experiment, tally, db.results_digest(), first_fallback, interrupted, failure)


def publish(run: Run) -> None:
    """Write `all_games.yaml`; raises RunStopped."""
    run_folder.write_whole(run.folder / run_folder.RESULTS, run_folder.to_yaml(all_games(run.tally, run.names)))
