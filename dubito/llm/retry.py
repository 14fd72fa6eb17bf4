"""Retries: the only place that makes them, with random waits, which change no result.

A server error, a lost connection and a passed deadline are the account's trouble as long as its other requests suffer
as well: the decision waits, and the account's silence for `patience` ends the run (the gate sees to both). A decision
is unreachable only where its request alone goes on failing while others are answered (`Streak`). A rate limit counts
as no failure: the gate waits, for the whole account.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from math import prod
from typing import Final

from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_random

from dubito.llm.backoff import pause
from dubito.llm.failures import AccountFault, AttemptFailed, Suspended, TryFailed
from dubito.llm.gate import Gate, Heard, MakeTry, Sleep
from dubito.llm.settings import ModelSettings
from dubito.llm.wire import Ask, Reply

_WHY: Final = {"server": "server errors", "connection": "no connection", "deadline": "deadline passed"}
_STRAYS: Final = 2  # times that a request is sent again which was rejected for nothing that is named
_STRAY_WAIT: Final = 1.0  # seconds before that, at the most
_CHANCE: Final = 1e-6  # of the account's trouble striking one request so often: below it the request is at fault
_NOTHING: Final = Heard(0, 0, 0)
_OTHERS: Final = 10.0  # calls of others, at the most, that each failure is held against
_DOUBLINGS: Final = 4  # failures after which its waits grow no longer, at 4 s: an outage is sat out by probes
_BEFORE: Final = 40  # failures in a row before the first game: at 60 % they come once in 700 million times
_BRIEF: Final = 2  # failures after which waits grow no longer there, at a second: somebody sits before it

MakeAttempt = Callable[[Ask], Reply]


@dataclass(slots=True)
class Streak:
    """The failures of one request in a row, beside what became of other requests of its model meanwhile.

    A failure counts if another request was answered since the last one that counted; so an outage counts once at the
    most. If the account were to blame, all its requests would fail with one probability, whatever it is; then
    Laplace's rule of succession says how likely this one is to fail so often: where f of n others failed, the next
    fails with probability (f + 1) / (n + 2), and each failure in turn is another of n. Below one in a million, the
    request is given up. Where all others are answered, 5 failures are enough beside 38 answers, 8 beside 16, and 12
    beside 10 (a game at a time, where only probes are answered); where 60 % of the others fail it takes about 30. At
    random failures of up to 75 % fewer than one decision in a million is lost, at 90 % one in 70,000 at the most.
    """

    failures: int = 0
    counted: int = 0
    silent: int = 0  # failures since the last that counted
    answered: float = 0.0  # of the others that are held against it
    failed: float = 0.0
    first: Heard = _NOTHING  # at the first failure
    last: Heard = _NOTHING  # at the last failure that counted

    def fails(self, heard: Heard) -> None:
        """The request failed again; `heard` has this failure in it."""
        self.failures += 1
        self.silent += 1
        answered, failed = heard.answered - self.last.answered, heard.failed - self.last.failed - self.silent
        if self.failures == 1:
            self.first = heard
        elif not answered:
            return
        else:
            part = min(1.0, _OTHERS / (answered + failed))
            self.answered, self.failed = self.answered + part * answered, self.failed + part * failed
        self.counted, self.last, self.silent = self.counted + 1, heard, 0

    @property
    def chance(self) -> float:
        """How likely one of so many requests is to fail so often, if it is no worse than the others."""
        failed, others = self.failed, self.answered + self.failed
        return prod((failed + 1 + number) / (others + 2 + number) for number in range(self.counted))

    def told(self, heard: Heard, error: TryFailed) -> str:
        """The streak in words."""
        answered = heard.answered - self.first.answered
        others = answered + heard.failed - self.first.failed - self.failures + 1
        of = f"{answered}" if answered == others else f"{answered} of {others}"
        return f"failed {self.failures} times while {of} other requests were answered, the last: {error.reason}"


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
    """Tries until one is answered; raises AttemptFailed where none can help, or the streak says so.

    `probe` asks the account for a sign of life, None: nobody waits for one. `made`: how many tries of an attempt there
    were before; their numbers go on. With `suspend`, a model that cannot be reached raises Suspended instead of
    causing a fallback.
    """

    strays = _resending(gate, sleep)

    def attempt(ask: Ask) -> Reply:
        numbers, streak = count(made(ask) + 1), Streak()
        while True:
            try:
                return strays(lambda: inner(ask, next(numbers)))
            except TryFailed as error:
                failed = error
            if failed.kind == "rate_limit":
                continue
            streak.fails(gate.heard(ask))
            _raise_if_given_up(ask, streak, failed, settings, gate, suspend=suspend)
            rest(ask, streak, failed)

    def rest(ask: Ask, streak: Streak, failed: TryFailed) -> None:
        number = min(streak.failures, _DOUBLINGS if ask.place.in_game else _BRIEF)
        sleep(pause(failed, number, settings.retry_after_cap), f"for {gate.account} ({_WHY[failed.kind]})")
        waits = streak.failures >= settings.tries if gate.alone(ask) else streak.silent > 0
        if probe is not None and ask.place.in_game and waits:
            gate.sign_of_life(ask, probe, streak.last.sends)

    return attempt


def _resending(gate: Gate, sleep: Sleep) -> Retrying:
    """Sends a request again that is rejected for nothing that is named: servers do that by mistake."""
    return Retrying(
        stop=stop_after_attempt(1 + _STRAYS),
        wait=wait_random(0, _STRAY_WAIT),
        retry=retry_if_exception(lambda error: isinstance(error, AccountFault) and error.stray),
        sleep=lambda seconds: sleep(seconds, f"for {gate.account} (a request was rejected)"),
        reraise=True,
    )


def _raise_if_given_up(
    ask: Ask, streak: Streak, failed: TryFailed, settings: ModelSettings, gate: Gate, *, suspend: bool
) -> None:
    """Before the first game a server gets `tries` tries where it is the wrong one: none that can be connected to, or
    one whose replies, which it bills, are none. A sick one gets more."""
    if failed.kind in ("too_long", "refused"):
        raise AttemptFailed(failed.kind, failed.reason)
    if not ask.place.in_game:
        sick = failed.spent is None and (failed.kind != "connection" or failed.billed)
        if streak.failures >= (max(settings.tries, _BEFORE) if sick else settings.tries):
            raise AttemptFailed("unreachable", f"{streak.failures} tries, the last: {failed.reason}")
        return
    alone_fails = streak.failures >= settings.tries and streak.chance < _CHANCE
    if suspend and (alone_fails or streak.silent >= settings.tries - 1):
        nobody = f"for {gate.account}, which cannot be reached"
        raise Suspended(f"{nobody} ({failed.reason})", f"{nobody} ({failed.brief})")
    if alone_fails:
        gate.gave_up(ask)
        raise AttemptFailed("unreachable", streak.told(gate.heard(ask), failed))
