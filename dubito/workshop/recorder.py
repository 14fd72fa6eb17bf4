"""Watching a game: every question that its players are asked becomes a recorded position."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dubito.game import GameEvent, Spec
from dubito.handlers import Table, step
from dubito.streams import DealStreams
from dubito.workshop.craft import Craft, Watched, craft_of, game_or_dubito
from dubito.workshop.recorded import Hidden, Recorded, Source


@dataclass(frozen=True, slots=True)
class Origin:
    """Which game it is."""

    run: str | None
    seed: int
    deal: int
    game: int


def watched(table: Table, origin: Origin, game: Spec | None = None) -> list[Recorded]:
    """Play the game to its end and return the positions of all its questions, in their order."""
    watcher = Watcher(table, origin, game)
    while not table.game.over:
        watcher.step()
    return watcher.recorded


class Watcher:
    """Plays a game at a table step by step; `recorded` are the positions of all questions so far."""

    def __init__(self, table: Table, origin: Origin, game: Spec | None = None) -> None:
        """Watch a table whose game, Dubito if none is given, has not begun."""
        self.recorded: list[Recorded] = []
        self._table, self._origin, self._game = table, origin, game
        self._craft = craft_of(game)
        own: Watched | None = getattr(self._craft, "Watch", None)
        self._watch = own(table, self._note) if own else Moves(table, self._note, game_or_dubito(game), self._craft)
        self._decisions = [0] * len(table.players)

    def step(self) -> Any:
        """Make the game go on by one output, and return it."""
        return self._watch.step()

    def _note(self, position: Any) -> None:
        """Record a question that is asked now."""
        hands, board, dishonest = self._craft.truth(self._table.game)
        seat, origin = position.seat, self._origin
        source = Source(origin.run, origin.seed, origin.deal, origin.game, seat, self._decisions[seat])
        self._decisions[seat] += 1
        hidden = Hidden(tuple(tuple(sorted(hand)) for hand in hands), tuple(board), dishonest, source)
        self.recorded.append(Recorded(position, hidden, self._game))


class Moves:
    """Plays a game in which every move is one node's answer, and tells of every question when it is asked."""

    def __init__(self, table: Table, asked: Callable[[Any], None], game: Spec, craft: Craft) -> None:
        """Watch a table whose game has not begun."""
        self._table, self._told = table, asked
        seats, streams = range(len(table.players)), DealStreams(0, 0)
        self._cards = [table.game.cards(seat, streams.seat(seat)) for seat in seats]  # to look at: nothing is drawn
        self._notebooks = [game.facts.Notebook(seat, craft.rules_of(table.game)) for seat in seats]
        self._tell([table.game.start])

    def step(self) -> Any:
        """Make one move."""
        game = self._table.game
        seat, view = game.seat, game.view()
        node = view.node
        notebook = self._notebooks[seat]
        self._told(notebook.position(node, view, self._cards[seat]))
        output, events = step(self._table, announce=True)
        notebook.answered(node, output)
        self._tell(events)
        return output

    def _tell(self, events: Sequence[GameEvent]) -> None:
        for notebook, cards in zip(self._notebooks, self._cards, strict=True):
            for event in events:
                notebook.observe(event, cards)
