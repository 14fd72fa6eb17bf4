"""Requests and replies as plain values with digests, and the errors raised when asking a model.

The identity of a request is the canonical JSON of exactly what is sent: protocol, path, body. It does not include the
time, the key, the process, or the number of the sample (the draw).

DubitoError
├── TryFailed      one HTTP call failed
├── OutOfTurn      a call was not sent, since the budget has no room for it now
├── AttemptFailed  an attempt ended without an answer, for one of the `CAUSES`, which are counted
└── RunStopped     of dubito/errors.py
    ├── AccountFault      the user has to act: key, money, model, parameter, budget, offline miss, outage
    ├── Suspended         the game is played again later, other games continue
    │   └── BatchPending  after the next wave of batches
    └── Interrupted       the user stopped the run
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Any, Final, Literal, Protocol, get_args

from dubito.errors import DubitoError, RunStopped
from dubito.model_settings import Api
from dubito.store.model_log import RawReply as RawReply
from dubito.store.model_log import requested_model
from dubito.store.spend import Spend

# A request is answered by a server with one of the APIs, or by a program that the run started.
ProtocolName = Literal[Api, "program"]
# `invalid`: the server rejected the model's output with an error.
Finish = Literal["stop", "length", "refusal", "invalid", "other"]
ReplyOrigin = Literal["live", "cache", "tape"]

_CANONICAL: Final = json.JSONEncoder(sort_keys=True, ensure_ascii=True, separators=(",", ":"), allow_nan=False)


def canonical_json(value: Any) -> str:
    return _CANONICAL.encode(value)


def compute_digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def replace_surrogates(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


def parse_json(text: str) -> Any:
    """Parse JSON; return None if the text is not JSON or is nested too deeply."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


class DuplicateKey(ValueError):
    """A key appears twice in an object. A JSON reader would silently keep the last one."""


def refuse_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object. Raises DuplicateKey, since it is unclear which value is meant."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise DuplicateKey("a key appears twice")
    return fields


@dataclass(frozen=True)
class Request:
    """Exactly what is sent, except for the credentials."""

    protocol: ProtocolName
    path: str
    body: Mapping[str, Any]

    @property
    def model(self) -> str:
        return requested_model(self.path, self.body) or ""

    @cached_property
    def text(self) -> str:
        return canonical_json({"protocol": self.protocol, "path": self.path, "body": self.body})

    @cached_property
    def digest(self) -> str:
        return compute_digest(self.text)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as billed. `input` includes cached and newly cached tokens."""

    input: int
    cached: int
    cache_write: int
    output: int
    reasoning: int

    @property
    def counts(self) -> tuple[int, ...]:
        """The token counts, in the order of TOKENS in the log."""
        return (self.input, self.cached, self.cache_write, self.output, self.reasoning)


@dataclass(frozen=True, slots=True)
class Charges:
    """Other information in a reply about its price."""

    modes: tuple[tuple[str, str], ...] = ()  # how it was served, such as (`service_tier`, `priority`)
    long_writes: int = 0  # newly cached tokens that are stored longer than the usual price covers
    tool_calls: int = 0  # calls to the provider's own tools, charged per call


NonReplyKind = Literal["empty", "page", "stream", "text", "unreadable", "json"]


@dataclass(frozen=True, slots=True)
class NonReply:
    """A body with status 200 that is not a reply: a server's error, or a body that does not follow the protocol."""

    error: Any  # an object, or a text
    generated: bool | None  # whether a model had begun to write; None if unknown
    kind: NonReplyKind | None = None  # None for an error


PLAIN: Final = Charges()


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's reply, parsed from a received body."""

    text: str | None  # None if the body has no text
    finish: Finish
    usage: Usage | None
    received: RawReply
    origin: ReplyOrigin = "live"
    charges: Charges = PLAIN
    non_reply: NonReply | None = None  # the body's description if it is not a reply
    model: str | None = None  # the model named in the reply, usually the snapshot behind the requested name
    problem: str = ""  # why the text is missing, or why it is not an answer
    thoughts: str | None = None  # the model's reasoning, which is not part of the text
    seconds: float | None = field(default=None, compare=False)  # how long the call took, in a preflight

    @property
    def digest(self) -> str:
        return compute_digest(canonical_json([self.text, self.finish]))


