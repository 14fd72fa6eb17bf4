"""Retries over scripted tries: how often, how long, and when they end."""

import random
import re
from contextlib import suppress
from typing import Any

import pytest

from dubito.llm.limiter import AccountTraffic, RateLimiter
from dubito.llm.request import AccountFault, Attempt, AttemptFailed, FailureKind, Reply, Sends, TryFailed
from dubito.llm.retry import Retry
from dubito.model_settings import Account
from tests.llm.kit import Clock, Script, Sender, ask, reply, settings
from tests.llm.test_limiter import times, timing

ACCOUNT = Account("responses", "http://127.0.0.1:1/v1", "SOME_KEY")
PROBE = ask(2)
KINDS: list[FailureKind] = ["server", "connection", "deadline"]


def attempt(script: Sends, clock: Clock | None = None, **changes: Any) -> Reply:
    """Make one attempt of a player with these settings."""
    clock = clock or Clock()
    traffic = AccountTraffic(ACCOUNT, 1, timing(clock))
    how = settings(**changes)
    return Retry(RateLimiter(traffic, how.retry_after_cap, script), how, traffic, clock.sleep).ask(ask())


@pytest.mark.parametrize("kind", KINDS)
def test_failed_try_is_retried(kind: FailureKind) -> None:
    script, clock = Script(kind, kind), Clock()
    assert attempt(script, clock).text == reply().text
    assert script.numbers == [1, 2, 3]
    assert len(clock.slept) == 2


class Crowd:
    """A request that goes through its account's limiter together with others. The others and probes fail at random."""

    def __init__(self, others: int, sick: float = 0.0, **changes: Any) -> None:
        self.clock, self.asked, self.probes = Clock(), 0, 0
        self._others, self._sick, self._how = others, sick, settings(**changes)
        self._chance, self._traffic = random.Random(7), AccountTraffic(ACCOUNT, 1, timing(self.clock))

    def decides(self, one: Sends | None = None) -> Reply:
        """Make one attempt whose tries follow this script, or fail at random."""

        def send(attempt: Attempt, number: int) -> Reply:
            if attempt is PROBE:
                self.probes += 1
                return self._limited(self).send(attempt, number)
            self.asked += 1
            for _ in range(self._others):
                with suppress(TryFailed):
                    self._limited(self).send(ask(1), 1)
            return self._limited(one or self).send(attempt, number)

        return Retry(Sender(send), self._how, self._traffic, self.clock.sleep, PROBE).ask(ask())

    def _limited(self, one: Sends) -> RateLimiter:
        return RateLimiter(self._traffic, 60, one)

    def send(self, attempt: Attempt, number: int) -> Reply:
        return self.at_random(attempt, number)

    def at_random(self, asked: Attempt, number: int) -> Reply:
        if self._chance.random() < self._sick:
            raise TryFailed("server", "status 502")
        return reply()


def poison(asked: Attempt, number: int) -> Reply:
    raise TryFailed("server", "status 500")


POISON = Sender(poison)


@pytest.mark.parametrize(
    ("others", "sick", "tries", "failures"),
    [
        (40, 0.0, 5, range(5, 7)),
        (40, 0.0, 9, range(9, 10)),
        (3, 0.0, 1, range(7, 10)),
        (0, 0.0, 5, range(16, 17)),
        (0, 0.0, 1, range(12, 13)),
        (10, 0.3, 5, range(9, 20)),
        (10, 0.6, 5, range(18, 50)),
        (0, 0.6, 5, range(20, 80)),
    ],
)
def test_request_that_alone_keeps_failing_is_given_up(others: int, sick: float, tries: int, failures: range) -> None:
    """A request gets more tries if other requests also fail, or if there are few."""
    crowd = Crowd(others, sick, tries=tries)
    with pytest.raises(AttemptFailed) as failed:
        crowd.decides(POISON)
    assert crowd.asked in failures
    assert failed.value.cause == "unreachable"
    of = r"\d+ of \d+" if sick else r"\d+"
    words = rf"failed {crowd.asked} times while {of} other requests were answered; last error: status 500"
    assert re.fullmatch(words, failed.value.detail), failed.value.detail


