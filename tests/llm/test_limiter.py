"""An account's traffic with scripted tries: concurrency, pauses and outages."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any

import pytest

from dubito.experiment.call_options import PATIENCE
from dubito.llm.budget import Budget, BudgetGuard, BudgetQueue
from dubito.llm.limiter import AccountTraffic, RateLimiter, Sleep, Timing
from dubito.llm.prices import Tariff
from dubito.llm.request import AccountFault, Asks, Attempt, FailureKind, Reply, Sends, TryFailed
from dubito.llm.retry import Retry
from dubito.model_settings import Account
from dubito.store.spend import Caps, Spend
from tests.llm.kit import Clock, Outcome, Script, Sender, ask, reply, settings

ACCOUNT = Account("responses", "http://127.0.0.1:1/v1", "SOME_KEY")
OTHER = Account("responses", "http://127.0.0.1:1/v1", "ANOTHER_KEY")


def timing(clock: Clock, patience: float = PATIENCE, sleep: Sleep | None = None) -> Timing:
    return Timing(patience, sleep or clock.sleep, lambda why: nullcontext(), clock, lambda: False)


def new_traffic(
    limit: int = 1, clock: Clock | None = None, account: Account = ACCOUNT, patience: float = PATIENCE
) -> AccountTraffic:
    return AccountTraffic(account, limit, timing(clock or Clock(), patience))


def limited(seconds: float) -> TryFailed:
    return TryFailed("rate_limit", "slowly", seconds)


def times(kind: FailureKind, number: int) -> list[Outcome]:
    return [kind] * number


def through(traffic: AccountTraffic, inner: Sends, cap: float = 60) -> RateLimiter:
    return RateLimiter(traffic, cap, inner)


def limited_calls(traffic: AccountTraffic, *outcomes: Outcome) -> Callable[[], Reply]:
    limiter = through(traffic, Script(*outcomes))
    return lambda: limiter.send(ask(), 1)


def fail(times: int, call: Callable[[], Reply]) -> None:
    for _ in range(times):
        with pytest.raises(TryFailed):
            call()


def test_no_more_tries_than_slots_at_once() -> None:
    traffic, lock = new_traffic(3), threading.Lock()
    inside, most = 0, 0
    full = threading.Barrier(3)

    def busy(ask: Attempt, number: int) -> Reply:
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
        full.wait(20)  # three always arrive together
        with lock:
            inside -= 1
        return reply()

    one = through(traffic, Sender(busy))
    with ThreadPoolExecutor(12) as pool:
        assert len(list(pool.map(lambda n: one.send(ask(n), 1), range(12)))) == 12
    assert most == 3


@pytest.mark.parametrize("kind", ["server", "connection", "deadline"])
def test_a_sleeping_try_holds_no_slot(kind: FailureKind) -> None:
    """With a single slot, another attempt is sent while the first one waits for its second try."""
    clock, waits = Clock(), list[int]()

    def sleep(seconds: float, why: str) -> None:
        with ThreadPoolExecutor(1) as pool:
            if not waits:
                waits.append(2)
                assert pool.submit(through(traffic, Script()).send, ask(2), 1).result(20).text
        clock.sleep(seconds, why)

    traffic = AccountTraffic(ACCOUNT, 1, timing(clock, sleep=sleep))
    first = Retry(through(traffic, Script(kind)), settings(), traffic, sleep)
    assert first.ask(ask(1)).text
    assert waits == [2]


def test_slot_is_always_released() -> None:
    call = limited_calls(new_traffic(), "server", "too_long", AccountFault("no"), None)
    for error in (TryFailed, TryFailed, AccountFault):
        with pytest.raises(error):
            call()
    assert call().text


class Timed(Script):
    """A script that records when its tries were sent."""

    def __init__(self, clock: Clock, *outcomes: Outcome) -> None:
        super().__init__(*outcomes)
        self._clock = clock
        self.sent: list[float] = []

    def send(self, attempt: Attempt, number: int) -> Reply:
        self.sent.append(self._clock.now)
        return super().send(attempt, number)


def attempts(clock: Clock, traffic: AccountTraffic, script: Script, **changes: Any) -> Asks:
    how = settings(**changes)
    return Retry(through(traffic, script, how.retry_after_cap), how, traffic, clock.sleep)


def test_rate_limit_pauses_the_accounts_other_calls() -> None:
    clock = Clock()
    traffic, elsewhere = new_traffic(4, clock), new_traffic(4, clock, OTHER)
    first, second, third = Timed(clock, limited(7)), Timed(clock), Timed(clock)
    fail(1, lambda: through(traffic, first).send(ask(1), 1))
    attempts(clock, elsewhere, third).ask(ask(3))
    assert (third.sent, clock.slept) == ([0.0], []), "another account is not affected"
    attempts(clock, traffic, second).ask(ask(2))
    assert (first.sent, second.sent) == ([0.0], [7.0])
    attempts(clock, traffic, second).ask(ask(2))
    assert second.sent[1] < 8, "the pause ends on time"


def test_a_rate_limited_call_waits_like_the_others() -> None:
    clock = Clock()
    script = Timed(clock, limited(7), limited(0.5))
    attempts(clock, new_traffic(1, clock), script).ask(ask())
    assert script.sent == [0.0, 7.0, 7.5]


def test_the_longest_wait_counts() -> None:
    clock = Clock()
    traffic = new_traffic(4, clock)
    together = threading.Barrier(3)

    def slowed(asked: Attempt, number: int) -> Reply:
        together.wait(20)  # all three were sent before the first answer
        raise limited((3, 7, 5)[asked.place.decision])

    with ThreadPoolExecutor(3) as pool:
        for late in [pool.submit(through(traffic, Sender(slowed)).send, ask(n), 1) for n in range(3)]:
            assert isinstance(late.exception(20), TryFailed)
    script = Timed(clock)
    attempts(clock, traffic, script).ask(ask())
    assert script.sent == [7.0]


def test_a_wait_of_a_whole_account_is_capped_by_the_player() -> None:
    clock = Clock()
    traffic, second = new_traffic(4, clock), Timed(clock)
    fail(1, lambda: through(traffic, Timed(clock, limited(1200)), cap=11).send(ask(1), 1))
    attempts(clock, traffic, second).ask(ask(2))
    assert second.sent == [11.0]


def test_rate_limit_without_a_time_slows_the_account_briefly() -> None:
    clock = Clock()
    traffic, second = new_traffic(4, clock), Timed(clock)
    fail(1, lambda: through(traffic, Timed(clock, "rate_limit")).send(ask(1), 1))
    attempts(clock, traffic, second).ask(ask(2))
    assert 0 < second.sent[0] <= 0.5


@pytest.mark.parametrize("kind", ["server", "connection", "deadline"])
def test_other_failures_do_not_slow_the_account(kind: FailureKind) -> None:
    clock = Clock()
    traffic, second = new_traffic(4, clock), Timed(clock)
    fail(1, lambda: through(traffic, Timed(clock, TryFailed(kind, "slowly", 7))).send(ask(1), 1))
    attempts(clock, traffic, second).ask(ask(2))
    assert second.sent == [0.0]


def test_call_waiting_for_a_slot_stops_when_the_gate_closes() -> None:
    """One call holds the only slot and gets a rate limit while another one waits for it."""
    clock = Clock()
    traffic, second = new_traffic(1, clock), Timed(clock)
    with ThreadPoolExecutor(1) as pool:

        def first(asked: Attempt, number: int) -> Reply:
            late.append(pool.submit(attempts(clock, traffic, second).ask, ask(2)))
            raise limited(5)

        late = list[Future[Reply]]()
        with pytest.raises(TryFailed):
            through(traffic, Sender(first)).send(ask(1), 1)
        assert late[0].result(20).text
    assert second.sent == [pytest.approx(5.0, abs=0.01)]


class Narrow:
    """A budget for one call at a time that reports when a call waits for it."""

    def __init__(self, traffic: AccountTraffic) -> None:
        self.waits = threading.Event()
        self.traffic, self.tariff = traffic, Tariff(None, max_output=1000)
        one = self.tariff.worst_cost(ask(1).request).tokens
        self.budget = Budget(Caps(tokens=one + one // 2), self._waiting)

    def _waiting(self, why: str) -> nullcontext[None]:
        self.waits.set()
        return nullcontext()

    def through(self, inner: Sends) -> Sends:
        guard = BudgetGuard(self.budget, self.tariff, inner)
        return BudgetQueue(self.budget, self.tariff, RateLimiter(self.traffic, 60, guard))


def in_turn(narrow: Narrow, error: TryFailed, second: Sends) -> Future[Reply]:
    """Make a second call wait for the budget while the first one ends in an error."""
    with ThreadPoolExecutor(1) as pool:

        def first(asked: Attempt, number: int) -> Reply:
            late.append(pool.submit(narrow.through(second).send, ask(2), 1))
            assert narrow.waits.wait(20)
            raise error

        late = list[Future[Reply]]()
        with pytest.raises((TryFailed, AccountFault)):
            narrow.through(Sender(first)).send(ask(1), 1)
        late[0].exception(20)
        return late[0]


def test_call_waiting_for_budget_stops_when_the_gate_closes() -> None:
    """The rate limit that releases the budget also closes the account, before the waiting call can use it."""
    clock = Clock()
    narrow, second = Narrow(new_traffic(2, clock)), Timed(clock)
    assert in_turn(narrow, limited(5), second).result().text
    assert second.sent == [pytest.approx(5.0, abs=0.01)]


def test_call_waiting_for_the_gate_reserves_no_budget() -> None:
    clock, held = Clock(), list[Spend]()

    def sleep(seconds: float, why: str) -> None:
        held.append(narrow.budget.reserved)
        clock.sleep(seconds, why)

    narrow = Narrow(AccountTraffic(ACCOUNT, 2, timing(clock, sleep=sleep)))
    script = Script()
    assert in_turn(narrow, limited(5), script).result().text
    assert set(held) == {Spend()}
    assert narrow.budget.spent == Spend(1) + narrow.tariff.worst_cost(ask(2).request), (
        "requests that were not sent cost nothing"
    )


def test_waiting_for_budget_is_not_an_outage() -> None:
    clock = Clock()
    traffic, script = new_traffic(2, clock, patience=100), Script()
    fail(1, limited_calls(traffic, "server"))
    narrow = Narrow(traffic)
    clock.now += 200
    error = in_turn(narrow, TryFailed("server", "broken"), script).exception()
    assert isinstance(error, AccountFault)
    assert (script.numbers, narrow.budget.spent) == ([], Spend(1))
