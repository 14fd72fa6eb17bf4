"""A chunk with model players: its games in threads around plain synchronous code, many in flight.

The outcome does not depend on how many: a draw comes from the game, not from the order of calls.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event as Flag

from dubito.errors import DubitoError
from dubito.experiment.chunk import DEALS, ChunkPlayer, GamePlayed, Played
from dubito.experiment.models import Models
from dubito.experiment.schedule import Lineup, lineups
from dubito.experiment.tally import tally_of
from dubito.llm.failures import Interrupted
from dubito.streams import DealStreams


@dataclass(frozen=True, slots=True)
class ThreadedChunks:
    """Plays chunks of an experiment with model players."""

    player: ChunkPlayer
    models: Models
    in_flight: int
    progress: Callable[[int], None]  # told how many games of the chunk have ended

    def play(self, number: int, stop: Callable[[], bool]) -> Played:
        """Play a chunk; on a stop or a fault, keep the deals before the first unfinished one."""
        experiment = self.player.experiment
        halt = Flag()
        ended = 0

        def one(deal: int, lineup: Lineup) -> GamePlayed | None:
            nonlocal ended
            if stop() or halt.is_set():
                return None
            try:
                played = self.player.game(deal, lineup, DealStreams(experiment.seed, deal), self.models)
            except DubitoError:
                halt.set()
                raise
            ended += 1
            self.progress(ended)
            return played

        deals = range(number * DEALS, min((number + 1) * DEALS, experiment.deals))
        with ThreadPoolExecutor(self.in_flight, thread_name_prefix="game") as pool:
            futures = [
                [
                    pool.submit(one, deal, lineup)
                    for lineup in lineups(experiment, deal, DealStreams(experiment.seed, deal))
                ]
                for deal in deals
            ]
        return self._gathered(number, futures)

    def _gathered(self, number: int, futures: list[list[Future[GamePlayed | None]]]) -> Played:
        played = Played(number)
        for error in (future.exception() for deal in futures for future in deal):
            if error is not None and not isinstance(error, DubitoError):
                raise error
            if error is not None and not isinstance(error, Interrupted) and played.error is None:
                played.error = error
        put_back = self.models.pipeline.put_back
        finished: list[list[GamePlayed]] = []
        for deal in futures:
            games = [future.result() for future in deal if future.exception() is None]
            whole = [game for game in games if game is not None and game.number not in put_back]
            if len(whole) < len(deal):
                break
            finished.append(whole)
        played.deals = len(finished)
        played.stopped = len(finished) < len(futures) and played.error is None
        flat = [game for games in finished for game in games]
        played.outcomes = [game.outcome.pack() for game in flat]
        played.decisions = [game.decisions for game in flat]
        played.records = [game.record for game in flat]
        played.first_fallback = next((game.bot_error for game in flat if game.bot_error is not None), None)
        played.tally = tally_of([[game.outcome for game in games] for games in finished])
        return played
