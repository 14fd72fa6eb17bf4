"""Retries, which happen only in this module. The waits between them are random, which changes no results.

Server errors, lost connections and exceeded deadlines are attributed to the account as long as its other requests fail
too. The decision waits, and `AccountTraffic` ends the run once `patience` has run out. A decision is unreachable only
if its request keeps failing while others are answered (`FailureStreak`).
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from math import prod
from typing import TYPE_CHECKING, Final, cast

from dubito.llm.limiter import AccountTraffic, CallCounts, Sleep, backoff
from dubito.llm.request import (
    FINAL_FAILURES,
    AccountFault,
    Attempt,
    AttemptFailed,
    Cause,
    FailureKind,
    Reply,
    Sends,
    Suspended,
    TryFailed,
)
from dubito.llm.stages import EarlierAttempts
from dubito.model_settings import ModelSettings

if TYPE_CHECKING:
    from tenacity import RetryCallState

_NO_CALLS: Final = CallCounts(0, 0, 0)
_REASONS: Final = {"server": "server errors", "connection": "no connection", "deadline": "deadline passed"}
_REJECTED_RESENDS: Final = 2  # servers sometimes reject a valid request without naming a reason
_REJECTED_WAIT: Final = 1.0  # maximum wait before a resend, in seconds
_MAX_CHANCE: Final = 1e-6  # chance of a streak if the account is to blame; below this, the request is
_MAX_OTHERS: Final = 10.0  # maximum number of other calls with which each failure is compared
_GAME_DOUBLINGS: Final = 4  # failures after which waits stay at 4 s: during an outage, probes do the waiting
_PREFLIGHT_DOUBLINGS: Final = 2  # before the first game, waits stay at 1 s, since a person is waiting
_PREFLIGHT_FAILURES: Final = 40  # consecutive failures; if 60 % of calls fail, this happens once in 700 million times


@dataclass(slots=True)
class FailureStreak:
    """Consecutive failures of one request, compared with other requests of its model during that time.

    A failure counts if another request was answered since the last one that counted, so an outage counts at most once.
    If the account were to blame, all its requests would fail with the same unknown probability. Then, by Laplace's rule
    of succession, the next call fails with probability (f + 1) / (n + 2) after f failures among n others, and each
    failure of this request counts as one more of n. The request is abandoned once its streak has a probability below
    one in a million. If all other calls are answered, that takes 5 failures against 38 answers, 8 against 16, or 12
    against 10 (one game at a time, when only probes are answered); if 60 % of them fail, about 30. With up to 75 %
    random failures, fewer than one decision in a million is lost; with 90 %, at most one in 70,000.
    """

    failures: int = 0
    counted: int = 0
    uncounted: int = 0  # failures since the last one that counted
    answered: float = 0.0  # calls of other requests to compare with
    failed: float = 0.0
    first: CallCounts = _NO_CALLS  # at the first failure
    last: CallCounts = _NO_CALLS  # at the last failure that counted

    def add(self, counts: CallCounts) -> None:
        """Add a failure, which `counts` includes."""
        self.failures += 1
        self.uncounted += 1
        answered, failed = counts.answered - self.last.answered, counts.failed - self.last.failed - self.uncounted
        if self.failures == 1:
            self.first = counts
        elif not answered:
            return
        else:
            part = min(1.0, _MAX_OTHERS / (answered + failed))
            self.answered, self.failed = self.answered + part * answered, self.failed + part * failed
        self.counted, self.last, self.uncounted = self.counted + 1, counts, 0

    @property
    def chance(self) -> float:
        """The probability of this streak if the account is the cause."""
        failed, others = self.failed, self.answered + self.failed
        return prod((failed + 1 + number) / (others + 2 + number) for number in range(self.counted))

    def describe(self, counts: CallCounts, error: TryFailed) -> str:
        answered = counts.answered - self.first.answered
        others = answered + counts.failed - self.first.failed - self.failures + 1
        of = f"{answered}" if answered == others else f"{answered} of {others}"
        return f"failed {self.failures} times while {of} other requests were answered; last error: {error}"


@dataclass(frozen=True, slots=True)
class Retry:
    """A stage that sends calls for an attempt until one is answered or further calls cannot help.

    Raises AttemptFailed, or, with `suspend`, Suspended if a model cannot be reached. `probe` is sent during an outage,
    when no other call is in flight; without a probe, attempts do not wait for the end of an outage. Calls are numbered
    on from those made earlier.
    """

    inner: Sends
    settings: ModelSettings
    traffic: AccountTraffic
    sleep: Sleep
    probe: Attempt | None = None
    probe_numbers: Iterator[int] = field(default_factory=lambda: count(1))
    earlier: EarlierAttempts | None = None
    suspend: bool = False

    def ask(self, attempt: Attempt) -> Reply:
        from tenacity import Retrying  # imported late, since it loads asyncio

        earlier_calls = self.earlier.count_calls(attempt) if self.earlier else 0
        policy = AttemptRetries(self, attempt, count(earlier_calls + 1))
        retrying = Retrying(
            retry=policy.is_worth_another,
            wait=policy.wait_seconds,
            stop=policy.is_over,
            sleep=policy.sleep,
            retry_error_callback=policy.raise_end,
        )
        return retrying(policy.send_next)

    def send_probe(self) -> None:
        assert self.probe is not None
        self.inner.send(self.probe, next(self.probe_numbers))


@dataclass(slots=True)
class AttemptRetries:
    """The retry policy of one attempt, for tenacity: when to send it again, and how it ends."""

    stage: Retry
    attempt: Attempt
    numbers: Iterator[int]
    streak: FailureStreak = field(default_factory=FailureStreak)
    rejections: int = 0  # consecutive rejections, each followed by a resend
    failure: FailureKind = "rate_limit"  # the last failure, not counting such rejections
    end: AttemptFailed | Suspended | None = None

    def send_next(self) -> Reply:
        return self.stage.inner.send(self.attempt, next(self.numbers))

    def is_worth_another(self, state: "RetryCallState") -> bool:
        error = _get_error(state)
        is_rejection = isinstance(error, TryFailed) and error.kind == "rejected"
        is_unexplained = isinstance(error, AccountFault) and error.is_unexplained
        # The server may have rejected the request by mistake.
        if self.rejections < _REJECTED_RESENDS and (is_rejection or is_unexplained):
            self.rejections += 1
            return True
        self.rejections = 0
        if not isinstance(error, TryFailed):
            return False
        self.failure = error.kind
        if error.kind != "rate_limit":
            self.streak.add(self.stage.traffic.counts(self.attempt))
            self.end = self._find_end(error)
        return True

    def is_over(self, state: "RetryCallState") -> bool:
        return self.end is not None

    def raise_end(self, state: "RetryCallState") -> Reply:
        assert self.end is not None
        raise self.end from _get_error(state)

    def wait_seconds(self, state: "RetryCallState") -> float:
        error = _get_error(state)
        if self.rejections:
            return random.uniform(0, _REJECTED_WAIT)
        if not isinstance(error, TryFailed) or error.kind == "rate_limit":
            return 0.0  # the rate limiter waits
        doublings = _GAME_DOUBLINGS if self.attempt.place.is_in_game else _PREFLIGHT_DOUBLINGS
        return backoff(error, min(self.streak.failures, doublings), self.stage.settings.retry_after_cap)

    def sleep(self, seconds: float) -> None:
        """Sleep for the time from `wait_seconds`.

        If the account may be down, also wait until it answers another call.
        """
        stage, streak = self.stage, self.streak
        if self.rejections:
            stage.sleep(seconds, f"for {stage.traffic.account} (a request was rejected)")
        elif self.failure in _REASONS:
            stage.sleep(seconds, f"for {stage.traffic.account} ({_REASONS[self.failure]})")
            is_alone = stage.traffic.is_idle(self.attempt)
            is_down = streak.failures >= stage.settings.tries if is_alone else streak.uncounted > 0
            if stage.probe is not None and self.attempt.place.is_in_game and is_down:
                stage.traffic.wait_for_answer(self.attempt, stage.send_probe, streak.last.sends)

    def _find_end(self, error: TryFailed) -> AttemptFailed | Suspended | None:
        """Return the error that ends the attempt, or None if another call could help.

        Before the first game, a wrong server (one that cannot be reached, or that bills bodies that are not replies)
        gets `tries` calls. A temporarily failing server gets more.
        """
        streak, tries, traffic = self.streak, self.stage.settings.tries, self.stage.traffic
        if error.kind in FINAL_FAILURES:
            failed = AttemptFailed(cast(Cause, error.kind), str(error))
            failed.advice = error.hint
            return failed
        if not self.attempt.place.is_in_game:
            is_sick = error.spent is None and (error.kind != "connection" or error.billed)
            if streak.failures < (max(tries, _PREFLIGHT_FAILURES) if is_sick else tries):
                return None
            return AttemptFailed("unreachable", f"{streak.failures} tries; last error: {error}")
        fails_alone = streak.failures >= tries and streak.chance < _MAX_CHANCE
        if self.stage.suspend and (fails_alone or streak.uncounted >= tries - 1):
            whose = f"for {traffic.account}, which cannot be reached"
            return Suspended(f"{whose}: {error.problem}", quote=error.quote)
        if not fails_alone:
            return None
        traffic.give_up(self.attempt)
        return AttemptFailed("unreachable", streak.describe(traffic.counts(self.attempt), error))


def _get_error(state: "RetryCallState") -> BaseException | None:
    return state.outcome.exception() if state.outcome else None
