"""One request first, where many begin alike: providers charge a quarter more to write a beginning to their cache, and a
tenth or less to read it, and what is sent before the first reply is there is written again.

A beginning is the system text, which is the same for a seat of a game under the same rules. Its first try goes alone;
when it has ended, however it did, the others follow. The preflight's calls count as others do.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from dubito.llm.limiter import Timing, check_stop
from dubito.llm.request import Ask, Reply, Request, Sends, digest_of

_KEPT: Final = 300.0  # seconds for which every provider keeps a beginning that nobody reads
_MOST: Final = 1_000  # beginnings that are remembered
_POLL_SECONDS: Final = 0.5  # seconds after which somebody who waits looks whether to stop


@dataclass(slots=True)
class _Beginning:
    ready: threading.Event = field(default_factory=threading.Event)  # the first try of it has ended
    sent: float = 0.0  # when a request last began so


class Beginnings:
    """Those of one account."""

    def __init__(self, timing: Timing) -> None:
        self._timing = timing
        self._known: dict[str, _Beginning] = {}
        self._lock = threading.Lock()

    @contextmanager
    def turn(self, request: Request) -> Iterator[None]:
        """Within, a try may be made: it is the first that begins so, or the first has ended."""
        key, now = beginning_of(request), self._timing.clock()
        with self._lock:
            known = self._known.get(key)
            first = known is None or (known.ready.is_set() and now - known.sent > _KEPT)
            if first or known is None:
                known = self._known[key] = _Beginning()
                self._forget()
            known.sent = now
        if first:
            try:
                yield
            finally:
                known.ready.set()
            return
        if not known.ready.is_set():
            with self._timing.waiting("for the first reply (the others read its beginning from the provider's cache)"):
                while not known.ready.wait(_POLL_SECONDS):
                    check_stop(self._timing)
        yield

    def _forget(self) -> None:
        if len(self._known) > _MOST:
            self._known = {key: one for key, one in self._known.items() if not one.ready.is_set()}


class WarmUp:
    """A stage in which the first request of each beginning goes alone, and the others follow."""

    def __init__(self, beginnings: Beginnings, inner: Sends) -> None:
        self._beginnings, self._inner = beginnings, inner

    def send(self, attempt: Ask, number: int) -> Reply:
        with self._beginnings.turn(attempt.request):
            return self._inner.send(attempt, number)


def beginning_of(request: Request) -> str:
    messages = request.body.get("input") or request.body.get("messages") or [None]
    return digest_of(repr([request.body.get("model"), request.body.get("system") or messages[0]]))
