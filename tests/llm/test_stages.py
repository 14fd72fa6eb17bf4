"""Retry, gate and budget over scripted tries: how often, how long, how many at once, and when it is over."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from dubito.llm.budget import Budget, Caps
from dubito.llm.failures import AccountFault, AttemptFailed, Kind, TryFailed
from dubito.llm.gate import OUTAGE, Gate, Try
from dubito.llm.retry import retried
from dubito.llm.settings import Account
from dubito.llm.wire import Ask, Reply
from tests.llm.kit import ask, reply, settings

ACCOUNT = Account("responses", "http://127.0.0.1:1/v1", "SOME_KEY")
Outcome = Kind | TryFailed | AccountFault | None  # None: a reply


def times(kind: Kind, number: int) -> list[Outcome]:
    """So many failures."""
    return [kind] * number


class Script:
    """A try that does what it is told, in order; then it replies."""

    def __init__(self, *outcomes: Outcome) -> None:
        self._outcomes = list(outcomes)
        self.numbers: list[int] = []  # of the tries it got

    def __call__(self, ask: Ask, number: int) -> Reply:
        self.numbers.append(number)
        outcome = self._outcomes.pop(0) if self._outcomes else None
        if isinstance(outcome, str):
            raise TryFailed(outcome, f"a {outcome} failure")
        if outcome is not None:
            raise outcome
        return reply()


def attempt(script: Try, waits: list[float] | None = None, **changes: Any) -> Reply:
    """One attempt of a player with these settings."""
    kept = [] if waits is None else waits
    return retried(script, settings(**changes), Gate(ACCOUNT, 1), lambda seconds, why: kept.append(seconds))(ask())


@pytest.mark.parametrize("kind", ["rate_limit", "server", "connection"])
def test_a_failed_try_is_tried_again(kind: Kind) -> None:
    script, waits = Script(kind, kind), list[float]()
    assert attempt(script, waits).text == reply().text
    assert script.numbers == [1, 2, 3]
    assert len(waits) == 2


@pytest.mark.parametrize("kind", ["rate_limit", "server", "connection"])
@pytest.mark.parametrize("tries", [1, 2, 5])
def test_the_number_of_tries_is_the_players(kind: Kind, tries: int) -> None:
    script, waits = Script(*[kind] * 9), list[float]()
    with pytest.raises(AttemptFailed) as failed:
        attempt(script, waits, tries=tries)
    assert script.numbers == list(range(1, tries + 1))
    assert len(waits) == tries - 1, "there is no wait behind the last"
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


def test_retry_after_is_obeyed_up_to_the_cap() -> None:
    seconds = [0.0, 1.5, 60.0, 7200.0]
    script = Script(*(TryFailed("rate_limit", "slowly", after) for after in seconds))
    waits: list[float] = []
    attempt(script, waits, retry_after_cap=20)
    assert waits == [0.0, 1.5, 20.0, 20.0]


def test_backoff_is_below_a_doubling_ceiling() -> None:
    waits: list[float] = []
    with pytest.raises(AttemptFailed):
        attempt(Script(*times("server", 12)), waits, tries=12)
    ceilings = [0.5, 1, 2, 4, 8, 16, 30, 30, 30, 30, 30]
    assert len(waits) == len(ceilings)
    assert all(0 <= wait <= ceiling for wait, ceiling in zip(waits, ceilings, strict=True))
    assert len(set(waits)) == len(waits), "with full jitter"


def test_a_wait_says_for_whom_and_why() -> None:
    whys: list[str] = []
    script = Script("rate_limit", "server", "connection")
    retried(script, settings(), Gate(ACCOUNT, 1), lambda seconds, why: whys.append(why))(ask())
    account = "for http://127.0.0.1:1/v1 (SOME_KEY)"
    assert whys == [f"{account} (rate limit)", f"{account} (server errors)", f"{account} (no connection)"]


def gated(gate: Gate, *outcomes: Outcome) -> Callable[[], Reply]:
    """A try of an account that does what it is told."""
    one = gate.around(Script(*outcomes))
    return lambda: one(ask(), 1)


def fail(times: int, call: Callable[[], Reply]) -> None:
    for _ in range(times):
        with pytest.raises(TryFailed):
            call()


@pytest.mark.parametrize("kind", ["server", "connection"])
def test_twenty_failures_in_a_row_are_an_outage(kind: Kind) -> None:
    assert OUTAGE == 20
    call = gated(Gate(ACCOUNT, 1), *[kind] * 20)
    fail(19, call)
    with pytest.raises(AccountFault, match=r"cannot be reached: 20 connection failures.*`base_url`"):
        call()


def test_an_outage_stands_and_lets_no_try_through() -> None:
    script = Script(*times("server", 20))
    one = Gate(ACCOUNT, 1).around(script)
    fail(19, lambda: one(ask(), 1))
    for _ in range(3):
        with pytest.raises(AccountFault):
            one(ask(), 1)
    assert len(script.numbers) == 20


@pytest.mark.parametrize("end", [None, "rate_limit", "too_long"])
def test_any_other_answer_ends_the_row(end: Kind | None) -> None:
    call = gated(Gate(ACCOUNT, 1), *times("server", 19), end, *times("connection", 19))
    fail(19, call)
    if end is None:
        assert call().text
    else:
        fail(1, call)
    fail(19, call)
    assert call().text


def test_rate_limits_are_no_outage() -> None:
    call = gated(Gate(ACCOUNT, 1), *times("rate_limit", 50))
    fail(50, call)
    assert call().text


def test_games_that_gave_up_within_the_row_are_put_back() -> None:
    gate = Gate(ACCOUNT, 1)
    call = gated(gate, "server", None, *times("server", 20))
    gate.gave_up(1)
    fail(1, call)
    gate.gave_up(2)
    assert gate.put_back == set(), "a row is no outage yet"
    call()
    fail(19, call)
    gate.gave_up(3)
    gate.gave_up(4)
    with pytest.raises(AccountFault):
        call()
    assert gate.put_back == {3, 4}


def test_games_stay_put_back_when_a_late_answer_comes_in() -> None:
    """One try is under way when the outage is found; its answer does not end it."""
    gate = Gate(ACCOUNT, 2)
    under_way, go_on = threading.Event(), threading.Event()

    def slow(ask: Ask, number: int) -> Reply:
        under_way.set()
        assert go_on.wait(20)
        return reply()

    with ThreadPoolExecutor(1) as pool:
        late = pool.submit(gate.around(slow), ask(), 1)
        assert under_way.wait(20)
        call = gated(gate, *times("server", 20))
        fail(19, call)
        gate.gave_up(5)
        with pytest.raises(AccountFault):
            call()
        go_on.set()
        assert late.result(20).text
    assert gate.put_back == {5}
    with pytest.raises(AccountFault):
        call()


def test_no_more_tries_than_slots_at_once() -> None:
    gate, lock = Gate(ACCOUNT, 3), threading.Lock()
    inside, most = 0, 0
    full = threading.Barrier(3)

    def busy(ask: Ask, number: int) -> Reply:
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
        full.wait(20)  # three come in together, always
        with lock:
            inside -= 1
        return reply()

    one = gate.around(busy)
    with ThreadPoolExecutor(12) as pool:
        assert len(list(pool.map(lambda n: one(ask(n), 1), range(12)))) == 12
    assert most == 3


def test_a_sleeping_try_holds_no_slot() -> None:
    """With a single slot, another attempt goes through while the first one waits before its second try."""
    gate = Gate(ACCOUNT, 1)
    other = retried(gate.around(Script()), settings(), gate, lambda *_: None)
    heard: list[Reply] = []
    with ThreadPoolExecutor(1) as pool:

        def sleep(seconds: float, why: str) -> None:
            heard.append(pool.submit(other, ask(2)).result(20))

        first = retried(gate.around(Script("server")), settings(), gate, sleep)
        assert first(ask(1)).text
    assert len(heard) == 1


def test_a_slot_is_given_back_whatever_happens() -> None:
    gate = Gate(ACCOUNT, 1)
    call = gated(gate, "server", "too_long", AccountFault("no"), None)
    for error in (TryFailed, TryFailed, AccountFault):
        with pytest.raises(error):
            call()
    assert call().text


def test_the_budget_is_exact_over_threads() -> None:
    budget, script = Budget(Caps(100)), Script()
    one = budget.around(script)
    start = threading.Barrier(64)

    def some(_: int) -> int:
        start.wait(20)
        refused = 0
        for number in range(5):
            try:
                one(ask(), number)
            except AccountFault:
                refused += 1
        return refused

    with ThreadPoolExecutor(64) as pool:
        refused = sum(pool.map(some, range(64)))
    assert (len(script.numbers), budget.calls, refused) == (100, 100, 220)


def test_a_call_counts_whatever_comes_of_it() -> None:
    budget = Budget(Caps(3))
    one = budget.around(Script("server", "too_long", None))
    fail(2, lambda: one(ask(), 1))
    one(ask(), 1)
    with pytest.raises(AccountFault, match=r"the budget of 3 calls is used up; raise `budget.calls`"):
        one(ask(), 1)
    assert budget.calls == 3


def test_no_cap_is_no_cap() -> None:
    budget = Budget(Caps())
    one = budget.around(Script())
    for number in range(200):
        one(ask(), number)
    assert budget.calls == 200


def test_two_players_share_the_budget() -> None:
    budget = Budget(Caps(2))
    one, other = budget.around(Script()), budget.around(Script())
    one(ask(), 1)
    other(ask(), 1)
    with pytest.raises(AccountFault):
        one(ask(), 1)
