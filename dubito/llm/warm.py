"""Warm up a provider's prompt cache: of many requests with the same beginning, send one first.

Providers charge a quarter more to write a beginning to their cache and a tenth or less to read it, and they write it
again for every request that arrives before the first reply. A beginning is the system text, which is the same for a
seat of a game under the same rules. Its first call goes alone; once it has ended in any way, other calls follow.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from dubito.llm.limiter import Timing, check_stop
from dubito.llm.request import Attempt, Reply, Request, Sends, compute_digest

_KEPT_SECONDS: Final = 300.0  # every provider keeps an unused beginning that long
_MAX_BEGINNINGS: Final = 1_000
_POLL_SECONDS: Final = 0.5  # a waiting thread looks that often whether the run has stopped


@dataclass(slots=True)
class _Beginning:
    ready: threading.Event = field(default_factory=threading.Event)  # its first call has ended
    sent: float = 0.0  # when a call with it was last started


class PromptPrefixes:
    """The beginnings that one account was sent."""

    def __init__(self, timing: Timing) -> None:
        self._timing = timing
        self._known: dict[str, _Beginning] = {}
        self._lock = threading.Lock()

    @contextmanager
    def turn(self, request: Request) -> Iterator[None]:
        """Wait until a call may be sent: it is the first with its beginning, or the first has ended."""
        key, now = prefix_digest(request), self._timing.clock()
        with self._lock:
            known = self._known.get(key)
            first = known is None or (known.ready.is_set() and now - known.sent > _KEPT_SECONDS)
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
        if len(self._known) > _MAX_BEGINNINGS:
            self._known = {key: one for key, one in self._known.items() if not one.ready.is_set()}


class WarmUp:
    """A stage that sends the first call of each beginning alone."""

    def __init__(self, beginnings: PromptPrefixes, inner: Sends) -> None:
        self._beginnings, self._inner = beginnings, inner

    def send(self, attempt: Attempt, number: int) -> Reply:
        with self._beginnings.turn(attempt.request):
            return self._inner.send(attempt, number)


def prefix_digest(request: Request) -> str:
    messages = request.body.get("input") or request.body.get("messages") or [None]
    return compute_digest(repr([request.body.get("model"), request.body.get("system") or messages[0]]))
