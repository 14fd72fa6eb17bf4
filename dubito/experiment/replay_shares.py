"""A replay of model players shared out over processes: each plays some deals of a chunk again, from the same tape."""

from collections.abc import Callable, Iterator
from contextlib import closing
from functools import lru_cache, partial
from pathlib import Path
from typing import Final

from dubito.experiment.chunk import ChunkResult, chunk_numbers, deals_of
from dubito.experiment.model_progress import ModelProgress
from dubito.experiment.run_to_replay import RunToReplay, run_to_replay
from dubito.experiment.stored_run import bots_of_run
from dubito.experiment.threads import ThreadedChunks
from dubito.experiment.workers import Task, in_order, joined, new_stop, processes, until_cut
from dubito.llm.tape import ReplayTape
from dubito.store.model_log import ModelLog

_WORTH: Final = 100  # games that take about as long to play again as a process takes to start
_SHARES: Final = 8  # of a chunk for each process, so that all end at about the same time


def worth(games: int, workers: int) -> int:
    """How many of so many processes a replay of these games gains by."""
    return max(1, min(workers, games // _WORTH))


def shared_chunks(
    kept: RunToReplay, workers: int, tape: ReplayTape, progress: Callable[[int], None]
) -> Iterator[ChunkResult]:
    """The chunks in order, played by so many processes.

    `progress` is told how many games were played, and the tape how many decisions were taken.
    """
    yield from until_cut(joined(_played(kept, workers, tape, progress)))


def _played(
    kept: RunToReplay, workers: int, tape: ReplayTape, progress: Callable[[int], None]
) -> Iterator[tuple[Task, ChunkResult]]:
    """Each share as it was played, in order."""
    games, stop, play = 0, new_stop(workers), partial(_play, kept.folder, kept.registry.working_directory)
    with processes(workers, stop) as crew, closing(in_order(crew, play, _shares(kept, workers), stop)) as back:
        for share, result in back:
            assert result is not None  # none is given up: nobody stops it
            played, decisions = result
            tape.decisions += decisions
            games += len(played.outcomes)
            progress(games)
            yield share, played


def _shares(kept: RunToReplay, workers: int) -> Iterator[Task]:
    for number in chunk_numbers(kept.experiment):
        of = min(workers * _SHARES, len(deals_of(kept.experiment, number)))
        yield from (Task(number, part, of) for part in range(of))


def _play(folder: Path, home: Path, number: int, part: int, of: int) -> tuple[ChunkResult, int]:
    """Play a share, in a worker process; with it, how many decisions were taken."""
    threads, tape = _player(folder, home)
    before = tape.decisions
    return threads.play(number, lambda: False, part, of), tape.decisions - before


@lru_cache(maxsize=1)
def _player(folder: Path, home: Path) -> tuple[ThreadedChunks, ReplayTape]:
    """The run, opened once in a worker process."""
    kept = run_to_replay(folder, bots_of_run(folder, home))
    tape = ReplayTape(ModelLog(kept.db))
    models = kept.models(tape)
    assert models is not None
    return ThreadedChunks(kept.player, models, 1, ModelProgress(), lambda games: None), tape
