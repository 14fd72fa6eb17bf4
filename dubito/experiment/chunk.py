"""Playing some consecutive deals: the work of one process, a function of the experiment and the deals."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from dubito.errors import BotError
from dubito.experiment.config import Experiment
from dubito.experiment.outcome import Outcome, outcome_of
from dubito.experiment.schedule import lineups
from dubito.experiment.tally import Tally, tally_of
from dubito.handlers import Entrant, deal_table, play_game
from dubito.player import PlayerAI
from dubito.registry import FALLBACK, Registry
from dubito.streams import DealStreams

DEALS: Final = 1000  # a chunk; part of the results digest, so that it never depends on workers


@dataclass(slots=True)
class Played:
    """A chunk as far as it got: complete, or cut short by a stop or a bot error."""

    number: int
    deals: int = 0
    outcomes: list[bytes] = field(default_factory=list)
    tally: Tally = field(default_factory=Tally)
    first_fallback: BotError | None = None
    error: BotError | None = None
    stopped: bool = False


class ChunkPlayer:
    """An experiment with its bots loaded, ready to play any of its chunks."""

    def __init__(self, experiment: Experiment, registry: Registry) -> None:
        self._experiment = experiment
        self._entrants = [Entrant(p.name, registry.find(p.bot).cls, p.settings) for p in experiment.players]
        self._fallback: type[PlayerAI] | None = None
        if experiment.on_bot_error == "fallback":
            self._fallback = registry.find(FALLBACK).cls

    def play(self, number: int, stop: Callable[[], bool]) -> Played:
        """Play a chunk's deals; between deals, `stop` says whether to leave off."""
        played = Played(number)
        finished: list[list[Outcome]] = []
        for deal in range(number * DEALS, min((number + 1) * DEALS, self._experiment.deals)):
            if stop():
                played.stopped = True
                break
            try:
                finished.append(self._deal(deal, played))
            except BotError as error:
                played.error = error
                break
        played.deals = len(finished)
        played.outcomes = [outcome.pack() for outcomes in finished for outcome in outcomes]
        played.tally = tally_of(finished)
        return played

    def _deal(self, deal: int, played: Played) -> list[Outcome]:
        streams = DealStreams(self._experiment.seed, deal)
        outcomes = []
        for lineup in lineups(self._experiment, deal, streams):
            table = deal_table(
                [self._entrants[player] for player in lineup.seats],
                self._experiment.rules,
                streams,
                deal=deal,
                number=lineup.game,
                fallback=self._fallback,
            )
            game = play_game(table)
            outcomes.append(outcome_of(game, lineup.seats, lineup.contender_seat, table.fallback_turns))
            if table.errors and played.first_fallback is None:
                played.first_fallback = table.errors[0]
        return outcomes
