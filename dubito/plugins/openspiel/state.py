"""The state of an OpenSpiel game, and what a seat sees of it: in words, as the engine's string, and as events.

Chance draws come from the stream that dealt the game. The engine applies the rules. If several seats move at once, they
are asked in turn, and no seat sees a move until all are made (O3).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from random import Random
from typing import Final, Literal

from dubito.errors import IllegalOutput, RunStopped, describe_value, one_line
from dubito.game import Ending, GameEvent
from dubito.game.events import ANNOUNCED, NOBODY
from dubito.game.streams import SeatStreams
from dubito.plugins.openspiel.engine import return_range
from dubito.plugins.openspiel.engine_types import Engine, EngineBot, EngineState, Parameters
from dubito.plugins.openspiel.known_games import OwnWords, find_words

Step = int | Sequence[int]  # one action, or the actions of all seats at once

MAX_NAMES: Final = 250  # names in a schema; no provider accepts more


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of what a seat has observed."""

    by: int | None  # the moving seat; None for chance or no seat
    text: str


class Sight:
    """Everything that a seat can know, as text."""

    def __init__(self, engine: Engine, seat: int) -> None:
        self._seat, self._words = seat, own_words(engine)
        self._log = None if self._words else _Log(engine, seat)

    def hand(self, state: EngineState) -> str | None:
        return self._words.describe_hand(state, self._seat) if self._words else None

    def text(self, state: EngineState) -> str:
        return observation_text(state, self._seat)

    def history(self, state: EngineState, steps: Sequence[Step]) -> list[Entry]:
        """Return what the seat has observed. `steps` are all steps so far, including chance."""
        if self._log is not None:
            return self._log.entries_after(steps)
        assert self._words is not None
        return [Entry(by, text) for by, text in self._words.history(state, self._seat)]


def observation_text(state: EngineState, seat: int) -> str:
    if state.get_game().get_type().provides_information_state_string:
        return str(state.information_state_string(seat))
    return str(state.observation_string(seat))


def apply_step(state: EngineState, step: Step) -> None:
    if isinstance(step, int):
        state.apply_action(step)
    else:
        state.apply_actions(step)


@dataclass(slots=True)
class _Log:
    """A seat's own moves, and its observations after each step if the game has no information state string."""

    engine: Engine
    seat: int
    entries: list[Entry] = field(default_factory=list)
    _state: EngineState | None = None
    _done: int = 0
    _last: str = ""

    def entries_after(self, steps: Sequence[Step]) -> list[Entry]:
        """Return all entries after these steps."""
        if self._state is None:
            self._state = self.engine.new_initial_state()
        for step in steps[self._done :]:
            self._add(self._state, step)
        self._done = len(steps)
        return [*self.entries]

    def _add(self, state: EngineState, step: Step) -> None:
        seat = self.seat
        joint = not isinstance(step, int)
        if joint or state.current_player() == seat:
            action = step[seat] if not isinstance(step, int) else step
            if state.legal_actions(seat):
                self.entries.append(Entry(seat, f"You: {names_at(state, seat)[action]}"))
        apply_step(state, step)
        if state.get_game().get_type().provides_information_state_string or state.is_chance_node():
            return
        if state.is_terminal():
            return
        seen = observation_text(state, seat)
        if seen != self._last:
            self._last = seen
            self.entries.append(Entry(None, f"You see:\n{seen.strip(chr(10))}"))


def names_at(state: EngineState, seat: int) -> Mapping[int, str]:
    """Return the legal actions of a seat with unique names."""
    words, legal = own_words(state.get_game()), state.legal_actions(seat)
    if words is not None:
        return {action: words.names[action] for action in legal}
    names = {action: _clean_name(state.action_to_string(seat, action)) for action in legal}
    if len({*names.values()}) == len(names):
        return names
    return {action: f"{name} #{action}" for action, name in names.items()}


def all_names(engine: Engine) -> tuple[str, ...] | None:
    """Return the names of all actions of all seats in order, or None if the engine has no list."""
    words, seats = own_words(engine), range(engine.num_players())
    if words is not None:
        return words.names
    if engine.num_distinct_actions() > MAX_NAMES:
        return None
    from dubito.plugins.openspiel.engine import silence_stderr

    try:
        with silence_stderr():
            texts = [engine.action_to_string(seat, a) for a in range(engine.num_distinct_actions()) for seat in seats]
    except RuntimeError:  # SpielError, because some actions belong to only one seat
        return None
    names = tuple(dict.fromkeys(map(_clean_name, texts)))
    return names if len(names) <= MAX_NAMES and not any(name.startswith("Action(id=") for name in names) else None


def own_words(engine: Engine) -> OwnWords | None:
    return _words(str(engine))


@lru_cache(maxsize=256)
def _words(name: str) -> OwnWords | None:
    from dubito.plugins.openspiel.engine import pyspiel

    return find_words(pyspiel().load_game(name))


