"""The gate of an account over scripted tries: how many at once, how long none at all, and when it is an outage."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any

import pytest

from dubito.llm.budget import Budget, Caps
from dubito.llm.failures import AccountFault, AttemptFailed, Kind, TryFailed
from dubito.llm.gate import OUTAGE, Gate
from dubito.llm.prices import Tariff
from dubito.llm.retry import Attempt, retried
from dubito.llm.settings import Account
from dubito.llm.wire import Ask, Reply
from tests.llm.kit import Clock, Outcome, Script, ask, reply, settings

ACCOUNT = Account("responses", "http://127.0.0.1:1/v1", "SOME_KEY")
OTHER = Account("responses", "http://127.0.0.1:1/v1", "ANOTHER_KEY")


def new_gate(limit: int = 1, clock: Clock | None = None, account: Account = ACCOUNT) -> Gate:
    clock = clock or Clock()
    return Gate(account, limit, clock.sleep, clock)


def times(kind: Kind, number: int) -> list[Outcome]:
    """So many failures."""
    return [kind] * number


def gated(gate: Gate, *outcomes: Outcome) -> Callable[[], Reply]:
    """A try of an account that does what it is told."""
    one = gate.around(Script(*outcomes))
    return lambda: one(ask(), 1)


def fail(times: int, call: Callable[[], Reply]) -> None:
    for _ in range(times):
        with pytest.raises(TryFailed):
            call()


@pytest.mark.parametrize("kind", ["server", "connection", "deadline"])
def test_twenty_failures_in_a_row_are_an_outage(kind: Kind) -> None:
    assert OUTAGE == 20
    call = gated(new_gate(), *[kind] * 20)
    fail(19, call)
    with pytest.raises(AccountFault, match=r"cannot be reached: 20 connection failures.*`base_url`"):
        call()


def test_an_outage_stands_and_lets_no_try_through() -> None:
    script = Script(*times("server", 20))
    one = new_gate().around(script)
    fail(19, lambda: one(ask(), 1))
    for _ in range(3):
        with pytest.raises(AccountFault):
            one(ask(), 1)
    assert len(script.numbers) == 20


@pytest.mark.parametrize("end", [None, "rate_limit", "too_long"])
def test_any_other_answer_ends_the_row(end: Kind | None) -> None:
    call = gated(new_gate(), *times("server", 19), end, *times("connection", 19))
    fail(19, call)
    if end is None:
        assert call().text
    else:
        fail(1, call)
    fail(19, call)
    assert call().text


def test_rate_limits_are_no_outage() -> None:
    call = gated(new_gate(), *times("rate_limit", 50))
    fail(50, call)
    assert call().text


def test_games_that_gave_up_within_the_row_are_put_back() -> None:
    gate = new_gate()
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
    gate = new_gate(2)
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
    gate, lock = new_gate(3), threading.Lock()
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


@pytest.mark.parametrize("kind", ["server", "connection", "deadline", "rate_limit"])
def test_a_sleeping_try_holds_no_slot(kind: Kind) -> None:
    """With a single slot, another attempt is sent while the first one waits before its second try."""
    clock, heard = Clock(), list[int]()

    def sleep(seconds: float, why: str) -> None:
        with ThreadPoolExecutor(1) as pool:
            if not heard:
                heard.append(2)
                assert pool.submit(gate.around(Script()), ask(2), 1).result(20).text
        clock.sleep(seconds, why)

    gate = Gate(ACCOUNT, 1, sleep, clock)
    first = retried(gate.around(Script(kind)), settings(), gate, sleep)
    assert first(ask(1)).text
    assert heard == [2]


def test_a_slot_is_given_back_whatever_happens() -> None:
    call = gated(new_gate(), "server", "too_long", AccountFault("no"), None)
    for error in (TryFailed, TryFailed, AccountFault):
        with pytest.raises(error):
            call()
    assert call().text


class Timed(Script):
    """A script that keeps when its tries were sent."""

    def __init__(self, clock: Clock, *outcomes: Outcome) -> None:
        super().__init__(*outcomes)
        self._clock = clock
        self.sent: list[float] = []

    def __call__(self, ask: Ask, number: int) -> Reply:
        self.sent.append(self._clock.now)
        return super().__call__(ask, number)


def limited(seconds: float) -> TryFailed:
    return TryFailed("rate_limit", "slowly", seconds)


def attempts(clock: Clock, gate: Gate, script: Script, **changes: Any) -> Attempt:
    return retried(gate.around(script), settings(**changes), gate, clock.sleep)


def test_one_rate_limit_stops_the_other_calls_of_the_account_for_that_long() -> None:
    clock = Clock()
    gate, elsewhere = new_gate(4, clock), new_gate(4, clock, OTHER)
    first, second, third = Timed(clock, limited(7)), Timed(clock), Timed(clock)
    with pytest.raises(AttemptFailed):
        attempts(clock, gate, first, tries=1)(ask(1))
    attempts(clock, elsewhere, third)(ask(3))
    assert (third.sent, clock.slept) == ([0.0], []), "another account"
    attempts(clock, gate, second)(ask(2))
    assert (first.sent, second.sent, clock.slept) == ([0.0], [7.0], [7.0])
    attempts(clock, gate, second)(ask(2))
    assert second.sent == [7.0, 7.0], "when it is over it is over"


def test_a_rate_limited_call_waits_like_the_others() -> None:
    clock = Clock()
    script = Timed(clock, limited(7), limited(0.5))
    attempts(clock, new_gate(1, clock), script)(ask())
    assert script.sent == [0.0, 7.0, 7.5]


def test_the_longest_wait_counts() -> None:
    clock = Clock()
    gate = new_gate(4, clock)
    for seconds in (3, 7, 5):
        gate.close_for(seconds)
    script = Timed(clock)
    attempts(clock, gate, script)(ask())
    assert script.sent == [7.0]


def test_a_wait_of_a_whole_account_is_capped_by_the_player() -> None:
    clock = Clock()
    gate, second = new_gate(4, clock), Timed(clock)
    with pytest.raises(AttemptFailed):
        attempts(clock, gate, Timed(clock, limited(7200)), tries=1, retry_after_cap=11)(ask(1))
    attempts(clock, gate, second)(ask(2))
    assert second.sent == [11.0]


def test_a_rate_limit_that_names_no_time_slows_the_account_shortly() -> None:
    clock = Clock()
    gate, second = new_gate(4, clock), Timed(clock)
    with pytest.raises(AttemptFailed):
        attempts(clock, gate, Timed(clock, "rate_limit"), tries=1)(ask(1))
    attempts(clock, gate, second)(ask(2))
    assert 0 < second.sent[0] <= 0.5


@pytest.mark.parametrize("kind", ["server", "connection", "deadline"])
def test_other_failures_slow_nobody_else(kind: Kind) -> None:
    clock = Clock()
    gate, second = new_gate(4, clock), Timed(clock)
    with pytest.raises(AttemptFailed):
        attempts(clock, gate, Timed(clock, TryFailed(kind, "slowly", 7)), tries=1)(ask(1))
    attempts(clock, gate, second)(ask(2))
    assert second.sent == [0.0]


class Told(Clock):
    """A clock that says when another thread than its maker's has looked at it."""

    def __init__(self) -> None:
        super().__init__()
        self.looked = threading.Event()
        self._mine = threading.get_ident()

    def __call__(self) -> float:
        if threading.get_ident() != self._mine:
            self.looked.set()
        return self.now


