"""What stands in the model tables of `run.db`, as values."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

TOKENS: Final = ("input", "cached", "cache_write", "output", "reasoning")  # as in Usage


@dataclass(frozen=True, slots=True)
class Decision:
    """One node asked of one player at one turn, and what came of it; the fields are the table's columns."""

    game: int
    seat: int
    number: int  # of the player's decisions in this game
    turn: int  # the seat's own, from 1
    node: str
    answer: Any  # of the node's kind, as JSON has it
    outcome: str  # `model`, `model_after_reask`, `fallback:<cause>`
    p_bluff: float | None = None  # the probability of a bluff that was stated with it, if any


def answer_in_words(answer: Any) -> str:
    """An answer in words: yes, no or a name; else as JSON has it."""
    if isinstance(answer, bool):
        return "yes" if answer else "no"
    return answer if isinstance(answer, str) else json.dumps(answer)


@dataclass(frozen=True, slots=True)
class Spend:
    """What tries use up."""

    calls: int = 0
    tokens: int = 0  # input, cached input included, and output
    usd: int = 0  # picodollars

    def __add__(self, other: "Spend") -> "Spend":
        return Spend(self.calls + other.calls, self.tokens + other.tokens, self.usd + other.usd)

    def __sub__(self, other: "Spend") -> "Spend":
        return Spend(self.calls - other.calls, self.tokens - other.tokens, self.usd - other.usd)


@dataclass(frozen=True, slots=True)
class PlayerLog:
    """What one model player's attempts add up to in a run."""

    decisions: int
    games: int  # in which it was asked
    outcomes: dict[str, int]  # `model`, `model_after_reask`, `fallback:<cause>`
    reasks: int
    calls: int  # tries, those of the preflight too
    cached: int  # attempts answered from the cache
    attempts: int
    tokens: dict[str, int]  # by TOKENS, of the replies received in this run
    picodollars: int | None  # what the tries cost, as billed or assumed; None if one of them had no price
    likely: int  # of these, what is assumed: what tries probably cost whose cost is not known
    at_worst: int  # what such tries count against a budget: the most that they can have cost
    saved: int  # picodollars that the provider's own cache saved
    assumed: int  # tries whose cost is not known
    deadlines: int  # tries cut off by the deadline: such a run is not repeatable
    beyond: int  # tries that used more than was reserved for them, which may pass a budget's cap
    first_beyond: str | None  # how the first of them did

    @property
    def billed(self) -> int | None:
        """What the replies say that they cost."""
        return None if self.picodollars is None else self.picodollars - self.likely


@dataclass(frozen=True, slots=True)
class DealTotals:
    """What a player's attempts took in one deal; tokens as in Usage."""

    attempts: int = 0
    input: int = 0
    cached: int = 0
    output: int = 0


@dataclass(frozen=True, slots=True)
class TapedAttempt:
    """A finished attempt: a reply, or a cause why there is none."""

    request: str  # digest
    draw: str
    reply: str | None  # digest
    raw: str | None  # digest of the body it was read from
    cause: str | None


@dataclass(frozen=True, slots=True)
class StoredAttempt:
    """An attempt of a game, and what its tries took; the first fields are the table's columns."""

    seat: int
    decision: int
    player: str
    request: str  # digest
    raw: str | None  # digest of the body that its reply was read from
    cause: str | None
    origin: str
    input: int | None  # tokens
    cached: int | None
    output: int | None
    tries: int
    seconds: float | None
    picodollars: int
    priced: bool  # whether the price of every try is known


@dataclass(frozen=True, slots=True)
class RawReply:
    """A complete 2xx answer as it came in: what was paid for."""

    status: int
    raw: str  # the body, undecodable bytes replaced
    headers: Mapping[str, str] = field(default_factory=dict)  # allow-listed ones only


@dataclass(frozen=True, slots=True)
class StoredRequest:
    """A request of a run."""

    digest: str
    text: str
    server: str
    draw: str