def _clean_name(name: str) -> str:
    return " ".join(name.split()).strip(" ,;").replace("|", "/")


@dataclass(frozen=True, slots=True)
class DealEvent(GameEvent):
    seats: int


@dataclass(frozen=True, slots=True)
class SeenEvent(GameEvent):
    """New observations of one seat."""

    entries: tuple[Entry, ...]
    only: int | None = None


@dataclass(frozen=True, slots=True)
class SightEvent(GameEvent):
    """What the seat to move sees. `entries` are those that it has not received yet."""

    silent = True

    entries: tuple[Entry, ...]
    hand: str | None  # what the seat holds and sees, in our words; None if the game has none
    sees: str  # the same in the engine's notation
    legal: tuple[str, ...]  # actions by name
    only: int | None = None


@dataclass(frozen=True, slots=True)
class StepEvent(GameEvent):
    """A step in the engine's numbers, by a seat, by chance, or by all seats at once. No seat sees it."""

    silent = True

    action: int | tuple[int, ...]
    only: int | None = NOBODY


EVENTS: Final = (DealEvent, SeenEvent, SightEvent, StepEvent)
NODE: Final = "act"
GAME_COUNTS: Final = ("moves",)
SEAT_COUNTS: Final = ("moves", "units")  # the second is the return, in units above the lowest possible
_FINEST, _MOST = 1000, 1 << 31
_MAX_SHOWN: Final = 60  # names in a sentence


def return_units(engine: Engine) -> int:
    """Return the units per return of 1. Returns are stored with a precision of 0.001, or less for large ranges."""
    (least, most), unit = return_range(engine), _FINEST
    while unit > 1 and (most - least) * unit >= _MOST:
        unit //= 10
    return unit


class State:
    """The state of a game. Read its attributes freely; change it only through `apply`."""

    def __init__(self, engine: Engine, rng: Random) -> None:
        self._begin(engine, rng)
        self._chance()

    def _begin(self, engine: Engine, rng: Random) -> None:
        self.engine = engine
        self.state = engine.new_initial_state()
        self.steps: list[Step] = []  # all applied steps, including chance
        self.turns_played = 0
        self.moves = [0] * engine.num_players()
        self._rng = rng
        self._at_once: dict[int, int] = {}  # actions chosen so far at a node where all move
        self._sights = [Sight(engine, seat) for seat in range(engine.num_players())]
        self._told = [0] * engine.num_players()  # number of entries that each seat has received
        self._view: View | None = None

    @classmethod
    def after_steps(cls, engine: Engine, steps: Sequence[Step]) -> "State":
        """Return the game after these steps, including chance. The last step must lead to a move."""
        new = cls.__new__(cls)
        new._begin(engine, Random(0))
        for step in steps:
            apply_step(new.state, step)
            new.steps.append(step)
        return new

    @property
    def seat(self) -> int:
        if self.state.is_simultaneous_node():
            return next(seat for seat in self._movers() if seat not in self._at_once)
        return int(self.state.current_player())

    @property
    def first_to_move(self) -> int:
        return self._movers()[0] if self.state.is_simultaneous_node() else self.seat

    @property
    def over(self) -> bool:
        return bool(self.state.is_terminal())

    @property
    def start(self) -> Sequence[GameEvent]:
        return [DealEvent(len(self.moves)), *self._log_events(0)]

    def view(self) -> "View":
        if self._view is None:
            self._view = View(self, -1 if self.over else self.seat)
        return self._view

    def cards(self, seat: int, streams: SeatStreams) -> "SeatView":
        return SeatView(self, seat)

    def apply(self, output: object, announce: int = ANNOUNCED) -> Sequence[GameEvent]:
        """Apply an action by name (see `dubito.game.State`)."""
        view = self.view()
        if why := view.why_illegal(output):
            raise IllegalOutput(why)
        action = next(action for action, name in view.names.items() if name == output)
        seat, self._view, before = self.seat, None, len(self.steps)
        self.turns_played += 1
        self.moves[seat] += 1
        if not self.state.is_simultaneous_node():
            self._step(action)
        else:
            self._at_once[seat] = action
            if len(self._at_once) == len(self._movers()):
                self._step([self._at_once.get(seat, 0) for seat in range(len(self.moves))])
                self._at_once = {}
        if announce <= ANNOUNCED:
            return self._announce() if announce else ()
        return [*self._announce(), *self._log_events(before)]

    def take_step(self, step: Step) -> Sequence[GameEvent]:
        apply_step(self.state, step)
        self.steps.append(step)
        return () if self.state.is_chance_node() else self._announce()

    def describe_view(self, seat: int) -> str:
        return self._sights[seat].text(self.state)

    def hand(self, seat: int) -> str | None:
        return self._sights[seat].hand(self.state)

    def history(self, seat: int) -> list[Entry]:
        return self._sights[seat].history(self.state, self.steps)

    def ending(self) -> Ending:
        """Return each seat's return, in units above the lowest."""
        (least, highest), unit = return_range(self.engine), return_units(self.engine)
        marks = [round((gain - least) * unit) for gain in self.state.returns()]
        most = round((highest - least) * unit)
        for gain, mark in zip(self.state.returns(), marks, strict=True):
            if not 0 <= mark <= most:
                raise RunStopped(
                    f"{self.engine} returned {gain}, but claims a range from {least:g} to {highest:g}: results would "
                    "be wrong, so play another game"
                )
        counts: list[tuple[int, ...]] = [(moves, mark) for moves, mark in zip(self.moves, marks, strict=True)]
        return Ending(False, (self.turns_played,), marks, counts)

    def _movers(self) -> list[int]:
        return [seat for seat in range(len(self.moves)) if self.state.legal_actions(seat)]

    def _step(self, step: Step) -> None:
        apply_step(self.state, step)
        self.steps.append(step)
        self._chance()

    def _chance(self) -> None:
        """Draw outcomes of chance, and skip nodes without legal moves."""
        state = self.state
        while not state.is_terminal():
            if state.is_chance_node():
                step: Step = self._drawn_outcome(state.chance_outcomes())
            elif state.is_simultaneous_node() and not self._movers():
                step = [0] * len(self.moves)
            else:
                return
            apply_step(state, step)
            self.steps.append(step)

    def _drawn_outcome(self, outcomes: Sequence[tuple[int, float]]) -> int:
        point = self._rng.random()
        for action, chance in outcomes:
            point -= chance
            if point < 0:
                return action
        return outcomes[-1][0]

    def _log_events(self, before: int) -> Iterator[GameEvent]:
        """Yield the silent events: steps after the first ones, and what the seat to move sees."""
        for step in self.steps[before:]:
            yield StepEvent(step if isinstance(step, int) else tuple(step))
        if not (self.over or self.state.is_chance_node()):
            yield View(self, self.seat).sight

    def unreported(self, seat: int) -> tuple[Entry, ...]:
        """Return what a seat has observed since its last event."""
        return tuple(self.history(seat)[self._told[seat] :])

    def _announce(self) -> list[GameEvent]:
        events: list[GameEvent] = []
        for seat in range(len(self.moves)):
            if new := self.unreported(seat):
                events.append(SeenEvent(new, only=seat))
                self._told[seat] += len(new)
        return events


