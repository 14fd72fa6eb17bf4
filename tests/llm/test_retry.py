"""Retry over scripted tries: how often, how long, and when it is over."""

from collections.abc import Callable
from typing import Any

import pytest

from dubito.llm.failures import AccountFault, AttemptFailed, FailureKind, TryFailed
from dubito.llm.gate import Gate, MakeTry
from dubito.llm.retry import retried
from dubito.llm.settings import Account
from dubito.llm.wire import Ask, Reply
from tests.conftest import cases
from tests.llm.kit import Clock, Script, ask, reply, settings
from tests.llm.test_gate import times, timing

ACCOUNT = Account("responses", "http://127.0.0.1:1/v1", "SOME_KEY")
KINDS: list[FailureKind] = ["server", "connection", "deadline"]


def attempt(
    script: MakeTry, clock: Clock | None = None, probe: Callable[[], object] | None = None, **changes: Any
) -> Reply:
    """One attempt of a player with these settings."""
    clock = clock or Clock()
    gate = Gate(ACCOUNT, 1, timing(clock))
    how = settings(**changes)
    tried = gate.before_budget(gate.after_budget(script, how.retry_after_cap))
    return retried(tried, how, gate, clock.sleep, probe=probe)(ask())


@cases("kind", KINDS)
def test_a_failed_try_is_tried_again(kind: FailureKind) -> None:
    script, clock = Script(kind, kind), Clock()
    assert attempt(script, clock).text == reply().text
    assert script.numbers == [1, 2, 3]
    assert len(clock.slept) == 2


@cases("kind", KINDS)
@cases("tries", [1, 2, 5])
def test_the_number_of_tries_is_the_players(kind: FailureKind, tries: int) -> None:
    script, clock = Script(*[kind] * 9), Clock()
    with pytest.raises(AttemptFailed) as failed:
        attempt(script, clock, tries=tries)
    assert script.numbers == list(range(1, tries + 1))
    assert len(clock.slept) == tries - 1, "there is no wait behind the last"
    assert (failed.value.cause, failed.value.detail) == ("unreachable", f"{tries} tries, the last: a {kind} failure")


@cases("kind", ["too_long", "refused"])
def test_what_concerns_this_prompt_alone_is_not_tried_again(kind: FailureKind) -> None:
    script = Script(kind)
    with pytest.raises(AttemptFailed) as failed:
        attempt(script)
    assert (failed.value.cause, script.numbers) == (kind, [1])


@cases("tries", [1, 2, 5])
def test_a_rate_limit_uses_up_no_try(tries: int) -> None:
    script = Script(*times("rate_limit", 40), *times("server", tries - 1))
    assert attempt(script, tries=tries).text == reply().text
    assert script.numbers == list(range(1, 41 + tries)), "each has a number of its own"


def test_after_two_failures_in_a_row_others_are_answered_first() -> None:
    probed, script = list[int](), Script(*times("server", 4))
    gate = Gate(ACCOUNT, 1, timing(Clock()))
    tried = gate.before_budget(gate.after_budget(script, 60))

    def probe() -> None:
        probed.append(len(script.numbers))
        gate.before_budget(gate.after_budget(Script(), 60))(ask(), 1)

    assert retried(tried, settings(), gate, Clock().sleep, probe=probe)(ask()).text
    assert probed == [2, 3, 4], "behind the second, the third and the fourth try"


def test_a_preflight_waits_for_nobody() -> None:
    script = Script(*times("server", 4))
    gate = Gate(ACCOUNT, 1, timing(Clock()))
    before_all = ask(game=-1)
    once = retried(script, settings(), gate, Clock().sleep, probe=lambda: pytest.fail("it is the first to ask"))
    assert once(before_all).text


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


@cases("kind", ["server"])
def test_retry_after_is_obeyed_up_to_the_cap(kind: FailureKind) -> None:
    seconds = [0.001, 1.5, 60.0, 7200.0, 1e300]
    script, clock = Script(*(TryFailed(kind, "slowly", after) for after in seconds)), Clock()
    attempt(script, clock, retry_after_cap=20, tries=6)
    assert clock.slept == pytest.approx([0.001, 1.5, 20.0, 20.0, 20.0])


@cases("kind", ["server"])
def test_a_server_that_asks_for_no_wait_gets_none(kind: FailureKind) -> None:
    script, clock = Script(TryFailed(kind, "now", 0.0)), Clock()
    attempt(script, clock)
    assert sum(clock.slept) == 0


@cases("kind", KINDS)
def test_backoff_is_below_a_doubling_ceiling(kind: FailureKind) -> None:
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
    assert list(dict.fromkeys(clock.whys)) == [f"for http://127.0.0.1:1/v1 (SOME_KEY) ({reason})" for reason in reasons]
