"""Play a run: store its chunks and write their sums as the results."""

import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from platform import python_version
from typing import TYPE_CHECKING, Any

from dubito import __version__
from dubito.errors import BotError, DubitoError, Interrupted, RunStopped, UsageError, describe_signal, one_line
from dubito.experiment.call_options import CallOptions
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
from dubito.experiment.resolved import ResolvedRun
from dubito.experiment.secret_seeds import check_secret_run
from dubito.experiment.stop import RunDecision
from dubito.experiment.stored import list_contenders, open_recorded_run
from dubito.experiment.workers import WorkerPool, join_chunks, play_pieces
from dubito.files import write_whole
from dubito.game import Game
from dubito.game.find import package_of
from dubito.stats.ranking import Contender, all_games
from dubito.stats.stopping import split_at_looks
from dubito.stats.tally import Tally, load_tally
from dubito.store import folder as run_folder
from dubito.store.lock import RunLog, lock_folder
from dubito.store.run_db import Chunk, RunDb
from dubito.store.secret import reveal_seed, write_secret
from dubito.store.spend import PlayerLog

if TYPE_CHECKING:
    from dubito.seats.remote import AgentSeat

Progress = Callable[[int], None]  # called with the number of games played so far


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options for playing a run. They cannot change the results of a finished run."""

    workers: int
    calls: CallOptions
    stop: threading.Event
    progress: Progress = lambda games: None
    model_progress: ModelProgress = field(default_factory=ModelProgress)
    stop_signal: Callable[[], int] = lambda: signal.SIGINT  # returns the signal that set `stop`
    pool: WorkerPool | None = None  # plays chunks of hand-written bots instead of local processes
    seats: Mapping[str, "AgentSeat"] = field(default_factory=dict)  # seats of agents, by player
    config: Mapping[str, Any] = field(default_factory=dict)  # stored in the folder, to continue the run


@dataclass(frozen=True, slots=True)
class RunResult:
    """The result of a run, whether finished or not."""

    folder: Path
    run: ResolvedRun
    tally: Tally
    results_digest: str
    models: Mapping[str, PlayerLog]  # by player
    counts: GameCounts
    first_fallback: BotError | None = None  # with `on_bot_error: fallback`
    interrupted: bool = False
    failure: DubitoError | None = None  # the error that stopped the run
    bot_notes: Mapping[str, str] = field(default_factory=dict)  # notices from bots, by player
    stop_signal: int = signal.SIGINT  # the signal that interrupted it
    oldest_reply_time: float | None = None  # when the oldest used reply of the cache was stored, as `time.time`

    @property
    def experiment(self) -> Experiment:
        return self.run.experiment

    @property
    def game(self) -> Game:
        return self.run.game

    @property
    def contenders(self) -> list[Contender]:
        return list_contenders(self.experiment)


def build_manifest(run: ResolvedRun) -> dict[str, Any]:
    """Return the manifest of a run: its length, its identity, and the software that plays it."""
    package = package_of(run.game, run.registry.working_directory)
    # A game without a distribution is in the folder games/NAME.
    game_version = {"game": package.distribution} if package.distribution else {}
    return {
        "games": run.experiment.games,
        "identity": run.experiment.identity(),
        "versions": {"dubito": __version__, "python": python_version(), **game_version},
    }


def find_finished_run(run: ResolvedRun, folder: Path) -> RunResult | None:
    """Return the finished run in this folder, or None.

    Raises UsageError if the folder contains anything other than this run.
    """
    experiment = run.experiment
    counted = run_folder.count_kept_games(folder, build_manifest(run))
    if not counted or (counted != experiment.games and experiment.stop is None and not experiment.seed_sha256):
        return None
    with open_recorded_run(folder) as stored:
        is_finished = counted == experiment.games or (experiment.stop is not None and stored.is_decided)
        if experiment.seed_sha256:
            check_secret_run(stored, experiment, is_finished)
        if not is_finished or stored.public_seed is None:
            return None
        result = load_progress(stored.db, run, folder)
    # Collect notes after closing the store. They may need a solved game, whose errors must not be blamed on the store.
    result = replace(result, bot_notes=_collect_bot_notes(run))
    if not (folder / run_folder.RESULTS).exists():
        _write_results(result)
    return result


def play(run: ResolvedRun, folder: Path, options: RunOptions) -> RunResult:
    """Start or resume a run in its folder, and write its results even if it does not finish.

    Raises UsageError if another process is playing in the folder, or if the folder contains anything else.
    """
    experiment = run.experiment
    for name, kind in experiment.kinds.items():
        if kind == "agent" and name not in options.seats:
            raise UsageError(f"{one_line(name)} is an agent", hint="play this config with `dubito seat`")
    with lock_folder(folder) as is_locked:
        manifest = build_manifest(run)
        games_kept = run_folder.count_kept_games(folder, manifest)
        if games_kept is None and experiment.seed_sha256:
            write_secret(folder, str(experiment.seed))
        if options.config:
            write_whole(folder / run_folder.CONFIG, run_folder.to_yaml(options.config))
        with run_folder.open_run(folder, manifest) as db:
            options.progress(count_games(db, experiment.first_game, experiment.games_per_deal).finished)
            log = RunLog(folder)
            options.model_progress.log = log
            log("begins", games=experiment.games, kept=games_kept or 0, offline=options.calls.offline)
            if not is_locked:
                options.model_progress.warn(
                    f"the file system of {folder} does not support locks: do not start another process in this folder"
                )
            # Collect notes before playing, since bots reuse what they prepare for them.
            notes = _collect_bot_notes(run)
            for name, text in notes.items():
                log("says", player=name, text=text)
            progress = _LoggedProgress(options, experiment.games)
            result = _play_chunks(db, run, folder, replace(options, progress=progress))
            figures = options.model_progress.run
            result = replace(
                result,
                bot_notes=notes,
                stop_signal=options.stop_signal(),
                oldest_reply_time=figures.oldest_reply_time() if figures else None,
            )
        try:
            _write_results(result)
            if experiment.seed_sha256 and not (result.interrupted or result.failure):
                reveal_seed(folder, str(experiment.seed))
            reason = describe_signal(result.stop_signal) if result.interrupted else str(result.failure or "finished")
            games = result.tally.games
            log("ends", why=reason, games=games, digest=result.results_digest if games else None)
        except RunStopped as error:
            return result if result.failure else replace(result, failure=error)
        return result


def _collect_bot_notes(run: ResolvedRun) -> dict[str, str]:
    """Return the bots' notes about their own play, by player."""
    describe, rules = run.game.note_on, run.experiment.rules
    notes = {player.name: describe(player.bot.cls, rules, player.spec.settings) for player in run.players}
    return {name: text for name, text in notes.items() if text}


