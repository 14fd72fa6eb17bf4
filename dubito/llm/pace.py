"""How fast an account may be asked: by what its server says in headers, else by what it takes.

State only: every method is told what time it is, in seconds of any clock; nothing here sleeps, and nothing is shared
between threads (the gate sees to both).

Four things bound the next call, and the slowest counts. After a rate limit, and at the start, a *window* of calls
under way opens with one probe (at the start, with a few) and doubles as long as none is refused. Where headers tell,
each of the server's *allowances* (requests, tokens) is followed call by call. Where they do not, or not all, the
*climb* finds the rate: what was taken between two rate limits, over the time between them, is what the server allows.
A refusal that speaks of calls at once is no rate: it lowers the *places*, and the rate stays.

What a server says of its rate limits in headers: `x-ratelimit-*` and `anthropic-ratelimit-*`.

OpenAI counts the time until all is there again as a duration (`6ms`, `1m30s`), Anthropic says when that is (RFC 3339),
others say seconds, or the moment in seconds or milliseconds since 1970.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from math import inf
from typing import Final

_NAME: Final = re.compile(
    r"(?:x-ratelimit-(?P<what>limit|remaining|reset)(?:-(?P<of>[a-z-]+))?"
    r"|anthropic-ratelimit-(?P<aof>[a-z-]+)-(?P<awhat>limit|remaining|reset))"
)
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|us|d|h|m|s)")
_SECONDS: Final = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_AT_ONCE: Final = ("concurren", "parallel", "connection", "flight")  # no rates: refusals tell those limits in time
_EPOCH: Final = 1e9  # a number of seconds from which it is no duration but a moment
_MOST: Final = 1e14


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit: what it counts (`requests`, `tokens`, `input-tokens`, ...), how much of it there is and is left."""

    kind: str
    limit: float
    remaining: float
    reset: float | None  # seconds until all of it is there again; None if that is not said


def limits_of(headers: Mapping[str, str], time: float) -> list[Limit]:
    """All limits that are told completely enough to be followed; `time` is the time of day, in seconds since 1970."""
    found: dict[str, dict[str, str]] = {}
    for name, value in headers.items():
        if match := _NAME.fullmatch(name.lower()):
            kind = match["of"] or match["aof"] or "requests"
            found.setdefault(kind, {})[match["what"] or match["awhat"]] = value.strip()
    limits = []
    for kind, said in sorted(found.items()):
        limit, remaining = _number(said.get("limit")), _number(said.get("remaining"))
        if any(word in kind for word in _AT_ONCE):
            continue
        if limit is not None and limit > 0 and remaining is not None:
            limits.append(Limit(kind, limit, remaining, _seconds(said.get("reset", ""), time)))
    return limits


def seconds_of(text: str) -> float | None:
    """The seconds in `1h2m3.5s`, `350ms`; None if it is no such text."""
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)


def _number(text: str | None) -> float | None:
    try:
        value = float(text) if text else -1.0
    except ValueError:
        return None
    return value if 0 <= value < _MOST else None


def _seconds(text: str, time: float) -> float | None:
    number = _number(text) if text else None
    if number is not None:
        if number < _EPOCH:
            return number
        moment = number / 1000 if number > _EPOCH * 100 else number
        return max(0.0, moment - time)
    said = seconds_of(text)
    if said is not None:
        return said
    try:
        moment = datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        return None
    return max(0.0, moment - time)


MARGIN: Final = 0.96  # of what a server allows: clocks, orders of arrival and rounded headers differ
_MINUTE: Final = 60.0
_FEW: Final = 8  # calls that are under way at the start before any is known to be taken
_GROWS: Final = 0.25  # seconds after which a full window grows: a refusal comes back sooner than an answer
_ROUND: Final = 20  # calls from which a share of refusals is worth looking at
_SLOWEST: Final = 0.2  # calls per second
_HELD: Final = 5000  # calls for which a rate that was found is kept, at the most
_OPEN: Final = 1024  # calls: what lets so many go lets all go
_MANY: Final = 0.03  # a share of refusals
_LIES: Final = 4  # calls taken by a server whose headers never left anything, after which they are doubted
_PLACES: Final = 32  # calls taken, at the least, before one more at once is tried
_LASTING: Final = 1024  # and at the most
_LOOKS: Final = 0.01  # seconds after which it is looked again whether a place is free
_DEAF: Final = 200  # calls for which refusals that no slower pace prevents are put up with


