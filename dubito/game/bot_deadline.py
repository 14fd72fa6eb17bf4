"""Time limits for bots.

A call that takes too long is interrupted and counts as a bot error. The limit uses the system's alarm signal, which the
main thread handles between two Python instructions. It interrupts loops and waits, but not a call into C code that
never returns. Bots without a limit are not wrapped.
"""

import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import Any, Final, TypeVar, cast

from dubito.errors import IllegalOutput, UsageError, one_line
from dubito.game.base import Node
from dubito.game.seating import Player

_STEP_SECONDS: Final = 1e-6  # seconds added to the alarm's delay after each attempt

T = TypeVar("T")
P = TypeVar("P", bound=Player)


# Not an Exception, because bots catch those.
class _TooLate(BaseException):
    """Raised inside a bot's code when its time is up."""


def limit_bot_time(cls: type[P], seconds: float, nodes: Sequence[Node]) -> type[P]:
    """Return a subclass of the bot whose calls are limited to `seconds` each.

    The limit applies to `__init__`, `play` and `observe`. A call that exceeds it raises IllegalOutput with the node or
    method and the line. `nodes` are the game's nodes. Raises UsageError if this system cannot interrupt bots.
    """
    if not hasattr(signal, "setitimer"):
        raise UsageError("bot_deadline: this system has no timer that can interrupt a bot; remove this setting")
    if threading.current_thread() is not threading.main_thread():
        raise UsageError("bot_deadline: only the main thread of a process can be interrupted; remove this setting")

    letters = {node.method: node.name for node in nodes}

    def call(method: str, call: Callable[[], T]) -> T:
        return _call(seconds, letters, method, call)

    def __init__(self: Player, id: int, **settings: object) -> None:  # noqa: N807, it becomes a method
        call("__init__", lambda: cast(Any, cls).__init__(self, id, **settings))

    def play(self: P, view: object) -> object:
        return call("play", lambda: cls.play(self, view))

    def observe(self: P, event: object) -> None:
        call("observe", lambda: cls.observe(self, event))

    methods: dict[str, object] = {
        "__module__": cls.__module__,
        "__doc__": cls.__doc__,
        "__init__": __init__,
        "play": play,
    }
    if cls.needs_events():  # leave `observe` out if the bot does not define it, so that no events are built
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
        # A bot may catch this exception. Ring again at once and then with growing delays, until one falls outside its
        # `try`.
        rings = rings % 1000 + 1
        signal.setitimer(signal.ITIMER_REAL, rings * _STEP_SECONDS)
        raise _TooLate

    handler, timer = signal.signal(signal.SIGALRM, ring), signal.getitimer(signal.ITIMER_REAL)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        returned = call()
        running = False  # Signals only arrive at calls and loops, so no alarm can ring between the call and this line.
        if not reason:  # otherwise the bot caught the alarm and answered late
            return returned
    except _TooLate:
        pass
    except Exception:
        if not reason:  # otherwise the alarm caused this error
            raise
    finally:
        running = False
        signal.setitimer(signal.ITIMER_REAL, *timer)
        signal.signal(signal.SIGALRM, handler)
    raise IllegalOutput(reason)


def _reason(seconds: float, letters: Mapping[str, str], method: str, frame: FrameType | None) -> str:
    """Describe what the bot was doing: the node or method, and the line."""
    assert frame is not None  # the main thread is running
    file, line = frame.f_code.co_filename.rsplit("/", 1)[-1], frame.f_lineno
    while frame is not None and frame.f_code is not _call.__code__:
        if (name := frame.f_code.co_name) in letters:
            method = f"node {letters[name]} ({name})"
        frame = frame.f_back
    return f"{method} took longer than {seconds:g} s {one_line(f'({file}, line {line})')}"
