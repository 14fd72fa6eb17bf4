"""How fast an account may be called, as learned from the server's headers or refusals.

This module only keeps state: every method receives the time, in seconds of any clock. Nothing here sleeps or is
thread-safe; `RateLimiter` handles both.

Four classes set limits on the next call, and the strictest one applies: `TokenBucket` follows each limit that headers
report, `RateProbe` finds a rate that headers do not report, `SlowStart` allows few calls while nothing is known, and
`ConcurrencyLimit` limits the calls in flight if a server refuses too many at once.

Headers are `x-ratelimit-*` and `anthropic-ratelimit-*`. OpenAI reports the time until a limit is fully restored as a
duration (`6ms`, `1m30s`), Anthropic as a timestamp (RFC 3339), others as seconds, or as a timestamp in seconds or
milliseconds since 1970.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from math import inf
from typing import Final

from dubito.settings import parse_duration

_HEADER: Final = re.compile(
    r"(?:x-ratelimit-(?P<what>limit|remaining|reset)(?:-(?P<of>[a-z-]+))?"
    r"|anthropic-ratelimit-(?P<aof>[a-z-]+)-(?P<awhat>limit|remaining|reset))"
)
# Limits on calls in flight are not rates: `ConcurrencyLimit` finds them from refusals.
_CONCURRENCY_WORDS: Final = ("concurren", "parallel", "connection", "flight")
_MIN_EPOCH: Final = 1e9  # seconds; larger numbers are timestamps, not durations
_MAX_NUMBER: Final = 1e14

MARGIN: Final = 0.96  # share of the allowed rate to use, since clocks, arrival orders and rounded headers differ
_MINUTE: Final = 60.0
_FIRST_CALLS: Final = 8  # calls in flight before any is accepted
_GROWTH_SECONDS: Final = 0.25  # refusals arrive sooner than this, answers later
_ROUND: Final = 20  # minimum number of calls for a meaningful share of refusals
_MIN_RATE: Final = 0.2  # calls per second
_MIN_SHARE: Final = 0.03  # share of refused calls below which no slower rate is needed
_MAX_EMPTY: Final = 4  # accepted calls without anything remaining, after which headers are not believed
_IGNORED_CALLS, _MAX_IGNORED = 200, 5000  # how long to ignore refusals that a slower rate does not prevent
_MIN_HOLD, _MAX_HOLD = 32, 1024  # accepted calls before one more call in flight is tried


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit from headers: what it counts (`requests`, `tokens`, `input-tokens`, ...) and how much is left."""

    kind: str
    limit: float
    remaining: float
    reset: float | None  # seconds until the limit is fully restored; None if not reported


def read_limits(headers: Mapping[str, str], time: float) -> list[Limit]:
    """Return the completely reported limits. `time` is the time of day, in seconds since 1970."""
    values_of: dict[str, dict[str, str]] = {}
    for name, value in headers.items():
        if match := _HEADER.fullmatch(name.lower()):
            kind = match["of"] or match["aof"] or "requests"
            values_of.setdefault(kind, {})[match["what"] or match["awhat"]] = value.strip()
    limits = []
    for kind, values in sorted(values_of.items()):
        limit, remaining = _parse_number(values.get("limit", "")), _parse_number(values.get("remaining", ""))
        if limit and remaining is not None and not any(word in kind for word in _CONCURRENCY_WORDS):
            limits.append(Limit(kind, limit, remaining, _parse_reset(values.get("reset", ""), time)))
    return limits


def _parse_number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value < _MAX_NUMBER else None


def _parse_reset(text: str, time: float) -> float | None:
    number = _parse_number(text)
    duration = parse_duration(text) if number is None else number
    if duration is not None and duration < _MIN_EPOCH:
        return duration
    try:
        moment = datetime.fromisoformat(text).timestamp() if number is None else number
    except (ValueError, OverflowError):
        return None
    return max(0.0, (moment / 1000 if moment > _MIN_EPOCH * 100 else moment) - time)


