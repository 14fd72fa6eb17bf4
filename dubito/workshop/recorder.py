"""Watching a game: every question that its players are asked becomes a recorded position.

A player is watched if it answers the nodes A-E one by one, whether it is a model or written by hand.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from dubito.games.dubito.game_data import Event, TurnOutput
from dubito.games.dubito.notebook import Notebook
from dubito.games.dubito.player import FiveNodes, Listener
from dubito.games.dubito.rules import Rules, last_play_is_dishonest
from dubito.handlers import Table, step
from dubito.workshop.recorded import Hidden, Recorded, Source


@dataclass(frozen=True, slots=True)
class Origin:
    """Which game it is."""

    run: str | None
    seed: int
    deal: int
    game: int


def watched(table: Table, origin: Origin) -> list[Recorded]:
    """Play the game to its end and return the positions of all its questions, in their order."""
    watcher = Watcher(table, origin)
    while not table.game.over:
        watcher.step()
    return watcher.recorded


class Watcher:
    """Plays a game at a table turn by turn; `recorded` are the positions of all questions so far."""

    def __init__(self, table: Table, origin: Origin) -> None:
        """Listen to the players of a table whose game has not begun."""
        self.recorded: list[Recorded] = []
        self._table, self._origin = table, origin
        self._seats = [_Seat(seat, table.game.rules, self) for seat in range(len(table.players))]
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

    def note(self, seat: int, number: int, node: str, notebook: Notebook) -> None:
        """Record the question that a seat is asked now, its `number`th of the game."""
        game, origin = self._table.game, self._origin
        hands = tuple(tuple(sorted(hand.cards)) for hand in game.hands)
        position = notebook.position(node, game.turn_data(), hands[seat])
        board = tuple(game.board)
        dishonest = last_play_is_dishonest(board, game.n_cards_played, game.number)
        source = Source(origin.run, origin.seed, origin.deal, origin.game, seat, number)
        self.recorded.append(Recorded(position, Hidden(hands, board, dishonest, source)))


class _Seat(Listener):
    """Listens to one player."""

    def __init__(self, seat: int, rules: Rules, watcher: Watcher) -> None:
        self.notebook = Notebook(seat, rules)
        self._seat, self._watcher = seat, watcher
        self._decisions = 0

    def asked(self, node: str) -> None:
        """The walk's question is recorded, not those that a bot asks itself on its way."""
        self._watcher.note(self._seat, self._decisions, node, self.notebook)
        self._decisions += 1

    def answered(self, node: str, answer: bool) -> None:
        """The nodes behind it on this turn are told."""
        self.notebook.answered(node, answer)
