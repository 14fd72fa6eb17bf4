"""Play chunks in this process or with any executor's workers, in order and with the same results.

A worker receives a job as text and the deals to play, and returns bytes. It loads the game and the bots from its own
files. The job contains only their digests, and a worker with different files refuses the job. Executors are our own
processes or come from a plugin, such as a Dask cluster.
"""

import json
import os
import signal
import socket
import struct
import threading
from _thread import allocate_lock, start_new_thread
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, wait
from contextlib import closing, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, TypeVar

from dubito import __version__
from dubito.errors import BotError, GameError, RunStopped, UsageError, one_line
from dubito.experiment.experiment import Experiment, PlayerSpec, Shard, StopRule
from dubito.experiment.play import ChunkPlayer, ChunkResult, chunk_number, deals_of_chunk, split_evenly
from dubito.experiment.processes import WorkerDied, WorkerProcesses, can_start_processes, is_stopping
from dubito.experiment.resolved import ResolvedRun
from dubito.game import Results
from dubito.game.find import digest_of_game, find_bots
from dubito.packages import games_path, set_games_path
from dubito.stats.tally import Tally

_LENGTH: Final = struct.Struct("<Q")  # length of a result's head
_loading = threading.Lock()  # workers can be threads of one process


def encode_job(run: ResolvedRun) -> str:
    registry = run.registry
    bots = {player.bot.name: player.bot.digest for player in run.players}
    bots.setdefault(run.game.fallback, registry.find(run.game.fallback).digest)
    job = {
        "dubito": __version__,
        "engine": digest_of_game(registry.game, registry.working_directory),
        "bots": dict(sorted(bots.items())),
        "home": str(registry.working_directory.resolve()),
        "games_path": [str(folder) for folder in games_path()],
        "experiment": asdict(run.experiment),
    }
    return json.dumps(job)


def play_deals(job: str, deals: range, should_stop: Callable[[], bool] = lambda: False) -> bytes:
    """Play deals of one chunk and return the encoded result, or a refusal.

    `should_stop` is checked before each deal.
    """
    try:
        with _loading:
            player = _load_player(job)
    except UsageError as error:
        return _encode({"refused": f"worker {socket.gethostname()}, process {os.getpid()}, refused the run: {error}"})
    played = player.play(deals, should_stop)
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
    """Decode a result of `play_deals`. None means that the deals were abandoned. Raises RunStopped on a refusal."""
    if packed is None:
        return ChunkResult(chunk_number(deals), stopped=True)
    begin = _LENGTH.size + _LENGTH.unpack_from(packed)[0]
    head = json.loads(packed[_LENGTH.size : begin])
    if "refused" in head:
        raise RunStopped(head["refused"])
    ends = [begin]
    for length in head["lengths"]:
        ends.append(ends[-1] + length)
    fallback, error = head["first_fallback"], head["error"]
    error_type = GameError if head["of_game"] else BotError
    return ChunkResult(
        chunk_number(deals),
        head["deals"],
        [packed[first:end] for first, end in pairwise(ends)],
        tally=Tally.from_json(head["tally"], results),
        first_fallback=None if fallback is None else BotError(*fallback),
        error=None if error is None else error_type(*error),
        stopped=head["stopped"],
    )


def _encode(head: Mapping[str, Any], rows: bytes = b"") -> bytes:
    text = json.dumps(head).encode()
    return _LENGTH.pack(len(text)) + text + rows


@lru_cache(maxsize=4)  # one worker can play chunks of several runs
def _load_player(job: str) -> ChunkPlayer:
    """Load a job's experiment with the local bots. Raises UsageError if their digests differ from the job's."""
    content = json.loads(job)
    stored, home = content["experiment"], Path(content["home"])
    players = {key: tuple(PlayerSpec(**spec) for spec in stored[key]) for key in ("bots", "contenders")}
    shard = stored["shard"] and Shard(**stored["shard"])
    stop = stored["stop"] and StopRule(**stored["stop"])
    sizes = tuple(stored["table_sizes"])
    experiment = Experiment(**{**stored, **players, "table_sizes": sizes, "shard": shard, "stop": stop})
    if content["dubito"] != __version__:
        raise UsageError(
            f"this worker has dubito {__version__}, but the run uses {content['dubito']}",
            hint="install the run's version",
        )
    set_games_path([Path(folder) for folder in content["games_path"]])
    registry = find_bots(home if home.is_dir() else Path.cwd(), experiment.game)
    if digest_of_game(registry.game, registry.working_directory) != content["engine"]:
        raise UsageError(
            f"its package of the game {experiment.game} differs from the run's", hint="copy it from the run"
        )
    for name, digest in content["bots"].items():
        if (bot := registry.find(name)).digest != digest:
            file = one_line(str(bot.file))
            raise UsageError(f"its file of {name}, {file}, differs from the run's", hint="copy it from the run")
    return ChunkPlayer(ResolvedRun.load(experiment, registry))


_MAX_CHUNKS_AHEAD: Final = 2  # per worker, ahead of the writer: keeps workers busy with little memory
_PARTS_OF_LAST_CHUNKS: Final = 4  # makes workers finish at about the same time
_PARTS_WITH_STOP_RULE: Final = 10  # a run can stop after each part of a chunk
STOP_SIGNALS: Final = {each for each in signal.Signals if each.name in ("SIGINT", "SIGTERM", "SIGHUP")}
_SET_TIMEOUT: Final = 1.0  # seconds to wait for a thread to set the stop event
_POLL_SECONDS: Final = 0.2  # seconds between checks whether to stop while waiting for a chunk

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class WorkerPool:
    """A pool of workers that play chunks.

    Any executor works if its workers can import this package and find the run's bots.
    """

    executor: Executor
    capacity: Callable[[], int]  # returns how many chunks the pool can play now
    sees_stop: bool = False  # whether workers stop between two deals; otherwise their chunk is abandoned
    loss_errors: tuple[type[BaseException], ...] = (BrokenExecutor, CancelledError)  # raised if a worker is lost