def test_an_outage_counts_against_no_request() -> None:
    """All calls fail for a long time. The request fails a few more times after others succeed again."""
    crowd = Crowd(0)
    down = Script(*times("connection", 50))
    crowd.at_random = down.send  # type: ignore[assignment, method-assign]
    assert crowd.decides(Script(*times("server", 14))).text
    assert crowd.asked == 15
    assert len(down.numbers) > 50, "of the probes only the last few were answered"


@pytest.mark.parametrize("kind", ["too_long", "refused"])
def test_error_about_the_prompt_is_not_retried(kind: FailureKind) -> None:
    script = Script(kind)
    with pytest.raises(AttemptFailed) as failed:
        attempt(script)
    assert (failed.value.cause, script.numbers) == (kind, [1])


@pytest.mark.parametrize("tries", [1, 2, 5])
def test_a_rate_limit_uses_up_no_try(tries: int) -> None:
    script = Script(*times("rate_limit", 40), *times("server", tries - 1))
    assert attempt(script, tries=tries).text == reply().text
    assert script.numbers == list(range(1, 41 + tries)), "each has a number of its own"


def test_repeatedly_failed_request_lets_others_go_first() -> None:
    """Before that, a lone request serves as a probe at no extra cost."""
    probed, script = list[int](), Script(*times("server", 6))
    traffic = AccountTraffic(ACCOUNT, 1, timing(Clock()))

    def send(attempt: Attempt, number: int) -> Reply:
        if attempt is PROBE:
            probed.append(len(script.numbers))
        return (Script() if attempt is PROBE else script).send(attempt, number)

    limiter = RateLimiter(traffic, 60, Sender(send))
    assert Retry(limiter, settings(tries=4), traffic, Clock().sleep, PROBE).ask(ask()).text
    assert probed == [4, 5, 6], "probes follow the fourth, fifth and sixth try"


def test_preflight_does_not_wait_for_other_calls() -> None:
    script = Script(*times("server", 4))
    traffic = AccountTraffic(ACCOUNT, 1, timing(Clock()))
    before_all = ask(game=-1)
    assert Retry(script, settings(), traffic, Clock().sleep, PROBE).ask(before_all).text
    assert script.numbers == [1, 2, 3, 4, 5], "the first call sends no probe"


def test_account_fault_is_not_retried() -> None:
    script = Script("server", AccountFault("no money"))
    with pytest.raises(AccountFault, match="no money"):
        attempt(script)
    assert script.numbers == [1, 2]


def test_unexpected_exception_propagates() -> None:
    def broken(ask: Attempt, number: int) -> Reply:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        attempt(Sender(broken))


@pytest.mark.parametrize("kind", ["server"])
def test_retry_after_is_obeyed_up_to_the_cap(kind: FailureKind) -> None:
    seconds = [0.001, 1.5, 60.0, 7200.0, 1e300]
    script, clock = Script(*(TryFailed(kind, "slowly", after) for after in seconds)), Clock()
    attempt(script, clock, retry_after_cap=20, tries=6)
    assert clock.slept == pytest.approx([0.001, 1.5, 20.0, 20.0, 20.0])


@pytest.mark.parametrize("kind", ["server"])
def test_retry_after_zero_is_ignored(kind: FailureKind) -> None:
    script, clock = Script(TryFailed(kind, "now", 0.0)), Clock()
    attempt(script, clock)
    assert 0 < sum(clock.slept) <= 0.5


@pytest.mark.parametrize("kind", KINDS)
def test_backoff_is_below_a_doubling_ceiling(kind: FailureKind) -> None:
    clock = Clock()
    attempt(Script(*[kind] * 9), clock)
    ceilings = [0.5, 1, 2, 4, 4, 4, 4, 4, 4]
    assert len(clock.slept) == len(ceilings)
    assert all(0 <= wait <= ceiling for wait, ceiling in zip(clock.slept, ceilings, strict=True))
    assert len(set(clock.slept)) == len(clock.slept), "jitter makes all waits different"


def test_wait_message_names_account_and_reason() -> None:
    clock = Clock()
    attempt(Script("rate_limit", "server", "connection", "deadline"), clock)
    reasons = ["rate limit", "server errors", "no connection", "deadline passed"]
    assert list(dict.fromkeys(clock.whys)) == [f"for http://127.0.0.1:1/v1 (SOME_KEY) ({reason})" for reason in reasons]
