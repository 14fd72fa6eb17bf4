"""Play the games of a chunk with model players in threads, many at the same time.

The outcomes do not depend on the number of threads, since random draws depend on the game and not on the order of
calls. Threads take games from a queue. A game that has to wait for a server is queued again for later. A game that
waits for a batch is queued again after the next wave, which starts when no other game can continue.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from dubito.errors import DubitoError, Interrupted, RunStopped
from dubito.experiment.play import ChunkPlayer, ChunkResult, GamePlayed, Lineup, chunk_number, draw_lineups
from dubito.experiment.progress import ModelProgress
from dubito.game.streams import DealStreams
from dubito.llm.request import AccountFault, BatchPending, Suspended
from dubito.llm.slots import GameSlots
from dubito.llm.threads import STOP_GRACE_SECONDS, start_threads, wait_for_threads
from dubito.stats.players import add_statements
from dubito.stats.tally import sum_deals

if TYPE_CHECKING:
    from dubito.experiment.models import Models

_NO_GAME: Final = -1  # the game number of errors outside games
_FIRST_DELAY: Final = 2.0  # seconds until a requeued game is tried again; doubled each time
_MAX_DELAY: Final = 60.0
_MAX_DOUBLINGS: Final = 5
_POLL_SECONDS: Final = 0.5  # seconds between checks whether to stop


@dataclass(frozen=True, slots=True)
class QueuedGame:
    """A new or requeued game."""

    game: tuple[int, Lineup]  # the deal and the lineup
    has_models: bool = True
    needs_slot: bool = False  # whether a server that the run started answers for one of its models
    reason: str = ""  # what the game waits for, if it was queued again
    attempts: int = 0
    due: float = 0.0  # when to try the game again, by the clock


# Admits the games of a deal that have models, or returns why they cannot start.
Admit = Callable[[Sequence[int]], str | None]


@dataclass(eq=False, slots=True)
class GameQueue:
    """The queue of games for all threads: whole deals in order, and requeued games when they are due."""

    deals: deque[list[QueuedGame]]  # the games of each deal that was not started, in order
    clock: Callable[[], float]
    stop: Callable[[], bool]  # returns whether to stop
    admit: Admit = lambda games: None
    # Sends the questions that games wait for, and returns when they have been answered.
    next_wave: Callable[[], None] = lambda: None
    # The slots of servers that the run started. Games that need one wait for it, in order.
    slots: GameSlots = field(default_factory=GameSlots)
    max_open: int = 1  # how many games of deals that were started may wait while later games are played
    fault: BaseException | None = None  # an error of a wave, which closes the queue
    refusal: str | None = None  # the reason why the next deal was not started
    _games: deque[QueuedGame] = field(default_factory=deque)  # games of deals that were started
    _requeued: list[QueuedGame] = field(default_factory=list)
    _waiting: list[QueuedGame] = field(default_factory=list)  # games that wait for the next wave
    _in_wave: bool = False
    _playing: int = 0
    _closed: bool = False
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def take(self) -> QueuedGame | None:
        """Wait for the next game. Return None when all games are played, on a stop, or when the queue is closed."""
        with self._changed:
            while not self._closed and not self.stop():
                if (ready := self._take_in_order()) is not None:
                    self._playing += 1
                    return ready
                due, now = min(self._requeued, key=lambda waiting: waiting.due, default=None), self.clock()
                if due is not None and due.due <= now and self._can_start(due):
                    self._requeued.remove(due)
                    self._playing += 1
                    return due
                if due is None and not self._playing and not self._in_wave:
                    if not self._waiting:
                        return None
                    self._ask_wave()
                    continue
                is_later = due is not None and due.due > now
                self._changed.wait(min(_POLL_SECONDS, due.due - now) if due and is_later else _POLL_SECONDS)
            return None

    def _take_in_order(self) -> QueuedGame | None:
        """Return the first game that can start. A deal is opened if no game of earlier deals can."""
        while True:
            for game in self._games:
                if self._can_start(game):
                    self._games.remove(game)
                    return game
            if len(self._games) >= self.max_open or not self.deals:
                return None
            self.refusal = self.admit([queued.game[1].game for queued in self.deals[0] if queued.has_models])
            if self.refusal is not None:
                return None
            self._games.extend(self.deals.popleft())

    def _can_start(self, queued: QueuedGame) -> bool:
        return not queued.needs_slot or self.slots.hold(queued.game[1].game)

    def _ask_wave(self) -> None:
        """Send the next wave while other threads wait, then requeue the games that waited for it."""
        self._in_wave, fault = True, None
        self._changed.release()
        try:
            self.next_wave()
        except BaseException as error:
            fault = error
        self._changed.acquire()
        self.fault, self._closed, self._in_wave = fault, self._closed or fault is not None, False
        self._games.extend(self._waiting)
        self._waiting.clear()
        self._changed.notify_all()

    def requeue(self, waiting: QueuedGame, reason: str) -> None:
        """Play the game again later, from the start. The answers received so far are recorded."""
        wait = min(_MAX_DELAY, _FIRST_DELAY * 2 ** min(waiting.attempts, _MAX_DOUBLINGS))
        with self._changed:
            later = replace(waiting, reason=reason, attempts=waiting.attempts + 1, due=self.clock() + wait)
            self._requeued.append(later)
            self._end(waiting)

    def wait_for_wave(self, waiting: QueuedGame, reason: str) -> None:
        """Queue the game to be played from the start after the next wave."""
        with self._changed:
            self._waiting.append(replace(waiting, reason=reason))
            self._end(waiting)

    def finish(self, played: QueuedGame) -> None:
        with self._changed:
            self._end(played)

    def _end(self, queued: QueuedGame) -> None:
        self._playing -= 1
        self.slots.release(queued.game[1].game)
        self._changed.notify_all()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def reasons(self) -> list[str]:
        unfinished = [*self._requeued, *self._waiting, *self._games]
        return [waiting.reason for waiting in unfinished if waiting.reason]


@dataclass(frozen=True, slots=True)
class ThreadedChunks:
    """Plays an experiment's chunks with model players."""

    player: ChunkPlayer
    models: "Models"
    in_flight: int
    model_progress: ModelProgress
    progress: Callable[[int], None]  # called with the number of finished games
    halt: Callable[[], None] = lambda: None  # stops all calls after an error outside of calls

    def play(self, numbers: range, stop: Callable[[], bool]) -> ChunkResult:
        """Play deals of one chunk.

        After a stop or an error, return the deals before the first unfinished one.
        """
        experiment = self.player.experiment
        deals = [
            [(number, lineup) for lineup in draw_lineups(experiment, number, DealStreams(experiment.seed, number))]
            for number in numbers
        ]
        models, tracker = self.models, self.models.tracker
        players = [*enumerate(experiment.names)]
        recorded = {place for place, name in players if name in models.deciders or name in models.programs}
        slotted = {place for place, name in players if models.needs_slot(name)}
        queued_deals = deque(
            [
                QueuedGame(game, not recorded.isdisjoint(game[1].seats), not slotted.isdisjoint(game[1].seats))
                for game in games
            ]
            for games in deals
        )
        queue = GameQueue(
            queued_deals,
            self.model_progress.clock,
            stop,
            tracker.budget.admit if tracker else lambda games: None,
            models.next_wave,
            models.slots,
            self.in_flight,
        )
        worker = GameWorker(self, queue)
        wanted = max(1, min(self.in_flight, sum(map(len, deals))))
        threads = start_threads(worker.run, wanted, "game")
        if len(threads) < wanted:
            self.model_progress.warn(
                f"only {len(threads)} of {wanted} threads could be started, so fewer games are played at once"
            )
        if hanging := wait_for_threads(threads, stop):
            queue.close()
            self.model_progress.notify(
                f"{hanging} game{'s' * (hanging > 1)} still waited for calls {STOP_GRACE_SECONDS:g} s after the stop: "
                "these calls were abandoned and counted at their highest possible price"
            )
        for reason in queue.reasons():
            self.model_progress.end_wait(reason)
        # Copies, since an abandoned thread may still write.
        finished, errors = dict(worker.finished), dict(worker.errors)
        if queue.fault is not None:
            errors[_NO_GAME] = queue.fault
        refused = None if stop() or queue.refusal is None else AccountFault(queue.refusal)
        return self._collect(chunk_number(numbers), deals, finished, errors, refused)

    def _collect(
        self,
        number: int,
        deals: list[list[tuple[int, Lineup]]],
        games_played: dict[int, GamePlayed],
        errors: dict[int, BaseException],
        refused: AccountFault | None,
    ) -> ChunkResult:
        """Build the result from the finished games."""
        result = ChunkResult(number)
        for _, error in sorted(errors.items()):
            if not isinstance(error, DubitoError):
                raise error
            if not isinstance(error, Interrupted) and result.error is None:
                result.error = error
        result.error = result.error or refused
        lost = self.models.lost_games()
        finished: list[list[GamePlayed]] = []
        for games in deals:
            whole = [games_played[lineup.game] for _, lineup in games if lineup.game in games_played.keys() - lost]
            if len(whole) < len(games):
                break
            finished.append(whole)
        result.deals = len(finished)
        result.stopped = len(finished) < len(deals) and result.error is None
        all_games = [game for whole in finished for game in whole]
        results = self.player.results
        result.outcomes = [game.outcome.pack() for game in all_games]
        if self.models.deciders:
            result.decision_digests = [game.decision_digest for game in all_games]
        result.records = [game.record for game in all_games]
        result.first_fallback = next((game.bot_error for game in all_games if game.bot_error is not None), None)
        outcomes = [[game.outcome for game in whole] for whole in finished]
        result.tally = sum_deals(outcomes, results, (game.fallback_seats for game in all_games))
        for whole in finished:
            add_statements(result.tally, [(game.outcome.seats[s.seat], s) for game in whole for s in game.statements])
        return result


