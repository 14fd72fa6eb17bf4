"""Check that only a game's own moves change it, and not other games or bots with access to its data."""

import sys
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields, is_dataclass
from typing import Final

from dubito.game import GameEvent, State
from dubito.game.streams import DealStreams
from dubito.game.table import copy_output, step
from dubito.hooks import Flaw
from dubito.plugins.gamecheck.plain_data import (
    difference,
    extract_path,
    find_file,
    find_line,
    public_attributes,
    stored_attributes,
    to_plain,
)
from dubito.plugins.gamecheck.subject import MAX_MOVES, Subject

_MOVES_CHECKED: Final = 8  # minimum number per game
_MAX_DEPTH: Final = 4
_CONTAINERS: Final = (list, dict, set, bytearray, deque)


def _can_change(value: object) -> bool:
    """Return whether this is a container that can be changed. Subclasses that cannot be changed have a hash."""
    return isinstance(value, _CONTAINERS) and type(value).__hash__ is None


def check_shared_data(subject: Subject) -> Iterator[Flaw]:
    """Deal a game and play another, which must not change the first."""
    if not subject.registry.hand_written():
        return
    for deal, seats in subject.deals[:: len(subject.deals) // len({*subject.game.seats})]:
        waiting, outputs = subject.state(deal, seats), list[object]()
        before, constants = to_plain(waiting, private=True), _globals(subject)
        table = subject.table(deal, seats)
        with suppress(Exception):  # another probe, which plays whole games, reports failures
            while not table.state.over and len(outputs) < MAX_MOVES:
                outputs.append(step(table, announce=True)[0])
        changed = difference(before, to_plain(waiting, private=True))
        file, what = find_file(subject, waiting, subject.main), "one game changes another's"
        if not changed and (changed := difference(constants, _globals(subject))):
            path, _, changed = changed.partition(".py.")
            file, what = subject.shown(f"{path}.py"), "all games share"
        if changed and _ends_differently(waiting, table.state, outputs):
            line = find_line(subject, file, extract_path(changed), waiting)
            yield Flaw(file, f"{what} {changed}; make a new one for each game{line}")
            return


def _globals(subject: Subject) -> dict[str, dict[str, object]]:
    """Return the lists, dicts and sets of the game's modules, by file and name."""
    modules = [module for name, module in [*sys.modules.items()] if f"{name}.".startswith(f"{subject.game.package}.")]
    named = [(f"{module.__file__}", *each) for module in modules for each in vars(module).items()]
    found: dict[str, dict[str, object]] = {file: {} for file, *_ in named if file.endswith(".py")}
    for file, name, value in named:
        if file in found and isinstance(value, _CONTAINERS) and not name.startswith("__"):
            found[file][name] = to_plain(value)
    return found


def _ends_differently(waiting: State, played: State, outputs: list[object]) -> bool:
    try:
        end = played.over, played.turns_played, to_plain(played.ending())
        for output in outputs:
            waiting.apply(output)
        return end != (waiting.over, waiting.turns_played, to_plain(waiting.ending()))
    except Exception:  # foreign code
        return True


def check_handed_out(subject: Subject) -> Iterator[Flaw]:
    """Yield each list, dict or set of the state that a bot receives and could change."""
    reported = set[str]()
    for deal, seats in subject.deals[::3]:
        state, outputs = subject.state(deal, seats), subject.outputs[deal, seats]
        apart = max(1, len(outputs) // _MOVES_CHECKED)
        for flaw in _check_game(subject, state, seats, outputs, apart):
            if (fact := flaw.sentence.partition(" ")[0]) not in reported:
                reported.add(fact)
                yield flaw


def _check_game(subject: Subject, state: State, seats: int, outputs: list[object], apart: int) -> Iterator[Flaw]:
    for event in state.start:
        yield from _find_owned(subject, state, "start", event)
    for place, output in enumerate(outputs):
        if place % apart == 0:
            view = state.view()
            for seat in range(seats):
                yield from _find_owned(subject, state, "cards()", state.cards(seat, DealStreams(0, 0).seat(seat)))
            yield from _find_owned(subject, state, "view()", view)
            if not subject.game.has_walk:
                yield from _find_owned(subject, state, "view().legal()", subject.game.legal(view))
        copy = copy_output(state, output)
        events = state.apply(copy)
        if place % apart == 0:
            own = {id(each) for _, each in _containers(state, private=True)}
            if _can_change(copy) and id(copy) in own:
                yield Flaw(subject.main, "apply() keeps the output itself, which its bot may change later; keep a copy")
            for event in events:
                yield from _find_owned(subject, state, type(event).__name__, event)
                yield from _find_mutable_fields(subject, event)
    yield from _find_owned(subject, state, "ending()", state.ending())


def _find_owned(subject: Subject, state: State, what: str, value: object) -> Iterator[Flaw]:
    """Yield containers of the state that are reachable from the public attributes of a returned value."""
    owned = sorted(_containers(state, private=True), key=lambda each: -len(each[0]))
    own = {id(each): path for path, each in owned}
    for path, each in _containers(value, private=False):
        if id(each) in own:
            file = find_file(subject, value, subject.main)
            name = path.rpartition(".")[2] or own[id(each)].rpartition(".")[2] or what
            line = find_line(subject, file, name, value)
            of_state = f"the state's own {own[id(each)].lstrip('.')}"
            yield Flaw(file, f"{what}{path} is {of_state}, which a bot could change; return a copy{line}")


def _containers(value: object, private: bool, path: str = "", depth: int = _MAX_DEPTH) -> list[tuple[str, object]]:
    """Return the lists, dicts and sets that can be reached from a value, with their paths."""
    containers = [(path, value)] if _can_change(value) else []
    if depth == 0 or value is None or isinstance(value, bool | int | float | str | bytes | type | range):
        return containers
    if isinstance(value, dict):
        inner = [(path, each) for each in value.values()]
    elif isinstance(value, list | tuple | deque):
        inner = [(path, each) for each in value]
    else:
        attributes = stored_attributes(value) if private else public_attributes(value)
        inner = [(f"{path}.{name}", each) for name, each in attributes.items()]
    for place, each in inner:
        containers += _containers(each, private, place, depth - 1)
    return containers


def _find_mutable_fields(subject: Subject, event: GameEvent) -> Iterator[Flaw]:
    values: dict[str, object] = (
        {each.name: getattr(event, each.name) for each in fields(event)} if is_dataclass(event) else {}
    )
    for field, value in values.items():
        if _can_change(value):
            kind, name = type(value).__name__, type(event).__name__
            file = find_file(subject, event, subject.main)
            what = f"{name}.{field} is a {kind}, which one observer could change for all; use a tuple"
            yield Flaw(file, f"{what}{find_line(subject, file, name)}")
