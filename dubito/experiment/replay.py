"""Replay a run: play every game again, with models answering from the recording, and compare it with the store.

With model players, several processes can each replay some deals of a chunk. This module also counts lies, which
requires a replay too.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dubito.errors import DubitoError, UsageError, one_line
from dubito.experiment.experiment import Experiment
from dubito.experiment.play import (
    ChunkResult,
    chunk_numbers,
    deals_of_chunk,
    first_game_of_chunk,
    is_full_chunk,
    split_evenly,
)
from dubito.experiment.progress import ModelProgress
from dubito.experiment.proof import (
    check_calls,
    check_no_calls,
    check_sums,
    replay_uncounted_games,
)
from dubito.experiment.stop import find_stop_flaw
from dubito.experiment.stored import Run, read_replayable_run
from dubito.experiment.threads import ThreadedChunks
from dubito.experiment.workers import join_chunks, play_pieces, run_in_order, start_processes
from dubito.game import Results
from dubito.game.log import Log
from dubito.game.table import Table, step
from dubito.llm.recording import Differs, ReplayRecording, ReplyCallback
from dubito.packages import games_path, set_games_path
from dubito.stats.ranking import all_games
from dubito.stats.tally import Outcome, Tally, build_outcome, unpack_outcome
from dubito.store import folder as run_folder
from dubito.store.run_db import Chunk, RunDb

if TYPE_CHECKING:
    from dubito.experiment.models import Models
    from dubito.seats.program import ProgramPlayer


class ReplayedLogs:
    """Replays games of a run and keeps their logs. Models repeat their recorded answers."""

    def __init__(self, run: Run) -> None:
        """Raise UsageError if hand-written bots have changed and no recorded answers could reveal a difference."""
        if not run.has_same_bots:
            raise UsageError(f"games of {run} may play differently now: {'; '.join(run.changed)}")
        self._run, self._models = run, run.replay_models(ReplayRecording(run.model_log), stored_prompts=True)

    def of_game(self, number: int) -> tuple[Log, list[int]]:
        """Return a game's log and the turn of each event, from 1, or 0 for events of the deal.

        Raises UsageError if the outcome differs from the stored one, and Differs if a model gets a different request.
        """
        table, lineup = self._run.player.build_table(number, self._models)
        log, state = table.keep_log(), table.state
        turns = [0] * len(log.events)
        while not state.over:
            turn = state.turns_played + 1
            step(table)
            turns += [turn] * (len(log.events) - len(turns))
        replayed = build_outcome(state, lineup.seats, lineup.contender_seat, table.fallback_turns)
        if [(replayed.pack(),)] != self._run.db.read("SELECT outcome FROM games WHERE game = ?", (number,)):
            raise UsageError(f"game {number} of {one_line(str(self._run.folder))} is played differently now")
        return log, turns


def rebuild_table(run: Run, game: int, on_reply: ReplyCallback) -> tuple[Table, list[str]]:
    models = run.replay_models(ReplayRecording(run.model_log, on_reply))
    table, lineup = run.player.build_table(game, models)
    return table, [run.experiment.players[player].name for player in lineup.seats]


_GAMES_PER_PROCESS: Final = 100  # a replay of so few games takes about as long as starting a process
_PARTS_PER_PROCESS: Final = 8  # per chunk, so that all processes finish at about the same time


def useful_workers(games: int, workers: int) -> int:
    return max(1, min(workers, games // _GAMES_PER_PROCESS))


def replay_in_processes(
    run: Run, workers: int, recording: ReplayRecording, progress: Callable[[int], None]
) -> Iterator[ChunkResult]:
    """Yield the chunks in order, replayed by this many processes.

    `progress` receives the number of games replayed. Decisions and attempts are added to the recording.
    """
    experiment, stop = run.experiment, threading.Event()
    by_chunk = (deals_of_chunk(experiment, number) for number in chunk_numbers(experiment))
    jobs = (part for deals in by_chunk for part in split_evenly(deals, min(workers * _PARTS_PER_PROCESS, len(deals))))

    def count(results: Iterator[tuple[range, _ReplayedDeals | None]]) -> Iterator[tuple[range, ChunkResult]]:
        games = 0
        for deals, result in results:
            assert result is not None  # a replay is never stopped
            recording.decisions += result[1]
            recording.attempts += result[2]
            games += len(result[0].outcomes)
            progress(games)
            yield deals, result[0]

    play = partial(_replay_deals, run.folder, run.registry.working_directory, games_path())
    with start_processes(workers, stop) as pool, closing(run_in_order(pool, play, jobs, stop)) as results:
        yield from join_chunks(experiment, count(results))


_ReplayedDeals = tuple[ChunkResult, int, int]  # the result, and the numbers of compared decisions and attempts


def _replay_deals(folder: Path, home: Path, beside: Sequence[Path], deals: range) -> _ReplayedDeals:
    """Replay deals of one chunk in a worker process."""
    set_games_path(beside)
    threads, recording = _open_replay(folder, home)
    decisions, attempts = recording.decisions, recording.attempts
    return threads.play(deals, lambda: False), recording.decisions - decisions, recording.attempts - attempts


@lru_cache(maxsize=1)
def _open_replay(folder: Path, home: Path) -> tuple[ThreadedChunks, ReplayRecording]:
    run = read_replayable_run(folder, home)
    recording = ReplayRecording(run.model_log)
    models = run.replay_models(recording)
    assert models is not None
    return ThreadedChunks(run.player, models, 1, ModelProgress(), lambda games: None), recording


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """The result of a replay. Everything is identical unless `difference` is set."""

    games: int
    decisions: int
    results_digest: str
    mismatches: list[str]  # inputs that have changed
    tally: Tally  # sums over the replayed games
    difference: Differs | None = None


def replay(
    run: Run,
    workers: int,
    progress: Callable[[int], None],
    started: "Mapping[str, ProgramPlayer] | None" = None,
) -> ReplayResult:
    """Replay all games and compare them with the run.

    `progress` receives the number of games replayed. Programs that were started for the replay are asked again.
    """
    recording, db, experiment = ReplayRecording(run.model_log), run.db, run.experiment
    tally, complete, difference, games = Tally(), Tally(), None, 0
    models = run.replay_models(recording)
    try:
        if models and started:
            from dubito.experiment.ask_again import compare_with

            models, workers = replace(models, programs={**models.programs, **compare_with(recording, started, run)}), 1
        progress(0)
        for played in _replay_chunks(run, models, recording, workers, progress):
            if played.error is not None:
                raise played.error
            _check_chunk(db, experiment, played, run.registry.game.results)
            tally, games = tally + played.tally, games + len(played.outcomes)
            complete = tally if is_full_chunk(played.deals) else complete
            progress(games)
        # A killed run has no `all_games.yaml`.
        file = run.folder / run_folder.RESULTS
        counted = run_folder.to_yaml(all_games(tally, experiment.names, run.registry.game))
        if file.exists() and file.read_bytes() != counted.encode():
            raise Differs(file.name, "its counts do not match its games", [])
        if flaw := find_stop_flaw(run):
            raise Differs("where the run stopped", flaw, [])
        check_sums(run, tally, complete)
        if models is None:
            check_no_calls(run)
        else:
            replay_uncounted_games(run, models)
            check_calls(run, recording)
    except Differs as error:
        difference = Differs(error.where, error.what, [run.strip_folder(detail) for detail in error.details])
    except DubitoError as error:
        details = [run.strip_folder(str(error))]
        difference = Differs(f"game {games} or later", "the run cannot be replayed", details)
    return ReplayResult(games, recording.decisions, db.results_digest(), run.mismatches, tally, difference)


def _replay_chunks(
    run: Run, models: "Models | None", recording: ReplayRecording, workers: int, progress: Callable[[int], None]
) -> Iterator[ChunkResult]:
    experiment = run.experiment
    numbers = chunk_numbers(experiment)
    if models is None:
        with closing(play_pieces(run.resolved, workers, threading.Event(), numbers)) as pieces:
            yield from join_chunks(experiment, pieces)
        return
    workers = useful_workers(experiment.games, workers)
    if workers > 1:
        yield from replay_in_processes(run, workers, recording, progress)
        return
    before = 0  # games of the chunks before this one
    threads = ThreadedChunks(run.player, models, 1, ModelProgress(), lambda games: progress(before + games))
    for number in numbers:
        yield threads.play(deals_of_chunk(experiment, number), lambda: False)
        before = first_game_of_chunk(experiment, number + 1) - experiment.first_game


def _check_chunk(db: RunDb, experiment: Experiment, played: ChunkResult, results: Results) -> None:
    """Raise Differs at the first game that differs from the stored one."""
    first = first_game_of_chunk(experiment, played.number)
    rows = db.read(
        "SELECT outcome, record, decisions FROM games WHERE game >= ? AND game < ? ORDER BY game",
        (first, first + len(played.outcomes)),
    )
    for place, (outcome, record, decisions) in enumerate(rows):
        replayed = played.records[place] if played.records else None
        if (outcome, record) != (played.outcomes[place], replayed):
            details = [
                f"recorded: {_describe_outcome(outcome, results)}",
                f"replayed: {_describe_outcome(played.outcomes[place], results)}",
            ]
            raise Differs(f"game {first + place}", "its replay differs from the recorded game", details)
        if decisions != (played.decision_digests[place] if played.decision_digests else None):
            raise Differs(f"game {first + place}", "the digest of its decisions differs", [])
    chunk = Chunk(played.number, played.deals, first, played.outcomes, played.decision_digests)
    query = "SELECT digest, deals, games FROM chunks WHERE chunk = ?"
    ((digest, deals, games),) = db.read(query, (played.number,))
    if (deals, games) != (played.deals, len(played.outcomes)):
        details = [f"recorded: {deals} deals, {games} games", f"replayed: {played.deals}, {len(played.outcomes)}"]
        raise Differs(f"chunk {played.number}", "the number of games differs", details)
    if digest != chunk.digest:
        details = [f"recorded: {digest.hex()}", f"replayed: {chunk.digest.hex()}"]
        raise Differs(f"games {first} to {first + len(rows) - 1}", "their digest differs", details)


def _describe_outcome(row: bytes, results: Results) -> str:
    try:
        outcome: Outcome = unpack_outcome(row, results)
    except ValueError:
        return f"unreadable ({row.hex()})"
    return f"seats {outcome.seats}, marks {outcome.marks}, {outcome.game_counts[0]} turns, counts {outcome.counts}"
