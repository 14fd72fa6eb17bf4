"""Chunks in order, from this process or from several; the results are the same."""

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Final

from dubito.errors import RunStopped
from dubito.experiment.chunk import ChunkPlayer, Played
from dubito.experiment.config import Experiment
from dubito.registry import Registry, find_bots

_AHEAD: Final = 2  # chunks a worker may be ahead of the writer: enough to keep it busy, little to hold


def new_stop() -> Event:
    """Set from outside to leave off after the games under way; this process and its workers see it."""
    return multiprocessing.get_context("spawn").Event()


def play_chunks(
    experiment: Experiment, registry: Registry, workers: int, working_directory: Path, stop: Event, numbers: range
) -> Generator[Played, None, None]:
    """The chunks of these numbers, in order; the last one may be cut short by an error or a stop."""
    workers = min(workers, len(numbers))
    if workers == 1:
        player = ChunkPlayer(experiment, registry)
        yield from until_cut(player.play(number, stop.is_set) for number in numbers)
    elif numbers:
        yield from until_cut(_from_processes(experiment, numbers, workers, working_directory, stop))


def until_cut(chunks: Iterator[Played]) -> Iterator[Played]:
    """The chunks up to and including the first that was cut short."""
    for played in chunks:
        yield played
        if played.stopped or played.error is not None:
            return


def _from_processes(
    experiment: Experiment, chunks: range, workers: int, working_directory: Path, stop: Event
) -> Iterator[Played]:
    pool = ProcessPoolExecutor(
        workers,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_start,
        initargs=(experiment, working_directory, stop),
    )
    pending: deque[Future[Played]] = deque()
    numbers = iter(chunks)
    try:
        while True:
            while len(pending) < workers * _AHEAD and (number := next(numbers, None)) is not None:
                with _deaf_to_ctrl_c():
                    pending.append(pool.submit(_play, number))
            if not pending:
                return
            yield pending.popleft().result()
    except BrokenProcessPool:
        raise RunStopped("a worker process died (out of memory, or a bot that ends its process)") from None
    finally:
        stop.set()  # who is still playing leaves off
        pool.shutdown(cancel_futures=True)


@contextmanager
def _deaf_to_ctrl_c() -> Iterator[None]:
    """Worker processes started within never see Ctrl-C, which is the main process's to answer."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_play_here: Callable[[int], Played]


def _start(experiment: Experiment, working_directory: Path, stop: Event) -> None:
    """Load the bots once in a new worker process."""
    global _play_here
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _play_here = partial(ChunkPlayer(experiment, find_bots(working_directory, experiment.game)).play, stop=stop.is_set)


def _end_with_parent() -> None:
    """End this worker once the run's process is gone, however it went: the pipe of work never says so.

    Every worker holds the pipe's other end too. The resource tracker ends by itself when all of them have.
    """
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _play(number: int) -> Played:
    return _play_here(number)
