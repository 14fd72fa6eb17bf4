"""One of OpenSpiel's games between two moves. Chance is the stream that dealt it (O3); the rules are the engine's.

Where several seats move at once, they are asked in turn, and nobody sees a move before all are made (O3).
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from random import Random
from typing import Any, Final, Literal

from dubito.errors import IllegalOutput, RunStopped, one_line
from dubito.game import Ending, GameEvent
from dubito.game.streams import SeatStreams
from dubito.games.openspiel.engine import range_of
from dubito.games.openspiel.events import DealEvent, SeenEvent
from dubito.games.openspiel.sight import Entry, Sight, Step, apply_step, names_at

NODE: Final = "act"
GAME_COUNTS: Final = ("moves",)
SEAT_COUNTS: Final = ("moves", "units")  # the second is the return, in units above the least that there is
_FINEST, _MOST = 1000, 1 << 31
_SHOWN: Final = 60  # names in a sentence
_NOTHING: Final[tuple[GameEvent, ...]] = ()


def units_of(engine: Any) -> int:
    """How many units a return of 1 has: returns are kept to a thousandth, or coarser where the range is that large."""
    (least, most), unit = range_of(engine), _FINEST
    while unit > 1 and (most - least) * unit >= _MOST:
        unit //= 10
    return unit


class Game:
    """The state of a game. Read its attributes freely; change it only through `apply`."""

    def __init__(self, engine: Any, rng: Random) -> None:
        """`engine` is OpenSpiel's game; `rng` draws whatever is left to chance."""
        self._begin(engine, rng)
        self._chance()

    def _begin(self, engine: Any, rng: Random) -> None:
        self.engine = engine
        self.state = engine.new_initial_state()
        self.steps: list[Step] = []  # what was applied, chance too
        self.turns_played = 0
        self.moves = [0] * engine.num_players()
        self._rng = rng
        self._at_once: dict[int, int] = {}  # the actions of a node at which all move, of those who were asked
        self._sights = [Sight(engine, seat) for seat in range(engine.num_players())]
        self._told = [0] * engine.num_players()  # how many entries each seat was told
        self._view: View | None = None

    @classmethod
    def at(cls, engine: Any, steps: Sequence[Step]) -> "Game":
        """The game after these steps, chance among them; more of it is not drawn, so that the last leads to a move."""
        game = cls.__new__(cls)
        game._begin(engine, Random(0))
        for step in steps:
            apply_step(game.state, step)
            game.steps.append(step)
        return game

    @property
    def seat(self) -> int:
        """Whose move it is."""
        if self.state.is_simultaneous_node():
            return next(seat for seat in self._movers() if seat not in self._at_once)
        return int(self.state.current_player())

    @property
    def asked_first(self) -> int:
        """Who is asked first where several move at once; else whose move it is."""
        return self._movers()[0] if self.state.is_simultaneous_node() else self.seat

    @property
    def over(self) -> bool:
        """Whether the game is finished."""
        return bool(self.state.is_terminal())

    @property
    def start(self) -> GameEvent:
        """The deal, whatever there is to it."""
        return DealEvent(len(self.moves))

    def view(self) -> "View":
        """What the seat to move sees."""
        if self._view is None:
            self._view = View(self, -1 if self.over else self.seat)
        return self._view

    def cards(self, seat: int, streams: SeatStreams) -> "Look":
        """What a seat sees, for its bot."""
        return Look(self, seat)

    def apply(self, output: Any, announce: bool = True) -> Sequence[GameEvent]:
        """An action, by name; see `game.State.apply`."""
        view = self.view()
        if why := view.why_illegal(output):
            raise IllegalOutput(why)
        action = next(action for action, name in view.names.items() if name == output)
        seat, self._view = self.seat, None
        self.turns_played += 1
        self.moves[seat] += 1
        if not self.state.is_simultaneous_node():
            self._step(action)
        else:
            self._at_once[seat] = action
            if len(self._at_once) == len(self._movers()):
                self._step([self._at_once.get(seat, 0) for seat in range(len(self.moves))])
                self._at_once = {}
        return self._announce() if announce else _NOTHING

    def go(self, step: Step) -> Sequence[GameEvent]:
        """Make a step, chance or not, that was made before; what is observed of it, once chance has no more to draw."""
        apply_step(self.state, step)
        self.steps.append(step)
        return _NOTHING if self.state.is_chance_node() else self._announce()

    def copy_of(self, output: str) -> str:
        """The output itself, which nobody can change."""
        return output

    def sees(self, seat: int) -> str:
        """The engine's string of what a seat sees."""
        return self._sights[seat].text(self.state)

    def hand(self, seat: int) -> str | None:
        """The same in our words, if there are any for this game."""
        return self._sights[seat].hand(self.state)

    def history(self, seat: int) -> list[Entry]:
        """What a seat has observed so far."""
        return self._sights[seat].history(self.state, self.steps)

    def ending(self) -> Ending:
        """What each seat got: its return, in units above the least."""
        (least, highest), unit = range_of(self.engine), units_of(self.engine)
        marks = [round((gain - least) * unit) for gain in self.state.returns()]
        most = round((highest - least) * unit)
        for gain, mark in zip(self.state.returns(), marks, strict=True):
            if not 0 <= mark <= most:
                raise RunStopped(
                    f"{self.engine} has given a return of {gain}, outside of the range that it says itself, {least:g} "
                    f"to {highest:g}: no rate of it would be true, so play another game"
                )
        counts: list[tuple[int, ...]] = [(moves, mark) for moves, mark in zip(self.moves, marks, strict=True)]
        return Ending(False, (self.turns_played,), marks, counts)

    def _movers(self) -> list[int]:
        """Those who have a move where all move at once."""
        return [seat for seat in range(len(self.moves)) if self.state.legal_actions(seat)]

    def _step(self, step: Step) -> None:
        apply_step(self.state, step)
        self.steps.append(step)
        self._chance()

    def _chance(self) -> None:
        """Draw what is left to chance, and pass over a node at which nobody can move."""
        state = self.state
        while not state.is_terminal():
            if state.is_chance_node():
                step: Step = self._drawn(state.chance_outcomes())
            elif state.is_simultaneous_node() and not self._movers():
                step = [0] * len(self.moves)
            else:
                return
            apply_step(state, step)
            self.steps.append(step)

    def _drawn(self, outcomes: Sequence[tuple[int, float]]) -> int:
        point = self._rng.random()
        for action, chance in outcomes:
            point -= chance
            if point < 0:
                return action
        return outcomes[-1][0]

    def _announce(self) -> list[GameEvent]:
        events: list[GameEvent] = []
        for seat in range(len(self.moves)):
            entries = self.history(seat)
            if new := tuple(entries[self._told[seat] :]):
                events.append(SeenEvent(new, only=seat))
                self._told[seat] = len(entries)
        return events


