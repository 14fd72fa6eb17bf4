"""Another game of Dubito that one seat cannot tell from the one it plays."""

from random import Random
from typing import Any


def another(course: Any, seat: int, chance: Random) -> list[int]:
    raise NotImplementedError
