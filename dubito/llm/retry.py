"""Trying again: one owner of retries, a number of tries and full-jitter backoff, so that it repeats."""

import random
from collections.abc import Callable

from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt

from dubito.llm.failures import AttemptFailed, TryFailed
from dubito.llm.gate import Gate, Try
from dubito.llm.settings import ModelSettings
from dubito.llm.wire import Ask, Reply

_FIRST, _MOST = 0.5, 30.0  # seconds: the backoff's ceiling doubles from the one to the other

_WHY = {"rate_limit": "rate limit", "server": "server errors", "connection": "no connection", "too_long": "too long"}

Attempt = Callable[[Ask], Reply]


def retried(inner: Try, settings: ModelSettings, gate: Gate, sleep: Callable[[float, str], None]) -> Attempt:
    """Up to `tries` tries of one attempt; raises AttemptFailed when they are used up or cannot help.

    `sleep` is told for how many seconds, for whom and why. Waits as long as the server says, up to the
    player's cap, else a random time below a doubling ceiling; how long changes no result, so the jitter
    needs no stream of its own.
    """
    jitter = random.Random()

    def wait(state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        if isinstance(error, TryFailed) and error.retry_after is not None:
            return min(error.retry_after, settings.retry_after_cap)
        return jitter.uniform(0, min(_MOST, _FIRST * 2 ** (state.attempt_number - 1)))

    retrying = Retrying(
        stop=stop_after_attempt(settings.tries),
        wait=wait,
        retry=retry_if_exception(lambda error: isinstance(error, TryFailed) and error.kind != "too_long"),
        reraise=True,
    )

    def attempt(ask: Ask) -> Reply:
        number, why = 0, ""

        def one() -> Reply:
            nonlocal number, why
            number += 1
            try:
                return inner(ask, number)
            except TryFailed as error:
                why = _WHY[error.kind]
                raise

        try:
            return retrying.copy(sleep=lambda seconds: sleep(seconds, f"for {gate.account} ({why})"))(one)
        except TryFailed as error:
            if error.kind == "too_long":
                raise AttemptFailed("too_long", error.reason) from None
            gate.gave_up(ask.place.game)
            raise AttemptFailed("unreachable", f"{number} tries, the last: {error.reason}") from None

    return attempt
