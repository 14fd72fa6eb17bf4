"""The questions of a game that is watched: a player is watched if it answers the nodes A-E one by one."""

from collections.abc import Callable, Sequence
from typing import Any

from dubito.game.table import Table, step
from dubito.games.dubito.game_data import Event, TurnOutput
from dubito.games.dubito.knowledge import Position
from dubito.games.dubito.notebook import Notebook
from dubito.games.dubito.player import FiveNodes, Listener

Note = Callable[[int, Position], None]  # is told each question, with its seat, before it is answered


class Questions:
    """Plays a game at a table turn by turn, and notes what its players are asked."""

    def __init__(self, table: Table, rules: Any, note: Note) -> None:
        """Listen to the players of a table whose game has not begun; `rules` as a notebook takes them."""
        self._table = table
        self._seats = [_Seat(seat, rules, table, note) for seat in range(len(table.players))]
        self._tell([table.game.start])
        for seat, player in zip(self._seats, table.players, strict=True):
            if isinstance(player, FiveNodes):
                player.listeners += (seat,)

    def step(self) -> TurnOutput:
        """Play one turn."""
        game = self._table.game
        self._seats[game.seat].notebook.turn_begins(game.hands[game.seat].cards)
        output: TurnOutput
        output, events = step(self._table, announce=True)
        self._tell(events, output.cards or ())
        return output

    def _tell(self, events: Sequence[Event], played: Sequence[int] = ()) -> None:
        for seat, hand in zip(self._seats, self._table.game.hands, strict=True):
            for event in events:
                seat.notebook.observe(event, hand.cards, played)


class _Seat(Listener):
    """Listens to one player."""

    def __init__(self, seat: int, rules: Any, table: Table, note: Note) -> None:
        self.notebook = Notebook(seat, rules)
        self._seat, self._table, self._note = seat, table, note

    def asked(self, node: str) -> None:
        """The walk's question is noted, not those that a bot asks itself on its way."""
        game = self._table.game
        self._note(self._seat, self.notebook.position(node, game.turn_data(), game.hands[self._seat].cards))

    def answered(self, node: str, answer: bool) -> None:
        """The node's answer is noted, for the questions that follow on this turn."""
        self.notebook.answered(node, answer)
