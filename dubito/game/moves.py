"""Moves of a game as they are stored: outputs, and forfeits that replace them."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import cast

from dubito.errors import DubitoError, IllegalOutput, UsageError, one_line
from dubito.game import Game, State
from dubito.game.events import EVERYTHING, GameEvent
from dubito.game.table import Forfeitable, Table


@dataclass(frozen=True, slots=True)
class Forfeit:
    """Replaces an output if a seat's mistake ends the game."""

    seat: int


def output_of(game: Game, stored: object) -> object:
    """Parse a stored output. Raises UsageError if it is not an output of the game."""
    if game.forfeits and isinstance(stored, dict) and list(stored) == ["seat"] and type(stored["seat"]) is int:
        return Forfeit(stored["seat"])
    try:
        return game.output_from_json(stored)
    except (TypeError, ValueError, LookupError, DubitoError):
        raise UsageError(f"this is not an output of {game.name}: {one_line(json.dumps(stored), 80)}") from None


@contextmanager
def require_whole_game(state: State) -> Iterator[None]:
    """Raise UsageError unless the moves made inside are legal and finish the game."""
    try:
        yield
    except IllegalOutput as error:
        raise UsageError(f"turn {state.turns_played + 1} of the record breaks the rules: {error}") from None
    if not state.over:
        raise UsageError(f"the record ends after {state.turns_played} turns, before the game is over")


def make_move(state: State, output: object) -> Sequence[GameEvent]:
    """Make the move, or apply the forfeit. Raises IllegalOutput if the rules refuse it."""
    if not isinstance(output, Forfeit):
        return state.apply(output, EVERYTHING)
    cast(Forfeitable, state).forfeit(output.seat)
    return []


def repeat_move(table: Table, output: object) -> Sequence[GameEvent]:
    """Make a recorded move and return its events. A bot also decides, so that its memory is the same as in the game.

    Raises UsageError if the move was forfeited or the bot now fails.
    """
    state, player, turn = table.state, table.players[table.state.seat], table.state.turns_played + 1
    if output is None or isinstance(output, Forfeit):
        raise UsageError(f"turn {turn} was forfeited")
    assert player is not None
    if not player.is_model:
        try:
            player.play(state.view())
        except Exception as error:  # a bot can raise anything
            name = one_line(table.entrants[state.seat].name)
            raise UsageError(f"{name} now fails in turn {turn}: {one_line(str(error))}") from None
    events = state.apply(output, EVERYTHING)
    table.send_events(events, state.turns_played)
    return events
