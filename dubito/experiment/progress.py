"""The progress of a run with models. Its threads update the figures, and the progress line shows them."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Final, Protocol

from dubito.experiment.counts import GameCounts
from dubito.game import FALLBACK_OUTCOME

if TYPE_CHECKING:
    from dubito.llm.budget import Budget
    from dubito.store.model_log import ModelLog


@dataclass(eq=False, slots=True)
class GameTracker:
    """Counts the games that a run's threads have finished."""

    log: "ModelLog"
    budget: "Budget"
    finished: set[int]
    _lock: Lock = field(default_factory=Lock)

    def finish(self, game: int) -> int:
        """Record that a game is over. Return the number of finished games."""
        self.log.end_game(game)
        self.budget.end_game(game)
        with self._lock:
            self.finished.add(game)
            return len(self.finished)


class RunFigures(Protocol):
    """A run's own progress figures."""

    def describe_use(self) -> str:
        """Return the number of calls made, and how much of each budget cap is used."""

    def parts(self) -> tuple[float, float] | None:
        """Return the number of games played and left, counting parts of games in progress."""

    def game_counts(self) -> GameCounts:
        """Return the numbers of finished and counted games."""

    def oldest_reply_time(self) -> float | None:
        """Return when the oldest reply used from the cache was stored."""


_MIN_BUSY: Final = 5.0  # seconds until a process counts as busy
_BUSY_SHARE: Final = 0.9  # share of time for a process to count as busy
_LOG_INTERVAL: Final = 60.0  # seconds before an ongoing wait is logged again


@dataclass(slots=True)
class ModelProgress:
    """The figures about models in the progress line.

    Threads update the figures under a lock. The parts of a run (its log, its calls, its decision) are set when they
    start.
    """

    clock: Callable[[], float] = time.monotonic
    processor_time: Callable[[], float] = time.process_time
    # Shows a message to the user immediately.
    notify: Callable[[str], None] = lambda text: None
    # Receives an event and its facts, like RunLog.
    log: Callable[..., None] = lambda event, **facts: None
    outcomes: Counter[str] = field(default_factory=Counter)
    replies: Counter[str] = field(default_factory=Counter)  # number of replies by origin
    waiting: Counter[str] = field(default_factory=Counter)  # number of threads for each kind of wait
    run: RunFigures | None = None
    # Returns how close the run is to its decision, if it stops once its comparison is decided.
    describe_decision: Callable[[], str] = lambda: ""
    _last_logged: dict[str, float] = field(default_factory=dict)  # time of the last log entry for each kind of wait
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _start: tuple[float, float] | None = None  # clock and processor time at the first decision

    def parts(self) -> tuple[float, float] | None:
        return self.run.parts() if self.run else None

    def describe_use(self) -> str:
        return self.run.describe_use() if self.run else ""

    def count_outcome(self, outcome: str) -> None:
        with self._lock:
            self._start = self._start or (self.clock(), self.processor_time())
            self.outcomes[outcome] += 1

    def count_reply(self, origin: str) -> None:
        with self._lock:
            self.replies[origin] += 1

    def sleep(self, seconds: float, why: str) -> None:
        with self.waiting_for(why):
            time.sleep(seconds)

    def warn(self, text: str) -> None:
        self.log("warns", why=text)
        self.notify(text)

    def begin_wait(self, why: str) -> None:
        """Count a waiting thread. Log the wait if the last one of this kind was long ago."""
        with self._lock:
            self.waiting[why] += 1
            now = self.clock()
            is_due = now - self._last_logged.get(why, -_LOG_INTERVAL) >= _LOG_INTERVAL
            if is_due:
                self._last_logged[why] = now
        if is_due:
            self.log("waits", why=why)

    def end_wait(self, why: str) -> None:
        with self._lock:
            self.waiting[why] -= 1

    @contextmanager
    def waiting_for(self, why: str) -> Iterator[None]:
        """Count this thread as waiting within the context."""
        self.begin_wait(why)
        try:
            yield
        finally:
            self.end_wait(why)

    def sentence(self) -> str:
        """Return the figures for the log: the progress line, decisions, cache use and games on disk."""
        with self._lock:
            decisions, replies = self.outcomes.total(), self.replies.total()
            seconds = self.clock() - self._start[0] if self._start else 0.0
            cached = _percent(self.replies["cache"], replies)
        speed = f"{decisions:,} decisions, {decisions / max(seconds, 1e-3):,.0f}/s, cache {cached}"
        games = [str(self.run.game_counts())] if self.run else []
        return ", ".join([*self.figures(), speed, *filter(None, games)])

    def figures(self) -> list[str]:
        """Return the figures of the progress line: decision, budget, waits, and fallbacks by cause."""
        with self._lock:
            decisions = self.outcomes.total()
            failed = {name: count for name, count in self.outcomes.items() if name.startswith(FALLBACK_OUTCOME)}
            waiting = [f"{count} waiting {why}" for why, count in self.waiting.items() if count]
        causes = ", ".join(f"{name.partition(':')[2]} {_percent(count, decisions)}" for name, count in failed.items())
        fallback = f"fallback {_percent(sum(failed.values()), decisions)}" + (f" ({causes})" if causes else "")
        start, used = self._start or (self.clock(), 0.0)
        seconds = self.clock() - start
        # If the process is almost always busy, more calls in flight would not help.
        is_busy = seconds >= _MIN_BUSY and self.processor_time() - used >= _BUSY_SHARE * seconds
        limit = "limited by the speed of one process" if is_busy else ""
        return [*filter(None, [self.describe_decision(), self.describe_use(), *waiting, limit, fallback])]


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole if whole else 0:.1f} %"
