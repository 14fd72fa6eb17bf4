"""Retries: the only place that makes them; a fixed number of tries with random waits, which change no result.

A rate limit uses up no try: the gate waits, for the whole account. After a second failure in a row the next try has
to wait until the account has answered somebody: so an outage uses up no tries either, and a decision
is unreachable only where its own calls fail again and again while others succeed.
"""

from collections.abc import Callable, Iterator
from itertools import count

from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt

from dubito.llm.backoff import pause
from dubito.llm.failures import AccountFault, AttemptFailed, Cause, Suspended, TryFailed
from dubito.llm.gate import Gate, MakeTry, Sleep
from dubito.llm.settings import ModelSettings
from dubito.llm.wire import Ask, Reply

_WHY = {"server": "server errors", "connection": "no connection", "deadline": "deadline passed"}
_STRAYS = 2  # times that a request is sent again which was rejected for nothing that is named
_FAILURES_BEFORE_PROBE = 2  # in a row, from which others have to succeed before another try

MakeAttempt = Callable[[Ask], Reply]


def retried(
    inner: MakeTry,
    settings: ModelSettings,
    gate: Gate,
    sleep: Sleep,
    *,
    probe: Callable[[], object] | None,
    made: Callable[[Ask], int] = lambda ask: 0,
    suspend: bool = False,
) -> MakeAttempt:
    """Up to `tries` tries of one attempt; raises AttemptFailed when they are used up or cannot help.

    `probe` asks the account for a sign of life, None: nobody waits for one. `made`: how many tries of an attempt there
    were before; their numbers go on. With `suspend`, a model that cannot be reached raises Suspended instead of
    causing a fallback.
    """
    retrying = _retrying(settings, gate, sleep, probe)

    def attempt(ask: Ask) -> Reply:
        numbers = count(made(ask) + 1)
        try:
            return retrying(_past_rate_limits, inner, ask, numbers)
        except TryFailed as error:
            cause = _cause_of(error)
            if cause != "unreachable":
                raise AttemptFailed(cause, error.reason) from None
            if suspend:
                nobody = f"for {gate.account}, which cannot be reached"
                raise Suspended(f"{nobody} ({error.reason})", f"{nobody} ({error.brief})") from None
            if probe is not None and ask.place.in_game:
                gate.sign_of_life(probe)  # the account's silence is no cause of a fallback
            gate.gave_up(ask.place.game)
            raise AttemptFailed("unreachable", f"{settings.tries} tries, the last: {error.reason}") from None

    return attempt


def _past_rate_limits(inner: MakeTry, ask: Ask, numbers: Iterator[int]) -> Reply:
    """Try until something other than a rate limit comes back; a request that is rejected for nothing that is named is
    sent again, since servers do that by mistake."""
    strays = 0
    while True:
        try:
            return inner(ask, next(numbers))
        except TryFailed as error:
            if error.kind != "rate_limit":
                raise
        except AccountFault as fault:
            strays += 1
            if not fault.stray or strays > _STRAYS:
                raise


def _cause_of(error: TryFailed) -> Cause:
    return error.kind if error.kind in ("too_long", "refused") else "unreachable"


def _retrying(settings: ModelSettings, gate: Gate, sleep: Sleep, probe: Callable[[], object] | None) -> Retrying:
    def wait(state: RetryCallState) -> float:
        return pause(_failure(state), state.attempt_number, settings.retry_after_cap)

    def rest(state: RetryCallState) -> None:
        sleep(state.upcoming_sleep, f"for {gate.account} ({_WHY[_failure(state).kind]})")
        ask: Ask = state.args[1]
        if probe is not None and state.attempt_number >= _FAILURES_BEFORE_PROBE and ask.place.in_game:
            gate.sign_of_life(probe)

    return Retrying(
        stop=stop_after_attempt(settings.tries),
        wait=wait,
        retry=retry_if_exception(lambda error: isinstance(error, TryFailed) and _cause_of(error) == "unreachable"),
        before_sleep=rest,
        sleep=lambda seconds: None,  # `rest` has slept: tenacity's sleep could not say for whom and why
        reraise=True,
    )


def _failure(state: RetryCallState) -> TryFailed:
    error = state.outcome.exception() if state.outcome else None
    assert isinstance(error, TryFailed)
    return error
