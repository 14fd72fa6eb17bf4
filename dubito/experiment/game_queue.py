"""The queue of games that wait to be played, and of those put back, each until its time has come."""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from dubito.experiment.schedule import Lineup

_FIRST: Final = 2.0  # seconds that a game put back waits; then twice as long each time
_MOST: Final = 60.0
_DOUBLED: Final = 5  # times
_POLL_SECONDS: Final = 0.5  # seconds after which somebody who waits looks whether to stop


@dataclass(frozen=True, slots=True)
class QueuedGame:
    """A game that waits for its turn, or was put back."""

    game: tuple[int, Lineup]  # its deal, and who plays
    why: str = ""  # it was put back: what it waits for
    times: int = 0
    due: float = 0.0  # by the clock


Admit = Callable[[Sequence[int]], str | None]  # lets the games of a deal begin, or says why not


class GameQueue:
    """Shared by the threads that play: whole deals in their order, then games put back, as soon as they are due."""

    def __init__(
        self,
        deals: Sequence[Sequence[QueuedGame]],
        clock: Callable[[], float],
        stop: Callable[[], bool],
        admit: Admit = lambda games: None,
    ) -> None:
        self._deals, self._clock, self._stop, self._admit = deque(deals), clock, stop, admit
        self._games = deque[QueuedGame]()  # of deals that were started
        self.why_not_started: str | None = None  # why the next deal was not started, if it was not
        self._put_back: list[QueuedGame] = []
        self._playing = 0
        self._closed = False
        self._changed = threading.Condition()

    def take(self) -> QueuedGame | None:
        """The next game, once there is one; None when all are played, on a stop, or when the queue is closed."""
        with self._changed:
            while not self._closed and not self._stop():
                if self._games or self._opened():
                    self._playing += 1
                    return self._games.popleft()
                due = min(self._put_back, key=lambda waiting: waiting.due, default=None)
                if due is not None and due.due <= self._clock():
                    self._put_back.remove(due)
                    self._playing += 1
                    return due
                if due is None and not self._playing:
                    return None
                self._changed.wait(
                    _POLL_SECONDS if due is None else max(0.0, min(_POLL_SECONDS, due.due - self._clock()))
                )
            return None

    def _opened(self) -> bool:
        """Whether the next deal was started just now."""
        if not self._deals:
            return False
        self.why_not_started = self._admit([waiting.game[1].game for waiting in self._deals[0]])
        if self.why_not_started is None:
            self._games.extend(self._deals.popleft())
        return self.why_not_started is None

    def put_back(self, waiting: QueuedGame, why: str) -> None:
        """The game cannot go on now: play it later, from its start; what it was told stands on the tape."""
        wait = min(_MOST, _FIRST * 2 ** min(waiting.times, _DOUBLED))
        with self._changed:
            later = replace(waiting, why=why, times=waiting.times + 1, due=self._clock() + wait)
            self._put_back.append(later)
            self._playing -= 1
            self._changed.notify_all()

    def done(self) -> None:
        """A game has ended."""
        with self._changed:
            self._playing -= 1
            self._changed.notify_all()

    def close(self) -> None:
        """Give out no more games."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def reasons(self) -> list[str]:
        """What the games wait for that were put back and not taken up again."""
        return [waiting.why for waiting in self._put_back]
