"""Trying again: one owner of retries, a number of tries and full-jitter backoff, so that it repeats."""

import random
from collections.abc import Callable

from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt

from dubito.llm.failures import AttemptFailed, Suspended, TryFailed
from dubito.llm.gate import Gate, Try
from dubito.llm.settings import ModelSettings
from dubito.llm.wire import Ask, Reply

_FIRST, _MOST = 0.5, 30.0  # seconds: the backoff's ceiling doubles from the one to the other

_WHY = {"server": "server errors", "connection": "no connection", "deadline": "deadline passed"}

Attempt = Callable[[Ask], Reply]


def retried(
    inner: Try,
    settings: ModelSettings,
    gate: Gate,
    sleep: Callable[[float, str], None],
    made: Callable[[Ask], int] = lambda ask: 0,
    suspend: bool = False,
) -> Attempt:
    """Up to `tries` tries of one attempt; raises AttemptFailed when they are used up or cannot help.

    `sleep` is told for how many seconds, for whom and why. Waits as long as the server says, up to the
    player's cap, else a random time below a doubling ceiling; how long changes no result, so the jitter
    needs no stream of its own. After a rate limit it is the gate that waits, for the whole account.
    `made`: how many tries of an attempt there were before; their numbers go on. With `suspend`, that
    nobody can be reached is no cause of a fallback: it raises Suspended.
    """
    retrying = _retrying(settings, gate)

    def attempt(ask: Ask) -> Reply:
        first, kind = made(ask), ""
        number = first

        def one() -> Reply:
            nonlocal number, kind
            number += 1
            try:
                return inner(ask, number)
            except TryFailed as error:
                kind = error.kind
                raise

        def pause(seconds: float) -> None:
            if kind in _WHY:
                sleep(seconds, f"for {gate.account} ({_WHY[kind]})")

        try:
            return retrying.copy(sleep=pause)(one)
        except TryFailed as error:
            if error.kind == "too_long":
                raise AttemptFailed("too_long", error.reason) from None
            if suspend:
                raise Suspended(f"for {gate.account}, which cannot be reached ({error.reason})") from None
            gate.gave_up(ask.place.game)
            raise AttemptFailed("unreachable", f"{number - first} tries, the last: {error.reason}") from None

    return attempt


def _retrying(settings: ModelSettings, gate: Gate) -> Retrying:
    """How often, and how long to wait; see `retried`."""
    jitter = random.Random()

    def wait(state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        assert isinstance(error, TryFailed)
        if error.retry_after is not None:
            seconds = min(error.retry_after, settings.retry_after_cap)
        else:
            seconds = jitter.uniform(0, min(_MOST, _FIRST * 2 ** (state.attempt_number - 1)))
        if error.kind == "rate_limit":
            gate.close_for(seconds)
            return 0
        return seconds

    return Retrying(
        stop=stop_after_attempt(settings.tries),
        wait=wait,
        retry=retry_if_exception(lambda error: isinstance(error, TryFailed) and error.kind != "too_long"),
        reraise=True,
    )
