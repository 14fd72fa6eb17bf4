"""Chunks in order, from this process or from the workers of any executor; the results are the same.

To a worker goes a text, the job, and which deals it is to play; bytes come back. It finds game and bots where it runs:
code does not travel, its digests do, and a worker that has other bytes refuses the run.

Executors are processes of our own, or those of a plugin, such as a Dask cluster.
"""

import json
import multiprocessing
import os
import signal
import socket
import struct
import sys
import threading
from _thread import allocate_lock, start_new_thread
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from itertools import pairwise
from multiprocessing import resource_tracker
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any, Final, TypeVar

from dubito import __version__
from dubito.errors import BotError, GameError, RunStopped, UsageError, one_line
from dubito.experiment.experiment import Experiment, PlayerSpec, Shard, StopRule
from dubito.experiment.play import ChunkPlayer, ChunkResult, chunk_of, deals_of_chunk, split_evenly
from dubito.game import Results
from dubito.game.find import Registry, digest_of_game, find_bots
from dubito.game.packages import games_path, set_games_path
from dubito.stats.tally import Tally

_LENGTH: Final = struct.Struct("<Q")  # of the head of what comes back
_loading = threading.Lock()  # workers may be threads of one process


def encode_job(experiment: Experiment, registry: Registry) -> str:
    """An experiment as the text that any worker plays its chunks from."""
    bots = {player.bot for player in experiment.players} | {registry.game.fallback}
    job = {
        "dubito": __version__,
        "engine": digest_of_game(registry.game, registry.working_directory),
        "bots": {name: registry.find(name).digest for name in sorted(bots)},
        "home": str(registry.working_directory.resolve()),
        "games_path": [str(folder) for folder in games_path()],
        "experiment": asdict(experiment),
    }
    return json.dumps(job)


def play_deals(job: str, deals: range, leave_off: Callable[[], bool] = lambda: False) -> bytes:
    """Play deals of one chunk where this runs; what `decode_result` reads, a refusal too.

    Between two deals, `leave_off` says whether to stop there.
    """
    try:
        with _loading:
            player = _load_player(job)
    except UsageError as error:
        return _encode({"refused": f"the worker {socket.gethostname()}, process {os.getpid()}, refuses: {error}"})
    played = player.play(deals, leave_off)
    head = {
        "deals": played.deals,
        "tally": played.tally.to_json(),
        "first_fallback": played.first_fallback and played.first_fallback.args,
        "error": played.error and [*played.error.args],
        "of_game": isinstance(played.error, GameError),
        "stopped": played.stopped,
        "lengths": [len(row) for row in played.outcomes],
    }
    return _encode(head, b"".join(played.outcomes))


def decode_result(packed: bytes | None, deals: range, results: Results) -> ChunkResult:
    """What `play_deals` played of these, None if it was given up; raises RunStopped if it refused to."""
    if packed is None:
        return ChunkResult(chunk_of(deals), stopped=True)
    begin = _LENGTH.size + _LENGTH.unpack_from(packed)[0]
    head = json.loads(packed[_LENGTH.size : begin])
    if "refused" in head:
        raise RunStopped(head["refused"])
    ends = [begin]
    for length in head["lengths"]:
        ends.append(ends[-1] + length)
    return ChunkResult(
        chunk_of(deals),
        head["deals"],
        [packed[first:end] for first, end in pairwise(ends)],
        tally=Tally.from_json(head["tally"], results),
        first_fallback=_decode_error(head["first_fallback"]),
        error=GameError(*head["error"]) if head["of_game"] else _decode_error(head["error"]),
        stopped=head["stopped"],
    )


def _encode(head: Mapping[str, Any], rows: bytes = b"") -> bytes:
    text = json.dumps(head).encode()
    return _LENGTH.pack(len(text)) + text + rows


def _decode_error(arguments: list[Any] | None) -> BotError | None:
    return None if arguments is None else BotError(*arguments)