@dataclass(slots=True)
class TokenBucket:
    """A limit reported by headers: a bucket that refills continuously, or a fixed window.

    Each answer reports what was left when its call arrived. Calls sent later are subtracted. The time at which the
    limit is fully restored distinguishes buckets from windows: calls delay it for a bucket but not for a window.
    """

    cost: float = 1.0  # cost of a call
    learns_cost: bool = False  # whether to learn the cost, since servers count tokens in their own ways
    limit: float = 0.0
    rate: float = 0.0  # refilled per second
    level: float = inf
    capacity: float = 0.0  # the highest remaining amount seen so far
    updated_at: float = 0.0
    is_window: bool = False
    ends_at: float = inf  # end of the window
    latest: int = 0  # the latest call whose answer was read
    empty: int = 0  # number of accepted calls while nothing was ever left
    measured: tuple[int, float, Limit] | None = None  # start of the measurement: a call's number, time and answer

    def delay(self, now: float) -> float:
        self._refill(now)
        short = self.cost - self.level
        if short <= 0 or not self.is_believed:
            return 0.0
        return max(0.0, self.ends_at - now) if self.is_window else short / (MARGIN * self.rate)

    @property
    def is_believed(self) -> bool:
        """Whether to believe the headers. Some proxies accept calls while always reporting that nothing is left."""
        return self.empty < _MAX_EMPTY

    def read(self, call: "OpenCall", now: float, limit: Limit, later_calls: int) -> None:
        """Update from the answer to `call`. `later_calls` were sent after that call."""
        if self.limit != limit.limit:
            # Limits are usually per minute.
            self.limit, self.rate, self.measured = limit.limit, limit.limit / _MINUTE, None
        self.capacity = max(self.capacity, limit.remaining)
        if call.number < self.latest or (self.is_window and limit.reset is not None and call.at + limit.reset < now):
            return
        self.latest = call.number
        if self.is_window and limit.reset is not None:
            self.ends_at = call.at + limit.reset
        self.level, self.updated_at = limit.remaining - later_calls * self.cost, call.at
        self._refill(now)
        if self.measured is None:
            self.measured = (call.number, call.at, limit)
        elif call.number - self.measured[0] >= _ROUND // 2:
            self._measure(call, *self.measured, limit)
            self.measured = (call.number, call.at, limit)

    def _refill(self, now: float) -> None:
        if self.is_window:
            if now >= self.ends_at:
                self.level, self.ends_at = self.limit, inf
        elif self.level < inf:
            refilled = self.level + MARGIN * self.rate * (now - self.updated_at)
            self.level = min(max(self.capacity, self.cost), refilled)
        self.updated_at = now

    def _measure(self, call: "OpenCall", first_number: int, first_at: float, before: Limit, after: Limit) -> None:
        """Learn a call's cost, whether the limit is a window, and its rate if that is not per minute."""
        calls, seconds = call.number - first_number, call.at - first_at
        if self.learns_cost:
            refilled = min(self.rate * seconds, self.capacity - after.remaining)
            self.cost = max(1.0, (before.remaining - after.remaining + refilled) / calls)
        if before.reset is None or after.reset is None:
            return
        shift = seconds + after.reset - before.reset
        usual = self.limit / _MINUTE
        if abs(shift) < 0.1 * min(calls * self.cost / usual, before.reset):
            self.is_window, self.ends_at = True, call.at + after.reset
        elif max(before.remaining, after.remaining) < 0.7 * self.capacity:  # a full bucket does not refill
            measured = calls * self.cost / shift if shift > 0 else usual
            self.is_window = self.is_window and shift <= 0
            self.rate = usual if 0.7 < measured / usual < 1.4 else measured


