"""The gate of an account: how many tries at once, at what pace, when none at all, and when its silence is an outage.

A try waits for its time before it comes to the budget, so that it holds nothing of it meanwhile, and is looked at once
more after it, since waiting for the budget takes time; there the gate also learns how the try ended before the budget
does.

How long to wait before another try: as long as the server says, else a random time, so that tries spread out.

Retries: the only place that makes them, with random waits, which change no result.

A server error, a lost connection and a passed deadline are the account's trouble as long as its other requests suffer
as well: the decision waits, and the account's silence for `patience` ends the run (the gate sees to both). A decision
is unreachable only where its request alone goes on failing while others are answered (`Streak`). A rate limit counts
as no failure: the gate waits, for the whole account.
"""

import random
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from itertools import count
from math import prod
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from dubito.errors import one_line
from dubito.llm.pace import OpenCall, Pace, limits_of
from dubito.llm.request import (
    FINAL_FAILURES,
    AccountFault,
    Ask,
    AttemptFailed,
    Cause,
    Interrupted,
    NotSent,
    Reply,
    Suspended,
    TryFailed,
)
from dubito.llm.settings import Account, ModelSettings

if TYPE_CHECKING:
    from tenacity import Retrying

_FIRST: Final = 0.5  # seconds: the ceiling doubles from here ...
_MOST: Final = 30.0  # ... to here
_DOUBLINGS: Final = 6  # that reach it: more would only grow a number without end
_PROBED: Final = 0.1  # of the time that an account has been silent pass before it is probed again
_JITTER: Final = random.Random()  # how long a wait is changes no result: it needs no stream of its own


def pause(error: TryFailed, number: int, cap: float, spread: float = 1.0) -> float:
    """The seconds to wait after a failed try, which was the `number`th: the server's, up to `cap`, else random.

    `spread` is the part of the time that is random: by default all of it.
    """
    if error.retry_after:  # 0 s say nothing
        return min(error.retry_after, cap)
    most: float = min(_MOST, _FIRST * 2 ** min(number - 1, _DOUBLINGS))
    return most * _JITTER.uniform(1 - spread, 1)


def between_probes(silence: float) -> float:
    return min(_MOST, max(_FIRST, _PROBED * silence)) * _JITTER.uniform(0.5, 1)


MakeTry = Callable[[Ask, int], Reply]
Sleep = Callable[[float, str], None]  # told for how many seconds, and for whom and why
Waiting = Callable[[str], AbstractContextManager[object]]  # a time of waiting, and what for: the progress line shows it

PATIENCE: Final = 30 * 60.0  # seconds: the default
_SILENT: Final = ("rate_limit", "server", "connection", "deadline")  # kinds of failure that are no answer
_POLL_SECONDS: Final = 1.0  # seconds between two looks of a waiting thread whether to stop
_INSTANT: Final = 1e-6  # seconds: a wait too short to move a clock would be waited for without end
_PROBES: Final = 5.0  # seconds between probes at the most, where a server says nothing of how long its limit lasts
_TRUSTED: Final = 3  # rate limits in a row for which a server is believed how long they last
_BYTES: Final = 4  # of a request that make a token, about
_OUTPUT_LIMITS: Final = ("max_output_tokens", "max_completion_tokens", "max_tokens")
_SHOWN: Final = 60.0  # seconds for which a pace that held a call back is worth a word


@dataclass(frozen=True, slots=True)
class Timing:
    """What a gate waits by, and for how long at the most; nothing of it can change a completed run's results."""

    patience: float  # seconds that an account may go without an answer while it is asked
    sleep: Sleep
    waiting: Waiting
    clock: Callable[[], float]  # seconds
    stopped: Callable[[], bool]  # True: ask nothing more
    time: Callable[[], float] = time.time  # of the day, in seconds since 1970: servers name moments


class Heard(NamedTuple):
    """What has become of tries: how many were sent, how many of them answered, how many failed."""

    sends: int
    answered: int
    failed: int  # by the server, the connection or the deadline; a rate limit is neither this nor an answer