def test_a_call_in_line_for_a_slot_goes_back_when_the_gate_closes() -> None:
    """The only slot is taken while the other stands in line for it; then a rate limit closes the gate."""
    clock = Told()
    gate, second = new_gate(1, clock), Timed(clock)
    with ThreadPoolExecutor(1) as pool:

        def first(asked: Ask, number: int) -> Reply:
            late.append(pool.submit(attempts(clock, gate, second), ask(2)))
            assert clock.looked.wait(20), "it found the gate open, and has only the slot to wait for"
            gate.close_for(5)
            return reply()

        late = list[Future[Reply]]()
        gate.around(first)(ask(1), 1)
        assert late[0].result(20).text
    assert (second.sent, clock.slept) == ([5.0], [5.0])


@pytest.mark.xfail(strict=True, reason="the gate is passed before the budget is waited for, and not looked at again")
def test_a_call_that_waited_for_the_budget_goes_back_when_the_gate_closes() -> None:
    """Of two calls only one fits into the budget at a time; meanwhile a rate limit closes the gate."""
    clock, waits = Clock(), threading.Event()

    def waiting(why: str) -> nullcontext[None]:
        waits.set()
        return nullcontext()

    tariff = Tariff(None, max_output=1000)
    one = tariff.worst(ask(1).request).tokens
    gate, budget, second = new_gate(2, clock), Budget(Caps(tokens=one + one // 2), waiting), Timed(clock)
    with ThreadPoolExecutor(1) as pool:

        def first(asked: Ask, number: int) -> Reply:
            late.append(pool.submit(gate.around(budget.around(second, tariff)), ask(2), 1))
            assert waits.wait(20)
            gate.close_for(5)
            raise TryFailed("server", "it was not billed")

        late = list[Future[Reply]]()
        with pytest.raises(TryFailed):
            gate.around(budget.around(first, tariff))(ask(1), 1)
        assert late[0].result(20).text
    assert second.sent == [5.0]
