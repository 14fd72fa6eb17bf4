"""Faults on purpose: which tries fail, and how. A retry may succeed, the same try fails again."""

from dataclasses import dataclass
from math import isfinite

from dubito.errors import UsageError
from dubito.house.asked import Asked
from dubito.house.refusal import Refusal
from dubito.house.wire import Wire


@dataclass(frozen=True, slots=True)
class Faults:
    """Probability of each named fault a try, and the seconds that a rate limit asks to wait."""

    rate_limit: float = 0.0
    server_error: float = 0.0
    retry_after: float = 0.01

    def __post_init__(self) -> None:
        shares = {"rate-limit": self.rate_limit, "server-error": self.server_error}
        for name, share in shares.items():
            if not 0 <= share <= 1:
                raise UsageError(f"{name} is a probability from 0 to 1, not {share}")
        if sum(shares.values()) > 1:
            raise UsageError(f"{' and '.join(shares)} together are at most 1, not {sum(shares.values()):g}")
        if not (isfinite(self.retry_after) and self.retry_after >= 0):
            raise UsageError(f"retry-after is a number of seconds from 0, not {self.retry_after}")

    def strike(self, asked: Asked, wire: Wire) -> None:
        """Raise the fault of this try, if it has one. The faults share one throw, each its part of it."""
        chance = asked.chance("fault", by_try=True)
        point = chance.random()
        if point < self.rate_limit:
            raise Refusal("rate_limit", retry_after=self.retry_after)
        if point < self.rate_limit + self.server_error:
            raise Refusal(chance.choice(wire.server_errors))
