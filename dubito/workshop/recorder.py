"""Watching a game: every question that its players are asked becomes a recorded position.

A player is watched if it answers the nodes A-E one by one, whether it is a model or written by hand.
"""

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from dubito.facts import OwnPlay, Position
from dubito.game_data import CardsPlayedEvent, Event, GameStartEvent, TurnData, TurnOutput
from dubito.handlers import Table, step
from dubito.player import NODES, FiveNodes
from dubito.workshop.recorded import Hidden, Recorded, Source, last_play_is_dishonest

_WALK: Final = FiveNodes.play.__code__


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
        counts = tuple(len(hand.cards) for hand in table.game.hands)
        self._events: list[Event] = [GameStartEvent(tuple(range(len(counts))), counts)]
        self._own_plays: list[list[OwnPlay]] = [[] for _ in counts]
        self._decisions = Counter[int]()
        self._answers: dict[str, bool] = {}
        for seat, player in enumerate(table.players):
            if isinstance(player, FiveNodes):
                for node, method in NODES.items():
                    setattr(player, method, self._noting(seat, node, getattr(player, method)))

    def step(self) -> TurnOutput:
        """Play one turn."""
        seat = self._table.game.seat
        self._answers = {}
        output, events = step(self._table, announce=True)
        first = events[0]
        if isinstance(first, CardsPlayedEvent):
            self._own_plays[seat].append(OwnPlay(first.declared_number, tuple(output.cards or ())))
        self._events += events
        return output

    def _noting(self, seat: int, node: str, ask: Callable[[TurnData], bool]) -> Callable[[TurnData], bool]:
        """The same node; the walk's question is noted, not those that a bot asks itself on its way."""

        def noted(p: TurnData) -> bool:
            if sys._getframe(1).f_code is not _WALK:
                return ask(p)
            self._note(seat, node)
            self._answers[node] = answer = ask(p)
            return answer

        return noted

    def _note(self, seat: int, node: str) -> None:
        game, origin = self._table.game, self._origin
        hands = tuple(tuple(sorted(hand.cards)) for hand in game.hands)
        events, plays = tuple(self._events), tuple(self._own_plays[seat])
        answers = dict(self._answers)
        position = Position(game.rules, seat, node, hands[seat], game.turn_data(), events, plays, answers)
        board = tuple(game.board)
        dishonest = last_play_is_dishonest(board, game.n_cards_played, game.number)
        source = Source(origin.run, origin.seed, origin.deal, origin.game, seat, self._decisions[seat])
        self._decisions[seat] += 1
        self.recorded.append(Recorded(position, Hidden(hands, board, dishonest, source)))
