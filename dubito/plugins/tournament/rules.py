"""The announcement's figures, the games that a tournament can be held in, and what is written to bots.

Games are any of OpenSpiel's for two in which a seat sees a tensor, found by name at run time. The protocols are the
announcement's (`v1`) and that of the referee written later (`v2`).
"""

import re
from binascii import b2a_base64
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final, Literal

from dubito.errors import UsageError, listed, one_line
from dubito.plugins.openspiel.engine import load as load_openspiel
from dubito.plugins.openspiel.engine import pyspiel

StrikeKind = Literal["illegal", "ponder", "overrun", "crash"]
LAST: tuple[StrikeKind, ...] = ("overrun", "crash")  # one of these is enough, and counts to the 1 % that disqualify


@dataclass(frozen=True, slots=True)
class Limits:
    """All times in seconds."""

    move: float = 5.0
    prepare: float = 5.0  # after its start, before the clock of its first move
    chance: float = 0.2  # that each draw of chance takes; 0 is faster, and no longer the announcement's rule
    ponder: float = 0.2  # to say `ponder`, in dialect v2
    grace: float = 1.0  # to end by itself after the last line, and again after SIGTERM
    strikes: int = 3  # illegal actions, or lines out of turn, that shut a bot down


SEATS: Final = 2


def load(name: str) -> Any:
    """The game of that name, for two; raises UsageError for what no tournament can be held in."""
    if name.partition("(")[0] not in pyspiel().registered_names() and find_spec("dubito.plugins.openspiel.spiel"):
        import_module("dubito.plugins.openspiel.spiel")  # which registers our own games with OpenSpiel
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
    with suppress(UsageError):
        return f": write {name}(players=2)" if load_openspiel(f"{name}(players=2)").num_players() == SEATS else ""
    return ""


def observation(game: Any, kind: Any = None) -> Any:
    make: Any = import_module("open_spiel.python.observation").make_observation
    return make(game, kind)


def short_names(names: Sequence[str]) -> list[str]:
    short = [re.split(r"[(\[]", name)[0] for name in names]
    return [ours if short.count(ours) == 1 else name for ours, name in zip(short, names, strict=True)]


def folder_name(name: str) -> str:
    safe = re.sub(r"[^\w.-]+", "_", name)[:60]
    return safe if safe == name else f"{safe}-{sha256(name.encode()).hexdigest()[:8]}"


_FLOAT: Final = "<f4"  # lowest byte first, wherever we run


class _Dialect:
    """What both protocols begin with."""

    def opening(self, game: str, seat: int) -> bytes:
        return f"{game}\n{seat}\n".encode()


class V1(_Dialect):
    """The protocol of the announcement of May 2021.

    Two lines first, the game's name and the seat. Then a line a node for every seat: the default observation as
    base64 of its float32 values, lowest byte first, and after a space each the actions of a seat that is to act.
    """

    name: Final = "v1"

    def __init__(self, game: Any) -> None:
        self._observation = observation(game)

    def node(self, state: Any, seat: int, legal: list[int] | None) -> bytes:
        self._observation.set_from(state, seat)
        seen = b2a_base64(self._observation.tensor.astype(_FLOAT, copy=False))
        return seen if legal is None else b"%b %b\n" % (seen[:-1], " ".join(map(str, legal)).encode())

    def ending(self, score: float) -> bytes:
        return f"end of game {score!r}\n".encode()


class V2(_Dialect):
    """The protocol of the referee that was written in July 2021 and that the bots in OpenSpiel's repository speak.

    A node shows two observations, what is public and what is private, each as base64 of a first byte and the rest:
    1 and the values as bits, lowest first, if all of them are 0 or 1; else 0 and the values as float32.
    """

    name: Final = "v2"

    def __init__(self, game: Any) -> None:
        """Raises UsageError for a game without these observations."""
        if (parts := _public_and_private(game)) is None:
            hidden, open_ = _games_with_parts()
            have = f"{listed(hidden)} have; so have, with nothing hidden, {listed(open_)}"
            raise UsageError(f"{game} has no public and private observations, which dialect v2 sends: {have}")
        self._parts = parts

    def node(self, state: Any, seat: int, legal: list[int] | None) -> bytes:
        for part in self._parts:
            part.set_from(state, seat)
        words = [b2a_base64(part.compress(), newline=False) for part in self._parts]
        return b" ".join([*words, *(b"%d" % action for action in legal or ())]) + b"\n"

    def ending(self, score: float) -> bytes:
        return f"match over {int(score)}\n".encode()


def _public_and_private(game: Any) -> list[Any] | None:
    """What observes the public and the private part of a game; None if it cannot be told apart."""
    none, single = pyspiel().PrivateInfoType.NONE, pyspiel().PrivateInfoType.SINGLE_PLAYER
    found = []
    for public, private in ((True, none), (False, single)):
        kind = pyspiel().IIGObservationType(perfect_recall=False, public_info=public, private_info=private)
        with suppress(Exception):  # the engine raises whatever it likes
            found.append(observation(game, kind))
    return found if len(found) == 2 and None not in found else None


def _games_with_parts() -> tuple[list[str], list[str]]:
    """All games for two that have both parts, those that hide something first; of their usual parameters."""
    hidden: list[str] = []
    open_: list[str] = []
    for kind in pyspiel().registered_games():
        with suppress(Exception):  # of a game that cannot be loaded so
            if (
                kind.min_num_players <= SEATS <= kind.max_num_players
                and _public_and_private(load(kind.short_name)) is not None
            ):
                is_open = kind.information == kind.Information.PERFECT_INFORMATION
                (open_ if is_open else hidden).append(kind.short_name)
    return hidden, open_


DIALECTS: Final[Mapping[str, type[V1] | type[V2]]] = {V1.name: V1, V2.name: V2}
