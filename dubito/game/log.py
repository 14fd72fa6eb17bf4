"""The log of a game: everything that happened, in order, and which seat saw what.

The engine reports each change of what anybody knows as an event. `GameEvent.only` names the seat that sees it (all,
one or no seat). `Log` holds all events; `Log.of(seat)` returns a `SeatLog` without those that the seat did not see. A
position consists of the rules, a node and the log of the seat that is asked. What a seat knows is computed by a fold:
an object with a method `see`, which gets the events one after another.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast, overload

from dubito.game.events import AnswerEvent, GameEvent, Listener

if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault

    R = TypeVarWithDefault("R", covariant=True, default=Any)  # rules
else:
    R = TypeVar("R")


class Fold(Protocol):
    """What a seat knows after some events."""

    def see(self, event: Any) -> None:
        """Process the next event. Raises LookupError or ValueError if it is impossible."""


F = TypeVar("F", bound=Fold)
T = TypeVar("T")


@dataclass(eq=False, slots=True)
class _Diary:
    """The events that one seat sees, which only grow, and the folds computed from them."""

    events: list[GameEvent] = field(default_factory=list)
    is_closed: bool = False  # the seat has left the game
    # rules, the fold, and how many events it has seen
    _folds: dict[object, tuple[object, Fold, int]] = field(default_factory=dict)

    def fold(self, make: Callable[[T, int], F], rules: T, seat: int, end: int) -> F:
        """Return the fold over the first `end` events, computed from the last one if possible."""
        given, last, seen = self._folds.get(make, (None, None, 0))
        if last is None or given is not rules or seen > end:
            known, seen = make(rules, seat), 0
        else:
            known = cast(F, last)
        for event in islice(self.events, seen, end):
            known.see(event)
        self._folds[make] = rules, known, end
        return known


class SeatLog(Sequence[GameEvent]):
    """What one seat saw, in order. It never changes, and nothing leads from it to what others saw."""

    __slots__ = ("_diary", "_end", "seat")

    def __init__(self, seat: int, events: Iterable[GameEvent] = ()) -> None:
        """Create a log of these events, all of which the seat saw."""
        self.seat, self._diary = seat, _Diary([*events])
        self._end = len(self._diary.events)

    @classmethod
    def _of_diary(cls, seat: int, diary: _Diary) -> "SeatLog":
        log = cls.__new__(cls)
        log.seat, log._diary, log._end = seat, diary, len(diary.events)
        return log

    def latest(self) -> "SeatLog":
        """Return the log with what the seat has seen since."""
        return SeatLog._of_diary(self.seat, self._diary)

    def with_answer(self, node: str, answer: object) -> "SeatLog":
        """Return another log, in which the seat has also given this answer."""
        return SeatLog(self.seat, [*self, AnswerEvent(node, answer, only=self.seat)])

    def fold(self, make: Callable[[T, int], F], rules: T) -> F:
        """Return `make(rules, seat)` after all events. It is only valid until the next call."""
        return self._diary.fold(make, rules, self.seat, self._end)

    def __len__(self) -> int:
        return self._end

    def __iter__(self) -> Iterator[GameEvent]:
        return islice(self._diary.events, self._end)

    @overload
    def __getitem__(self, place: int) -> GameEvent: ...
    @overload
    def __getitem__(self, place: slice) -> list[GameEvent]: ...
    def __getitem__(self, place: int | slice) -> GameEvent | list[GameEvent]:
        return self._diary.events[: self._end][place]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SeatLog) and self.seat == other.seat and [*self] == [*other]

    def __hash__(self) -> int:
        return hash((self.seat, self._end))

    def __repr__(self) -> str:
        return f"SeatLog({self.seat}, {[*self]})"


class Log:
    """All events of a game in order, the truth included."""

    def __init__(self, events: Iterable[GameEvent] = ()) -> None:
        self.events: list[GameEvent] = []
        self._diaries = dict[int, _Diary]()
        self.add(events)

    def add(self, events: Iterable[GameEvent]) -> None:
        for event in events:
            self.events.append(event)
            for seat, diary in self._diaries.items():
                _show(event, seat, diary)

    def of(self, seat: int) -> SeatLog:
        """Return what a seat has seen so far."""
        if seat not in self._diaries:
            diary = self._diaries[seat] = _Diary()
            for event in self.events:
                _show(event, seat, diary)
        return SeatLog._of_diary(seat, self._diaries[seat])


def _show(event: GameEvent, seat: int, diary: _Diary) -> None:
    if (event.only is None or event.only == seat) and not diary.is_closed:
        diary.events.append(event)
        diary.is_closed = event.leaves == seat


@dataclass(eq=False)
class AnswerNotes(Listener):
    """Adds a seat's answers to the log, in games whose turns can have several questions."""

    log: Log
    seat: int

    def note_answer(self, node: str, answer: object) -> None:
        self.log.add([AnswerEvent(node, answer, only=self.seat)])


@dataclass(frozen=True, slots=True)
class Position(Generic[R]):
    """A question, and everything that the seat has seen before it."""

    rules: R
    node: str
    log: SeatLog

    @property
    def seat(self) -> int:
        """The seat that is asked."""
        return self.log.seat

    def known(self, make: Callable[[R, int], F]) -> F:
        """Return `make(rules, seat)`, which has seen all events. It is only valid until the next call."""
        return self.log.fold(make, self.rules)
