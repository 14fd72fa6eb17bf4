"""A chunk with model players: its games in threads around plain synchronous code, many in flight.

The outcome does not depend on how many: a draw comes from the game, not from the order of calls.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dubito.errors import DubitoError
from dubito.experiment.chunk import ChunkPlayer, ChunkResult, GamePlayed, deals_of
from dubito.experiment.game_queue import GameQueue, QueuedGame
from dubito.experiment.model_progress import ModelProgress
from dubito.experiment.schedule import Lineup, lineups
from dubito.game.streams import DealStreams
from dubito.llm.request import AccountFault, Interrupted, Suspended
from dubito.stats.players import add_stated, add_touched
from dubito.stats.tally import tally_of

if TYPE_CHECKING:
    from dubito.experiment.models import Models


@dataclass(frozen=True, slots=True)
class ThreadedChunks:
    """Plays chunks of an experiment with model players."""

    player: ChunkPlayer
    models: "Models"
    in_flight: int
    watch: ModelProgress
    progress: Callable[[int], None]  # told how many games of the run have ended

    def play(self, number: int, stop: Callable[[], bool], part: int = 0, of: int = 1) -> ChunkResult:
        """Play a chunk, or a part of it; on a stop or a fault, keep the deals before the first unfinished one."""
        experiment = self.player.experiment
        deals = self._deals(deals_of(experiment, number, part, of))
        course = self.models.course
        admit = course.budget.admit if course else lambda games: None
        queue = GameQueue([[QueuedGame(game) for game in games] for games in deals], self.watch.clock, stop, admit)
        ended: dict[int, GamePlayed] = {}
        errors: dict[int, BaseException] = {}

        def work() -> None:
            while (waiting := queue.take()) is not None:
                deal, lineup = waiting.game
                if waiting.why:
                    self.watch.end_wait(waiting.why)
                try:
                    with course.budget.playing(lineup.game, deal) if course else nullcontext():
                        played = self.player.game(deal, lineup, DealStreams(experiment.seed, deal), self.models)
                        done = course.ends(lineup.game) if course else len(ended) + 1
                except Suspended as error:
                    self.watch.begin_wait(str(error))
                    queue.put_back(waiting, str(error))
                    continue
                except BaseException as error:
                    errors[lineup.game] = error
                    queue.close()
                    return
                ended[lineup.game] = played
                self.progress(done)
                queue.done()

        threads = max(1, min(self.in_flight, sum(map(len, deals))))
        with ThreadPoolExecutor(threads, thread_name_prefix="game") as pool:
            for worker in [pool.submit(work) for _ in range(threads)]:
                worker.result()
        for why in queue.reasons():
            self.watch.end_wait(why)
        refused = None if stop() or queue.why_not_started is None else AccountFault(queue.why_not_started)
        return self._gathered(number, deals, ended, errors, refused)

    def _deals(self, numbers: range) -> list[list[tuple[int, Lineup]]]:
        """The games of these deals, deal by deal."""
        experiment = self.player.experiment
        return [
            [(deal, lineup) for lineup in lineups(experiment, deal, DealStreams(experiment.seed, deal))]
            for deal in numbers
        ]

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
            add_touched(played.tally, [(game.outcome, game.touched) for game in whole], results)
            add_stated(played.tally, [(game.outcome.seats[s.seat], s) for game in whole for s in game.statements])
        return played
