"""Daemon threads for calls. They never keep the process alive, and a stopped run abandons threads that hang."""

import time
from collections.abc import Callable, Iterable, Sequence
from threading import Lock, Thread
from typing import Final, TypeVar

from dubito.errors import Interrupted, RunStopped

STOP_GRACE_SECONDS: Final = 25.0  # seconds for calls in flight after a stop; containers and batch queues kill after 30
_POLL_SECONDS: Final = 0.5

Item = TypeVar("Item")
Result = TypeVar("Result")


def start_threads(work: Callable[[], None], count: int, name: str) -> list[Thread]:
    """Start up to `count` threads, or as many as the system allows. Raises RunStopped if it allows none."""
    started: list[Thread] = []
    for number in range(count):
        thread = Thread(target=work, name=f"{name}-{number}", daemon=True)
        try:
            thread.start()
        except (RuntimeError, MemoryError) as error:
            if not started:
                raise RunStopped(f"cannot start a thread ({error}): raise the limits on memory and threads") from None
            break
        started.append(thread)
    return started


def wait_for_threads(threads: Sequence[Thread], stopped: Callable[[], bool]) -> int:
    """Wait until all threads have ended, or for STOP_GRACE_SECONDS after a stop. Return how many are left.

    The wait is split into steps, since a signal that arrives just before an endless wait would never be handled.
    """
    deadline: float | None = None
    while running := [thread for thread in threads if thread.is_alive()]:
        if deadline is None and stopped():
            deadline = time.monotonic() + STOP_GRACE_SECONDS
        left = _POLL_SECONDS if deadline is None else min(_POLL_SECONDS, deadline - time.monotonic())
        if left <= 0:
            break
        running[0].join(left)
    return len(running)


def run_until_stopped(work: Callable[[], None], stopped: Callable[[], bool]) -> None:
    """Run a function in another thread, so that stopping does not have to wait for a hanging call.

    Raises Interrupted after a stop.
    """
    errors: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    if wait_for_threads(start_threads(run, 1, "calls"), stopped):
        raise Interrupted("stopped while a call was in flight")
    if errors:
        raise errors[0]


def map_in_threads(call: Callable[[Item], Result], items: Iterable[Item], count: int, name: str) -> list[Result]:
    """Call a function for each item in up to `count` threads, and return the results in order.

    After an error, no further calls are started. The first error is raised once no call is in flight, or after
    STOP_GRACE_SECONDS. An interruption is raised only if there is no other error.
    """
    pending, results, errors = list(enumerate(items)), dict[int, Result](), dict[int, BaseException]()
    pending.reverse()
    lock = Lock()

    def run() -> None:
        while True:
            with lock:
                if errors or not pending:
                    return
                number, item = pending.pop()
            try:
                results[number] = call(item)
            except BaseException as error:
                errors[number] = error

    wait_for_threads(start_threads(run, min(count, len(pending)), name), lambda: bool(errors))
    raised = sorted([*errors.values()], key=lambda error: isinstance(error, Interrupted))
    if raised:
        raise raised[0]
    return [results[number] for number in sorted(results)]
