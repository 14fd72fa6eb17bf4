"""What calls cost, and the limits of a budget."""

from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True)
class Spend:
    calls: int = 0
    tokens: int = 0  # input, including cached input, and output
    usd: int = 0  # picodollars

    def __add__(self, other: "Spend") -> "Spend":
        return Spend(self.calls + other.calls, self.tokens + other.tokens, self.usd + other.usd)

    def __sub__(self, other: "Spend") -> "Spend":
        return Spend(self.calls - other.calls, self.tokens - other.tokens, self.usd - other.usd)

    @property
    def amounts(self) -> dict[str, int]:
        return {"calls": self.calls, "tokens": self.tokens, "usd": self.usd}


@dataclass(frozen=True, slots=True)
class Caps:
    """The limits of a budget. None means no limit."""

    calls: int | None = None
    tokens: int | None = None
    usd: int | None = None  # picodollars

    @property
    def limits(self) -> dict[str, int]:
        """The limits that are set, by name."""
        caps = {"usd": self.usd, "tokens": self.tokens, "calls": self.calls}
        return {name: cap for name, cap in caps.items() if cap is not None}

    def find_exceeded(self, spend: Spend) -> str | None:
        amounts = spend.amounts
        return next((name for name, cap in self.limits.items() if amounts[name] > cap), None)

    def share(self, first: int, end: int, of: int) -> "Caps":
        """Return the share for parts `first` to `end` (exclusive) out of `of` parts."""
        return Caps(**{name: cap * end // of - cap * first // of for name, cap in self.limits.items()})

    def subtract(self, spent: Spend) -> "Caps":
        amounts = spent.amounts
        return Caps(**{name: max(0, cap - amounts[name]) for name, cap in self.limits.items()})

    def describe(self) -> str:
        money = [] if self.usd is None else [dollars(self.usd)]
        counts = (("calls", self.calls), ("tokens", self.tokens))
        return ", ".join([*money, *(f"{cap:,} {name}" for name, cap in counts if cap is not None)])


PICO: Final = 10**12  # picodollars in a dollar


def dollars(pico: int) -> str:
    return f"{'-' if pico < 0 else ''}${abs(pico) / PICO:,.4f}"


TOKENS: Final = ("input", "cached", "cache_write", "output", "reasoning")  # token counts, as in Usage


@dataclass(frozen=True, slots=True)
class PlayerLog:
    """The totals of one model player's attempts in a run."""

    decisions: int
    games: int  # games in which the player was asked
    outcomes: dict[str, int]  # `model`, `model_after_reask`, `fallback:<cause>`
    reasks: int
    calls: int  # tries, including preflight
    cached: int  # attempts answered from the cache
    attempts: int
    tokens: dict[str, int]  # token counts of the replies received in this run, by TOKENS
    picodollars: int | None  # the cost as billed or estimated; None if a try had no price
    likely: int  # the estimated part of it, for tries of unknown cost
    at_worst: int  # maximum cost of tries of unknown cost, which counts against the budget
    saved: int  # picodollars that the provider's own cache saved
    assumed: int  # tries of unknown cost
    deadlines: int  # tries that exceeded the deadline, so the run may not be repeatable
    beyond: int  # tries that used more than was reserved, and may exceed a cap
    first_beyond: str | None  # a description of the first of these tries
    ids: dict[str, int] = field(default_factory=dict)  # number of replies by the model that they name
    asked: str | None = None  # the requested model

    @property
    def has_other_names(self) -> bool:
        return self.asked is not None and bool(self.ids) and [*self.ids] != [self.asked]

    @property
    def billed(self) -> int | None:
        return None if self.picodollars is None else self.picodollars - self.likely
