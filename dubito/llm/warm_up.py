"""Warm up a provider's prompt cache: of many requests with the same prefix, send one first.

Providers charge a quarter more to write a prefix to their cache and a tenth or less to read it, and they write it again
for every request that arrives before the first reply. The prefix is the system text, which is the same for a seat of a
game with the same rules. The first call with a prefix is sent alone, and the others follow when that call has ended,
successfully or not.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from dubito.llm.limiter import Timing, check_stop
from dubito.llm.protocols import conversation
from dubito.llm.request import Attempt, Reply, Request, Sends, compute_digest

_CACHED_SECONDS: Final = 300.0  # seconds for which all providers keep an unused prefix
_MAX_PREFIXES: Final = 1_000
_POLL_SECONDS: Final = 0.5  # seconds between checks whether the run has stopped


@dataclass(slots=True)
class _Prefix:
    ready: threading.Event = field(default_factory=threading.Event)  # set once its first call has ended
    last_sent: float = 0.0


@dataclass(eq=False, slots=True)
class PromptPrefixes:
    """The prefixes sent to one account."""

    timing: Timing
    _known: dict[str, _Prefix] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def turn(self, request: Request) -> Iterator[None]:
        """Wait until a call can be sent: it is the first with its prefix, or the first has ended."""
        key, now = prefix_digest(request), self.timing.clock()
        with self._lock:
            known = self._known.get(key)
            first = known is None or (known.ready.is_set() and now - known.last_sent > _CACHED_SECONDS)
            if first or known is None:
                known = self._known[key] = _Prefix()
                if len(self._known) > _MAX_PREFIXES:
                    self._known = {key: one for key, one in self._known.items() if not one.ready.is_set()}
            known.last_sent = now
        if first:
            try:
                yield
            finally:
                known.ready.set()
            return
        if not known.ready.is_set():
            with self.timing.waiting("for the first reply (later calls can then use the provider's cache)"):
                while not known.ready.wait(_POLL_SECONDS):
                    check_stop(self.timing)
        yield


@dataclass(frozen=True, slots=True)
class WarmUp:
    """A stage that sends the first call of each prefix alone."""

    prefixes: PromptPrefixes
    inner: Sends

    def send(self, attempt: Attempt, number: int) -> Reply:
        with self.prefixes.turn(attempt.request):
            return self.inner.send(attempt, number)


def prefix_digest(request: Request) -> str:
    return compute_digest(repr([request.model, conversation(request)[:1]]))