@dataclass(frozen=True, slots=True)
class Place:
    """An attempt's place in a run."""

    player: str
    game: int
    deal: int
    seat: int
    decision: int  # number within this player's game, from 0
    attempt: int  # 0 for the question, then 1 for its first re-ask
    node: str

    @property
    def key(self) -> tuple[int, ...]:
        return (self.game, self.seat, self.decision, self.attempt)

    @property
    def is_in_game(self) -> bool:
        return self.game >= 0

    def __str__(self) -> str:
        return f"{self.player}, game {self.game}, node {self.node} (decision {self.decision})"


@dataclass(frozen=True, slots=True)
class Attempt:
    """A question or re-ask: its request, sample number and place."""

    request: Request
    draw: str
    place: Place


class Sends(Protocol):
    """A stage that makes single HTTP calls. Calls are logged, paid for and paced."""

    def send(self, attempt: Attempt, number: int) -> Reply:
        """Make the attempt's call with this number. Raises TryFailed, OutOfTurn or AccountFault."""


class Asks(Protocol):
    """A stage that makes attempts, each with as many calls as needed. Attempts are recorded and cached."""

    def ask(self, attempt: Attempt) -> Reply:
        """Return the model's reply. Raises AttemptFailed or RunStopped."""


def compute_draw(seed: int | str, place: Place, sample: int) -> str:
    parts = [seed, place.deal, place.seat, place.decision, place.attempt, sample]
    return compute_digest(canonical_json(["draw", 1, *parts]))[:16]


Cause = Literal["unreachable", "refused", "rejected", "truncated", "too_long", "cut", "malformed", "illegal"]
CAUSES: Final[tuple[Cause, ...]] = get_args(Cause)

FailureKind = Literal["rate_limit", "server", "connection", "deadline", "malformed", "too_long", "refused", "rejected"]
# Failures caused by the request, so that another try would fail in the same way.
FINAL_FAILURES: Final = ("too_long", "refused", "rejected")


class TryFailed(DubitoError):
    """A single HTTP call failed.

    Args:
        billed: Whether the provider may bill the call: the request was sent, and no reply reports that it failed.
    """

    # The cost, if a body reported it.
    spent: Spend | None = None
    # Whether a rate limit applies to calls in flight instead of calls per minute.
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
        # The logged headers of the answer, if there was one.
        self.headers: Mapping[str, str] = {}

    def __str__(self) -> str:
        """Return the message without the hint, since a retry may be enough."""
        return f"{self.problem}: {self.quote}" if self.quote else self.problem


class OutOfTurn(DubitoError):
    """A call was not sent, since the budget has no room for it yet. It waits for the budget again."""


class AttemptFailed(DubitoError):
    """An attempt ended without a usable answer."""

    origin: ReplyOrigin = "live"

    def __init__(self, cause: Cause, detail: str, text: str | None = None) -> None:
        super().__init__(cause, detail, text)
        self.cause, self.detail = cause, detail
        # What helps, if it is known.
        self.advice = ""
        # The model's text, which was not an answer.
        self.text = text

    def __str__(self) -> str:
        return f"{self.cause}: {self.detail}"


class Suspended(RunStopped):
    """With `provider_errors: suspend`, the model cannot be reached. The game is replayed once it can be."""


class BatchPending(Suspended):
    """The request is in a batch or waits for the next one."""


class AccountFault(RunStopped):
    """A fault that the user has to correct. It never triggers a fallback, but stops the run cleanly."""

    # As in TryFailed.
    spent: Spend | None = None
    # Whether the server blamed nothing in the request, so that another try may succeed.
    is_unexplained: bool = False