@dataclass(slots=True)
class Signs:
    """The signs of life of one model at an account."""

    model: str
    sends: int = 0  # as in Heard, like the next two
    answered: int = 0
    failed: int = 0
    latest: int = 0  # the latest of the sends that was answered
    under_way: int = 0
    waiting: int = 0  # requests that wait for a sign
    silent_since: float | None = None  # when the first try was sent of those that got no answer, in a row
    gave_up: set[int] = field(default_factory=set)  # games, since the last answer
    probing: threading.Lock = field(default_factory=threading.Lock)


class Gate:
    """One per account (and model, where its limits are a model's), shared by its players."""

    def __init__(self, account: Account, limit: int, timing: Timing) -> None:
        """`limit` is how many tries may be under way at once."""
        self.account = account
        self._timing = timing
        self._pace = Pace()
        self._slots = threading.BoundedSemaphore(limit)
        self._line = threading.Lock()  # its holder is next; the others queue behind
        self._changed = threading.Condition()
        self._local = threading.local()  # the try that a thread has been given its time for
        self._signs: dict[str, Signs] = {}  # by model: the one may be out where others answer
        self._outage: AccountFault | None = None
        self._held = float("-inf")  # when a call last had to wait

    def before_budget(self, inner: MakeTry) -> MakeTry:
        """The same try, at its time and with a slot; and anew where it was not sent after all."""

        def gated(ask: Ask, number: int) -> Reply:
            while True:
                self._take_turn(ask)
                try:
                    return inner(ask, number)
                except NotSent:
                    continue
                finally:
                    if self._local.open_call is not None:  # it never came to be sent
                        with self._changed:
                            self._pace.ended()
                    self._slots.release()

        return gated

    def after_budget(self, inner: MakeTry, cap: float) -> MakeTry:
        """The same try, if the gate is open still, else NotSent. A server's word closes it for up to `cap` seconds."""

        def sending(ask: Ask, number: int) -> Reply:
            with self._changed:
                if self._outage is not None or self._pace.closed_until > self._timing.clock():
                    raise NotSent
                signs = self._signs_of(ask)
                signs.sends += 1
                signs.under_way += 1
                order, mine = signs.sends, replace(self._local.open_call, at=self._timing.clock())
                self._local.open_call = None
            try:
                reply = inner(ask, number)
            except TryFailed as error:
                self._failed(signs, mine, order, error, cap)
                raise
            except BaseException:
                with self._changed:
                    self._pace.ended()
                raise
            finally:
                with self._changed:
                    signs.under_way -= 1
                    self._changed.notify_all()
            limits = limits_of(reply.received.headers, self._timing.time())
            with self._changed:
                self._pace.took(mine, limits)
                self._answers(signs, order)
            return reply

        return sending

    def heard(self, ask: Ask) -> Heard:
        with self._changed:
            signs = self._signs_of(ask)
            return Heard(signs.sends, signs.answered, signs.failed)

    def alone(self, ask: Ask) -> bool:
        with self._changed:
            signs = self._signs_of(ask)
            return not signs.under_way and not signs.waiting

    def sign_of_life(self, ask: Ask, probe: Callable[[], object], since: int) -> None:
        """Return once the model has answered any of its tries but the first `since`.

        If nobody asks anything, `probe` does, again and again. Raises AccountFault when patience is at an end.
        """
        why = f"for {self.account} (no answer)"
        with self._changed:
            signs = self._signs_of(ask)
            signs.waiting += 1
        try:
            with self._timing.waiting(why):
                while not self._heard_since(signs, since):
                    if signs.probing.acquire(blocking=False):
                        try:
                            self._probe(signs, since, probe, why)
                        finally:
                            signs.probing.release()
        finally:
            with self._changed:
                signs.waiting -= 1

    def _probe(self, signs: Signs, since: int, probe: Callable[[], object], why: str) -> None:
        """Ask once whether anybody answers, unless somebody asks anyway."""
        silent = signs.silent_since
        self._timing.sleep(between_probes(0.0 if silent is None else self._timing.clock() - silent), why)
        if not signs.under_way and signs.latest <= since:
            with suppress(TryFailed):
                probe()

    def _heard_since(self, signs: Signs, since: int) -> bool:
        """Whether a later try has been answered; waits a moment for those that are under way."""
        with self._changed:
            if signs.latest <= since and (signs.under_way or signs.probing.locked()):
                self._changed.wait(_POLL_SECONDS)
            self._raise_if_ended()
            return signs.latest > since

    def gave_up(self, ask: Ask) -> None:
        """A decision ended unreachable."""
        with self._changed:
            signs = self._signs_of(ask)
            if signs.silent_since is not None:
                signs.gave_up.add(ask.place.game)

    def try_again(self) -> None:
        with self._changed:
            self._outage = None
            for signs in self._signs.values():
                signs.silent_since = None

    @property
    def put_back(self) -> set[int]:
        with self._changed:
            return set().union(*(signs.gave_up for signs in self._signs.values())) if self._outage else set()

    @property
    def paced(self) -> str | None:
        """The pace that holds calls back at present, in words; None if none does."""
        with self._changed:
            rate, most = self._pace.per_minute(), self._pace.places.most
            if self._timing.clock() - self._held > _SHOWN:
                return None
            if most < float("inf"):
                return f"{most:,.0f} calls at once, as the server takes them"
            if rate is None:
                return None
            by = "by the server" if self._pace.told else "as the server takes them"
            return f"paced at {rate:,.0f} requests/min {by}"

    def _signs_of(self, ask: Ask) -> Signs:
        model = str(ask.request.body.get("model"))
        return self._signs.setdefault(model, Signs(model))

    def _take_turn(self, ask: Ask) -> None:
        """Wait for a slot and for the time of the next try."""
        if not self._line.acquire(blocking=False):
            with self._timing.waiting(f"for {self.account} (rate limit)"):
                self._line.acquire()
        try:
            while True:
                self._slots.acquire()
                with self._changed:
                    try:
                        self._raise_if_ended()
                        now = self._timing.clock()
                        seconds = self._pace.wait(now, _costs(ask))
                        if seconds < _INSTANT:
                            self._local.open_call = self._pace.sent(now)
                            return
                        self._held = now
                    except BaseException:
                        self._slots.release()
                        raise
                self._slots.release()
                self._timing.sleep(min(seconds, _POLL_SECONDS), f"for {self.account} (rate limit)")
        finally:
            self._line.release()

    def _failed(self, signs: Signs, sent: OpenCall, order: int, error: TryFailed, cap: float) -> None:
        """A try got no answer, or only an error."""
        limits = limits_of(error.headers, self._timing.time())
        with self._changed:
            now = self._timing.clock()
            if error.kind not in _SILENT:
                self._pace.took(sent, limits)
                self._answers(signs, order)
                return
            if signs.silent_since is None:
                signs.silent_since = sent.at
            if error.kind == "rate_limit":
                if error.at_once:
                    self._pace.crowded(now, self._pause(error, cap), asked=bool(error.retry_after))
                else:
                    self._pace.limited(sent, now, self._pause(error, cap), limits)
                if (error.retry_after or 0) > self._timing.patience:
                    self._stop(f"asks to wait {span_in_words(error.retry_after or 0)}", error)
            else:
                self._pace.ended()
                signs.failed += 1
            if (silence := now - signs.silent_since) >= self._timing.patience:
                whose = f" by the model {one_line(signs.model, 80)!r}" if len(self._signs) > 1 else ""
                self._stop(f"cannot be reached: no answer for {span_in_words(silence)}{whose}", error)
            self._raise_if_ended()

    def _pause(self, error: TryFailed, cap: float) -> float:
        """How long nothing is sent after a rate limit: as the server says, and longer each time that is not enough."""
        again = self._pace.refusals + 1
        own = min(_PROBES, pause(TryFailed(error.kind, error.brief), again, cap, spread=0.5))
        if not error.retry_after:
            return own
        said = pause(error, again, cap)
        return max(said, own) if again > _TRUSTED else said

    def _answers(self, signs: Signs, order: int) -> None:
        signs.answered += 1
        signs.latest = max(signs.latest, order)
        if self._outage is None:  # it stands until the run has stopped, whoever is still under way
            signs.silent_since = None
            signs.gave_up.clear()

    def _stop(self, what: str, error: TryFailed) -> None:
        if self._outage is None:
            slow = "whether it needs a longer `deadline`, " if error.kind == "deadline" else ""
            todo = (
                f"`patience` is {span_in_words(self._timing.patience)}: check {slow}that the server is up, that "
                "`base_url` is right and which limits the account has, or resume later"
            )
            told, brief = (f"{self.account} {what} (the last: {said}); {todo}" for said in (error.reason, error.brief))
            self._outage = AccountFault(told, brief)

    def _raise_if_ended(self) -> None:
        """Raise what ends all asking, if anything does."""
        if self._timing.stopped():
            raise Interrupted("stopped by Ctrl-C")
        if self._outage is not None:
            raise AccountFault(str(self._outage), self._outage.brief)


