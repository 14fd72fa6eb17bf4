"""Rate limits of providers without a clock: buckets that refill continuously, and windows that restart."""

from dataclasses import dataclass
from typing import Protocol

MINUTE = 60.0


class Limiter(Protocol):
    """A limit of a server."""

    limit: float  # as reported in headers

    def refresh(self, now: float) -> None:
        """Refill the bucket for the elapsed seconds."""

    @property
    def left(self) -> float:
        """Return the amount that is available now."""

    def take(self, amount: float) -> None:
        """Use up this amount, which must be available."""

    def wait(self, amount: float) -> float:
        """Return the seconds until this amount is available."""

    def whole(self) -> float:
        """Return the seconds until the full limit is available."""


@dataclass
class Bucket:
    """A limit per minute that refills continuously and allows bursts up to `burst`."""

    limit: float
    burst: float
    _level: float = -1.0
    _now: float = 0.0

    def refresh(self, now: float) -> None:
        level = self.burst if self._level < 0 else self._level + self.limit / MINUTE * (now - self._now)
        self._level, self._now = min(self.burst, level), now

    @property
    def left(self) -> float:
        return self._level

    def take(self, amount: float) -> None:
        self._level -= amount

    def wait(self, amount: float) -> float:
        return max(0.0, (amount - self._level) * MINUTE / self.limit)

    def whole(self) -> float:
        return (self.burst - self._level) * MINUTE / self.limit


@dataclass
class Window:
    """A limit for each window of `seconds`. Windows are aligned to the clock."""

    limit: float
    seconds: float = MINUTE
    _used: float = 0.0
    _number: int = -1
    _now: float = 0.0

    def refresh(self, now: float) -> None:
        self._now = now
        if int(now // self.seconds) != self._number:
            self._number, self._used = int(now // self.seconds), 0.0

    @property
    def left(self) -> float:
        return self.limit - self._used

    def take(self, amount: float) -> None:
        self._used += amount

    def wait(self, amount: float) -> float:
        return 0.0 if amount <= self.left else self.whole()

    def whole(self) -> float:
        return (self._number + 1) * self.seconds - self._now