class Look:
    """What one seat sees, at any time: its bot's `self.cards`."""

    def __init__(self, game: Game, seat: int) -> None:
        self._game, self._seat = game, seat

    def __str__(self) -> str:
        """In our words, or as the engine has it."""
        hand = self._game.hand(self._seat)
        return self._game.sees(self._seat) if hand is None else hand

    @property
    def history(self) -> list[Entry]:
        """What the seat has observed so far."""
        return self._game.history(self._seat)


class View:
    """What the seat to move sees, read from the game when asked; valid until the move is made."""

    node: Literal["act"] = "act"

    def __init__(self, game: Game, seat: int) -> None:
        self._game, self.seat = game, seat

    @cached_property
    def names(self) -> Mapping[int, str]:
        """The legal actions: number -> name."""
        return names_at(self._game.state, self.seat)

    @property
    def legal(self) -> list[int]:
        """The numbers of the legal actions, ascending."""
        return list(self.names)

    @property
    def sees(self) -> str:
        """The engine's string: the information state where the game has one, else the observation (O2)."""
        return self._game.sees(self.seat)

    @property
    def hand(self) -> str | None:
        """What the seat holds, in words, where we have words for the game."""
        return self._game.hand(self.seat)

    @property
    def history(self) -> list[Entry]:
        """What the seat has observed so far."""
        return self._game.history(self.seat)

    @property
    def tensor(self) -> list[float]:
        """The same as numbers: the information state's where the game has them, else the observation's."""
        state, kind = self._game.state, self._game.engine.get_type()
        if kind.provides_information_state_tensor:
            return list(state.information_state_tensor(self.seat))
        return list(state.observation_tensor(self.seat))

    def look(self, seat: int, streams: SeatStreams) -> Look:
        """What a seat sees at any time, as its bot has it."""
        return self._game.cards(seat, streams)

    @property
    def game(self) -> str:
        """The game's name with its parameters, as OpenSpiel writes it."""
        return str(self._game.engine)

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Of the game, as OpenSpiel has them."""
        return dict(self._game.engine.get_parameters())

    def asked_of(self, bot: Any) -> int:
        """What one of the engine's own bots does here; raises TypeError for any other, since it is handed all."""
        if type(bot).__module__ != "pyspiel":
            raise TypeError("only the engine's own bots are handed the state, which holds what the seat cannot know")
        return int(bot.step(self._game.state))

    def why_illegal(self, output: Any) -> str | None:
        """Why this names no action here, in a sentence; None if it does. No code of the output runs."""
        if self._game.over:
            return "the game is over"
        if type(output) is str and output in self.names.values():
            return None
        legal = [*self.names.values()]
        more = f", and {len(legal) - _SHOWN:,} others" if len(legal) > _SHOWN else ""
        return f"an action here is one of {', '.join(legal[:_SHOWN])}{more}, and not {_shown(output)}"


def _shown(output: object) -> str:
    """An output in a sentence; what is none of the usual kinds only by its type, since no code of it may run."""
    if output is None or type(output) in (bool, float):
        return str(output)
    if type(output) is int and abs(output) < 10**9:
        return str(output)
    if type(output) is str:
        return repr(one_line(output, 60))
    return f"a value of type {type(output).__name__}"
