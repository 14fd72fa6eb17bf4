"""What goes out and what comes back: requests and replies as plain values with digests.

The identity of a request is the canonical JSON of exactly what is sent: protocol, path, body. Not the
time, the key, the process, nor which of several samples of it this is (that is the draw).

What can go wrong when a model is asked: one try, one attempt, or the whole account.

DubitoError
├── TryFailed      one HTTP call gave no reply; says whether another try may help
├── OutOfTurn      a call was not sent, since the budget has no room for it now
├── AttemptFailed  an attempt ended without an answer: one of the `CAUSES`, counted, never silent
└── RunStopped     of dubito/errors.py
    ├── AccountFault  the user's to fix: key, money, model, parameter, budget, offline miss, outage
    ├── Suspended     the game is put back, other games go on
    │   └── Waits     until the next wave is there
    └── Interrupted   the user's wish: no further question is asked
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any, Final, Literal, Protocol, get_args

from dubito.errors import DubitoError, RunStopped
from dubito.store.model_log import RawReply as RawReply
from dubito.store.model_log import Spend

Api = Literal["responses", "chat", "messages", "decisions"]
Finish = Literal["stop", "length", "refusal", "other"]
ReplyOrigin = Literal["live", "cache", "tape"]

_CANONICAL: Final = json.JSONEncoder(sort_keys=True, ensure_ascii=True, separators=(",", ":"), allow_nan=False)


def canonical(value: Any) -> str:
    return _CANONICAL.encode(value)


def compute_digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def replace_surrogates(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


def parse_json(text: str) -> Any:
    """What a text says, if it is JSON; None if not, or if it nests too deep to be read."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


class DuplicateKey(ValueError):
    """A key appears twice in one object; a JSON reader would silently take the last."""


def refuse_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object. Raises DuplicateKey, since nobody knows which of two values is meant."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise DuplicateKey("a key stands twice")
    return fields


def entries(value: Any) -> Iterator[tuple[Any, Any]]:
    """The keys of a mapping with their values, and those of all that it holds."""
    if isinstance(value, dict):
        yield from value.items()
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from entries(inner)


@dataclass(frozen=True)
class Request:
    """Exactly what is sent, save the credentials."""

    protocol: Api
    path: str
    body: Mapping[str, Any]

    @cached_property
    def text(self) -> str:
        return canonical({"protocol": self.protocol, "path": self.path, "body": self.body})

    @cached_property
    def digest(self) -> str:
        return compute_digest(self.text)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as billed. `input` counts all of the input, cached and newly cached tokens included."""

    input: int
    cached: int
    cache_write: int
    output: int
    reasoning: int

    @property
    def counts(self) -> tuple[int, ...]:
        return (self.input, self.cached, self.cache_write, self.output, self.reasoning)  # by the log's TOKENS


@dataclass(frozen=True, slots=True)
class Charges:
    """What a reply says of its price besides the tokens."""

    modes: tuple[tuple[str, str], ...] = ()  # how it was served: (`service_tier`, `priority`)
    long_writes: int = 0  # of the newly cached tokens, those kept for longer than the price is for
    tool_calls: int = 0  # of the provider's own tools, charged by the call


NonReplyKind = Literal["empty", "page", "stream", "text", "unreadable", "json"]


@dataclass(frozen=True, slots=True)
class NonReply:
    """A body with status 200 that is not a reply: a server's error, or a body that does not follow the protocol."""

    error: Any  # an object, or a text
    generated: bool | None  # whether a model had begun to write; None: unknown
    kind: NonReplyKind | None = None  # None: an error


