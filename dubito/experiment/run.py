"""A run from start to end: chunks into the store, sums together, results on disk."""

import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from platform import python_version
from typing import Any

from dubito import __version__
from dubito.errors import BotError, DubitoError, RunStopped, signal_in_words
from dubito.experiment.counts import GameCounts, count_games
from dubito.experiment.experiment import Experiment
from dubito.experiment.play import (
    ChunkPlayer,
    ChunkResult,
    chunk_numbers,
    deals_of_chunk,
    first_game_of_chunk,
    is_full_chunk,
)
from dubito.experiment.progress import ModelProgress
from dubito.experiment.resolve import CallOptions, model_specs
from dubito.experiment.stop import RunDecision
from dubito.experiment.stored import list_contenders, opened_run
from dubito.experiment.threads import ThreadedChunks
from dubito.experiment.workers import Stop, WorkerPool, join_chunks, play_pieces
from dubito.files import write_whole
from dubito.game import Game
from dubito.game.find import Registry, package_of
from dubito.llm.request import Interrupted
from dubito.stats.ranking import Contender, all_games
from dubito.stats.stopping import split_at_looks
from dubito.stats.tally import Tally, load_tally
from dubito.store import folder as run_folder
from dubito.store.lock import RunLog, lock_folder
from dubito.store.model_log import ModelLog, PlayerLog
from dubito.store.run_db import Chunk, RunDb

