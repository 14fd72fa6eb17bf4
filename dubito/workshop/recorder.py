"""Watching a game: every question that its players are asked becomes a recorded position."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dubito.game import GameEvent, Position, Spec
from dubito.game.table import Table, step
from dubito.workshop.parts import part
from dubito.workshop.recordings import Provenance, RecordedPosition


@dataclass(frozen=True, slots=True)
class Origin:
    """Which game it is."""

    run: str | None
    seed: int
    deal: int
    game: int


def recorded_positions(table: Table, origin: Origin, game: Spec, rules: Any) -> list[RecordedPosition]:
    """Play the game to its end and return the positions of all its questions, in their order."""
    watcher = Watcher(table, origin, game, rules)
    while not table.game.over:
        watcher.step()
    return watcher.recorded


class Watcher:
    """Plays a game at a table turn by turn; `recorded` are the positions of all questions so far."""

    def __init__(self, table: Table, origin: Origin, game: Spec, rules: Any) -> None:
        """Watch a table whose game has not begun; `rules` as the game's notebooks take them."""
        self.recorded: list[RecordedPosition] = []
        self._table, self._origin, self._game = table, origin, game
        self._asked = Counter[int]()
        self._hidden: Callable[[Any], Any] = part(game, "hidden", lambda state: None)
        questions = part(game, "Questions", None)
        self._questions = questions(table, rules, self._note) if questions else _Moves(table, rules, self._note, game)

    def step(self) -> Any:
        """Play one turn; its output."""
        return self._questions.step()

    def _note(self, seat: int, position: Position) -> None:
        """Record the question that a seat is asked now."""
        origin, number = self._origin, self._asked[seat]
        self._asked[seat] += 1
        source = Provenance(origin.run, origin.seed, origin.deal, origin.game, seat, number)
        self.recorded.append(RecordedPosition(self._game, position, source, self._hidden(self._table.game)))


class _Moves:
    """The questions of a game in which every move is one node's answer: one a move."""

    def __init__(self, table: Table, rules: Any, note: Callable[[int, Position], None], game: Spec) -> None:
        self._table, self._note = table, note
        self._notebooks = [game.facts.Notebook(seat, rules) for seat in range(len(table.players))]
        self._tell([table.game.start])

    def step(self) -> Any:
        game = self._table.game
        seat, view = game.seat, game.view()
        node, player, notebook = view.node, self._table.players[seat], self._notebooks[seat]
        if player is not None:
            self._note(seat, notebook.position(node, view, player.cards))
        output, events = step(self._table, announce=True)
        notebook.answered(node, output)
        self._tell(events)
        return output

    def _tell(self, events: Sequence[GameEvent]) -> None:
        for event in events:
            for seat, (notebook, player) in enumerate(zip(self._notebooks, self._table.players, strict=True)):
                if player is not None and event.only in (None, seat):
                    notebook.observe(event, player.cards)