@lru_cache(maxsize=4)  # runs that one worker plays chunks of in turn
def _load_player(job: str) -> ChunkPlayer:
    """The experiment of a job with the bots that are here; raises UsageError if they are not the job's."""
    content = json.loads(job)
    experiment, home = _decode_experiment(content["experiment"]), Path(content["home"])
    if content["dubito"] != __version__:
        raise UsageError(f"this worker has dubito {__version__}, the run has {content['dubito']}: install that on it")
    set_games_path([Path(folder) for folder in content["games_path"]])
    registry = find_bots(home if home.is_dir() else Path.cwd(), experiment.game)
    if digest_of_game(registry.game, registry.working_directory) != content["engine"]:
        raise UsageError(
            f"its package of the game {experiment.game} differs from the run's: copy the run's to the worker"
        )
    for name, digest in content["bots"].items():
        if (bot := registry.find(name)).digest != digest:
            file = one_line(str(bot.file))
            raise UsageError(f"its file of {name}, {file}, differs from the run's: copy the run's to the worker")
    return ChunkPlayer(experiment, registry)


def _decode_experiment(content: Mapping[str, Any]) -> Experiment:
    players = {key: tuple(PlayerSpec(**spec) for spec in content[key]) for key in ("bots", "contenders")}
    shard = content["shard"] and Shard(**content["shard"])
    stop = content["stop"] and StopRule(**content["stop"])
    sizes = tuple(content["table_sizes"])
    return Experiment(**{**content, **players, "table_sizes": sizes, "shard": shard, "stop": stop})


_MAX_CHUNKS_AHEAD: Final = 2  # chunks a worker may be ahead of the writer: enough to keep it busy, little to hold
_PARTS_OF_LAST_CHUNKS: Final = 4  # in how many places a chunk among the last ones may be played
_PARTS_WITH_STOP_RULE: Final = 10  # pieces of a chunk after each of which a run may stop
STOP_SIGNALS: Final = {  # the signals that end a run
    signal.Signals[name] for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
}
_TRACKER_WARNING: Final = "ignore:resource_tracker"  # after a `kill -9`: that it has cleared away what we had
_SET_TIMEOUT: Final = 1.0  # seconds for a thread to tell of a stop
_POLL_SECONDS: Final = 0.2  # seconds after which somebody who waits for a chunk looks whether to stop

T = TypeVar("T")
Stop = Event | threading.Event


@dataclass(frozen=True, slots=True)
class WorkerPool:
    """Who plays chunks: any executor, whose workers can import this package and find the run's bots."""

    executor: Executor
    at_once: Callable[[], int]  # how many chunks it can play at once, now
    hears_stop: bool = False  # its workers leave off between two deals; of others a chunk under way is given up
    losses: tuple[type[BaseException], ...] = (BrokenExecutor, CancelledError)  # raised where its workers are lost


def available_cores() -> list[int]:
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [*range(os.cpu_count() or 1)]


def cores() -> int:
    return len(available_cores())


def new_stop(workers: int) -> Stop:
    """Set from outside to leave off after the games under way; this process and so many workers see it.

    One is this process, which takes no semaphore, and no process that looks after that.
    """
    if workers == 1:
        return threading.Event()
    with block_signals():  # so is the process that looks after semaphores
        return multiprocessing.get_context("spawn").Event()


def play_chunks(
    experiment: Experiment, registry: Registry, workers: int, stop: Stop, numbers: range, crew: WorkerPool | None = None
) -> Generator[ChunkResult, None, None]:
    with closing(play_pieces(experiment, registry, workers, stop, numbers, crew)) as pieces:
        yield from join_chunks(experiment, pieces)


def play_pieces(
    experiment: Experiment, registry: Registry, workers: int, stop: Stop, numbers: range, crew: WorkerPool | None = None
) -> Generator[tuple[range, ChunkResult], None, None]:
    """The deals of these chunks, in order, in such pieces as they are played in: whole chunks or parts of one.

    They are played by the crew or, where there is none, by so many processes; one is this one.
    """
    workers = min(workers, len(numbers))
    if crew is None and workers == 1:
        player = ChunkPlayer(experiment, registry)
        for deals in _split_into_jobs(experiment, numbers, workers):
            yield deals, player.play(deals, stop.is_set)
    elif numbers:
        with nullcontext(crew) if crew else start_processes(workers, stop) as hands:
            job, results = encode_job(experiment, registry), registry.game.results
            play = partial(_play_until_stop if hands.hears_stop else play_deals, job)
            with closing(
                run_in_order(hands, play, _split_into_jobs(experiment, numbers, hands.at_once()), stop)
            ) as packed:
                for deals, one in packed:
                    yield deals, decode_result(one, deals, results)


