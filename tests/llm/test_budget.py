"""The budget: reserved at the worst, settled at the truth, never passed, and nobody waits for nothing."""

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress

import pytest

from dubito.llm.budget import Budget, Caps
from dubito.llm.prices import Price, Tariff
from dubito.llm.request import AccountFault, Ask, Reply, TryFailed, Usage
from dubito.store.model_log import Spend
from tests.llm.kit import Outcome, Script, ask, reply

PRICE = Price(2_000_000, 100_000, 2_500_000, 10_000_000)
TARIFF = Tariff(PRICE, max_output=1000)
WORST = TARIFF.worst(ask().request)
USAGE = Usage(50, 20, 10, 7, 3)
USED = Spend(1, 57, 20 * 2_000_000 + 20 * 100_000 + 10 * 2_500_000 + 7 * 10_000_000)


def unseen(why: str) -> AbstractContextManager[None]:
    return nullcontext()


def new_budget(**caps: int) -> Budget:
    return Budget(Caps(**caps), unseen)


def settled(outcome: Outcome) -> Spend:
    """What is spent after one try that ends so."""
    budget = new_budget()
    one = budget.around(Script(outcome), TARIFF)
    with suppress(TryFailed, AccountFault):
        one(ask(), 1)
    assert budget.reserved == Spend()
    return budget.spent


@pytest.mark.parametrize(
    ("outcome", "spent"),
    [
        pytest.param(reply(usage=USAGE), USED, id="a reply with usage"),
        pytest.param(reply(usage=Usage(0, 0, 0, 0, 0)), Spend(1, 0, 0), id="a reply that was free"),
        pytest.param(reply(), WORST, id="a reply without usage"),
        pytest.param("rate_limit", Spend(1), id="a failure that is not billed"),
        pytest.param(TryFailed("connection", "lost", billed=True), WORST, id="a failure that may be billed"),
        pytest.param(AccountFault("no"), Spend(1), id="a fault of the account"),
    ],
)
def test_what_a_try_is_settled_at(outcome: Outcome, spent: Spend) -> None:
    assert settled(outcome) == spent


def test_what_goes_wrong_in_between_is_settled_at_the_worst() -> None:
    """The call was made, and the disk was full, say."""

    def broken(ask: Ask, number: int) -> Reply:
        raise ZeroDivisionError

    budget = new_budget()
    with pytest.raises(ZeroDivisionError):
        budget.around(broken, TARIFF)(ask(), 1)
    assert (budget.spent, budget.reserved) == (WORST, Spend())


def test_the_worst_is_reserved_while_a_try_is_under_way() -> None:
    budget = new_budget()

    def look(ask: Ask, number: int) -> Reply:
        assert (budget.spent, budget.reserved) == (Spend(), WORST)
        return reply(usage=USAGE)

    budget.around(look, TARIFF)(ask(), 1)
    assert (budget.spent, budget.reserved) == (USED, Spend())


@pytest.mark.parametrize(
    ("caps", "cap"),
    [
        ({"usd": WORST.usd - 1}, "usd"),
        ({"tokens": WORST.tokens - 1}, "tokens"),
        ({"usd": 10**12, "tokens": 10**6, "calls": 0}, "calls"),
        ({"usd": WORST.usd - 1, "tokens": 1, "calls": 0}, "usd"),
    ],
)
def test_a_try_whose_worst_case_does_not_fit_is_not_made(caps: dict[str, int], cap: str) -> None:
    script, budget = Script(), new_budget(**caps)
    with pytest.raises(AccountFault) as refused:
        budget.around(script, TARIFF)(ask(), 1)
    assert str(refused.value).startswith("the budget is used up: ")
    assert f"raise `budget.{cap}`" in str(refused.value)
    assert (script.numbers, budget.spent, budget.reserved) == ([], Spend(), Spend())


def test_a_try_that_fits_exactly_is_made() -> None:
    budget = new_budget(usd=WORST.usd, tokens=WORST.tokens, calls=1)
    assert budget.around(Script(), TARIFF)(ask(), 1).text


@pytest.mark.parametrize(
    ("caps", "spent", "sentence"),
    [
        ({"calls": 3}, Spend(3), "3 of 3 calls spent, and the next call may take up to 1; raise `budget.calls`"),
        ({"tokens": 2000}, Spend(1, 1999), "1,999 of 2,000 tokens spent, and the next call may take up to {}"),
        ({"usd": 5 * 10**12}, Spend(1, 1, 4_999_912 * 10**6), "$4.9999 of $5.0000 spent, and the next call may take"),
    ],
)
def test_the_sentence_says_what_is_spent_of_what(caps: dict[str, int], spent: Spend, sentence: str) -> None:
    with pytest.raises(AccountFault) as refused:
        Budget(Caps(**caps), unseen, spent).around(Script(), TARIFF)(ask(), 1)
    assert sentence.format(f"{WORST.tokens:,}") in str(refused.value)


def test_a_call_waits_for_others_that_may_leave_enough() -> None:
    """And says for what; it is released by what they did not use."""
    whys, waits = list[str](), threading.Event()

    @contextmanager
    def waiting(why: str) -> Iterator[None]:
        whys.append(why)
        waits.set()
        yield

    budget = Budget(Caps(tokens=WORST.tokens + 57), waiting)
    with ThreadPoolExecutor(1) as pool:

        def first(asked: Ask, number: int) -> Reply:
            second = budget.around(Script(reply(usage=USAGE)), TARIFF)
            late.append(pool.submit(second, ask(), 1))
            assert waits.wait(20)
            return reply(usage=USAGE)

        late = list[Future[Reply]]()
        budget.around(first, TARIFF)(ask(), 1)
        assert late[0].result(20).text
    assert budget.spent == USED + USED
    assert whys == ["for the budget (tokens)"]
