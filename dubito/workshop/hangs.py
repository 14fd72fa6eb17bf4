"""Whether a call of a game's code, or of a bot's, comes back: while a game is checked an alarm looks at it.

The alarm is the system's: it reaches the main thread between two steps of Python, and ends loops, but no single call
into C. Where there is none, or in another thread, nothing is looked at.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

from dubito.errors import one_line
from dubito.game.packages import roots
from dubito.workshop.subject import Flaw, Subject

PATIENCE: Final = 10.0  # seconds of one call, and up to as many again, before it is taken for one that never ends
_REPEAT_INTERVAL: Final = 1e-3  # seconds until the alarm rings again, for code that catches it


class CallHangs(KeyboardInterrupt):
    """Raised in the code that does not come back: nobody takes an interruption for a fault of their own."""

    def __init__(self, flaw: Flaw) -> None:
        super().__init__(flaw)
        self.flaw = flaw


@contextmanager
def watch_for_hangs(subject: Subject) -> Iterator[None]:
    """Within, a call that is still the same one when the alarm rings again raises CallHangs."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return
    own = (f"{subject.folder}/", *(f"{root}/bots/" for root in roots(subject.here)))
    known: FrameType | None = None  # the call that was under way when it rang last
    found: Flaw | None = None

    def ring(_: int, frame: FrameType | None) -> None:
        nonlocal known, found
        calls = _calls_of(own, frame)
        if found is None and calls and calls[-1] is known:
            found = _hanging_call(subject, calls)
            signal.setitimer(signal.ITIMER_REAL, _REPEAT_INTERVAL, _REPEAT_INTERVAL)
        known = calls[-1] if calls else None
        if found is not None and calls:
            raise CallHangs(found)

    handler = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, PATIENCE, PATIENCE)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)


def _calls_of(folders: tuple[str, ...], frame: FrameType | None) -> list[FrameType]:
    """Of the calls under way, those of code in these folders, the innermost first."""
    calls = []
    while frame is not None:
        if frame.f_code.co_filename.startswith(folders):
            calls.append(frame)
        frame = frame.f_back
    return calls


def _hanging_call(subject: Subject, calls: list[FrameType]) -> Flaw:
    innermost, call = calls[0], calls[-1].f_code.co_name
    line = one_line(f"line {innermost.f_lineno}, in {innermost.f_code.co_name}")
    return Flaw(subject.shown(innermost.f_code.co_filename), f"{call} has not come back after {PATIENCE:g} s ({line})")
