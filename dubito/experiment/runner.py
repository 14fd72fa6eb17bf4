"""A run from start to end: chunks into the store, sums together, results on disk."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from multiprocessing.synchronize import Event
from pathlib import Path
from platform import python_version
from typing import Any

from dubito import __version__
from dubito.errors import BotError, DubitoError, RunStopped
from dubito.experiment.chunk import DEALS, ChunkPlayer, Played
from dubito.experiment.config import Experiment
from dubito.experiment.models import CallOptions, Watch, model_specs, serving
from dubito.experiment.results import all_games
from dubito.experiment.tally import Tally
from dubito.experiment.threads import ThreadedChunks
from dubito.experiment.workers import play_chunks, until_cut
from dubito.registry import Registry
from dubito.store import folder as run_folder
from dubito.store.model_log import ModelLog, PlayerLog
from dubito.store.run_db import Chunk, RunDb

Progress = Callable[[int], None]  # called with the games played so far


@dataclass(frozen=True, slots=True)
class Means:
    """How a run is played: nothing of it can change a completed run's results."""

    registry: Registry
    workers: int
    calls: CallOptions
    stop: Event
    progress: Progress
    watch: Watch = field(default_factory=Watch)


@dataclass(frozen=True, slots=True)
class Run:
    """What a run has to show, finished or cut short."""

    folder: Path
    experiment: Experiment
    tally: Tally
    results_digest: str
    models: Mapping[str, PlayerLog]  # by player
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


def finished(experiment: Experiment, registry: Registry, folder: Path) -> Run | None:
    """The run that stands finished in this folder, or None if the folder is free; raises UsageError if neither."""
    db = run_folder.existing(folder, manifest(experiment))
    if db is None:
        return None
    with db:
        tally = Tally.from_json(db.sums() or "{}")
        run = Run(folder, experiment, tally, db.results_digest(), _model_logs(db, experiment, registry))
    if not (folder / run_folder.RESULTS).exists():
        publish(run)
    return run


def play(experiment: Experiment, folder: Path, means: Means) -> Run:
    """Play the experiment into a new run folder and publish what was played before it ended or stopped."""
    db = run_folder.create(folder, manifest(experiment))
    with db:
        run = _play_into(db, experiment, folder, means)
    try:
        publish(run)
    except RunStopped as error:
        return run if run.failure else replace(run, failure=error)
    return run


def _play_into(db: RunDb, experiment: Experiment, folder: Path, means: Means) -> Run:
    tally, games = Tally(), 0
    failure: DubitoError | None = None
    first_fallback, interrupted = None, False
    try:
        with _chunks(db, experiment, means) as chunks:
            for played in chunks:
                first_fallback = first_fallback or played.first_fallback
                interrupted, failure = played.stopped, played.error
                if played.deals:
                    together = tally + played.tally
                    db.add_chunk(_stored(played, games), together.to_json())
                    tally, games = together, games + len(played.outcomes)
                    means.progress(games)
    except RunStopped as error:
        failure = error
    logs = _model_logs(db, experiment, means.registry)
    return Run(folder, experiment, tally, db.results_digest(), logs, first_fallback, interrupted, failure)


def _stored(played: Played, first_game: int) -> Chunk:
    return Chunk(played.number, played.deals, first_game, played.outcomes, played.decisions, played.records)


@contextmanager
def _chunks(db: RunDb, experiment: Experiment, means: Means) -> Iterator[Iterator[Played]]:
    """Every chunk in order: from processes, or, with model players, from threads."""
    if not model_specs(experiment, means.registry):
        home = means.calls.working_directory
        yield play_chunks(experiment, means.registry, means.workers, home, means.stop)
        return
    with serving(experiment, means.registry, db, means.calls, means.watch, means.stop.is_set) as models:
        player = ChunkPlayer(experiment, means.registry)
        yield until_cut(
            ThreadedChunks(player, models, means.calls.in_flight, _from(means.progress, number)).play(
                number, means.stop.is_set
            )
            for number in range(-(-experiment.deals // DEALS))
        )


def _from(progress: Progress, chunk: int) -> Progress:
    """Progress within a chunk as progress of the run."""
    return lambda games: progress(chunk * DEALS + games)


def _model_logs(db: RunDb, experiment: Experiment, registry: Registry) -> dict[str, PlayerLog]:
    log = ModelLog(db)
    return {player.name: log.player(player.name) for player in model_specs(experiment, registry)}


def publish(run: Run) -> None:
    """Write `all_games.yaml`; raises RunStopped."""
    run_folder.write_whole(run.folder / run_folder.RESULTS, run_folder.to_yaml(all_games(run.tally, run.names)))