@dataclass(slots=True)
class Allowance:
    """One of a server's limits, as its headers tell it: a bucket that refills all the time, or a fixed window.

    Its level is reckoned call by call and put right by each answer, which says what was left when its call came in.
    Bucket or window shows in the instant at which all is there again: each call puts that of a bucket off by the time
    one call takes to refill, and that of a window not at all.
    """

    cost: float = 1.0  # of a call; of tokens it is learned from what remains
    learns: bool = False
    rate: float = 0.0  # refilled per second
    level: float = inf
    capacity: float = 0.0
    fixed: bool = False
    resets: float = inf  # a window: when
    whole: float = 0.0
    stamp: float = 0.0
    put_right: float = 0.0  # all corrections so far
    empty: int = 0  # calls that were taken, without anything ever being left
    lies: int = _LIES  # of them, after which what the headers say is doubted
    # Where measuring began: number and time of a call, and what it was told.
    stretch: tuple[int, float, Limit] | None = None

    def wait(self, now: float) -> float:
        self._refill(now)
        if self.doubted:
            return 0.0
        short = self.cost - self.level
        if short <= 0:
            return 0.0
        return max(0.0, self.resets - now) if self.fixed else short / (MARGIN * self.rate)

    @property
    def doubted(self) -> bool:
        return self.empty >= self.lies

    def taken(self) -> None:
        self.empty = self.empty + 1 if self.capacity < 1 else 0

    def believed(self) -> None:
        if self.doubted:
            self.lies *= 2
        self.empty = 0

    def sent(self) -> tuple[float, float]:
        self.level -= self.cost
        return self.level, self.put_right

    def told(self, number: int, at: float, reckoned: tuple[float, float] | None, limit: Limit) -> None:
        """The answer to a call sent `at` that time, behind which so much was reckoned to be left."""
        if self.whole != limit.limit:
            self.whole, self.rate, self.stretch = limit.limit, limit.limit / _MINUTE, None  # a minute is the usual
        self.capacity = max(self.capacity, limit.remaining)
        if self.fixed and limit.reset is not None:
            self.resets = max(at + limit.reset, self.resets if self.resets < inf else 0.0)
        if reckoned is None or self.level == inf:
            self.level, self.stamp = limit.remaining, max(at, self.stamp)
        else:
            left, put_right = reckoned
            wrong = limit.remaining - (left + self.put_right - put_right)
            self.level += wrong
            self.put_right += wrong
        if self.stretch is None:
            self.stretch = (number, at, limit)
        elif number - self.stretch[0] >= _ROUND // 2:
            self._measure(*self.stretch, number, at, limit)
            self.stretch = (number, at, limit)

    def _refill(self, now: float) -> None:
        if self.fixed:
            if now >= self.resets:
                self.level, self.resets = self.whole, inf
        elif self.level < inf:
            self.level = min(max(self.capacity, self.cost), self.level + MARGIN * self.rate * (now - self.stamp))
        self.stamp = now

    def _measure(self, number: int, at: float, before: Limit, now_number: int, now_at: float, after: Limit) -> None:
        calls, seconds = now_number - number, now_at - at
        if self.learns:
            used = before.remaining - after.remaining + min(self.rate * seconds, self.capacity - after.remaining)
            self.cost = max(1.0, used / calls)
        if before.reset is None or after.reset is None:
            return
        shift = (now_at + after.reset) - (at + before.reset)
        usual = self.whole / _MINUTE
        if abs(shift) < 0.1 * min(calls * self.cost / usual, before.reset):
            self.fixed, self.resets = True, now_at + after.reset
        elif max(before.remaining, after.remaining) < 0.7 * self.capacity:  # a full bucket refills no more
            measured = calls * self.cost / shift if shift > 0 else usual
            self.fixed = self.fixed and shift <= 0
            self.rate = usual if 0.7 < measured / usual < 1.4 else measured