@dataclass(slots=True)
class _LoggedProgress:
    """Shows the progress of a run and logs it at every tenth."""

    options: RunOptions
    games: int
    tenths: int = 0

    def __call__(self, done: int) -> None:
        self.options.progress(done)
        if done * 10 // self.games > self.tenths:
            self.tenths = done * 10 // self.games
            self.options.model_progress.log("progress", games=done, models=self.options.model_progress.sentence())


def _play_chunks(db: RunDb, run: ResolvedRun, folder: Path, options: RunOptions) -> RunResult:
    """Play the chunks that are missing or incomplete in the store, and store each with the sums so far."""
    experiment, stored = run.experiment, db.deals_by_chunk()
    partial_deals = stored[-1] if stored and not is_full_chunk(stored[-1]) else 0  # deals of a chunk to play again
    done = len(stored) - bool(partial_deals)  # full chunks
    complete = load_tally(db, run.game.results, "complete")
    failure: DubitoError | None = None
    first_fallback, interrupted = None, False
    try:
        with _chunks_to_play(db, run, options, done) as chunks:
            for played in chunks:
                first_fallback = first_fallback or played.first_fallback
                interrupted, failure = played.stopped, played.error
                whole = is_full_chunk(played.deals)
                if played.deals > partial_deals:  # more deals than the store has of the chunk
                    sums = complete + played.tally
                    first, rows = (
                        first_game_of_chunk(experiment, played.number),
                        (played.outcomes, played.decision_digests),
                    )
                    chunk = Chunk(played.number, played.deals, first, *rows, played.records)
                    db.add_chunk(chunk, sums.to_json(), whole)
                    complete = sums if whole else complete
                    if not played.decision_digests:  # games with models report their own progress
                        options.progress(chunk.first_game + len(chunk.outcomes) - experiment.first_game)
                partial_deals = 0 if whole else max(partial_deals, played.deals)
    except Interrupted:
        interrupted = True
    except RunStopped as error:
        failure = error
    if failure is not None:
        db.flush_later()
    result = load_progress(db, run, folder)
    return replace(result, first_fallback=first_fallback, interrupted=interrupted, failure=failure)


