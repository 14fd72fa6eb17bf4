"""What is written to bots: the announcement's protocol (`v1`), and that of the referee written later (`v2`)."""

from binascii import b2a_base64
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from dubito.errors import UsageError
from dubito.games.openspiel.engine import pyspiel
from dubito.referee.games import observation

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
        none, single = pyspiel().PrivateInfoType.NONE, pyspiel().PrivateInfoType.SINGLE_PLAYER
        kinds = [(True, none), (False, single)]
        self._parts = [_part(game, public, private) for public, private in kinds]

    def node(self, state: Any, seat: int, legal: list[int] | None) -> bytes:
        """What a seat sees at a node, and what it may do there."""
        for part in self._parts:
            part.set_from(state, seat)
        words = [b2a_base64(part.compress(), newline=False) for part in self._parts]
        return b" ".join([*words, *(b"%d" % action for action in legal or ())]) + b"\n"

    def ending(self, score: float) -> bytes:
        """The last line of a match; the score without its decimals, as that referee had it."""
        return f"match over {int(score)}\n".encode()


def _part(game: Any, public: bool, private: Any) -> Any:
    kind = pyspiel().IIGObservationType(perfect_recall=False, public_info=public, private_info=private)
    with suppress(Exception):  # the engine raises whatever it likes
        if (part := observation(game, kind)) is not None:
            return part
    known = "dark_chess, gin_rummy, kriegspiel, kuhn_poker, leduc_poker and rbc have"
    raise UsageError(f"{game} has no public and private observations, which dialect v2 sends: {known}")


DIALECTS: Final[Mapping[str, type[V1] | type[V2]]] = {V1.name: V1, V2.name: V2}