PLAIN: Final = Charges()


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model said, read from a received body."""

    text: str | None  # None: there is no text to read, whatever the body is
    finish: Finish
    usage: Usage | None
    received: RawReply
    origin: ReplyOrigin = "live"
    charges: Charges = PLAIN
    non_reply: NonReply | None = None  # what the body is, if not a reply
    model: str | None = None  # who it says that it is of, usually the snapshot behind the name that was asked for

    @property
    def digest(self) -> str:
        return compute_digest(canonical([self.text, self.finish]))


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a run an attempt is made."""

    player: str
    game: int
    deal: int
    seat: int
    decision: int  # of this player in this game, from 0
    attempt: int  # 0, then a re-ask each
    node: str

    @property
    def key(self) -> tuple[int, ...]:
        return (self.game, self.seat, self.decision, self.attempt)

    @property
    def in_game(self) -> bool:
        return self.game >= 0

    def __str__(self) -> str:
        return f"{self.player}, game {self.game}, node {self.node} (decision {self.decision})"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt: a request, which sample of it, and where."""

    request: Request
    draw: str
    place: Place


class Sends(Protocol):
    """One HTTP call: logged, paid and paced."""

    def send(self, attempt: Attempt, number: int) -> Reply:
        """Make the attempt's call with this number. Raises TryFailed, OutOfTurn or AccountFault."""


class Asks(Protocol):
    """An attempt, which takes as many calls as it needs: recorded and cached."""

    def ask(self, attempt: Attempt) -> Reply:
        """Return the model's reply. Raises AttemptFailed or RunStopped."""


def compute_draw(seed: int, place: Place, sample: int) -> str:
    parts = [seed, place.deal, place.seat, place.decision, place.attempt, sample]
    return compute_digest(canonical(["draw", 1, *parts]))[:16]


Cause = Literal["unreachable", "refused", "rejected", "truncated", "too_long", "cut", "malformed", "illegal"]
CAUSES: Final[tuple[Cause, ...]] = get_args(Cause)

FailureKind = Literal["rate_limit", "server", "connection", "deadline", "too_long", "refused", "rejected"]
FINAL_FAILURES: Final = ("too_long", "refused", "rejected")  # of this request: another try would end alike


class TryFailed(DubitoError):
    """One HTTP call failed.

    Args:
        billed: Whether the provider may bill it: the request was sent, and nobody reported that it failed.
    """

    # The cost, if a body stated it.
    spent: Spend | None = None
    # Whether a rate limit bounds the calls in flight, not those of a minute.
    is_concurrent: bool = False

    def __init__(
        self,
        kind: FailureKind,
        problem: str,
        retry_after: float | None = None,
        billed: bool = False,
        **fields: str,
    ) -> None:
        super().__init__(problem, **fields)
        self.kind, self.retry_after, self.billed = kind, retry_after, billed
        # Of the answer, if there was one: only those that are logged.
        self.headers: Mapping[str, str] = {}

    def __str__(self) -> str:
        """Return the message without the hint: another try may help by itself."""
        return f"{self.problem}: {self.quote}" if self.quote else self.problem


class OutOfTurn(DubitoError):
    """A call that was not sent after all: the budget has no room for it now. It waits for the budget again."""


class AttemptFailed(DubitoError):
    """An attempt ended without an answer, and why."""

    origin: ReplyOrigin = "live"  # of the failure itself; one of a reply's text is as old as the reply

    def __init__(self, cause: Cause, detail: str, text: str | None = None) -> None:
        super().__init__(cause, detail, text)
        self.cause, self.detail = cause, detail
        self.text = text  # what the model did say

    def __str__(self) -> str:
        return f"{self.cause}: {self.detail}"


class Suspended(RunStopped):
    """Under `provider_errors: suspend`: the model could not be reached, and the game is put back until it can be."""


class BatchPending(Suspended):
    """The request goes out with the next wave, or is under way with one."""


class Interrupted(RunStopped):
    """The run was told to stop; what is under way is kept, nothing more is asked."""


class AccountFault(RunStopped):
    """Never a cause of a fallback: the run stops cleanly, and the message says what to do."""

    spent: Spend | None = None  # as in TryFailed
    stray: bool = False  # nothing in the request is named: another try may show that it was none of the request's
