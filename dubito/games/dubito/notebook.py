"""What one seat has seen, played and answered so far: all that a position is made of, beside hand and turn data."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import BaseModel

from dubito.games.dubito.game_data import CardsPlayedEvent, Event, TurnData
from dubito.games.dubito.knowledge import Position, facts
from dubito.games.dubito.memory import Memory, OwnPlay
from dubito.games.dubito.player import Listener
from dubito.games.dubito.rules import Rules


class Notebook(Listener):
    """Kept for one seat in one game, by its player or by somebody who watches."""

    def __init__(self, seat: int, rules: Rules | BaseModel) -> None:
        """`rules` as the engine has them, or as a config says them."""
        self.events: list[Event] = []
        self.own_plays: list[OwnPlay] = []
        self._memory = Memory(seat)
        self._last: Position | None = None  # the one that the memory is of
        self._seat = seat
        self._rules = rules if isinstance(rules, Rules) else Rules(**rules.model_dump())
        self._answers: dict[str, bool] = {}
        self._held = Counter[int]()  # the hand as the turn began

    def turn_begins(self, hand: Iterable[int]) -> None:
        """The seat is to move, with this hand."""
        self._answers = {}
        self._held = Counter(hand)

    def answered(self, node: str, answer: bool) -> None:
        """A node of this turn was answered."""
        self._answers[node] = answer

    def observe(self, event: Event, hand: Iterable[int], played: Sequence[int] | None = None) -> None:
        """The table saw this; `hand` is the seat's now, `played` the cards of an own play where they are known.

        Else they are those that the hand has lost: a substitute may have chosen them (R13).
        """
        self.events.append(event)
        own_play = None
        if isinstance(event, CardsPlayedEvent) and event.player_id == self._seat:
            gone = sorted((self._held - Counter(hand)).elements()) if played is None else played
            own_play = OwnPlay(event.declared_number, tuple(gone))
            self.own_plays.append(own_play)
        self._memory.watch(event, own_play)
        self._last = None

    def position(self, node: str, turn: TurnData, hand: Iterable[int]) -> Position:
        """The question that the seat is asked now."""
        events, own_plays = tuple(self.events), tuple(self.own_plays)
        self._last = Position(
            self._rules, self._seat, node, tuple(sorted(hand)), turn, events, own_plays, dict(self._answers)
        )
        return self._last

    def facts(self, position: Position) -> dict[str, Any]:
        """The facts of a position; fastest for the one it gave last."""
        return facts(position, self._memory if position is self._last else None)
