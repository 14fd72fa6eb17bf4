"""Chunks in order, from this process or from the workers of any executor; the results are the same."""

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from multiprocessing import resource_tracker
from multiprocessing.synchronize import Event
from typing import Final, NamedTuple, TypeVar

from dubito.errors import RunStopped, one_line
from dubito.experiment import job
from dubito.experiment.chunk import ChunkPlayer, ChunkResult
from dubito.experiment.experiment import Experiment
from dubito.game.find import Registry

_AHEAD: Final = 2  # chunks a worker may be ahead of the writer: enough to keep it busy, little to hold
_PARTS: Final = 4  # of a chunk among the last ones
TOLD: Final = {  # the signals that end a run
    signal.Signals[name] for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
}
_POLL_SECONDS: Final = 0.2  # seconds after which somebody who waits for a chunk looks whether to stop

T = TypeVar("T")
Stop = Event | threading.Event


@dataclass(frozen=True, slots=True)
class Crew:
    """Who plays chunks: any executor, whose workers can import this package and find the run's bots."""

    executor: Executor
    at_once: Callable[[], int]  # how many chunks it can play at once, now
    hears_stop: bool = False  # its workers leave off between two deals; of others a chunk under way is given up
    losses: tuple[type[BaseException], ...] = (BrokenExecutor, CancelledError)  # raised where its workers are lost


class Task(NamedTuple):
    """What a worker is given: a chunk, or one of so many parts of it."""

    number: int
    part: int = 0
    of: int = 1


def cores_here() -> list[int]:
    """The cores that this process may use, where the system tells; else all."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [*range(os.cpu_count() or 1)]


def cores() -> int:
    """How many these are."""
    return len(cores_here())


def new_stop(workers: int) -> Stop:
    """Set from outside to leave off after the games under way; this process and so many workers see it.

    One is this process, which takes no semaphore, and no process that looks after that.
    """
    if workers == 1:
        return threading.Event()
    with deaf_to_signals():  # so is the process that looks after semaphores
        return multiprocessing.get_context("spawn").Event()


def play_chunks(
    experiment: Experiment, registry: Registry, workers: int, stop: Stop, numbers: range, crew: Crew | None = None
) -> Generator[ChunkResult, None, None]:
    """The chunks of these numbers, in order; the last one may be cut short by an error or a stop.

    They are played by the crew or, where there is none, by so many processes; one is this one.
    """
    workers = min(workers, len(numbers))
    if crew is None and workers == 1:
        player = ChunkPlayer(experiment, registry)
        yield from until_cut(player.play(number, stop.is_set) for number in numbers)
    elif numbers:
        with nullcontext(crew) if crew else processes(workers, stop) as hands:
            text, results = job.job_of(experiment, registry), registry.game.results
            play = partial(job.play_chunk, text)
            with closing(in_order(hands, play, _tasks(numbers, hands.at_once()), stop)) as packed:
                parts = (
                    (task, job.played_from(one, results) if one is not None else ChunkResult(task.number, stopped=True))
                    for task, one in packed
                )
                yield from until_cut(joined(parts))


def until_cut(chunks: Iterator[ChunkResult]) -> Iterator[ChunkResult]:
    """The chunks up to and including the first that was cut short."""
    for played in chunks:
        yield played
        if played.is_cut:
            return


def _tasks(numbers: range, at_once: int) -> Iterator[Task]:
    """The chunks in order, a last one for each worker in parts, so that at the end nobody waits long for another."""
    whole = len(numbers) - at_once if at_once > 1 else len(numbers)
    for place, number in enumerate(numbers):
        of = 1 if place < whole else _PARTS
        yield from (Task(number, part, of) for part in range(of))


def joined(parts: Iterator[tuple[Task, ChunkResult]]) -> Iterator[ChunkResult]:
    """Each chunk, as soon as its last part is there or one was cut short."""
    chunk: ChunkResult | None = None
    for task, part in parts:
        chunk = part if chunk is None else chunk.with_next(part)
        if chunk.is_cut or task.part == task.of - 1:
            yield chunk
            chunk = None


def in_order(
    crew: Crew, play: Callable[[int, int, int], T], tasks: Iterator[Task], stop: Stop
) -> Generator[tuple[Task, T | None], None, None]:
    """What comes back of each task, None if it was given up; raises RunStopped if its worker is lost."""
    pending: deque[tuple[Task, Future[T]]] = deque()
    try:
        while True:
            most = max(1, crew.at_once()) * _AHEAD
            while _chunks(pending) < most and not stop.is_set() and (task := next(tasks, None)) is not None:
                with deaf_to_signals():
                    pending.append((task, crew.executor.submit(play, *task)))
            if not pending:
                yield from ((task, None) for task in tasks)
                return
            task, future = pending[0]
            while not crew.hears_stop and not wait([future], _POLL_SECONDS).done and not stop.is_set():
                pass
            yield task, future.result() if crew.hears_stop or future.done() else None
            pending.popleft()
    except BrokenProcessPool:
        for process in multiprocessing.active_children():
            process.kill()  # they are deaf to the pool's own SIGTERM
        raise RunStopped("a worker process died (out of memory, or a bot that ends its process)") from None
    except crew.losses as error:
        why = one_line(f"{type(error).__name__}: {error}", 200)
        raise RunStopped(f"the executor has lost a chunk ({why})") from None
    finally:
        for _, future in pending:
            future.cancel()


def _chunks(pending: Iterable[tuple[Task, object]]) -> float:
    """How many chunks these tasks are."""
    return sum(1 / task.of for task, _ in pending)


@contextmanager
def processes(workers: int, stop: Stop) -> Iterator[Crew]:
    """Processes of our own."""
    pool = ProcessPoolExecutor(
        workers, mp_context=multiprocessing.get_context("spawn"), initializer=_start, initargs=(stop,)
    )
    try:
        yield Crew(pool, lambda: workers, hears_stop=True)
    finally:
        stop.set()  # who is still playing leaves off
        pool.shutdown(cancel_futures=True)


@contextmanager
def deaf_to_signals() -> Iterator[None]:
    """Processes and threads started within never see Ctrl-C, SIGTERM and SIGHUP, which the main process answers.

    They come to all processes of a terminal, or of a job.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, TOLD)
    try:
        resource_tracker.ensure_running()  # its first start, later, would hear two of them again
        signal.pthread_sigmask(signal.SIG_BLOCK, TOLD)
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start(stop: Stop) -> None:
    """Make a new worker process end with the run, and leave off when it is told to."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    job.leave_off = stop.is_set


def _end_with_parent() -> None:
    """End this worker once the run's process is gone, however it went: the pipe of work never says so.

    Every worker holds the pipe's other end too. The resource tracker ends by itself when all of them have.
    """
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