@dataclass(slots=True)
class Climb:
    """The rate that a server takes, found from its refusals alone.

    A refusal comes back at once and an answer late, so that whatever was sent and not refused counts as taken.
    """

    rate: float = inf  # calls per second
    burst: float = float(_FEW)  # calls that may catch up after a pause
    good: float | None = None  # the highest rate, below today's, at which a round passed
    step: float = 0.5
    hold: int = 0  # calls before the next rise
    deaf: int = 0  # calls for which refusals change nothing
    deafer: int = _DEAF  # and for how many the next time
    before: tuple[float, float | None] | None = None  # the rate before the last cuts, and the share refused then
    level: float = 0.0
    stamp: float = 0.0
    sends: int = 0  # since the last cut
    refusals: int = 0
    passed: int = 0  # calls since the last rate limit or rise
    since: float | None = None  # the last rate limit
    taken: int = 0  # since then

    def wait(self, now: float) -> float:
        if self.rate == inf:
            return 0.0
        self.level = min(max(1.0, self.burst), self.level + self.rate * (now - self.stamp))
        self.stamp = now
        return max(0.0, (1 - self.level) / self.rate)

    def sent(self, now: float, alone: bool) -> None:
        """A call goes out; alone: no other is under way, so that nothing held calls back."""
        if self.since is None or (alone and self.rate == inf):
            self.since, self.taken = now, 0
        self.sends += 1
        self.taken += 1
        self.deaf = max(0, self.deaf - 1)
        if self.rate == inf:
            return
        self.level -= 1
        self.passed += 1
        if self.passed >= max(_ROUND, 2 * self.burst, self.hold):
            if self.level < 1:  # it was this rate that held calls back, not a want of calls
                self.good = self.rate
                self.rate *= 1 + self.step
                self.hold = 0
            self.passed = 0

    def unsent(self) -> None:
        self.taken -= 1
        self.sends -= 1

    def limited(self) -> None:
        self.taken -= 1
        self.refusals += 1

    def limit(self, at: float, now: float, burst: int, refused: int) -> None:
        """A rate limit is over: it came `at` that time, after a burst of so many calls of which some were refused."""
        if self.taken <= 0:
            return  # nothing was taken since the last one: it is the same that goes on
        share = self.refusals / max(1, self.sends)
        lower = self.taken / max(at - (at if self.since is None else self.since), 1e-3)
        self.since, self.taken, self.passed = at, 0, 0
        if refused > 1 and burst <= self.burst + refused:
            self.burst = max(1.0, min(self.burst, burst - refused))
        elif burst > 4 * self.burst:
            self.burst *= 2  # what caught up after the last pause was taken: so more of it next time
        if self.deaf and share < 0.6:
            return
        if self.before is not None and self.sends < _ROUND and not (share >= 0.5 and self.refusals >= 4):
            return  # too few to tell
        if self._slower_did_not_help(share, lower):
            assert self.before is not None
            self._cut_to(self.before[0], now)
            self.before, self.deaf, self.deafer = None, self.deafer, min(_HELD, 2 * self.deafer)
            return
        known = share if self.sends >= _ROUND else None
        if self.good is not None and self.sends >= _ROUND:
            self.before = (self.rate, known)
            self._cut_to(0.98 * min(self.good, (lower * self.good) ** 0.5), now)
            self.step = max(0.01, self.step / 4)
        else:
            self.before = (self.rate if self.before is None else self.before[0], known)
            least = self.rate * (0.9 if self._sure else 0.125) if self.rate < inf else 0.0
            self._cut_to(max(min(lower, 0.9 * self.rate), least, _SLOWEST), now)
        lost = int(12 * (now - at) * self.rate) if self._sure else 0  # to try more costs a pause
        self.hold = min(_HELD, max(3 * _ROUND, lost))

    def _slower_did_not_help(self, share: float, lower: float) -> bool:
        if self.before is None or self.before[1] is None or lower < 0.6 * self.rate:
            return False
        return share >= _MANY and 0.5 < share / self.before[1] < 2

    @property
    def _sure(self) -> bool:
        return self.step < 0.05

    def _cut_to(self, rate: float, now: float) -> None:
        self.rate, self.good = rate, None
        self.level, self.stamp = 0.0, now
        self.sends = self.refusals = 0


@dataclass(slots=True)
class Opening:
    """How many calls may go while it is not known how many are taken: few, and twice as many a moment later.

    At the start those under way count, since nothing was refused yet; after a rate limit all that were sent since.
    """

    size: float = float(_FEW)
    probing: bool = False
    sends: int = 0  # since the last rate limit
    grown: float | None = None  # when last

    def wait(self, now: float, under_way: int) -> float:
        if (self.sends if self.probing else under_way) < self.size:
            return 0.0
        if self.grown is None:
            self.grown = now
        if now - self.grown < _GROWS:
            return self.grown + _GROWS - now
        self.size, self.grown = self.size * 2 if self.size < _OPEN else inf, now
        return 0.0

    def taken(self) -> None:
        self.size *= 2

    def again(self) -> None:
        self.size, self.sends, self.grown, self.probing = 1.0, 0, None, True