Progress = Callable[[int], None]  # called with the games played so far


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a run is played: nothing of it can change a completed run's results."""

    registry: Registry
    workers: int
    calls: CallOptions
    stop: Stop
    progress: Progress = lambda games: None
    model_progress: ModelProgress = field(default_factory=ModelProgress)
    told_by: Callable[[], int] = lambda: signal.SIGINT  # which signal has set `stop`
    crew: WorkerPool | None = None  # who plays chunks of hand-written bots instead of so many processes of ours


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a run has to show, finished or cut short."""

    folder: Path
    experiment: Experiment
    game: Game
    tally: Tally
    results_digest: str
    models: Mapping[str, PlayerLog]  # by player
    counts: GameCounts
    first_fallback: BotError | None = None  # under on_bot_error: fallback
    interrupted: bool = False
    failure: DubitoError | None = None  # what stopped it
    said: Mapping[str, str] = field(default_factory=dict)  # by player: what its bot has to say of itself
    told_by: int = signal.SIGINT  # the signal that interrupted it
    oldest: float | None = None  # when the oldest used reply of the cache was stored, as `time.time`

    @property
    def compared(self) -> list[Contender]:
        return list_contenders(self.experiment, self.models)


def build_manifest(experiment: Experiment, registry: Registry) -> dict[str, Any]:
    """What the run is: its length, its identity, and what it was made with."""
    package = package_of(registry.game, registry.working_directory)
    of_game = {"game": package.distribution} if package.distribution else {}  # else it lay in games/NAME
    return {
        "games": experiment.games,
        "identity": experiment.identity(),
        "versions": {"dubito": __version__, "python": python_version(), **of_game},
    }


def find_finished_run(experiment: Experiment, registry: Registry, folder: Path) -> RunResult | None:
    """The run that stands finished in this folder; None if the folder is free, or if there is more to play.

    Raises UsageError if it holds anything else.
    """
    kept = run_folder.count_kept_games(folder, build_manifest(experiment, registry))
    if not kept or (kept != experiment.games and experiment.stop is None):
        return None
    with opened_run(folder) as stored:
        if kept != experiment.games and not stored.is_decided:
            return None
        run = load_progress(stored.db, experiment, folder, registry)
    run = replace(
        run, said=_collect_bot_notes(experiment, registry)
    )  # may take a solved game, which is no part of the run
    if not (folder / run_folder.RESULTS).exists():
        _write_results(run)
    return run


def play(experiment: Experiment, folder: Path, how: RunOptions) -> RunResult:
    """Play the experiment into its folder, from where it stands, and publish what was played, however it ended.

    Raises UsageError if another process is playing into the folder, or it holds anything else.
    """
    with lock_folder(folder) as is_locked:
        ours = build_manifest(experiment, how.registry)
        kept = run_folder.count_kept_games(folder, ours) or 0
        with run_folder.open_run(folder, ours) as db:
            how.progress(count_games(db, experiment.first_game, experiment.games_per_deal).finished)
            log = RunLog(folder)
            how.model_progress.connect_log(log)
            log("begins", games=experiment.games, kept=kept, offline=how.calls.offline)
            if not is_locked:
                how.model_progress.warn(
                    f"the file system of {folder} has no locks: let no other process play into it meanwhile"
                )
            said = _collect_bot_notes(
                experiment, how.registry
            )  # now, since what it takes to say it is what playing takes, too
            for name, text in said.items():
                log("says", player=name, text=text)
            telling = replace(how, progress=_progress_with_log(how, experiment.games))
            run = _play_chunks_into(db, experiment, folder, telling)
            run = replace(run, said=said, told_by=how.told_by(), oldest=how.model_progress.oldest_reply())
        try:
            _write_results(run)
            why = signal_in_words(run.told_by) if run.interrupted else str(run.failure or "finished")
            games = run.tally.games
            log("ends", why=why, games=games, digest=run.results_digest if games else None)
        except RunStopped as error:
            return run if run.failure else replace(run, failure=error)
        return run


def _collect_bot_notes(experiment: Experiment, registry: Registry) -> dict[str, str]:
    say, found = registry.game.said_of, ((one, registry.find(one.bot).cls) for one in experiment.players)
    return {one.name: text for one, cls in found if (text := say(cls, experiment.rules, one.settings))}


def _progress_with_log(how: RunOptions, games: int) -> Progress:
    said = 0

    def progress(done: int) -> None:
        nonlocal said
        how.progress(done)
        if done * 10 // games > said:
            said = done * 10 // games
            how.model_progress.log("progress", games=done, models=how.model_progress.sentence())

    return progress


def _play_chunks_into(db: RunDb, experiment: Experiment, folder: Path, how: RunOptions) -> RunResult:
    """Play the chunks that the store has not, or not whole, and keep each as it comes, with the sums so far."""
    kept = db.deals_by_chunk()
    begun = kept[-1] if kept and not is_full_chunk(kept[-1]) else 0  # deals kept of a chunk that is played anew, and on
    done = len(kept) - bool(begun)  # chunks that are kept whole
    complete = load_tally(db, how.registry.game.results, "complete")
    failure: DubitoError | None = None
    first_fallback, interrupted = None, False
    try:
        with _chunks_to_play(db, experiment, how, done) as chunks:
            for played in chunks:
                first_fallback = first_fallback or played.first_fallback
                interrupted, failure = played.stopped, played.error
                whole = is_full_chunk(played.deals)
                if played.deals > begun:  # it came further than what is kept of it
                    sums = complete + played.tally
                    first, rows = (
                        first_game_of_chunk(experiment, played.number),
                        (played.outcomes, played.decision_digests),
                    )
                    chunk = Chunk(played.number, played.deals, first, *rows, played.records)
                    db.add_chunk(chunk, sums.to_json(), whole)
                    complete = sums if whole else complete
                    if not played.decision_digests:  # else it was told of each game
                        how.progress(chunk.first_game + len(chunk.outcomes) - experiment.first_game)
                begun = 0 if whole else max(begun, played.deals)
    except Interrupted:
        interrupted = True
    except RunStopped as error:
        failure = error
    if failure is not None:
        db.flush_later()
    run = load_progress(db, experiment, folder, how.registry)
    return replace(run, first_fallback=first_fallback, interrupted=interrupted, failure=failure)


@contextmanager
def _chunks_to_play(db: RunDb, experiment: Experiment, how: RunOptions, done: int) -> Iterator[Iterator[ChunkResult]]:
    """Every chunk behind those that are done: from processes, or, with model players, from threads.

    Of a run that may stop before its end also its last chunk as it grows.
    """
    numbers, decision = chunk_numbers(experiment)[done:], None
    if experiment.stop is not None:
        kept = islice(db.outcomes(), first_game_of_chunk(experiment, done))
        decision = RunDecision(experiment, how.registry.game.results, kept)
        how.model_progress.connect_decision(decision)
    judged = decision.judged if decision else lambda piece: piece
    if not model_specs(experiment, how.registry):
        pieces = play_pieces(experiment, how.registry, how.workers, how.stop, numbers, how.crew)
        with closing(pieces):
            yield join_chunks(experiment, map(judged, pieces))
        return
    from dubito.experiment.models import model_players  # late: others need neither templates nor retries

    player, halted = ChunkPlayer(experiment, how.registry), threading.Event()
    stopped = partial(_is_any_set, how.stop, halted)
    asked = model_players(
        experiment, how.registry, db, how.calls, how.model_progress, stopped, table=player.table_of, can_wait=True
    )
    with asked as models:
        threads = ThreadedChunks(player, models, how.calls.in_flight, how.model_progress, how.progress, halted.set)
        by_chunk = (deals_of_chunk(experiment, number) for number in numbers)
        pieces_of_deals = (few for deals in by_chunk for few in (split_at_looks(deals) if decision else [deals]))
        played = ((deals, threads.play(deals, stopped)) for deals in pieces_of_deals)
        yield join_chunks(experiment, map(judged, played), as_they_grow=decision is not None)


def _is_any_set(*stops: Stop) -> bool:
    return any(stop.is_set() for stop in stops)


def load_progress(db: RunDb, experiment: Experiment, folder: Path, registry: Registry) -> RunResult:
    """The run as far as the store has it."""
    log, specs = ModelLog(db), model_specs(experiment, registry)
    return RunResult(
        folder=folder,
        experiment=experiment,
        game=registry.game,
        tally=load_tally(db, registry.game.results),
        results_digest=db.results_digest(),
        models={spec.name: log.player(spec.name) for spec in specs},
        counts=count_games(db, experiment.first_game, experiment.games_per_deal),
    )


def _write_results(run: RunResult) -> None:
    write_whole(
        run.folder / run_folder.RESULTS, run_folder.to_yaml(all_games(run.tally, run.experiment.names, run.game))
    )
