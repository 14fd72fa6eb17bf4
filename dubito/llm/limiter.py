"""The rate limiter decides when an account's next call can start, and when silence means an outage.

`AccountTraffic` is shared by all calls of an account. `RateLimiter` is the stage through which one player's calls pass.
A rate limit does not count as a failure: all calls of the account wait. If an account answers no calls for `patience`,
the run ends with a message about the last failure.
"""

import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from math import inf
from typing import Final, NamedTuple

from dubito.errors import Interrupted, one_line
from dubito.llm.pacer import ConcurrencyLimit, OpenCall, Pacer, read_limits
from dubito.llm.request import FINAL_FAILURES, AccountFault, Attempt, OutOfTurn, Reply, Sends, TryFailed
from dubito.model_settings import Account

Sleep = Callable[[float, str], None]  # receives the seconds and the reason
Waiting = Callable[[str], AbstractContextManager[object]]  # receives a description of the wait, for the progress line

_FIRST_WAIT: Final = 0.5  # longest wait after the first failure, in seconds; it doubles up to `_MAX_WAIT`
_MAX_WAIT: Final = 30.0
_MAX_DOUBLINGS: Final = 6
_JITTER: Final = random.Random()  # the length of a wait changes no result, so it needs no seed
_PROBE_SHARE: Final = 0.1  # fraction of the silence so far, after which the account is probed again
_POLL_SECONDS: Final = 1.0  # seconds between checks whether the run has stopped
_MIN_WAIT: Final = 1e-6  # seconds; during a shorter wait a clock may not advance
_MAX_PAUSE: Final = 5.0  # seconds to pause after a rate limit, if the server does not report a time
_TRUSTED_PAUSES: Final = 3  # consecutive rate limits for which only the server's own pause is used
_BYTES_PER_TOKEN: Final = 4  # approximate bytes per token of a request
_OUTPUT_LIMITS: Final = ("max_output_tokens", "max_completion_tokens", "max_tokens")
_SHOWN_SECONDS: Final = 60.0  # seconds for which a pace is shown after it last delayed a call


def backoff(error: TryFailed, failures: int, cap: float, spread: float = 1.0) -> float:
    """Return the seconds to wait after a failure: the server's value, up to `cap`, or a random time.

    The maximum of the random time doubles with each of `failures`, and `spread` is the random fraction of it.
    """
    if error.retry_after:  # servers often send a meaningless 0
        return min(error.retry_after, cap)
    longest: float = min(_MAX_WAIT, _FIRST_WAIT * 2 ** min(failures - 1, _MAX_DOUBLINGS))
    return longest * _JITTER.uniform(1 - spread, 1)


def format_duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


@dataclass(frozen=True, slots=True)
class Timing:
    """Clocks and waits, which cannot change the results of a completed run."""

    patience: float  # seconds for which an account can leave calls unanswered
    sleep: Sleep
    waiting: Waiting
    clock: Callable[[], float]  # seconds
    stopped: Callable[[], bool]  # whether the run has been stopped
    time: Callable[[], float] = time.time  # in seconds since 1970


def check_stop(timing: Timing) -> None:
    if timing.stopped():
        raise Interrupted("stopped by Ctrl-C")


class CallCounts(NamedTuple):
    """The number of calls sent to an account, and of a model's calls that were answered or failed.

    Rate limits are not included.
    """

    sends: int
    answered: int
    failed: int


@dataclass(slots=True)
class ModelHealth:
    """The results of the calls to one model, which can be down while the account's other models answer."""

    model: str
    answered: int = 0
    failed: int = 0
    latest_answered: int = 0  # the highest number of a call that was answered
    in_flight: int = 0
    waiting: int = 0  # number of requests that wait for any answer
    silent_since: float | None = None  # when the first of the latest calls without an answer was sent
    lost_games: set[int] = field(default_factory=set)  # games in which a decision was given up since the last answer
    probing: threading.Lock = field(default_factory=threading.Lock)