@dataclass(slots=True)
class Places:
    """How many calls may be under way at once, where a server limits that: those that it did not refuse.

    When all places were taken for a while one more is tried, and whenever that is refused after twice as many calls.
    """

    most: float = inf
    hold: int = _PLACES  # calls before one more is tried
    passed: int = 0  # calls taken since the last change, with all places taken
    tried: bool = False  # whether the last change was one more

    def wait(self, under_way: int) -> float:
        return 0.0 if under_way < self.most else _LOOKS

    def taken(self, beside: int) -> None:
        """A call was taken, with so many others under way."""
        if self.most == inf or beside + 1 < self.most:
            return
        self.passed += 1
        if self.passed >= self.hold:
            self.hold = _PLACES if self.tried else self.hold
            self.most, self.passed, self.tried = self.most + 1, 0, True

    def refused(self, beside: int) -> None:
        if self.tried:
            self.hold = min(_LASTING, 2 * self.hold)
        self.most, self.passed, self.tried = max(1.0, min(self.most, beside)), 0, False


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A call under way."""

    number: int
    at: float
    reckoned: dict[str, tuple[float, float]]


@dataclass(slots=True)
class Pace:
    """The pace of one account: told of every call's sending and end, it says when the next may go."""

    closed_until: float = 0.0
    allowances: dict[str, Allowance] = field(default_factory=dict)
    climb: Climb = field(default_factory=Climb)
    opening: Opening = field(default_factory=Opening)
    places: Places = field(default_factory=Places)
    under_way: int = 0
    costs: Mapping[str, float] = field(default_factory=dict)  # of a call by kind of limit, until it is learned
    refusals: int = 0  # in a row, without a call taken
    _number: int = 0
    _closed_at: float = -inf
    _reopened: bool = True
    _refused_since: int = 0
    _first_since: int = 0  # the last call that was sent before it was open again

    def wait(self, now: float, costs: Mapping[str, float]) -> float:
        self.costs = costs
        if now < self.closed_until:
            return self.closed_until - now
        if not self._reopened:
            self._reopen(now)
        waits = [allowance.wait(now) for allowance in self.allowances.values()]
        free = self.places.wait(self.under_way)
        return max([free, self.opening.wait(now, self.under_way), self.climb.wait(now), *waits])

    def sent(self, now: float) -> OpenCall:
        self._number += 1
        self.climb.sent(now, alone=self.under_way == 0)
        self.under_way += 1
        self.opening.sends += 1
        return OpenCall(self._number, now, {kind: allowance.sent() for kind, allowance in self.allowances.items()})

    def took(self, sent: OpenCall, limits: Sequence[Limit]) -> None:
        """The server took a call, and said this of its limits."""
        self.places.taken(self.under_way - 1)
        self.under_way -= 1
        self.refusals = 0
        if sent.number > self._first_since:
            self.opening.taken()
        self._learn_limits(sent, limits)
        for limit in limits:
            self.allowances[limit.kind].taken()

    def limited(self, sent: OpenCall, now: float, pause: float, limits: Sequence[Limit] = ()) -> None:
        """The server refused a call for its rate: nothing is sent for so many seconds."""
        self.under_way -= 1
        self._learn_limits(sent, limits)
        for allowance in self.allowances.values():
            allowance.believed()
        self.climb.limited()
        self._refused_since += 1
        if self._reopened:
            self._reopened, self._closed_at = False, now
            self.refusals += 1
        self.closed_until = max(self.closed_until, now + pause)

    def crowded(self, now: float, pause: float, asked: bool) -> None:
        """The server refused a call since too many were under way: where others are, a place will be free.

        `asked`: it is the server that wants the pause.
        """
        self.under_way -= 1
        self.climb.unsent()
        self.places.refused(self.under_way)
        if asked or not self.under_way:
            self.refusals += 1
            self.closed_until = max(self.closed_until, now + pause)

    def ended(self) -> None:
        self.under_way -= 1

    @property
    def told(self) -> bool:
        return self._slowest_told <= self.climb.rate

    def _reopen(self, now: float) -> None:
        """The time of a rate limit is over, and all the refusals that belong to it are known."""
        self.climb.limit(self._closed_at, now, self.opening.sends, self._refused_since)
        self.opening.again()
        self._first_since = self._number
        self._reopened, self._refused_since = True, 0

    def per_minute(self) -> float | None:
        slowest = min(self._slowest_told, self.climb.rate)
        return None if slowest == inf else MARGIN * slowest * _MINUTE

    @property
    def _slowest_told(self) -> float:
        return min((a.rate / a.cost for a in self.allowances.values() if not a.doubted), default=inf)

    def _learn_limits(self, sent: OpenCall, limits: Sequence[Limit]) -> None:
        for limit in limits:
            if limit.kind not in self.allowances:
                cost = self.costs.get(limit.kind, 1.0)
                self.allowances[limit.kind] = Allowance(learns=limit.kind != "requests", cost=cost)
            self.allowances[limit.kind].told(sent.number, sent.at, sent.reckoned.get(limit.kind), limit)
