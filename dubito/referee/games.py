"""The games of a tournament: any of OpenSpiel's for two in which a seat sees a tensor, found by name at run time."""

import re
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

from dubito.errors import UsageError, one_line
from dubito.games.openspiel.engine import load as load_openspiel
from dubito.games.openspiel.engine import pyspiel

SEATS: Final = 2


def load(name: str) -> Any:
    """The game of that name, for two; raises UsageError for what no tournament can be held in."""
    _register_ours(name)
    game = load_openspiel(name)
    shown = one_line(name, 80)
    if game.num_players() != SEATS:
        said = f"{shown} is a game for {game.num_players()}: a tournament is held in games for two"
        raise UsageError(said + _for_two(name.partition("(")[0]))
    try:
        size = observation(game).tensor.size
    except Exception:  # the engine raises whatever it likes
        size = 0
    if not size:
        raise UsageError(f"{shown} has no observation tensor, which is what bots are sent: choose another game")
    return game


def _for_two(name: str) -> str:
    """What to write for the same game with two players, if it can be played so."""
    with suppress(UsageError):
        return f": write {name}(players=2)" if load_openspiel(f"{name}(players=2)").num_players() == SEATS else ""
    return ""


def observation(game: Any, kind: Any = None) -> Any:
    """OpenSpiel's observation of a game: the default one, or that of a kind."""
    make: Any = import_module("open_spiel.python.observation").make_observation
    return make(game, kind)


def short_names(names: Sequence[str]) -> list[str]:
    """What games are called where there is little room: without their parameters, if no two are the same then."""
    short = [re.split(r"[(\[]", name)[0] for name in names]
    return [ours if short.count(ours) == 1 else name for ours, name in zip(short, names, strict=True)]


def folder_name(name: str) -> str:
    """What the folder of a game's files is called; of long or odd names, a digest keeps them apart."""
    safe = re.sub(r"[^\w.-]+", "_", name)[:60]
    return safe if safe == name else f"{safe}-{sha256(name.encode()).hexdigest()[:8]}"


def _register_ours(name: str) -> None:
    """Have our own games registered with OpenSpiel, if this is one that it does not know by itself."""
    if name.partition("(")[0] not in pyspiel().registered_names() and find_spec("dubito.openspiel"):
        import_module("dubito.openspiel")
