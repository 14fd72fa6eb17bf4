"""Reference beliefs: how probable it is that a play is a lie, given all that a seat knows.

In small duels a plugin computes them exactly. Otherwise, a strong bot states them (`Game.reference_bot`). It sits at
every seat unseen, gets the seat's cards and events, and never plays.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from dubito.experiment.lies import MarkedMove, replay_moves, track_moves
from dubito.experiment.stored import Run
from dubito.game import State
from dubito.game.events import GameEvent
from dubito.game.streams import DealStreams
from dubito.game.table import Entrant, Table
from dubito.hooks import BeliefReference, StartProgress, find_exact_beliefs

_STREAMS: Final = DealStreams(0, 0)  # the bot is asked for beliefs, which use no randomness


class BotReference:
    """The beliefs of the game's reference bot."""

    def __init__(self, run: Run, name: str) -> None:
        registry, self._game = run.registry, run.game
        bot = registry.replaced.get(name) or registry.find(name)
        self.name, self._entrant = bot.name, Entrant(bot.name, bot.cls)

    def begin(self, state: State, seats: Sequence[int]) -> None:
        self._table: Table = Table(state, [self._entrant] * len(seats), _STREAMS)

    def rate(self, state: State) -> float:
        player = self._table.players[state.seat]
        assert player is not None
        return self._game.read_belief(player)

    def see(self, output: object, events: Sequence[GameEvent]) -> None:
        self._table.send_events(events, self._table.state.turns_played)


def ignore_progress(questions: int) -> Callable[[int], None]:
    return lambda done: None


def find_reference(run: Run, start_progress: StartProgress = ignore_progress) -> BeliefReference | None:
    """Return the exact beliefs in a small game, or those of the game's reference bot, if there is one."""
    if exact := find_exact_beliefs(run, start_progress):
        return exact
    bot = run.game.reference_bot(run.game.rules(**run.planned.rules))
    return BotReference(run, bot) if bot else None


class ReferenceReplay:
    """A replay of a game, with the reference belief at each move after which a play can be called a lie."""

    def __init__(self, run: Run, number: int, seats: Sequence[int], reference: BeliefReference | None) -> None:
        self._run, self._number, self._seats, self._reference = run, number, seats, reference
        self._output: object = None
        self._rated = list[float | None]()

    def moves(self) -> tuple[list[MarkedMove], dict[tuple[int, int, int], float]]:
        """Return the moves, and the beliefs by game, seat and move."""
        moves = [*track_moves(self._run.game, self._follow())]
        beliefs = {
            (self._number, one.seat, one.move): belief
            for one, belief in zip(moves, self._rated, strict=True)
            if belief is not None
        }
        return moves, beliefs

    def _follow(self) -> Iterator[tuple[Any, Any]]:
        for state, output in replay_moves(self._run, self._number, self._see):
            if self._reference is not None and not self._rated:
                self._reference.begin(state, self._seats)
            can_call = self._reference is not None and self._run.game.truth(state) is not None
            self._rated.append(self._reference.rate(state) if self._reference and can_call else None)
            self._output = output
            yield state, output

    def _see(self, events: Sequence[GameEvent]) -> None:
        if self._reference is not None:
            self._reference.see(self._output, events)
