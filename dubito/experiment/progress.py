"""How far a run with models is, and what they do meanwhile: counted by its threads, shown in the progress line."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Final

from dubito.game import FALLBACK_OUTCOME
from dubito.llm.budget import Budget
from dubito.store.model_log import ModelLog


@dataclass(frozen=True, slots=True)
class Standing:
    """What a run has on disk, as three figures that mean the same wherever they are said."""

    finished: int  # games
    kept: int  # of them, those before the first unfinished deal: the ones that are published
    replies: int

    def __str__(self) -> str:
        return f"{self.finished:,} games finished, {self.kept:,} of them published, {self.replies:,} replies kept"


def standing(log: ModelLog, games_per_deal: int, first_game: int = 0) -> Standing:
    """How far a run is by what is on disk, be it under way or not."""
    ended = log.ended().keys()
    kept = _first_unfinished(first_game, games_per_deal, set(ended)) - first_game
    return Standing(len(ended), kept, log.replies())


def _first_unfinished(first: int, games_per_deal: int, ended: set[int]) -> int:
    """The first game of the first unfinished deal, from a game before which all are finished."""
    while ended.issuperset(range(first, first + games_per_deal)):
        first += games_per_deal
    return first


class RunCourse:
    """The course of one run while it is played, for all its threads; tells its standing without reading the disk."""

    def __init__(self, log: ModelLog, budget: Budget, games_per_deal: int, first_game: int = 0) -> None:
        self._log, self.budget, self._games_per_deal = log, budget, games_per_deal
        self._ended, self._first, self._replies = set(log.ended()), first_game, log.replies()
        self._unfinished = first_game
        self._lock = Lock()

    def ends(self, game: int) -> int:
        """A game has ended; how many have."""
        self._log.game_ended(game)
        self.budget.ends(game)
        with self._lock:
            self._ended.add(game)
            return len(self._ended)

    def standing(self, replies: int) -> Standing:
        """How far the run is, with so many more replies than it had at the beginning."""
        with self._lock:
            self._unfinished = _first_unfinished(self._unfinished, self._games_per_deal, self._ended)
            return Standing(len(self._ended), self._unfinished - self._first, self._replies + replies)


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
    standing: Callable[[], Standing | None] = lambda: None
    decision: Callable[[], str] = lambda: ""  # how near the run is to being decided, where it stops then
    log: Callable[..., None] = lambda event, **facts: None  # the run's log
    told: Callable[[str], None] = lambda text: None  # told what a user should know at once
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _start: float | None = None

    def count(self, outcome: str) -> None:
        """A decision ended with this outcome."""
        with self._lock:
            self._start = self.clock() if self._start is None else self._start
            self.outcomes[outcome] += 1

    def replied(self, origin: str) -> None:
        """A reply came from this origin: live, cache or tape."""
        with self._lock:
            self.replies[origin] += 1

    @property
    def new_replies(self) -> int:
        """How many replies this process had that did not stand on the tape."""
        return self.replies.total() - self.replies["tape"]

    def sleep(self, seconds: float, why: str) -> None:
        """Wait before another try, visibly."""
        with self.waiting_for(why):
            time.sleep(seconds)

    def warn(self, text: str) -> None:
        """Say what does not stop the run and should be known."""
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
        """Somebody who waited for this waits no longer."""
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
        return ", ".join([*self.figures(), course, *filter(None, [str(self.standing() or "")])])

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
