"""A replay of model players shared out over processes: each plays some deals of a chunk again, from the same tape."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dubito.errors import RunStopped
from dubito.experiment.chunk import ChunkPlayer, ChunkResult, chunk_numbers, deals_of
from dubito.experiment.experiment import Experiment
from dubito.experiment.threads import ThreadedChunks
from dubito.experiment.watch import Watch
from dubito.experiment.workers import deaf_to_ctrl_c, new_stop, processes
from dubito.llm.tape import Tape
from dubito.registry import find_bots
from dubito.store.model_log import ModelLog

if TYPE_CHECKING:
    from dubito.experiment.replay import RunToReplay

_WORTH: Final = 100  # games that take about as long to play again as a process takes to start
_SHARES: Final = 8  # of a chunk for each process, so that all end at about the same time
_AHEAD: Final = 2  # shares a process may be ahead of who compares them

_Share = tuple[int, range]  # a chunk's number, and deals of it


def worth(games: int, workers: int) -> int:
    """How many of so many processes a replay of these games gains by."""
    return max(1, min(workers, games // _WORTH))


def shared_chunks(
    kept: "RunToReplay", workers: int, tape: Tape, progress: Callable[[int], None]
) -> Iterator[ChunkResult]:
    """The chunks in order, played by so many processes.

    `progress` is told how many games were played, and the tape how many decisions were taken.
    """
    games = 0
    for number, parts in groupby(_played(kept, workers), lambda part: part[0].number):
        chunk = ChunkResult(number)
        for played, decisions in parts:
            chunk = _joined(chunk, played)
            tape.decisions += decisions
            games += len(played.outcomes)
            progress(games)
        yield chunk


def _played(kept: "RunToReplay", workers: int) -> Iterator[tuple[ChunkResult, int]]:
    """Each share as it was played, in order, with how many decisions were taken in it."""
    left = iter(_shares(kept.experiment, workers))
    pending: deque[Future[tuple[ChunkResult, int]]] = deque()
    with processes(workers, new_stop()) as crew:
        while True:
            while len(pending) < workers * _AHEAD and (share := next(left, None)) is not None:
                with deaf_to_ctrl_c():
                    pending.append(crew.executor.submit(_play, kept.folder, kept.home, share))
            if not pending:
                return
            try:
                yield pending.popleft().result()
            except BrokenProcessPool:
                raise RunStopped("a worker process died (out of memory, or a bot that ends its process)") from None


def _shares(experiment: Experiment, workers: int) -> Iterator[_Share]:
    for number in chunk_numbers(experiment):
        deals = deals_of(experiment, number)
        step = -(-len(deals) // (workers * _SHARES))
        yield from ((number, deals[first : first + step]) for first in range(0, len(deals), step))


def _play(folder: Path, home: Path, share: _Share) -> tuple[ChunkResult, int]:
    """Play a share, in a worker process."""
    threads, tape = _player(folder, home)
    before = tape.decisions
    number, deals = share
    return threads.play(number, lambda: False, deals), tape.decisions - before


@lru_cache(maxsize=1)
def _player(folder: Path, home: Path) -> tuple[ThreadedChunks, Tape]:
    """The run, opened once in a worker process."""
    from dubito.experiment.replay import run_to_replay  # late: it imports this
    from dubito.experiment.stored_run import game_of

    kept = run_to_replay(folder, find_bots(home, game_of(folder)), home)
    tape = Tape(ModelLog(kept.db))
    models = kept.models(tape)
    assert models is not None
    return ThreadedChunks(ChunkPlayer(kept.experiment, kept.registry), models, 1, Watch(), lambda games: None), tape


def _joined(one: ChunkResult, other: ChunkResult) -> ChunkResult:
    """Two parts of a chunk, the first one's deals before the other's."""
    return ChunkResult(
        one.number,
        one.deals + other.deals,
        one.outcomes + other.outcomes,
        one.decisions + other.decisions,
        one.records + other.records,
        one.tally + other.tally,
        one.first_fallback or other.first_fallback,
        one.error or other.error,
        one.stopped or other.stopped,
    )
