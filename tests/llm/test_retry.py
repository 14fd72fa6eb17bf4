"""Retry over scripted tries: how often, how long, and when it is over."""

from typing import Any

import pytest

from dubito.llm.failures import AccountFault, AttemptFailed, Kind, TryFailed
from dubito.llm.gate import Gate, Try
from dubito.llm.retry import retried
from dubito.llm.settings import Account
from dubito.llm.wire import Ask, Reply
from tests.llm.kit import Clock, Script, ask, reply, settings

ACCOUNT = Account("responses", "http://127.0.0.1:1/v1", "SOME_KEY")
KINDS: list[Kind] = ["rate_limit", "server", "connection", "deadline"]


def attempt(script: Try, clock: Clock | None = None, **changes: Any) -> Reply:
    """One attempt of a player with these settings."""
    clock = clock or Clock()
    gate = Gate(ACCOUNT, 1, clock.sleep, clock)
    how = settings(**changes)
    return retried(gate.around(gate.behind(script, how.retry_after_cap)), how, gate, clock.sleep)(ask())


@pytest.mark.parametrize("kind", KINDS)
def test_a_failed_try_is_tried_again(kind: Kind) -> None:
    script, clock = Script(kind, kind), Clock()
    assert attempt(script, clock).text == reply().text
    assert script.numbers == [1, 2, 3]
    assert len(clock.slept) == 2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tries", [1, 2, 5])
def test_the_number_of_tries_is_the_players(kind: Kind, tries: int) -> None:
    script, clock = Script(*[kind] * 9), Clock()
    with pytest.raises(AttemptFailed) as failed:
        attempt(script, clock, tries=tries)
    assert script.numbers == list(range(1, tries + 1))
    assert len(clock.slept) == tries - 1, "there is no wait behind the last"
    assert (failed.value.cause, failed.value.detail) == ("unreachable", f"{tries} tries, the last: a {kind} failure")


def test_too_long_is_not_tried_again() -> None:
    script = Script("too_long")
    with pytest.raises(AttemptFailed) as failed:
        attempt(script)
    assert (failed.value.cause, script.numbers) == ("too_long", [1])


def test_a_fault_of_the_account_is_not_tried_again() -> None:
    script = Script("server", AccountFault("no money"))
    with pytest.raises(AccountFault, match="no money"):
        attempt(script)
    assert script.numbers == [1, 2]


def test_an_exception_of_another_kind_passes() -> None:
    def broken(ask: Ask, number: int) -> Reply:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        attempt(broken)


@pytest.mark.parametrize("kind", ["rate_limit", "server"])
def test_retry_after_is_obeyed_up_to_the_cap(kind: Kind) -> None:
    seconds = [0.001, 1.5, 60.0, 7200.0, 1e300]
    script, clock = Script(*(TryFailed(kind, "slowly", after) for after in seconds)), Clock()
    attempt(script, clock, retry_after_cap=20, tries=6)
    assert clock.slept == pytest.approx([0.001, 1.5, 20.0, 20.0, 20.0])


@pytest.mark.parametrize("kind", ["rate_limit", "server"])
def test_a_server_that_asks_for_no_wait_gets_none(kind: Kind) -> None:
    script, clock = Script(TryFailed(kind, "now", 0.0)), Clock()
    attempt(script, clock)
    assert sum(clock.slept) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_backoff_is_below_a_doubling_ceiling(kind: Kind) -> None:
    clock = Clock()
    with pytest.raises(AttemptFailed):
        attempt(Script(*[kind] * 12), clock, tries=12)
    ceilings = [0.5, 1, 2, 4, 8, 16, 30, 30, 30, 30, 30]
    assert len(clock.slept) == len(ceilings)
    assert all(0 <= wait <= ceiling for wait, ceiling in zip(clock.slept, ceilings, strict=True))
    assert len(set(clock.slept)) == len(clock.slept), "with full jitter"


def test_a_wait_says_for_whom_and_why() -> None:
    clock = Clock()
    attempt(Script("rate_limit", "server", "connection", "deadline"), clock)
    reasons = ["rate limit", "server errors", "no connection", "deadline passed"]
    assert clock.whys == [f"for http://127.0.0.1:1/v1 (SOME_KEY) ({reason})" for reason in reasons]