@dataclass(slots=True)
class RateProbe:
    """The rate that a server accepts, estimated only from its refusals.

    Refusals arrive at once and answers late, so each call that was not refused counts as accepted. The allowed rate is
    the number of calls accepted between two refusals, divided by the time between them. From there, the rate rises in
    steps. If slowing down does not lower the share of refusals, they have another cause and are ignored for a while.
    """

    rate: float = inf  # calls per second
    burst: float = float(_FIRST_CALLS)  # calls that may catch up after a pause
    good_rate: float | None = None  # the highest lower rate at which a round was accepted
    step: float = 0.5
    ignore_refusals_for: int = 0  # calls
    next_ignore: int = _IGNORED_CALLS  # number of calls to ignore next time
    before_cut: tuple[float, float | None] | None = None  # the rate, and the share of refusals if known
    level: float = 0.0
    updated_at: float = 0.0
    sends: int = 0  # since the last reduction
    refusals: int = 0  # since the last reduction
    passed: int = 0  # calls since the last refusal or rise
    hold: int = _ROUND  # calls before the next rise
    refused_at: float | None = None  # when calls were last refused
    accepted: int = 0  # calls since then

    def delay(self, now: float) -> float:
        if self.rate == inf:
            return 0.0
        self.level = min(max(1.0, self.burst), self.level + self.rate * (now - self.updated_at))
        self.updated_at = now
        return max(0.0, (1 - self.level) / self.rate)

    def start(self, now: float, is_alone: bool) -> None:
        """Count a call that is sent. `is_alone` means that no other calls are in flight, so no limit held them back."""
        if self.refused_at is None or (is_alone and self.rate == inf):
            self.refused_at, self.accepted = now, 0
        self.sends += 1
        self.accepted += 1
        self.ignore_refusals_for = max(0, self.ignore_refusals_for - 1)
        self.level -= 1
        self.passed += 1
        if self.rate < inf and self.passed >= max(self.hold, 2 * self.burst):
            if self.level < 1:  # the rate delayed calls; there was no lack of calls
                self.good_rate, self.hold = self.rate, _ROUND
                self.rate *= 1 + self.step
            self.passed = 0

    def cancel(self) -> None:
        self.accepted -= 1
        self.sends -= 1
        self.level += 1

    def slow_down(self, at: float, now: float, burst: int, refused: int) -> None:
        """Lower the rate after refusals in a burst of calls. The refusals began `at`."""
        if self.accepted <= 0:
            return  # nothing has been accepted since the last refusals, which continue
        share = self.refusals / max(1, self.sends)
        allowed = self.accepted / max(at - (at if self.refused_at is None else self.refused_at), 1e-3)
        self.refused_at, self.accepted, self.passed = at, 0, 0
        if refused > 1 and burst <= self.burst + refused:
            self.burst = max(1.0, min(self.burst, burst - refused))
        elif burst > 4 * self.burst:
            self.burst *= 2
        if self.ignore_refusals_for and share < 0.6:
            return
        is_share_known = self.sends >= _ROUND
        if self.before_cut is not None:
            if not is_share_known and not (share >= 0.5 and self.refusals >= 4):
                return
            rate_before, share_before = self.before_cut
            has_same_share = share_before is not None and share >= _MIN_SHARE and 0.5 < share / share_before < 2
            if has_same_share and allowed >= 0.6 * self.rate:
                self.before_cut, self.ignore_refusals_for = None, self.next_ignore
                self.next_ignore = min(_MAX_IGNORED, 2 * self.next_ignore)
                self._set_rate(rate_before, now)
                return
        known = share if is_share_known else None
        if self.good_rate is not None and is_share_known:
            self.before_cut = (self.rate, known)
            self._set_rate(0.98 * min(self.good_rate, (allowed * self.good_rate) ** 0.5), now)
            self.step = max(0.01, self.step / 4)
        else:
            self.before_cut = (self.rate if self.before_cut is None else self.before_cut[0], known)
            # Lower a well-known rate only a little: a stall of this machine or of the server may look like a limit.
            least = self.rate * (0.9 if self.step < 0.05 else 0.125) if self.rate < inf else 0.0
            self._set_rate(max(min(allowed, 0.9 * self.rate), least, _MIN_RATE), now)
        self.hold = 3 * _ROUND

    def _set_rate(self, rate: float, now: float) -> None:
        self.rate, self.good_rate = rate, None
        self.level, self.updated_at = 0.0, now
        self.sends = self.refusals = 0


@dataclass(slots=True)
class SlowStart:
    """The number of calls that can start while the limit is unknown. It doubles in each step.

    At the start, calls in flight are counted. After refusals, all calls sent since are counted, the first of which is a
    probe.
    """

    size: float = float(_FIRST_CALLS)
    is_probing: bool = False
    sends: int = 0  # since the last refusals
    grown_at: float | None = None

    def delay(self, now: float, in_flight: int) -> float:
        if (self.sends if self.is_probing else in_flight) < self.size:
            return 0.0
        if self.grown_at is None:
            self.grown_at = now
        if now - self.grown_at < _GROWTH_SECONDS:
            return self.grown_at + _GROWTH_SECONDS - now
        self.size, self.grown_at = self.size * 2, now
        return 0.0


