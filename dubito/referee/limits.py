"""How long a bot may take, and how often it may break the rules: the announcement's figures."""

from dataclasses import dataclass
from typing import Literal

StrikeKind = Literal["illegal", "ponder", "overrun", "crash"]
LAST: tuple[StrikeKind, ...] = ("overrun", "crash")  # one of these is enough, and counts to the 1 % that disqualify


@dataclass(frozen=True, slots=True)
class Limits:
    """All times in seconds."""

    move: float = 5.0
    prepare: float = 5.0  # after its start, before the clock of its first move
    chance: float = 0.2  # that each draw of chance takes; 0 is faster, and no longer the announcement's rule
    ponder: float = 0.2  # to say `ponder`, in the later protocol
    grace: float = 1.0  # to end by itself after the last line, and again after SIGTERM
    strikes: int = 3  # illegal actions, or lines out of turn, that shut a bot down