def available_cores() -> list[int]:
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [*range(os.cpu_count() or 1)]


def core_count() -> int:
    return len(available_cores())


def default_workers() -> int:
    return core_count() if can_start_processes() else 1


def play_pieces(
    run: ResolvedRun,
    workers: int,
    stop: threading.Event,
    numbers: range,
    pool: WorkerPool | None = None,
) -> Generator[tuple[range, ChunkResult], None, None]:
    """Play these chunks in pieces (whole chunks or parts of one), and yield each piece's deals and result in order.

    Without a pool, this many processes play them. If there is only one, it is the current process.
    """
    workers, experiment = min(workers, len(numbers)), run.experiment
    if pool is None and workers == 1:
        player = ChunkPlayer(run)
        for deals in _split_into_jobs(experiment, numbers, workers):
            yield deals, player.play(deals, stop.is_set)
    elif numbers:
        with nullcontext(pool) if pool else start_processes(workers, stop) as workers_pool:
            job, results = encode_job(run), run.game.results
            play = partial(_play_until_stop if workers_pool.sees_stop else play_deals, job)
            with closing(
                run_in_order(workers_pool, play, _split_into_jobs(experiment, numbers, workers_pool.capacity()), stop)
            ) as encoded:
                for deals, result in encoded:
                    yield deals, decode_result(result, deals, results)


def _split_into_jobs(experiment: Experiment, numbers: range, capacity: int) -> Iterator[range]:
    """Yield the deals of these chunks as jobs.

    The last chunks are split so that workers finish at about the same time. In a run with a stop rule, all chunks are
    split.
    """
    unsplit = len(numbers) - capacity if capacity > 1 else len(numbers)
    for place, number in enumerate(numbers):
        parts = _PARTS_WITH_STOP_RULE if experiment.stop else 1 if place < unsplit else _PARTS_OF_LAST_CHUNKS
        yield from split_evenly(deals_of_chunk(experiment, number), parts)


def join_chunks(
    experiment: Experiment, played: Iterable[tuple[range, ChunkResult]], *, as_they_grow: bool = False
) -> Iterator[ChunkResult]:
    """Yield each chunk when it is complete, up to the first one that ended early.

    With `as_they_grow`, chunks are also yielded each time deals are added to them.
    """
    chunk: ChunkResult | None = None
    for deals, later in played:
        chunk = later if chunk is None else chunk.append(later)
        whole = deals.stop == deals_of_chunk(experiment, chunk.number).stop
        has_ended_early = chunk.stopped or chunk.decided or chunk.error is not None
        if has_ended_early or whole or as_they_grow:
            yield chunk
        if has_ended_early:
            return
        chunk = None if whole else chunk


def run_in_order(
    pool: WorkerPool, play: Callable[[range], T], jobs: Iterator[range], stop: threading.Event
) -> Generator[tuple[range, T | None], None, None]:
    """Yield the result of each job in order, or None if it was abandoned. Raises RunStopped if a worker is lost."""
    pending: deque[tuple[range, Future[T]]] = deque()
    try:
        while True:
            ahead = max(1, pool.capacity()) * _MAX_CHUNKS_AHEAD - 1
            while not (
                (pending and chunk_number(pending[-1][0]) - chunk_number(pending[0][0]) >= ahead) or stop.is_set()
            ):
                if (deals := next(jobs, None)) is None:
                    break
                with block_signals():
                    pending.append((deals, pool.executor.submit(play, deals)))
            if not pending:
                yield from ((deals, None) for deals in jobs)
                return
            deals, future = pending[0]
            while not pool.sees_stop and not wait([future], _POLL_SECONDS).done and not stop.is_set():
                pass
            yield deals, future.result() if pool.sees_stop or future.done() else None
            pending.popleft()
    except WorkerDied as error:
        raise RunStopped(str(error)) from None
    except pool.loss_errors as error:
        reason = one_line(f"{type(error).__name__}: {error}", 200)
        raise RunStopped(f"the executor lost a chunk ({reason})") from None
    finally:
        for _, future in pending:
            future.cancel()


@contextmanager
def start_processes(workers: int, stop: threading.Event) -> Iterator[WorkerPool]:
    """Start worker processes of our own."""

    def forward_stop() -> None:
        stop.wait()
        processes.stop()  # workers stop after their current deal

    with block_signals():
        processes = WorkerProcesses(workers)
        forwarder = threading.Thread(target=forward_stop)
        forwarder.start()
    try:
        yield WorkerPool(processes, lambda: workers, sees_stop=True)
    finally:
        stop.set()
        forwarder.join()
        processes.shutdown(cancel_futures=True)


def set_from_thread(stop: threading.Event) -> None:
    """Set the event from another thread, for use in signal handlers.

    Setting it directly would deadlock if the signal arrived while this thread held the event's lock.
    """
    is_pending = allocate_lock()
    is_pending.acquire()

    def set_stop() -> None:
        stop.set()
        is_pending.release()

    try:
        start_new_thread(set_stop, ())
    except RuntimeError:  # too little memory to start a thread
        stop.set()
        return
    is_pending.acquire(timeout=_SET_TIMEOUT)


@contextmanager
def block_signals() -> Iterator[None]:
    """Block Ctrl-C, SIGTERM and SIGHUP in processes and threads that are started inside this context.

    A terminal or a batch system sends these signals to all processes. Only the main process handles them.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _play_until_stop(job: str, deals: range) -> bytes:
    return play_deals(job, deals, is_stopping.is_set)
