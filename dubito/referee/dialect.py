"""What is written to bots: the announcement's protocol (`v1`)."""

from binascii import b2a_base64
from typing import Any, Final

from dubito.referee.games import observation

_FLOAT: Final = "<f4"  # lowest byte first, wherever we run


class V1:
    """The protocol of the announcement of May 2021.

    Two lines first, the game's name and the seat. Then a line a node for every seat: the default observation as
    base64 of its float32 values, lowest byte first, and after a space each the actions of a seat that is to act.
    """

    name: Final = "v1"

    def __init__(self, game: Any) -> None:
        self._observation = observation(game)

    def opening(self, game: str, seat: int) -> bytes:
        """The first two lines."""
        return f"{game}\n{seat}\n".encode()

    def node(self, state: Any, seat: int, legal: list[int] | None) -> bytes:
        """What a seat sees at a node, and what it may do there."""
        self._observation.set_from(state, seat)
        seen = b2a_base64(self._observation.tensor.astype(_FLOAT, copy=False))
        return seen if legal is None else b"%b %b\n" % (seen[:-1], " ".join(map(str, legal)).encode())

    def ending(self, score: float) -> bytes:
        """The last line; the score as the shortest text that reads back as the same float."""
        return f"end of game {score!r}\n".encode()


Dialect = V1
DIALECTS: Final = {V1.name: V1}
