"""How far a run with models is, and what they do meanwhile: counted by its threads, shown in the progress line."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Final

from dubito.experiment.counts import GameCounts
from dubito.game import FALLBACK_OUTCOME
from dubito.llm.budget import Budget
from dubito.store.model_log import ModelLog


class RunCourse:
    """The games of a run that its threads have finished so far."""

    def __init__(self, log: ModelLog, budget: Budget) -> None:
        self._log, self.budget = log, budget
        self._ended = set(log.ended())
        self._lock = Lock()

    def ends(self, game: int) -> int:
        """Record that a game has ended, and return how many have."""
        self._log.game_ended(game)
        self.budget.ends(game)
        with self._lock:
            self._ended.add(game)
            return len(self._ended)


_LOGGED: Final = 60.0  # seconds for which a wait that goes on is not logged again


@dataclass(slots=True)
class ModelProgress:
    """What the progress line shows of the models; threads count under a lock."""

    clock: Callable[[], float] = time.monotonic
    outcomes: Counter[str] = field(default_factory=Counter)
    replies: Counter[str] = field(default_factory=Counter)  # by origin
    waiting: Counter[str] = field(default_factory=Counter)
    logged: dict[str, float] = field(default_factory=dict)  # when it was last logged that somebody waits for this
    used: Callable[[], str] = lambda: ""  # of the budget, in words
    parts: Callable[[], tuple[float, float] | None] = lambda: None  # how much is played and left, with games under way
    game_counts: Callable[[], GameCounts | None] = lambda: None
    oldest: Callable[[], float | None] = lambda: None  # when the oldest used reply of the cache was stored
    decision: Callable[[], str] = lambda: ""  # how near the run is to being decided, where it stops then
    log: Callable[..., None] = lambda event, **facts: None  # the run's log
    told: Callable[[str], None] = lambda text: None  # told what a user should know at once
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _start: float | None = None

    def count(self, outcome: str) -> None:
        with self._lock:
            self._start = self.clock() if self._start is None else self._start
            self.outcomes[outcome] += 1

    def replied(self, origin: str) -> None:
        with self._lock:
            self.replies[origin] += 1

    def sleep(self, seconds: float, why: str) -> None:
        with self.waiting_for(why):
            time.sleep(seconds)

    def warn(self, text: str) -> None:
        self.log("warns", why=text)
        self.told(text)

    def begin_wait(self, why: str) -> None:
        """Somebody begins to wait."""
        with self._lock:
            self.waiting[why] += 1
            now = self.clock()
            news = now - self.logged.get(why, -_LOGGED) >= _LOGGED
            if news:
                self.logged[why] = now
        if news:
            self.log("waits", why=why)

    def end_wait(self, why: str) -> None:
        with self._lock:
            self.waiting[why] -= 1

    @contextmanager
    def waiting_for(self, why: str) -> Iterator[None]:
        """A time of waiting, for the progress line."""
        self.begin_wait(why)
        try:
            yield
        finally:
            self.end_wait(why)

    def sentence(self) -> str:
        """All there is to say, for the run's log: the figures, then decisions, the cache, and what is on disk."""
        with self._lock:
            decisions, replies = self.outcomes.total(), self.replies.total()
            seconds = self.clock() - self._start if self._start is not None else 0.0
            cached = _percent(self.replies["cache"], replies)
        course = f"{decisions:,} decisions, {decisions / max(seconds, 1e-3):,.0f}/s, cache {cached}"
        return ", ".join([*self.figures(), course, *filter(None, [str(self.game_counts() or "")])])

    def figures(self) -> list[str]:
        """What a user watches: how near to a decision, calls and dollars, what is waited for, fallbacks by cause."""
        with self._lock:
            decisions = self.outcomes.total()
            failed = {name: count for name, count in self.outcomes.items() if name.startswith(FALLBACK_OUTCOME)}
            waiting = [f"{count} waiting {why}" for why, count in self.waiting.items() if count]
        causes = ", ".join(f"{name.partition(':')[2]} {_percent(count, decisions)}" for name, count in failed.items())
        fallback = f"fallback {_percent(sum(failed.values()), decisions)}" + (f" ({causes})" if causes else "")
        return [*filter(None, [self.decision(), self.used(), *waiting, fallback])]


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole if whole else 0:.1f} %"