@dataclass(slots=True)
class ConcurrencyLimit:
    """The number of calls that can be in flight: `allowed`, or the number that the server accepted.

    One more is tried after some calls at the limit. Each time it is refused, the next trial takes twice as many calls.
    """

    allowed: float = inf
    most: float = inf
    hold: int = _MIN_HOLD  # calls before one more is tried
    passed: int = 0  # calls accepted at the limit since it changed
    is_trial: bool = False  # whether the last change added one

    def count_accepted(self, others: int) -> None:
        """Count an accepted call. `others` were in flight at the same time."""
        if others + 1 >= self.most < inf:
            self.passed += 1
            if self.passed >= self.hold:
                self.hold = _MIN_HOLD if self.is_trial else self.hold
                self.most, self.passed, self.is_trial = self.most + 1, 0, True

    def count_refusal(self, others: int) -> None:
        if self.is_trial:
            self.hold = min(_MAX_HOLD, 2 * self.hold)
        self.most, self.passed, self.is_trial = max(1.0, min(self.most, others)), 0, False


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A call in flight."""

    number: int
    at: float


@dataclass(slots=True)
class Pacer:
    """The pace of one account: tracks all calls and computes when the next one can start."""

    closed_until: float = 0.0
    buckets: dict[str, TokenBucket] = field(default_factory=dict)
    probe: RateProbe = field(default_factory=RateProbe)
    slow_start: SlowStart = field(default_factory=SlowStart)
    concurrency: ConcurrencyLimit = field(default_factory=ConcurrencyLimit)
    in_flight: int = 0
    costs: Mapping[str, float] = field(default_factory=dict)  # of a call, by kind of limit, until learned
    refusals: int = 0  # consecutive refusals without an accepted call
    started: int = 0
    _closed_at: float | None = None  # when the latest series of refusals began
    _refused: int = 0  # calls since then
    _last_before_reopening: int = 0

    def delay(self, now: float, costs: Mapping[str, float]) -> float:
        """Return the seconds until the next call can start, or inf if another call has to end first."""
        self.costs = costs
        if now < self.closed_until:
            return self.closed_until - now
        if self._closed_at is not None:
            # A series of refusals has ended: learn from it, and start again with a probe.
            self.probe.slow_down(self._closed_at, now, self.slow_start.sends, self._refused)
            self.slow_start = SlowStart(size=1.0, is_probing=True)
            self._last_before_reopening = self.started
            self._closed_at, self._refused = None, 0
        if self.in_flight >= min(self.concurrency.most, self.concurrency.allowed):
            return inf
        delays = [bucket.delay(now) for bucket in self.buckets.values()]
        return max(self.slow_start.delay(now, self.in_flight), self.probe.delay(now), *delays)

    def start(self, now: float) -> OpenCall:
        self.started += 1
        self.probe.start(now, is_alone=self.in_flight == 0)
        self.in_flight += 1
        self.slow_start.sends += 1
        for bucket in self.buckets.values():
            bucket.level -= bucket.cost
        return OpenCall(self.started, now)

    def cancel(self) -> None:
        """Undo the start of a call that was not sent."""
        self.in_flight -= 1
        self.slow_start.sends -= 1
        self.probe.cancel()
        for bucket in self.buckets.values():
            bucket.level += bucket.cost

    def count_accepted(self, call: OpenCall, now: float, limits: Sequence[Limit]) -> None:
        """Count an answered call. `limits` comes from its headers."""
        self.in_flight -= 1
        self.concurrency.count_accepted(self.in_flight)
        self.refusals = 0
        if call.number > self._last_before_reopening:
            self.slow_start.size *= 2
        self._read(call, now, limits)
        for limit in limits:
            bucket = self.buckets[limit.kind]
            bucket.empty = bucket.empty + 1 if bucket.capacity < 1 else 0

    def count_refusal(self, call: OpenCall, now: float, pause: float, limits: Sequence[Limit] = ()) -> None:
        """Count a call refused because of a rate limit, and pause for `pause` seconds."""
        self.in_flight -= 1
        self._read(call, now, limits)
        for bucket in self.buckets.values():
            bucket.empty = 0
        self.probe.accepted -= 1
        self.probe.refusals += 1
        self._refused += 1
        if self._closed_at is None:
            self._closed_at = now
            self.refusals += 1
        self.closed_until = max(self.closed_until, now + pause)

    def count_concurrency_refusal(self, now: float, pause: float, is_pause_asked: bool) -> None:
        """Count a call refused because too many were in flight.

        If other calls are still in flight, a slot will become free, so no pause is needed unless the server asks for
        one.
        """
        self.in_flight -= 1
        self.probe.cancel()
        self.concurrency.count_refusal(self.in_flight)
        if is_pause_asked or not self.in_flight:
            self.refusals += 1
            self.closed_until = max(self.closed_until, now + pause)

    def end(self) -> None:
        """Count a call that ended without an answer."""
        self.in_flight -= 1

    def per_minute(self) -> float | None:
        slowest = min(self.reported_rate, self.probe.rate)
        return None if slowest == inf else MARGIN * slowest * _MINUTE

    @property
    def reported_rate(self) -> float:
        return min((bucket.rate / bucket.cost for bucket in self.buckets.values() if bucket.is_believed), default=inf)

    def _read(self, call: OpenCall, now: float, limits: Sequence[Limit]) -> None:
        for limit in limits:
            if limit.kind not in self.buckets:
                cost = self.costs.get(limit.kind, 1.0)
                self.buckets[limit.kind] = TokenBucket(cost, learns_cost=limit.kind != "requests")
            self.buckets[limit.kind].read(call, now, limit, self.started - call.number)
