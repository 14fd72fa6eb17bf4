"""Detect calls into a game's or bot's code that do not return, using an alarm while a game is checked.

The alarm is an operating system signal. It interrupts Python loops in the main thread, but not calls into C code. In
other threads, and on systems without this signal, nothing is detected.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

from dubito.errors import one_line
from dubito.hooks import Flaw
from dubito.packages import roots
from dubito.plugins.gamecheck.subject import Subject

PATIENCE: Final = 10.0  # seconds; calls are reported after one to two times this long
_REPEAT_INTERVAL: Final = 1e-3  # seconds until the next alarm, for code that catches the exception


class CallHangs(KeyboardInterrupt):
    """Raised in code that hangs. It is a KeyboardInterrupt, so that ordinary exception handlers do not catch it."""

    def __init__(self, flaw: Flaw) -> None:
        super().__init__(flaw)
        self.flaw = flaw


@contextmanager
def watch_for_hangs(subject: Subject) -> Iterator[None]:
    """Raise CallHangs inside a call that is still running at the second alarm."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return
    own = (f"{subject.folder}/", *(f"{root}/bots/" for root in roots(subject.here)))
    last_call: FrameType | None = None  # the call in progress at the last alarm
    flaw: Flaw | None = None

    def ring(_: int, frame: FrameType | None) -> None:
        nonlocal last_call, flaw
        calls = _find_calls(own, frame)
        if flaw is None and calls and calls[-1] is last_call:
            flaw = _hanging_call(subject, calls)
            signal.setitimer(signal.ITIMER_REAL, _REPEAT_INTERVAL, _REPEAT_INTERVAL)
        last_call = calls[-1] if calls else None
        if flaw is not None and calls:
            raise CallHangs(flaw)

    handler = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, PATIENCE, PATIENCE)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)


def _find_calls(folders: tuple[str, ...], frame: FrameType | None) -> list[FrameType]:
    """Return the calls in progress in these folders' code, innermost first."""
    calls = []
    while frame is not None:
        if frame.f_code.co_filename.startswith(folders):
            calls.append(frame)
        frame = frame.f_back
    return calls


def _hanging_call(subject: Subject, calls: list[FrameType]) -> Flaw:
    innermost, call = calls[0], calls[-1].f_code.co_name
    line = one_line(f"line {innermost.f_lineno}, in {innermost.f_code.co_name}")
    return Flaw(subject.shown(innermost.f_code.co_filename), f"{call} has not returned after {PATIENCE:g} s ({line})")
