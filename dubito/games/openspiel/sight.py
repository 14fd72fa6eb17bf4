"""What a seat sees of one of OpenSpiel's games: the actions by name, the engine's string, and what happened so far."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from dubito.games.openspiel.words import Words, words_for

Step = int | Sequence[int]  # what is applied to a state: an action, or those of all seats at once

LISTED: Final = 250  # names that a schema may list: more than that no provider takes at any length


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of what a seat has observed."""

    by: int | None  # whose move it was; None: chance's, or nobody's in particular
    text: str


class Sight:
    """One seat of one game: everything that it may know, in text."""

    def __init__(self, engine: Any, seat: int) -> None:
        """`engine` is OpenSpiel's game."""
        self._seat, self._words = seat, words_of(engine)
        self._log = None if self._words else _Log(engine, seat)

    def hand(self, state: Any) -> str | None:
        """What the seat holds and sees in words; None where only the engine has a string of it."""
        return self._words.holds(state, self._seat) if self._words else None

    def text(self, state: Any) -> str:
        """The engine's own string of what the seat sees."""
        return seen_by(state, self._seat)

    def history(self, state: Any, steps: Sequence[Step]) -> list[Entry]:
        """What the seat has observed; `steps` are what was applied to the state, chance too."""
        if self._log is not None:
            return self._log.after(steps)
        assert self._words is not None
        return [Entry(by, text) for by, text in self._words.history(state, self._seat)]


def seen_by(state: Any, seat: int) -> str:
    """The information state of a seat where the game has one, else what it observes (O2)."""
    if state.get_game().get_type().provides_information_state_string:
        return str(state.information_state_string(seat))
    return str(state.observation_string(seat))


def apply_step(state: Any, step: Step) -> None:
    """Make a step."""
    if isinstance(step, int):
        state.apply_action(step)
    else:
        state.apply_actions(step)


@dataclass(slots=True)
class _Log:
    """Own moves, and what is seen after each step where no information state tells it all."""

    engine: Any
    seat: int
    entries: list[Entry] = field(default_factory=list)
    _state: Any = None
    _done: int = 0
    _last: str = ""

    def after(self, steps: Sequence[Step]) -> list[Entry]:
        """The entries after these steps, of which those of before are the first."""
        if self._state is None:
            self._state = self.engine.new_initial_state()
        for step in steps[self._done :]:
            self._add(step)
        self._done = len(steps)
        return [*self.entries]

    def _add(self, step: Step) -> None:
        state, seat = self._state, self.seat
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
        seen = seen_by(state, seat)
        if seen != self._last:
            self._last = seen
            self.entries.append(Entry(None, f"You see:\n{seen.strip(chr(10))}"))


def names_at(state: Any, seat: int) -> Mapping[int, str]:
    """The legal actions of a seat by name, each name once."""
    words, legal = words_of(state.get_game()), state.legal_actions(seat)
    if words is not None:
        return {action: words.names[action] for action in legal}
    names = {action: _tidy(state.action_to_string(seat, action)) for action in legal}
    if len({*names.values()}) == len(names):
        return names
    return {action: f"{name} #{action}" for action, name in names.items()}


def all_names(engine: Any) -> tuple[str, ...] | None:
    """Every name that an action of any seat can have, in the order of the actions; None where there is no such list."""
    words, seats = words_of(engine), range(engine.num_players())
    if words is not None:
        return words.names
    if engine.num_distinct_actions() > LISTED:
        return None
    from dubito.games.openspiel.engine import quiet

    try:
        with quiet():
            found = [engine.action_to_string(seat, a) for a in range(engine.num_distinct_actions()) for seat in seats]
    except RuntimeError:  # SpielError: not each action is each seat's
        return None
    names = tuple(dict.fromkeys(map(_tidy, found)))
    return names if len(names) <= LISTED and not any(name.startswith("Action(id=") for name in names) else None


def words_of(engine: Any) -> Words | None:
    """Our own words for a game, if there are any."""
    return _words(str(engine))


@lru_cache(maxsize=256)
def _words(name: str) -> Words | None:
    from dubito.games.openspiel.engine import pyspiel

    return words_for(pyspiel().load_game(name))


def _tidy(name: str) -> str:
    """On one line, without what separates it from others, and without the sign that separates names in a prompt."""
    return " ".join(name.split()).strip(" ,;").replace("|", "/")
