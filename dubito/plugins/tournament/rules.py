"""The announcement's limits, the supported games, and the protocols.

Any two-player OpenSpiel game with an observation tensor is supported. `v1` is the announcement's protocol, and `v2`
that of OpenSpiel's later referee.
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

from dubito.errors import UsageError, join_names, one_line
from dubito.plugins.openspiel.engine import load as load_openspiel
from dubito.plugins.openspiel.engine import pyspiel

StrikeKind = Literal["illegal", "ponder", "overrun", "crash"]
# Any of these shuts a bot down. If they occur in more than 1 % of its matches, it is disqualified.
FATAL_STRIKES: tuple[StrikeKind, ...] = ("overrun", "crash")


@dataclass(frozen=True, slots=True)
class Limits:
    """All times in seconds."""

    move: float = 5.0
    prepare: float = 5.0  # from the bot's start until its first move's clock starts
    chance: float = 0.2  # delay of each chance event; the announcement requires 0.2
    ponder: float = 0.2  # to print `ponder`, in dialect v2
    grace: float = 1.0  # seconds to exit after the last line, and again after SIGTERM
    strikes: int = 3  # number of illegal actions or lines out of turn that shuts a bot down


SEATS: Final = 2


def load(name: str) -> Any:
    """Load a two-player game. Raises UsageError if tournaments do not support it."""
    if name.partition("(")[0] not in pyspiel().registered_names() and find_spec("dubito.plugins.openspiel.spiel"):
        # Registers Dubito's games with OpenSpiel.
        import_module("dubito.plugins.openspiel.spiel")
    game = load_openspiel(name)
    shown = one_line(name, 80)
    if game.num_players() != SEATS:
        message = f"{shown} is a game for {game.num_players()} players, but tournaments need two"
        raise UsageError(message + _two_player_hint(name.partition("(")[0]))
    try:
        size = make_observation(game).tensor.size
    except Exception:  # the engine can raise anything
        size = 0
    if not size:
        raise UsageError(f"{shown} has no observation tensor to send to bots; choose another game")
    return game


def _two_player_hint(name: str) -> str:
    with suppress(UsageError):
        return f": write {name}(players=2)" if load_openspiel(f"{name}(players=2)").num_players() == SEATS else ""
    return ""


def make_observation(game: Any, kind: Any = None) -> Any:
    function: Any = import_module("open_spiel.python.observation").make_observation
    return function(game, kind)


def short_names(names: Sequence[str]) -> list[str]:
    short = [re.split(r"[(\[]", name)[0] for name in names]
    return [base if short.count(base) == 1 else name for base, name in zip(short, names, strict=True)]


def folder_name(name: str) -> str:
    safe = re.sub(r"[^\w.-]+", "_", name)[:60]
    return safe if safe == name else f"{safe}-{sha256(name.encode()).hexdigest()[:8]}"


_FLOAT: Final = "<f4"  # little-endian on every machine


class _Dialect:
    """The common part of both protocols."""

    def opening_lines(self, game: str, seat: int) -> bytes:
        return f"{game}\n{seat}\n".encode()


class V1(_Dialect):
    """The protocol of the announcement of May 2021.

    The first two lines are the game's name and the seat. Each seat then gets one line per node: the default observation
    as base64 of its little-endian float32 values and, if the seat has to act, its actions, each preceded by a space.
    """

    name: Final = "v1"

    def __init__(self, game: Any) -> None:
        self._observation = make_observation(game)

    def node(self, state: Any, seat: int, legal: list[int] | None) -> bytes:
        self._observation.set_from(state, seat)
        encoded = b2a_base64(self._observation.tensor.astype(_FLOAT, copy=False))
        return encoded if legal is None else b"%b %b\n" % (encoded[:-1], " ".join(map(str, legal)).encode())

    def closing_line(self, score: float) -> bytes:
        return f"end of game {score!r}\n".encode()


class V2(_Dialect):
    """The protocol of the July 2021 referee, which the bots in OpenSpiel's repository use.

    Each node has a public and a private observation in base64. The first byte is 1 if all values are 0 or 1, which are
    packed as bits, lowest first. Otherwise it is 0 and the values are float32.
    """

    name: Final = "v2"

    def __init__(self, game: Any) -> None:
        """Prepare the observations. Raises UsageError if the game does not provide them."""
        if (parts := _split_observation(game)) is None:
            hidden, open_ = _list_v2_games()
            games = f"Hidden-information games: {join_names(hidden)}. Others: {join_names(open_)}"
            raise UsageError(f"{game} does not separate public and private observations, as v2 requires. {games}")
        self._parts = parts

    def node(self, state: Any, seat: int, legal: list[int] | None) -> bytes:
        for part in self._parts:
            part.set_from(state, seat)
        words = [b2a_base64(part.compress(), newline=False) for part in self._parts]
        return b" ".join([*words, *(b"%d" % action for action in legal or ())]) + b"\n"

    def closing_line(self, score: float) -> bytes:
        return f"match over {int(score)}\n".encode()


def _split_observation(game: Any) -> list[Any] | None:
    """Return the public and the private observation, or None if the engine cannot separate them."""
    none, single = pyspiel().PrivateInfoType.NONE, pyspiel().PrivateInfoType.SINGLE_PLAYER
    parts = []
    for public, private in ((True, none), (False, single)):
        kind = pyspiel().IIGObservationType(perfect_recall=False, public_info=public, private_info=private)
        with suppress(Exception):  # the engine can raise anything
            parts.append(make_observation(game, kind))
    return parts if len(parts) == 2 and None not in parts else None


def _list_v2_games() -> tuple[list[str], list[str]]:
    """Return the two-player games with both observations, separated into those with hidden information and the rest."""
    hidden: list[str] = []
    open_: list[str] = []
    for kind in pyspiel().registered_games():
        with suppress(Exception):  # some games cannot be loaded with default parameters
            if (
                kind.min_num_players <= SEATS <= kind.max_num_players
                and _split_observation(load(kind.short_name)) is not None
            ):
                is_open = kind.information == kind.Information.PERFECT_INFORMATION
                (open_ if is_open else hidden).append(kind.short_name)
    return hidden, open_


DIALECTS: Final[Mapping[str, type[V1] | type[V2]]] = {V1.name: V1, V2.name: V2}
