"""The budget under any interleaving of threads and faults: no cap is passed, and nobody waits for nothing.

Hundreds of seeded tables. At each, threads make tries, and one try after the other is ended, in an order and in ways
that the seed decides.
"""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from random import Random

import pytest

from dubito.llm.budget import Budget, Caps
from dubito.llm.prices import Price, Tariff
from dubito.llm.request import AccountFault, Ask, Reply, TryFailed, Usage
from dubito.store.model_log import Spend
from tests.conftest import in_gate
from tests.llm.kit import Outcome, ask, reply

PATIENCE = 20.0  # seconds


class Worker:
    """A thread that makes tries; what it is at, and what it is to do next."""

    def __init__(self, tariff: Tariff, tries: int) -> None:
        self.tariff, self.tries = tariff, tries
        self.state = "running"  # or `inside` a try, `waiting` for the budget, `done`
        self.end: Outcome | ZeroDivisionError = None  # how its try is to end
        self.refused: Spend | None = None


class Table:
    """Lets threads make tries within a budget, in an order and with ends that a seed decides, one end at a time.

    Between two ends everybody is inside a try, waits for the budget, or is done; then the books must be right.
    """

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.turn = threading.Condition()
        self.local = threading.local()
        price = Price(*(self.chance.randrange(1, 50) for _ in range(4)))
        self.workers = [Worker(Tariff(price, self.chance.randrange(16, 400)), 3) for _ in range(6)]
        self.asked = ask(seed)
        least = min(
            (worker.tariff.worst(self.asked.request) for worker in self.workers), key=lambda spend: spend.tokens
        )
        draw = self.chance.uniform
        self.caps = Caps(
            calls=self.chance.choice([None, self.chance.randrange(1, 18)]),
            tokens=self.chance.choice([None, int(least.tokens * draw(0.5, 9))]),
            usd=self.chance.choice([None, int(least.usd * draw(0.5, 9))]),
        )
        self.budget = Budget(self.caps, self.waits)
        self.billed = Spend()  # by the provider
        self.ended = Spend()  # what the tries that ended are to be settled at
        self.waited = self.refused = 0
        self.over = False

    def become(self, worker: Worker, state: str) -> None:
        with self.turn:
            worker.state = state
            self.turn.notify_all()

    @contextmanager
    def waits(self, why: str) -> Iterator[None]:
        self.waited += 1
        self.become(self.local.worker, "waiting")
        try:
            yield
        finally:
            self.become(self.local.worker, "running")

    def attempt(self, ask: Ask, number: int) -> Reply:
        """A try: under way until it is told how to end."""
        worker: Worker = self.local.worker
        self.become(worker, "inside")
        with self.turn:
            assert self.turn.wait_for(lambda: self.over or worker.state == "ending", PATIENCE)
        worker.state = "running"
        if self.over:
            raise AccountFault("the test is over")
        if isinstance(worker.end, Exception):
            raise worker.end
        assert isinstance(worker.end, Reply)
        return worker.end

    def work(self, worker: Worker) -> None:
        self.local.worker = worker
        one = self.budget.around(self.attempt, worker.tariff)
        try:
            for number in range(worker.tries):
                try:
                    one(self.asked, number)
                except (TryFailed, ZeroDivisionError):
                    continue
        except AccountFault as error:
            if "budget" in str(error):
                worker.refused = worker.tariff.worst(self.asked.request)
        finally:
            self.become(worker, "done")

    def at_rest(self) -> bool:
        """Nobody moves: nobody runs, and who waits has a reason to."""
        budget, caps = self.budget, self.caps

        def stuck(worker: Worker) -> bool:
            worst = worker.tariff.worst(self.asked.request)
            full = caps.exceeded_by(budget.spent + budget.reserved + worst)
            return full is not None and caps.exceeded_by(budget.spent + worst) is None

        return all(
            worker.state in ("inside", "done") or (worker.state == "waiting" and stuck(worker))
            for worker in self.workers
        )

    def check(self) -> None:
        """The books, while nobody moves."""
        inside = [worker for worker in self.workers if worker.state == "inside"]
        reserved = sum((worker.tariff.worst(self.asked.request) for worker in inside), Spend())
        assert self.budget.reserved == reserved
        assert self.budget.spent == self.ended
        assert self.caps.exceeded_by(self.budget.spent + self.budget.reserved) is None
        assert self.caps.exceeded_by(self.billed) is None, "the provider billed more than the cap"
        for worker in self.workers:
            if worker.refused is not None:
                assert self.caps.exceeded_by(self.budget.spent + worker.refused) is not None
                worker.refused = None
                self.refused += 1
        if not inside:
            assert [worker.state for worker in self.workers] == ["done"] * len(self.workers), "somebody waits for ever"

    def end_one(self) -> bool:
        """End one of the tries under way, in one of the ways in which tries end; False if there is none."""
        inside = [worker for worker in self.workers if worker.state == "inside"]
        if not inside:
            return False
        worker = self.chance.choice(inside)
        tariff, worst = worker.tariff, worker.tariff.worst(self.asked.request)
        into = self.chance.randint(0, len(self.asked.request.text))
        cached = self.chance.randint(0, into)
        kept, out = self.chance.randint(0, into - cached), self.chance.randint(0, tariff.max_output)
        usage = Usage(into, cached, kept, out, 0)
        ends: list[tuple[Outcome | ZeroDivisionError, Spend, Spend]] = [
            (reply(usage=usage), tariff.of(usage), tariff.of(usage)),
            (reply(usage=usage), tariff.of(usage), tariff.of(usage)),
            (reply(), tariff.of(usage), worst),
            (TryFailed("connection", "lost", billed=True), tariff.of(usage), worst),
            (TryFailed("rate_limit", "slowly"), Spend(1), Spend(1)),
            (TryFailed("server", "broken"), Spend(1), Spend(1)),
            (AccountFault("no such model"), Spend(1), Spend(1)),
            (ZeroDivisionError(), tariff.of(usage), worst),
        ]
        worker.end, billed, settled = self.chance.choice(ends)
        self.billed += billed
        self.ended += settled
        self.become(worker, "ending")
        return True

    def send_home(self) -> None:
        """Something is wrong: let go of everybody, that the test can end."""
        with self.turn:
            self.over = True
            self.turn.notify_all()
        with self.budget._settled:  # not within the other: a worker may have this one and want that one
            self.budget._caps = Caps()
            self.budget._settled.notify_all()

    def play(self) -> None:
        with ThreadPoolExecutor(len(self.workers)) as pool:
            done = [pool.submit(self.work, worker) for worker in self.workers]
            try:
                moving = True
                while moving:
                    with self.turn:
                        assert self.turn.wait_for(self.at_rest, PATIENCE), "somebody waits who need not, or for ever"
                        self.check()
                        moving = self.end_one()
            except AssertionError:
                self.send_home()
                raise
            for one in done:
                one.result(PATIENCE)
        assert self.budget.reserved == Spend()
        assert self.budget.spent == self.ended


@pytest.mark.parametrize("block", in_gate(range(8), 1))
def test_in_any_order_the_cap_holds_and_no_wait_is_in_vain(block: int) -> None:
    tables = [Table(seed) for seed in range(75 * block, 75 * block + 75)]
    for table in tables:
        table.play()
    assert sum(table.waited for table in tables) > 100, "or this shows little"
    assert sum(table.refused for table in tables) > 100
    assert sum(table.budget.spent.calls for table in tables) > 100
