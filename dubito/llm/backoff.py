"""How long to wait before another try: as long as the server says, else a random time, so that tries spread out."""

import random
from typing import Final

from dubito.llm.failures import TryFailed

_FIRST: Final = 0.5  # seconds: the ceiling doubles from here ...
_MOST: Final = 30.0  # ... to here
_DOUBLINGS: Final = 6  # that reach it: more would only grow a number without end
_PROBED: Final = 0.1  # of the time that an account has been silent pass before it is probed again
_JITTER: Final = random.Random()  # how long a wait is changes no result: it needs no stream of its own


def pause(error: TryFailed, number: int, cap: float, spread: float = 1.0) -> float:
    """The seconds to wait after a failed try, which was the `number`th: the server's, up to `cap`, else random.

    `spread` is the part of the time that is random: by default all of it.
    """
    if error.retry_after:  # 0 s say nothing
        return min(error.retry_after, cap)
    most: float = min(_MOST, _FIRST * 2 ** min(number - 1, _DOUBLINGS))
    return most * _JITTER.uniform(1 - spread, 1)


def between_probes(silence: float) -> float:
    """The seconds to wait before an account that has been silent for so long is probed again."""
    return min(_MOST, max(_FIRST, _PROBED * silence)) * _JITTER.uniform(0.5, 1)
