"""The slots of the model servers that a run starts, and which game in progress uses each of them.

Such a server reads prompts with this machine's processors, and each of its slots remembers the last prompt it has read.
Therefore only as many games are played at once as there are slots, and all questions of a game go to the same slot.
"""

from dataclasses import dataclass, field
from threading import Lock


@dataclass(eq=False, slots=True)
class GameSlots:
    """The slots of a run. All of its servers have the same number, and share the processors."""

    _count: int | None = None  # None until a server has started
    _used: dict[int, int] = field(default_factory=dict)  # slots by game
    _lock: Lock = field(default_factory=Lock)

    def limit(self, count: int) -> None:
        with self._lock:
            self._count = count if self._count is None else min(count, self._count)

    def hold(self, game: int) -> bool:
        """Give a game the first free slot. Return False if there is none."""
        with self._lock:
            if self._count is None:
                return True
            free = set(range(self._count)).difference(self._used.values())
            if free:
                self._used[game] = min(free)
            return bool(free)

    def release(self, game: int) -> None:
        with self._lock:
            self._used.pop(game, None)

    def find(self, game: int) -> int | None:
        with self._lock:
            return self._used.get(game)