@dataclass(slots=True)
class GameWorker:
    """A thread's work: play games from the queue until the queue is empty or a game fails."""

    chunks: ThreadedChunks
    queue: GameQueue
    finished: dict[int, GamePlayed] = field(default_factory=dict)
    errors: dict[int, BaseException] = field(default_factory=dict)

    def run(self) -> None:
        """Play games. On any error, close the queue so that other threads do not wait for this one."""
        game = _NO_GAME
        try:
            while (waiting := self.queue.take()) is not None:
                game = waiting.game[1].game
                self._play(waiting)
                game = _NO_GAME
        except BaseException as error:
            self.errors[game] = error
            self.queue.close()
            if type(error) is RunStopped or not isinstance(error, DubitoError):
                self.chunks.halt()

    def _play(self, waiting: QueuedGame) -> None:
        """Play a game, or requeue it if the game has to wait."""
        chunks, (deal, lineup) = self.chunks, waiting.game
        tracker = chunks.models.tracker
        if waiting.reason:
            chunks.model_progress.end_wait(waiting.reason)
        streams = DealStreams(chunks.player.experiment.seed, deal)
        try:
            with tracker.budget.playing(lineup.game, deal) if tracker and waiting.has_models else nullcontext():
                played = chunks.player.play_with_models(deal, lineup, streams, chunks.models)
                done = tracker.finish(lineup.game) if tracker else len(self.finished) + 1
        except Suspended as error:
            chunks.model_progress.begin_wait(str(error))
            requeue = self.queue.wait_for_wave if isinstance(error, BatchPending) else self.queue.requeue
            requeue(waiting, str(error))
            return
        self.finished[lineup.game] = played
        chunks.progress(done)
        self.queue.finish(waiting)