class SeatView:
    """A bot's live view of what its seat sees. Bots get it as `self.cards`."""

    def __init__(self, state: State, seat: int) -> None:
        self._state, self._seat = state, seat

    def __str__(self) -> str:
        hand = self._state.hand(self._seat)
        return self._state.describe_view(self._seat) if hand is None else hand

    @property
    def history(self) -> list[Entry]:
        return self._state.history(self._seat)


class View:
    """The view of the seat to move, computed on access and valid until the move is made."""

    node: Literal["act"] = "act"

    def __init__(self, state: State, seat: int) -> None:
        self._state, self.seat = state, seat

    @cached_property
    def names(self) -> Mapping[int, str]:
        return names_at(self._state.state, self.seat)

    @property
    def legal(self) -> list[int]:
        return list(self.names)

    @property
    def sees(self) -> str:
        return self._state.describe_view(self.seat)

    @property
    def hand(self) -> str | None:
        return self._state.hand(self.seat)

    @property
    def history(self) -> list[Entry]:
        return self._state.history(self.seat)

    @property
    def sight(self) -> SightEvent:
        unreported, legal = self._state.unreported(self.seat), tuple(self.names.values())
        return SightEvent(unreported, self.hand, self.sees.strip("\n"), legal, only=self.seat)

    @property
    def tensor(self) -> list[float]:
        """Return the information state as numbers or, if there is none, the observation."""
        state, kind = self._state.state, self._state.engine.get_type()
        if kind.provides_information_state_tensor:
            return list(state.information_state_tensor(self.seat))
        return list(state.observation_tensor(self.seat))

    def look(self, seat: int, streams: SeatStreams) -> SeatView:
        return self._state.cards(seat, streams)

    @property
    def game(self) -> str:
        return str(self._state.engine)

    @property
    def parameters(self) -> Parameters:
        return dict(self._state.engine.get_parameters())

    def asked_of(self, bot: EngineBot) -> int:
        if type(bot).__module__ != "pyspiel":
            raise TypeError("only the engine's own bots receive the state, because it contains hidden information")
        return int(bot.step(self._state.state))

    def why_illegal(self, output: object) -> str | None:
        """Return why this is not a legal action, or None if it is. Does not run the output's code."""
        if self._state.over:
            return "the game is over"
        if type(output) is str and output in self.names.values():
            return None
        legal = [*self.names.values()]
        move = repr(one_line(output, 60)) if type(output) is str else describe_value(output)
        more = f", and {len(legal) - _MAX_SHOWN:,} others" if len(legal) > _MAX_SHOWN else ""
        return f"an action here is one of {', '.join(legal[:_MAX_SHOWN])}{more}, not {move}"
