"""A deadline for bots: a call that takes too long is interrupted, and is the bot's error.

The system's alarm does it, which reaches the main thread of a process between two steps of Python: it ends
loops and waits, but no single call into C that never comes back. A bot without a deadline is not touched.
"""

import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import Any, Final, TypeVar, cast

from dubito.errors import IllegalOutput, UsageError, one_line
from dubito.game import Node, Player

_STEP: Final = 1e-6  # seconds

T = TypeVar("T")
P = TypeVar("P", bound=Player)


class _TooLate(BaseException):  # no Exception: bots catch those
    """Raised in a bot's code when its time is over."""


def in_time(cls: type[P], seconds: float, nodes: Sequence[Node]) -> type[P]:
    """The same bot, of a game with these nodes, whose `__init__`, turns and events may take so many seconds each.

    A call that takes longer raises IllegalOutput with the node or the method, and the line. Raises UsageError
    where nothing can interrupt a bot.
    """
    if not hasattr(signal, "setitimer"):
        raise UsageError("bot_deadline: this system has no alarm that could interrupt a bot: leave it out")
    if threading.current_thread() is not threading.main_thread():
        raise UsageError("bot_deadline: only the main thread of a process can be interrupted: leave it out")

    letters = {node.method: node.name for node in nodes}

    def call(method: str, call: Callable[[], T]) -> T:
        return _call(seconds, letters, method, call)

    def __init__(self: Player, id: int, **settings: Any) -> None:  # noqa: N807, it becomes a method
        call("__init__", lambda: cast(Any, cls).__init__(self, id, **settings))

    def play(self: Player, view: Any) -> Any:
        return call("play", lambda: cast(Any, cls).play(self, view))

    def observe(self: Player, event: Any) -> None:
        call("observe", lambda: cast(Any, cls).observe(self, event))

    methods: dict[str, Any] = {"__module__": cls.__module__, "__doc__": cls.__doc__, "__init__": __init__, "play": play}
    if cls.observes():  # who does not observe is told nothing
        methods["observe"] = observe
    timed: type[P] = cast(Any, type(cls))(cls.__name__, (cls,), methods)
    return timed


def _call(seconds: float, letters: Mapping[str, str], method: str, call: Callable[[], T]) -> T:
    running, reason, rings = True, "", 0

    def ring(_: int, frame: FrameType | None) -> None:
        nonlocal reason, rings
        if not running:
            return
        reason = reason or _reason(seconds, letters, method, frame)
        # A bot may catch this one. The next comes at once, then a step later and later: one of them falls between.
        rings = rings % 1000 + 1
        signal.setitimer(signal.ITIMER_REAL, rings * _STEP)
        raise _TooLate

    handler, timer = signal.signal(signal.SIGALRM, ring), signal.getitimer(signal.ITIMER_REAL)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        returned = call()
        running = False  # Python looks for signals at calls and loops: none rings between the call and this
        if not reason:  # else the bot caught the alarm, and answered late
            return returned
    except _TooLate:
        pass
    except Exception:
        if not reason:  # else it was interrupted, and failed for that
            raise
    finally:
        running = False
        signal.setitimer(signal.ITIMER_REAL, *timer)
        signal.signal(signal.SIGALRM, handler)
    raise IllegalOutput(reason)


def _reason(seconds: float, letters: Mapping[str, str], method: str, frame: FrameType | None) -> str:
    """What the bot was at, the node if it was asked one, and in which line."""
    assert frame is not None  # the main thread runs
    file, line = frame.f_code.co_filename.rsplit("/", 1)[-1], frame.f_lineno
    while frame is not None and frame.f_code is not _call.__code__:
        if (name := frame.f_code.co_name) in letters:
            method = f"node {letters[name]} ({name})"
        frame = frame.f_back
    return f"{method} took longer than {seconds:g} s {one_line(f'({file}, line {line})')}"
