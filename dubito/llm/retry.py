"""Trying again: one owner of retries, a number of tries and full-jitter backoff, so that it repeats."""

from collections.abc import Callable
from itertools import count

from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt

from dubito.llm.backoff import pause
from dubito.llm.failures import AttemptFailed, Suspended, TryFailed
from dubito.llm.gate import Gate, Sleep, Try
from dubito.llm.settings import ModelSettings
from dubito.llm.wire import Ask, Reply

_WHY = {"server": "server errors", "connection": "no connection", "deadline": "deadline passed"}

_FINAL = ("too_long", "refused")  # what the same request would be told again

Attempt = Callable[[Ask], Reply]


def retried(
    inner: Try,
    settings: ModelSettings,
    gate: Gate,
    sleep: Sleep,
    made: Callable[[Ask], int] = lambda ask: 0,
    suspend: bool = False,
) -> Attempt:
    """Up to `tries` tries of one attempt; raises AttemptFailed when they are used up or cannot help.

    `made`: how many tries of an attempt there were before; their numbers go on. With `suspend`, that nobody can be
    reached is no cause of a fallback: it raises Suspended.
    """
    retrying = _retrying(settings, gate, sleep)

    def attempt(ask: Ask) -> Reply:
        numbers = count(made(ask) + 1)
        try:
            return retrying(lambda: inner(ask, next(numbers)))
        except TryFailed as error:
            if error.kind == "too_long" or error.kind == "refused":
                raise AttemptFailed(error.kind, error.reason) from None
            if suspend:
                nobody = f"for {gate.account}, which cannot be reached"
                raise Suspended(f"{nobody} ({error.reason})", f"{nobody} ({error.brief})") from None
            gate.gave_up(ask.place.game)
            raise AttemptFailed("unreachable", f"{settings.tries} tries, the last: {error.reason}") from None

    return attempt


def _retrying(settings: ModelSettings, gate: Gate, sleep: Sleep) -> Retrying:
    """How often, and how long to wait. After a rate limit it is the gate that waits, for the whole account."""

    def wait(state: RetryCallState) -> float:
        error = _failure(state)
        return pause(error, state.attempt_number, settings.retry_after_cap) if error.kind in _WHY else 0

    def rest(state: RetryCallState) -> None:
        error = _failure(state)
        if error.kind in _WHY:
            sleep(state.upcoming_sleep, f"for {gate.account} ({_WHY[error.kind]})")

    return Retrying(
        stop=stop_after_attempt(settings.tries),
        wait=wait,
        retry=retry_if_exception(lambda error: isinstance(error, TryFailed) and error.kind not in _FINAL),
        before_sleep=rest,
        sleep=lambda seconds: None,  # it has been slept: tenacity's own would not say for whom and why
        reraise=True,
    )


def _failure(state: RetryCallState) -> TryFailed:
    error = state.outcome.exception() if state.outcome else None
    assert isinstance(error, TryFailed)
    return error