def _split_into_jobs(experiment: Experiment, numbers: range, at_once: int) -> Iterator[range]:
    """The deals of these chunks, chunk by chunk; a last one for each worker is split, so that at the end nobody waits
    long for another, and so is each of a run that may stop before its end."""
    whole = len(numbers) - at_once if at_once > 1 else len(numbers)
    for place, number in enumerate(numbers):
        parts = _PARTS_WITH_STOP_RULE if experiment.stop else 1 if place < whole else _PARTS_OF_LAST_CHUNKS
        yield from split_evenly(deals_of_chunk(experiment, number), parts)


def join_chunks(
    experiment: Experiment, played: Iterable[tuple[range, ChunkResult]], *, as_they_grow: bool = False
) -> Iterator[ChunkResult]:
    """Each chunk, as soon as its last deals are there; the last one is the first that ended early.

    `as_they_grow`: also each time that deals have joined it.
    """
    chunk: ChunkResult | None = None
    for deals, later in played:
        chunk = later if chunk is None else chunk.with_next(later)
        whole = deals.stop == deals_of_chunk(experiment, chunk.number).stop
        if chunk.ended_early or whole or as_they_grow:
            yield chunk
        if chunk.ended_early:
            return
        chunk = None if whole else chunk


def run_in_order(
    crew: WorkerPool, play: Callable[[range], T], runs_of_deals: Iterator[range], stop: Stop
) -> Generator[tuple[range, T | None], None, None]:
    """What comes back of some deals after the other, None where they were given up; raises RunStopped if their worker
    is lost."""
    pending: deque[tuple[range, Future[T]]] = deque()
    try:
        while True:
            ahead = max(1, crew.at_once()) * _MAX_CHUNKS_AHEAD - 1
            while not ((pending and chunk_of(pending[-1][0]) - chunk_of(pending[0][0]) >= ahead) or stop.is_set()):
                if (deals := next(runs_of_deals, None)) is None:
                    break
                with block_signals():
                    pending.append((deals, crew.executor.submit(play, deals)))
            if not pending:
                yield from ((deals, None) for deals in runs_of_deals)
                return
            deals, future = pending[0]
            while not crew.hears_stop and not wait([future], _POLL_SECONDS).done and not stop.is_set():
                pass
            yield deals, future.result() if crew.hears_stop or future.done() else None
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


@contextmanager
def start_processes(workers: int, stop: Stop) -> Iterator[WorkerPool]:
    """Processes of our own."""
    pool = ProcessPoolExecutor(
        workers, mp_context=multiprocessing.get_context("spawn"), initializer=_start_worker, initargs=(stop,)
    )
    try:
        yield WorkerPool(pool, lambda: workers, hears_stop=True)
    finally:
        stop.set()  # who is still playing leaves off
        pool.shutdown(cancel_futures=True)


def set_from_thread(stop: Stop) -> None:
    """Set it in another thread, and wait a moment for that: where this thread was just asking for it, for ever else."""
    over = allocate_lock()
    over.acquire()

    def tell() -> None:
        stop.set()
        over.release()

    try:
        start_new_thread(tell, ())
    except RuntimeError:  # no memory is left for one
        stop.set()
        return
    over.acquire(timeout=_SET_TIMEOUT)


@contextmanager
def block_signals() -> Iterator[None]:
    """Processes and threads started within never see Ctrl-C, SIGTERM and SIGHUP, which the main process answers.

    They come to all processes of a terminal, or of a job.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        sys.warnoptions.append(_TRACKER_WARNING)
        resource_tracker.ensure_running()  # its first start, later, would hear two of them again
        sys.warnoptions.remove(_TRACKER_WARNING)
        signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_stop: Stop = threading.Event()  # in a worker process of ours, the run's


def _start_worker(stop: Stop) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    global _stop
    _stop = stop  # it comes to a process as that begins, or not at all


def _play_until_stop(job: str, deals: range) -> bytes:
    return play_deals(job, deals, _stop.is_set)


def _end_with_parent() -> None:
    """End this worker once the run's process is gone, however it went: the pipe of work never says so.

    Every worker holds the pipe's other end too. The resource tracker ends by itself when all of them have.
    """
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