class AccountTraffic:
    """All calls of an account, or of one model if limits apply per model. Thread-safe."""

    def __init__(self, account: Account, max_in_flight: int, timing: Timing) -> None:
        self.account = account
        self._timing, self._max_in_flight = timing, max_in_flight
        self._pacer = Pacer(concurrency=ConcurrencyLimit(float(max_in_flight)))
        self._next = threading.Lock()  # the holder of this lock starts the next call; other calls queue behind it
        self._changed = threading.Condition()
        self._health: dict[str, ModelHealth] = {}
        self._outage: AccountFault | None = None
        self._held_at = -inf  # when a call last had to wait

    def start(self, attempt: Attempt) -> OpenCall:
        """Wait until a call can be sent. Raises AccountFault or Interrupted if calls are no longer allowed."""
        size, body = len(attempt.request.text) / _BYTES_PER_TOKEN, attempt.request.body
        output = next((float(body[name]) for name in _OUTPUT_LIMITS if isinstance(body.get(name), int)), 0.0)
        costs = {"tokens": size + output, "input-tokens": size, "output-tokens": output}
        if not self._next.acquire(blocking=False):
            with self._timing.waiting(self._reason_to_wait()):
                self._next.acquire()
        try:
            while True:
                with self._changed:
                    self._raise_if_ended()
                    now = self._timing.clock()
                    seconds = self._pacer.delay(now, costs)
                    if seconds < _MIN_WAIT:
                        self._get_health(attempt).in_flight += 1
                        return self._pacer.start(now)
                    if seconds == inf:
                        self._changed.wait(_POLL_SECONDS)
                        continue
                    self._held_at = now
                self._timing.sleep(min(seconds, _POLL_SECONDS), self._reason_to_wait())
        finally:
            self._next.release()

    def _reason_to_wait(self) -> str:
        is_limited = self._held_at > -inf or self._pacer.concurrency.most < inf
        return f"for {self.account} ({'rate limit' if is_limited else 'busy'})"

    def finish(self, attempt: Attempt, call: OpenCall, headers: Mapping[str, str]) -> None:
        """Learn from an answered call. The answer may be an error that concerns only its request."""
        limits = read_limits(headers, self._timing.time())
        with self._ending(attempt) as health:
            self._pacer.count_accepted(call, self._timing.clock(), limits)
            health.answered += 1
            health.latest_answered = max(health.latest_answered, call.number)
            if self._outage is None:  # an outage lasts until the run has stopped, even if calls in flight are answered
                health.silent_since = None
                health.lost_games.clear()

    def fail(self, attempt: Attempt, call: OpenCall, error: TryFailed, max_pause: float) -> None:
        """Learn from an unanswered call. Raises AccountFault once patience has run out."""
        limits = read_limits(error.headers, self._timing.time())
        with self._ending(attempt) as health:
            now = self._timing.clock()
            if health.silent_since is None:
                health.silent_since = call.at
            if error.kind != "rate_limit":
                self._pacer.end()
                health.failed += 1
            elif error.is_concurrent:
                self._pacer.count_concurrency_refusal(now, self._pause(error, max_pause), bool(error.retry_after))
            else:
                self._pacer.count_refusal(call, now, self._pause(error, max_pause), limits)
            if error.kind == "rate_limit" and (error.retry_after or 0) > self._timing.patience:
                self._end_run(f"asks to wait {format_duration(error.retry_after or 0)}", error)
            if (silence := now - health.silent_since) >= self._timing.patience:
                whose = f" from the model {one_line(health.model, 80)!r}" if len(self._health) > 1 else ""
                self._end_run(f"cannot be reached: no answer for {format_duration(silence)}{whose}", error)
            self._raise_if_ended()

    def cancel(self, attempt: Attempt) -> None:
        """Undo the start of a call that was not sent."""
        with self._ending(attempt):
            self._pacer.cancel()

    def abandon(self, attempt: Attempt) -> None:
        """End a call without learning from it."""
        with self._ending(attempt):
            self._pacer.end()

    def counts(self, attempt: Attempt) -> CallCounts:
        with self._changed:
            health = self._get_health(attempt)
            return CallCounts(self._pacer.started, health.answered, health.failed)

    def is_idle(self, attempt: Attempt) -> bool:
        """Return whether no calls to the model are in flight or waiting for other calls to be answered."""
        with self._changed:
            health = self._get_health(attempt)
            return not health.in_flight and not health.waiting

    def wait_for_answer(self, attempt: Attempt, send_probe: Callable[[], object], since: int) -> None:
        """Wait until the model has answered a call after its first `since` calls.

        Probes are sent when no other calls are in flight. Raises AccountFault once patience has run out.
        """
        why = f"for {self.account} (no answer)"
        with self._changed:
            health = self._get_health(attempt)
            health.waiting += 1
        try:
            with self._timing.waiting(why):
                while not self._has_later_answer(health, since):
                    if health.probing.acquire(blocking=False):
                        try:
                            self._probe(health, since, send_probe, why)
                        finally:
                            health.probing.release()
        finally:
            with self._changed:
                health.waiting -= 1

    def _has_later_answer(self, health: ModelHealth, since: int) -> bool:
        """Return whether a later call was answered, after a short wait for calls in flight."""
        with self._changed:
            if health.latest_answered <= since and (health.in_flight or health.probing.locked()):
                self._changed.wait(_POLL_SECONDS)
            self._raise_if_ended()
            return health.latest_answered > since

    def _probe(self, health: ModelHealth, since: int, send_probe: Callable[[], object], why: str) -> None:
        """Wait, then send a probe unless another call is in flight by then."""
        silence = 0.0 if health.silent_since is None else self._timing.clock() - health.silent_since
        longest = min(_MAX_WAIT, max(_FIRST_WAIT, _PROBE_SHARE * silence))
        self._timing.sleep(longest * _JITTER.uniform(0.5, 1), why)
        if not health.in_flight and health.latest_answered <= since:
            with suppress(TryFailed):
                send_probe()

    def give_up(self, attempt: Attempt) -> None:
        """Remember the game of an unreachable decision, so that it is reopened if an outage is detected."""
        with self._changed:
            health = self._get_health(attempt)
            if health.silent_since is not None:
                health.lost_games.add(attempt.place.game)

    def try_again(self) -> None:
        """Discard a detected outage, because the user wants to continue."""
        with self._changed:
            self._outage = None
            for health in self._health.values():
                health.silent_since = None

    @property
    def lost_games(self) -> set[int]:
        with self._changed:
            return set().union(*(health.lost_games for health in self._health.values())) if self._outage else set()

    def describe_pace(self) -> str | None:
        """Return what currently limits calls, or None."""
        with self._changed:
            rate, most = self._pacer.per_minute(), self._pacer.concurrency.most
            if self._timing.clock() - self._held_at > _SHOWN_SECONDS:
                return None
            if most < self._max_in_flight:
                return f"{most:,.0f} calls at once, the most that the server accepts"
            if rate is None:
                return None
            is_reported = self._pacer.reported_rate <= self._pacer.probe.rate
            by = "by the server" if is_reported else "to stay within the server's limits"
            return f"paced at {rate:,.0f} requests/min {by}"

    def _get_health(self, attempt: Attempt) -> ModelHealth:
        model = attempt.request.model
        return self._health.setdefault(model, ModelHealth(model))

    @contextmanager
    def _ending(self, attempt: Attempt) -> Iterator[ModelHealth]:
        with self._changed:
            health = self._get_health(attempt)
            health.in_flight -= 1
            self._changed.notify_all()
            yield health

    def _pause(self, error: TryFailed, cap: float) -> float:
        """Return how long to pause: the server's time, or longer each time the last pause was too short."""
        refusals = self._pacer.refusals + 1
        own = min(_MAX_PAUSE, backoff(TryFailed(error.kind, error.problem), refusals, cap, spread=0.5))
        if not error.retry_after:
            return own
        server_wait = backoff(error, refusals, cap)
        return max(server_wait, own) if refusals > _TRUSTED_PAUSES else server_wait

    def _end_run(self, what: str, error: TryFailed) -> None:
        if self._outage is None:
            slow = "whether the server needs a longer `deadline`, " if error.kind == "deadline" else ""
            hint = (
                f"`patience` is {format_duration(self._timing.patience)}: check {slow}that the server is up, "
                "`base_url`, and the account's limits, or resume later"
            )
            problem = f"{self.account} {what}; last error: {error.problem}"
            self._outage = AccountFault(problem, quote=error.quote, hint=hint)

    def _raise_if_ended(self) -> None:
        check_stop(self._timing)
        if self._outage is not None:
            outage = self._outage
            raise AccountFault(outage.problem, quote=outage.quote, hint=outage.hint)


@dataclass(frozen=True, slots=True)
class RateLimiter:
    """A stage that sends each call when the account's limits allow it, and learns from the result."""

    traffic: AccountTraffic
    max_pause: float  # how long a server can ask to wait, in seconds (`retry_after_cap`)
    inner: Sends

    def send(self, attempt: Attempt, number: int) -> Reply:
        call = self.traffic.start(attempt)
        try:
            reply = self.inner.send(attempt, number)
        except TryFailed as error:
            if error.kind in FINAL_FAILURES:
                self.traffic.finish(attempt, call, error.headers)
            else:
                self.traffic.fail(attempt, call, error, self.max_pause)
            raise
        except OutOfTurn:
            self.traffic.cancel(attempt)
            raise
        except BaseException:
            self.traffic.abandon(attempt)
            raise
        self.traffic.finish(attempt, call, reply.received.headers)
        return reply
