"""Play a tournament match with one of Dubito's players for OpenSpiel's games, over standard input and output.

The referee sends observations, but Dubito's players need a view of the game. This module therefore tracks all histories
that are consistent with the seat's observations, which all have the same view.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple, TextIO

from dubito.errors import UsageError
from dubito.game import Seating, make_player
from dubito.game.log import Log
from dubito.game.streams import DealStreams
from dubito.game.table import Entrant
from dubito.plugins.openspiel.state import State
from dubito.plugins.tournament.rules import V1, load

# Enough for Kuhn poker, Leduc poker and small games of liar's dice.
_MAX_HISTORIES: Final = 20_000


class MatchSeat(NamedTuple):
    game: str
    seat: int
    seed: int
    number: int


class ConsistentHistories:
    """All histories of a game that are consistent with a seat's observations."""

    def __init__(self, engine: Any, seat: int) -> None:
        self._dialect, self._seat = V1(engine), seat
        self._states = [engine.new_initial_state()]
        self._own_action: int | None = None
        self._has_started = False

    def add_node(self, line: str) -> list[int]:
        """Process a node's line and return the seat's actions. Raises UsageError if no histories fit, or too many."""
        states = (
            [after for state in self._states for after in self._children(state)] if self._has_started else self._states
        )
        self._has_started, self._own_action = True, None
        observation = line.split()[0].encode()
        self._states = [state for state in states if self._matches(state, observation, " " in line.strip())]
        if not self._states:
            raise UsageError("the referee's line is impossible in this game")
        if len(self._states) > _MAX_HISTORIES:
            raise UsageError(f"this bot cannot play the game: it has more than {_MAX_HISTORIES:,} possible histories")
        return [int(word) for word in line.split()[1:]]

    def record_action(self, action: int) -> None:
        self._own_action = action

    def sample_history(self) -> list[int]:
        return [int(action) for action in self._states[0].history()]

    def _children(self, state: Any) -> Iterator[Any]:
        actions = [action for action, _ in state.chance_outcomes()] if state.is_chance_node() else state.legal_actions()
        for action in actions if self._own_action is None else [self._own_action]:
            yield state.child(action)

    def _matches(self, state: Any, observation: bytes, has_to_act: bool) -> bool:
        if state.is_terminal() or (state.current_player() == self._seat) != has_to_act:
            return False
        return self._dialect.node(state, self._seat, None).strip() == observation


def answer_lines(entrant: Entrant, services: object | None, table: MatchSeat, lines: TextIO, out: TextIO) -> None:
    """Play a match using the announcement's protocol. `services` lets a model player call its model."""
    engine = load(table.game)
    if engine.get_type().dynamics != type(engine.get_type().dynamics).SEQUENTIAL:
        raise UsageError(f"this bot cannot play {table.game}, which has simultaneous moves")
    histories, streams = ConsistentHistories(engine, table.seat), DealStreams(table.seed, 0).seat(table.seat)
    game = State.after_steps(engine, [])
    log, look = Log(), lambda _: game.cards(table.seat, streams)
    seating = Seating(table.seat, table.number, 0, streams, look, services, log=log.of(table.seat))
    player: Any = make_player(entrant.bot, seating, entrant.settings)
    for line in lines:
        if line.startswith("end of game"):
            return
        if histories.add_node(line):
            game = State.after_steps(engine, histories.sample_history())
            view = game.view()
            player.cards = game.cards(table.seat, streams)
            log.add([view.sight])
            answer = player.play(view)
            action = next(action for action, name in view.names.items() if name == answer)
            histories.record_action(action)
            print(action, file=out, flush=True)
