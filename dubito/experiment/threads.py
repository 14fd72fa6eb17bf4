"""A chunk with model players: its games in threads around plain synchronous code, many in flight.

The outcome does not depend on how many: a draw comes from the game, not from the order of calls. The threads take
games from a queue: those that wait to be played, and those put back, each until its time has come, or until the next
wave is there: it goes out once no game can go on without it.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from dubito.errors import DubitoError, RunStopped
from dubito.experiment.play import ChunkPlayer, ChunkResult, GamePlayed, Lineup, chunk_of, draw_lineups
from dubito.experiment.progress import ModelProgress
from dubito.game.streams import DealStreams
from dubito.llm.request import AccountFault, BatchPending, Interrupted, Suspended
from dubito.llm.threads import STOP_GRACE_SECONDS, start_threads, wait_for_threads
from dubito.stats.players import add_fallback_seats, add_statements
from dubito.stats.tally import tally_of

if TYPE_CHECKING:
    from dubito.experiment.models import Models

_NO_GAME: Final = -1  # the number of what is no game's fault
_FIRST_DELAY: Final = 2.0  # seconds that a game put back waits; then twice as long each time
_MAX_DELAY: Final = 60.0
_MAX_DOUBLINGS: Final = 5  # times
_POLL_SECONDS: Final = 0.5  # seconds after which somebody who waits looks whether to stop


@dataclass(frozen=True, slots=True)
class QueuedGame:
    """A game that waits for its turn, or was put back."""

    game: tuple[int, Lineup]  # its deal, and who plays
    has_models: bool = True  # else it costs nothing
    why: str = ""  # it was put back: what it waits for
    times: int = 0
    due: float = 0.0  # by the clock


Admit = Callable[[Sequence[int]], str | None]  # lets the games of a deal with models begin, or says why not


class GameQueue:
    """Shared by the threads that play: whole deals in their order, then games put back, as soon as they are due."""

    def __init__(
        self,
        deals: Sequence[Sequence[QueuedGame]],
        clock: Callable[[], float],
        stop: Callable[[], bool],
        admit: Admit = lambda games: None,
        next_wave: Callable[[], None] = lambda: None,
    ) -> None:
        """`next_wave` asks what games wait for, and returns once it is there."""
        self._deals, self._clock, self._stop, self._admit = deque(deals), clock, stop, admit
        self._next_wave = next_wave
        self._waiting: list[QueuedGame] = []  # for the next wave
        self._in_wave = False
        self.fault: BaseException | None = None  # what a wave raised: it closes the queue
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
                if self._games or self._next_deal_opens():
                    self._playing += 1
                    return self._games.popleft()
                due = min(self._put_back, key=lambda waiting: waiting.due, default=None)
                if due is not None and due.due <= self._clock():
                    self._put_back.remove(due)
                    self._playing += 1
                    return due
                if due is None and not self._playing and not self._in_wave:
                    if not self._waiting:
                        return None
                    self._ask_wave()
                    continue
                self._changed.wait(
                    _POLL_SECONDS if due is None else max(0.0, min(_POLL_SECONDS, due.due - self._clock()))
                )
            return None

    def _ask_wave(self) -> None:
        """Have the next wave asked, by this thread, while the others wait; then all games that waited go on."""
        self._in_wave, fault = True, None
        self._changed.release()
        try:
            self._next_wave()
        except BaseException as error:
            fault = error
        self._changed.acquire()
        self.fault, self._closed, self._in_wave = fault, self._closed or fault is not None, False
        self._games.extend(self._waiting)
        self._waiting.clear()
        self._changed.notify_all()

    def _next_deal_opens(self) -> bool:
        if not self._deals:
            return False
        self.why_not_started = self._admit([one.game[1].game for one in self._deals[0] if one.has_models])
        if self.why_not_started is None:
            self._games.extend(self._deals.popleft())
        return self.why_not_started is None

    def put_back(self, waiting: QueuedGame, why: str) -> None:
        """The game cannot go on now: play it later, from its start; what it was told stands on the tape."""
        wait = min(_MAX_DELAY, _FIRST_DELAY * 2 ** min(waiting.times, _MAX_DOUBLINGS))
        with self._changed:
            later = replace(waiting, why=why, times=waiting.times + 1, due=self._clock() + wait)
            self._put_back.append(later)
            self._playing -= 1
            self._changed.notify_all()

    def wait_for_wave(self, waiting: QueuedGame, why: str) -> None:
        """The game goes on, from its start, once the next wave is there."""
        with self._changed:
            self._waiting.append(replace(waiting, why=why))
            self._playing -= 1
            self._changed.notify_all()

    def done(self) -> None:
        with self._changed:
            self._playing -= 1
            self._changed.notify_all()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def reasons(self) -> list[str]:
        left = [*self._put_back, *self._waiting, *self._games]
        return [waiting.why for waiting in left if waiting.why]


@dataclass(frozen=True, slots=True)
class ThreadedChunks:
    """Plays chunks of an experiment with model players."""

    player: ChunkPlayer
    models: "Models"
    in_flight: int
    model_progress: ModelProgress
    progress: Callable[[int], None]  # told how many games of the run have ended
    halt: Callable[[], None] = lambda: None  # stops the calls of all games after an error that no call can mend

    def play(self, numbers: range, stop: Callable[[], bool]) -> ChunkResult:
        """Play deals, all of one chunk; on a stop or a fault, keep those before the first unfinished one."""
        deals = [self._games_of(number) for number in numbers]
        queue = self._queue(deals, stop)
        worker = GameWorker(self, queue)
        wanted = max(1, min(self.in_flight, sum(map(len, deals))))
        threads = start_threads(worker.run, wanted, "game")
        if len(threads) < wanted:
            self.model_progress.warn(
                f"only {len(threads)} of {wanted} threads could be started: that many games play at once"
            )
        if hanging := wait_for_threads(threads, stop):
            queue.close()
            self.model_progress.notify(
                f"{hanging} game{'s' * (hanging > 1)} still waited for calls {STOP_GRACE_SECONDS:g} s after the stop: "
                "these calls are given up, and counted at their highest possible price"
            )
        for why in queue.reasons():
            self.model_progress.end_wait(why)
        ended, errors = dict(worker.ended), dict(worker.errors)  # a thread that was given up may still write
        if queue.fault is not None:
            errors[_NO_GAME] = queue.fault
        refused = None if stop() or queue.why_not_started is None else AccountFault(queue.why_not_started)
        return self._gathered(chunk_of(numbers), deals, ended, errors, refused)

    def _queue(self, deals: list[list[tuple[int, Lineup]]], stop: Callable[[], bool]) -> GameQueue:
        course = self.models.course
        admit = course.budget.admit if course else lambda games: None
        names = self.player.experiment.names
        asking = {place for place, name in enumerate(names) if name in self.models.deciders}
        queued = [[QueuedGame(game, not asking.isdisjoint(game[1].seats)) for game in games] for games in deals]
        return GameQueue(queued, self.model_progress.clock, stop, admit, self.models.next_wave)

    def _games_of(self, deal: int) -> list[tuple[int, Lineup]]:
        experiment = self.player.experiment
        return [(deal, lineup) for lineup in draw_lineups(experiment, deal, DealStreams(experiment.seed, deal))]

    def _gathered(
        self,
        number: int,
        deals: list[list[tuple[int, Lineup]]],
        ended: dict[int, GamePlayed],
        errors: dict[int, BaseException],
        refused: AccountFault | None,
    ) -> ChunkResult:
        played = ChunkResult(number)
        for _, error in sorted(errors.items()):
            if not isinstance(error, DubitoError):
                raise error
            if not isinstance(error, Interrupted) and played.error is None:
                played.error = error
        played.error = played.error or refused
        put_back = self.models.put_back()
        finished: list[list[GamePlayed]] = []
        for games in deals:
            whole = [ended[lineup.game] for _, lineup in games if lineup.game in ended.keys() - put_back]
            if len(whole) < len(games):
                break
            finished.append(whole)
        played.deals = len(finished)
        played.stopped = len(finished) < len(deals) and played.error is None
        flat = [game for whole in finished for game in whole]
        results = self.player.results
        played.outcomes = [game.outcome.pack() for game in flat]
        played.decision_digests = [game.decision_digest for game in flat]
        played.records = [game.record for game in flat]
        played.first_fallback = next((game.bot_error for game in flat if game.bot_error is not None), None)
        played.tally = tally_of([[game.outcome for game in whole] for whole in finished], results)
        for whole in finished:
            add_fallback_seats(played.tally, [(game.outcome, game.touched) for game in whole], results)
            add_statements(played.tally, [(game.outcome.seats[s.seat], s) for game in whole for s in game.statements])
        return played


class GameWorker:
    """What each thread does: it takes games from the queue and plays them, until there are none or one fails."""

    def __init__(self, chunks: ThreadedChunks, queue: GameQueue) -> None:
        self._chunks, self._queue = chunks, queue
        self.ended: dict[int, GamePlayed] = {}
        self.errors: dict[int, BaseException] = {}

    def run(self) -> None:
        """Play. Whatever goes wrong, nobody waits for this thread: the queue is closed."""
        game = _NO_GAME
        try:
            while (waiting := self._queue.take()) is not None:
                game = waiting.game[1].game
                self._play(waiting)
                game = _NO_GAME
        except BaseException as error:
            self.errors[game] = error
            self._queue.close()
            if type(error) is RunStopped or not isinstance(error, DubitoError):
                self._chunks.halt()

    def _play(self, waiting: QueuedGame) -> None:
        """Play a game to its end, or put it back."""
        chunks, (deal, lineup) = self._chunks, waiting.game
        course = chunks.models.course
        if waiting.why:
            chunks.model_progress.end_wait(waiting.why)
        streams = DealStreams(chunks.player.experiment.seed, deal)
        try:
            with course.budget.playing(lineup.game, deal) if course and waiting.has_models else nullcontext():
                played = chunks.player.game_with_models(deal, lineup, streams, chunks.models)
                done = course.ends(lineup.game) if course else len(self.ended) + 1
        except Suspended as error:
            chunks.model_progress.begin_wait(str(error))
            put_back = self._queue.wait_for_wave if isinstance(error, BatchPending) else self._queue.put_back
            put_back(waiting, str(error))
            return
        self.ended[lineup.game] = played
        chunks.progress(done)
        self._queue.done()