@contextmanager
def _chunks_to_play(db: RunDb, run: ResolvedRun, options: RunOptions, done: int) -> Iterator[Iterator[ChunkResult]]:
    """Play the unfinished chunks and yield them. Model players use threads; others use processes.

    In a run with a stop rule, a chunk is yielded each time it grows.
    """
    experiment = run.experiment
    numbers, decision = chunk_numbers(experiment)[done:], None
    if experiment.stop is not None:
        stored = islice(db.outcomes(), first_game_of_chunk(experiment, done))
        decision = RunDecision(experiment, run.game.results, stored)
        options.model_progress.describe_decision = decision.figure
    judge = decision.judge if decision else lambda piece: piece
    if not run.has_records:
        pieces = play_pieces(run, options.workers, options.stop, numbers, options.pool)
        with closing(pieces):
            yield join_chunks(experiment, map(judge, pieces))
        return
    # Imported late, since other runs need neither templates nor retries.
    from dubito.experiment.models import model_players
    from dubito.experiment.threads import ThreadedChunks

    player, halted = ChunkPlayer(run), threading.Event()
    stopped = partial(_is_any_set, options.stop, halted)
    opened = model_players(
        run,
        db,
        options.calls,
        options.model_progress,
        stopped,
        table=player.build_table,
        can_wait=True,
        seats=options.seats,
    )
    with opened as models:
        # Models need threads that wait; programs need cores.
        at_once = options.calls.in_flight if models.deciders else options.workers
        if options.seats and len(options.seats) == len(experiment.contenders):
            # An agent plays one game at a time, so play the games in order, as many at once as there are agents.
            at_once = len(options.seats) * experiment.contender_seats
        threads = ThreadedChunks(player, models, at_once, options.model_progress, options.progress, halted.set)
        by_chunk = (deals_of_chunk(experiment, number) for number in numbers)
        pieces_of_deals = (part for deals in by_chunk for part in (split_at_looks(deals) if decision else [deals]))
        played = ((deals, threads.play(deals, stopped)) for deals in pieces_of_deals)
        yield join_chunks(experiment, map(judge, played), as_they_grow=decision is not None)


def _is_any_set(*stops: threading.Event) -> bool:
    return any(stop.is_set() for stop in stops)


def load_progress(db: RunDb, run: ResolvedRun, folder: Path) -> RunResult:
    experiment, models = run.experiment, dict[str, PlayerLog]()
    if run.models:
        from dubito.store.model_log import ModelLog  # imported late, since runs of bots have no calls

        models = {spec.name: ModelLog(db).player(spec.name) for spec, _ in run.models}
    return RunResult(
        folder=folder,
        run=run,
        tally=load_tally(db, run.game.results),
        results_digest=db.results_digest(),
        models=models,
        counts=count_games(db, experiment.first_game, experiment.games_per_deal),
    )


def _write_results(run: RunResult) -> None:
    write_whole(
        run.folder / run_folder.RESULTS, run_folder.to_yaml(all_games(run.tally, run.experiment.names, run.game))
    )