def _costs(ask: Ask) -> dict[str, float]:
    into, body = len(ask.request.text) / _BYTES, ask.request.body
    out = next((float(body[name]) for name in _OUTPUT_LIMITS if isinstance(body.get(name), int)), 0.0)
    return {"tokens": into + out, "input-tokens": into, "output-tokens": out}


def span_in_words(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


_WHY: Final = {"server": "server errors", "connection": "no connection", "deadline": "deadline passed"}
_STRAYS: Final = 2  # times that a request is sent again which was rejected for nothing that is named
_STRAY_WAIT: Final = 1.0  # seconds before that, at the most
_CHANCE: Final = 1e-6  # of the account's trouble striking one request so often: below it the request is at fault
_NOTHING: Final = Heard(0, 0, 0)
_OTHERS: Final = 10.0  # calls of others, at the most, that each failure is held against
_RETRY_DOUBLINGS: Final = 4  # failures after which its waits grow no longer, at 4 s: an outage is sat out by probes
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
        number = min(streak.failures, _RETRY_DOUBLINGS if ask.place.in_game else _BRIEF)
        sleep(pause(failed, number, settings.retry_after_cap), f"for {gate.account} ({_WHY[failed.kind]})")
        waits = streak.failures >= settings.tries if gate.alone(ask) else streak.silent > 0
        if probe is not None and ask.place.in_game and waits:
            gate.sign_of_life(ask, probe, streak.last.sends)

    return attempt


def _resending(gate: Gate, sleep: Sleep) -> "Retrying":
    """Sends a request again that is rejected for nothing that is named: servers do that by mistake."""
    from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_random  # late: it loads asyncio

    return Retrying(
        stop=stop_after_attempt(1 + _STRAYS),
        wait=wait_random(0, _STRAY_WAIT),
        retry=retry_if_exception(_may_be_a_mistake),
        sleep=lambda seconds: sleep(seconds, f"for {gate.account} (a request was rejected)"),
        reraise=True,
    )


def _may_be_a_mistake(error: BaseException) -> bool:
    if isinstance(error, TryFailed):
        return error.kind == "rejected"
    return isinstance(error, AccountFault) and error.stray


def _raise_if_given_up(
    ask: Ask, streak: Streak, failed: TryFailed, settings: ModelSettings, gate: Gate, *, suspend: bool
) -> None:
    """Before the first game a server gets `tries` tries where it is the wrong one: none that can be connected to, or
    one whose replies, which it bills, are none. A sick one gets more."""
    if failed.kind in FINAL_FAILURES:
        raise AttemptFailed(cast(Cause, failed.kind), failed.reason)
    if not ask.place.in_game:
        sick = failed.spent is None and (failed.kind != "connection" or failed.billed)
        if streak.failures >= (max(settings.tries, _BEFORE) if sick else settings.tries):
            raise AttemptFailed("unreachable", f"{streak.failures} tries, the last: {failed.reason}") from failed
        return
    alone_fails = streak.failures >= settings.tries and streak.chance < _CHANCE
    if suspend and (alone_fails or streak.silent >= settings.tries - 1):
        nobody = f"for {gate.account}, which cannot be reached"
        raise Suspended(f"{nobody} ({failed.reason})", f"{nobody} ({failed.brief})")
    if alone_fails:
        gate.gave_up(ask)
        raise AttemptFailed("unreachable", streak.told(gate.heard(ask), failed))
