"""Watching a game: every question that its players are asked becomes a position.

A player is watched if it answers the nodes A-E one by one, whether it is a model or written by hand.
"""

from collections.abc import Callable, Sequence

from dubito.games.dubito.facts import Position
from dubito.games.dubito.game_data import Event, TurnOutput
from dubito.games.dubito.notebook import Notebook
from dubito.games.dubito.player import FiveNodes, Listener
from dubito.handlers import Table, step


class GameWatch:
    """Plays a game at a table turn by turn, and tells of every question when it is asked."""

    def __init__(self, table: Table, asked: Callable[[Position], None]) -> None:
        """Listen to the players of a table whose game has not begun."""
        self._table, self._told = table, asked
        self._seats = [_Seat(seat, self) for seat in range(len(table.players))]
        self.notebooks = [Notebook(seat, table.game.rules) for seat in range(len(table.players))]
        self._tell([table.game.start])
        for listener, player in zip(self._seats, table.players, strict=True):
            if isinstance(player, FiveNodes):
                player.listeners += (listener,)

    def step(self) -> TurnOutput:
        """Play one turn."""
        game = self._table.game
        self.notebooks[game.seat].turn_begins(game.hands[game.seat].cards)
        output: TurnOutput
        output, events = step(self._table, announce=True)
        self._tell(events, output.cards or ())
        return output

    def _tell(self, events: Sequence[Event], played: Sequence[int] = ()) -> None:
        for notebook, hand in zip(self.notebooks, self._table.game.hands, strict=True):
            for event in events:
                notebook.observe(event, hand.cards, played)

    def ask(self, seat: int, node: str) -> None:
        """A seat is asked this now."""
        game = self._table.game
        self._told(self.notebooks[seat].position(node, game.turn_data(), game.hands[seat].cards))


class _Seat(Listener):
    """Listens to one player."""

    def __init__(self, seat: int, watch: GameWatch) -> None:
        self._seat, self._watch = seat, watch

    def asked(self, node: str) -> None:
        """The walk's question is told of, not those that a bot asks itself on its way."""
        self._watch.ask(self._seat, node)

    def answered(self, node: str, answer: bool) -> None:
        """The node's answer is noted, for the questions that follow on this turn."""
        self._watch.notebooks[self._seat].answered(node, answer)
