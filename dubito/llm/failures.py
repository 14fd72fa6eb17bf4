"""What can go wrong when a model is asked: one try, one attempt, or the whole account.

DubitoError
├── TryFailed      one HTTP call gave no reply; says whether another try may help
├── NotSent        a try that was not made after all, and cost nothing
├── OutOfTurn      the same, since older games may need what it would take
├── AttemptFailed  an attempt ended without an answer: one of the `CAUSES`, counted, never silent
└── RunStopped     of dubito/errors.py
    ├── Quoting           may repeat a server's words
    │   ├── AccountFault  the user's to fix: key, money, model, parameter, budget, offline miss, outage
    │   └── Suspended     the game is put back, other games go on
    └── Interrupted       the user's wish: no further question is asked
"""

from collections.abc import Mapping
from typing import Final, Literal, get_args

from dubito.errors import DubitoError, RunStopped
from dubito.llm.wire import ReplyOrigin
from dubito.store.model_log import Spend

Cause = Literal["unreachable", "refused", "truncated", "too_long", "malformed", "illegal"]
CAUSES: Final[tuple[Cause, ...]] = get_args(Cause)
FALLBACK_OUTCOME: Final = "fallback:"  # begins the outcome of a decision that the fallback took; the cause follows

FailureKind = Literal["rate_limit", "server", "connection", "deadline", "too_long", "refused"]


class TryFailed(DubitoError):
    """One HTTP call without a reply; `said` are the server's own words, if it said any."""

    spent: Spend | None = None  # what it cost, where a body came that said so
    at_once: bool = False  # of a rate limit: it is one of calls under way

    def __init__(
        self,
        kind: FailureKind,
        brief: str,
        retry_after: float | None = None,
        billed: bool = False,
        said: str | None = None,
    ) -> None:
        super().__init__(kind, brief, retry_after, billed, said)
        self.kind, self.brief, self.retry_after = kind, brief, retry_after
        self.reason = brief if said is None else f"{brief}: {said}"
        self.billed = billed  # it may be billed: the request went out, and nobody said that it failed
        self.headers: Mapping[str, str] = {}  # of the answer, if one came: those that are kept

    def __str__(self) -> str:
        return self.reason


class NotSent(DubitoError):
    """A try that was not made after all: the gate closed while it waited for the budget. It goes back to the gate."""


class OutOfTurn(DubitoError):
    """A try that was not made after all: what it takes is kept for older games. It goes back behind the gate."""


class AttemptFailed(DubitoError):
    """An attempt ended without an answer, and why."""

    origin: ReplyOrigin = "live"  # of the failure itself; one of a reply's text is as old as the reply

    def __init__(self, cause: Cause, detail: str, text: str | None = None) -> None:
        super().__init__(cause, detail, text)
        self.cause, self.detail = cause, detail
        self.text = text  # what the model did say

    def __str__(self) -> str:
        return f"{self.cause}: {self.detail}"


class Quoting(RunStopped):
    """May quote a server, which may repeat the question with all its cards; `brief` says the same without."""

    def __init__(self, text: str, brief: str | None = None) -> None:
        super().__init__(text)
        self.brief = text if brief is None else brief


class Suspended(Quoting):
    """Under `provider_errors: suspend`: the model could not be reached, and the game is put back until it can be."""


class Interrupted(RunStopped):
    """The run was told to stop; what is under way is kept, nothing more is asked."""


class AccountFault(Quoting):
    """Never a cause of a fallback: the run stops cleanly, and the message says what to do."""

    spent: Spend | None = None  # as in TryFailed
    stray: bool = False  # nothing in the request is named: another try may show that it was none of the request's
