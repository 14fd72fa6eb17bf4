"""The course of a run with models: which games may begin, which have ended, and how far the run is in one sentence."""

from dataclasses import dataclass
from threading import Lock

from dubito.llm.budget import Budget
from dubito.store.model_log import ModelLog


@dataclass(frozen=True, slots=True)
class Standing:
    """What a run has on disk, as three figures that mean the same wherever they are said."""

    finished: int  # games
    kept: int  # of them, those before the first unfinished deal: the ones that are published
    replies: int

    def __str__(self) -> str:
        return f"{self.finished:,} games finished, {self.kept:,} of them kept in order, {self.replies:,} replies kept"


def standing(log: ModelLog, games_per_deal: int, first_game: int = 0) -> Standing:
    """How far a run is by what is on disk, be it under way or not."""
    ended = log.ended().keys()
    kept = _in_order(first_game, games_per_deal, set(ended)) - first_game
    return Standing(len(ended), kept, log.replies())


def _in_order(first: int, games_per_deal: int, ended: set[int]) -> int:
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
            self._unfinished = _in_order(self._unfinished, self._games_per_deal, self._ended)
            return Standing(len(self._ended), self._unfinished - self._first, self._replies + replies)
