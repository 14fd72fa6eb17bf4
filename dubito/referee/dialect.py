"""What is written to bots: the announcement's protocol (`v1`), and that of the referee written later (`v2`)."""

from binascii import b2a_base64
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from dubito.errors import UsageError, listed
from dubito.games.openspiel.engine import pyspiel
from dubito.referee.games import SEATS, load, observation

_FLOAT: Final = "<f4"  # lowest byte first, wherever we run


class _Dialect:
    """What both protocols begin with."""

    def opening(self, game: str, seat: int) -> bytes:
        """The first two lines: the game's name and the seat."""
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
        """What a seat sees at a node, and what it may do there."""
        self._observation.set_from(state, seat)
        seen = b2a_base64(self._observation.tensor.astype(_FLOAT, copy=False))
        return seen if legal is None else b"%b %b\n" % (seen[:-1], " ".join(map(str, legal)).encode())

    def ending(self, score: float) -> bytes:
        """The last line; the score as the shortest text that reads back as the same float."""
        return f"end of game {score!r}\n".encode()


class V2(_Dialect):
    """The protocol of the referee that was written in July 2021 and that the bots in OpenSpiel's repository speak.

    A node shows two observations, what is public and what is private, each as base64 of a first byte and the rest:
    1 and the values as bits, lowest first, if all of them are 0 or 1; else 0 and the values as float32.
    """

    name: Final = "v2"

    def __init__(self, game: Any) -> None:
        """Raises UsageError for a game without these observations."""
        if (parts := _parts(game)) is None:
            hidden, open_ = _games_with_parts()
            have = f"{listed(hidden)} have; so have, with nothing hidden, {listed(open_)}"
            raise UsageError(f"{game} has no public and private observations, which dialect v2 sends: {have}")
        self._parts = parts

    def node(self, state: Any, seat: int, legal: list[int] | None) -> bytes:
        """What a seat sees at a node, and what it may do there."""
        for part in self._parts:
            part.set_from(state, seat)
        words = [b2a_base64(part.compress(), newline=False) for part in self._parts]
        return b" ".join([*words, *(b"%d" % action for action in legal or ())]) + b"\n"

    def ending(self, score: float) -> bytes:
        """The last line of a match; the score without its decimals, as that referee had it."""
        return f"match over {int(score)}\n".encode()


def _parts(game: Any) -> list[Any] | None:
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
            if kind.min_num_players <= SEATS <= kind.max_num_players and _parts(load(kind.short_name)) is not None:
                is_open = kind.information == kind.Information.PERFECT_INFORMATION
                (open_ if is_open else hidden).append(kind.short_name)
    return hidden, open_


DIALECTS: Final[Mapping[str, type[V1] | type[V2]]] = {V1.name: V1, V2.name: V2}
