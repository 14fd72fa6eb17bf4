"""Near the cap, the remaining budget is reserved for the oldest games, which are counted first."""

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from random import Random

import pytest

from dubito.llm.budget import Budget, BudgetGuard, BudgetQueue
from dubito.llm.forecast import Forecast, PastGames
from dubito.llm.prices import Price, Tariff
from dubito.llm.request import AccountFault, Attempt, Reply, Sends, TryFailed, Usage
from dubito.store.spend import Caps, Spend
from tests.conftest import in_gate
from tests.llm.kit import Incoming, Response, Script, Sender, Server, ask, player_at, reply, reply_body, small
from tests.resume.kit import go

TARIFF = Tariff(Price(1, 1, 1, 1), max_output=1000)
PAST = PastGames(dict.fromkeys(range(10), 10), replies=100, spent=Spend(100, 5000, 500))  # 10 calls per game


class Waits:
    """Records which calls wait, and why."""

    def __init__(self) -> None:
        self.whys: list[str] = []
        self.begun = threading.Event()

    @contextmanager
    def __call__(self, why: str) -> Iterator[None]:
        self.whys.append(why)
        self.begun.set()
        yield


def of(game: int, number: int = 0) -> Attempt:
    asked = ask(number, game=game)
    return replace(asked, place=replace(asked.place, deal=game))


def through(budget: Budget, inner: Sends) -> Callable[[Attempt, int], Reply]:
    return BudgetQueue(budget, TARIFF, BudgetGuard(budget, TARIFF, inner)).send


def test_a_younger_game_waits_until_the_older_one_has_left() -> None:
    """Ten calls are left, and the older game may need them until it ends, fails or is requeued."""
    waits = Waits()
    budget = Budget(Caps(calls=10), waits, forecast=Forecast(PAST))
    one = through(budget, Script())
    with ThreadPoolExecutor(1) as pool, budget.playing(11, 11):
        with budget.playing(10, 10):
            one(of(10), 1)
            younger = pool.submit(one, of(11), 1)
            assert waits.begun.wait(20)
            one(of(10, 1), 1)
            assert not younger.done()
        assert younger.result(20).text
    assert waits.whys == ["for the budget (older games first)"]
    assert budget.spent.calls == 3


def test_budget_unused_by_older_games_is_available() -> None:
    waits = Waits()
    budget = Budget(Caps(calls=30), waits, forecast=Forecast(PAST))
    one = through(budget, Script())
    with budget.playing(10, 10), budget.playing(11, 11):
        for number in range(20):
            one(of(11, number), 1)
    assert waits.whys == []


def test_games_of_one_deal_never_wait_for_each_other() -> None:
    """One of them may be waiting for the other one's reply to the same question."""
    waits = Waits()
    budget = Budget(Caps(calls=2), waits, forecast=Forecast(PAST))
    one = through(budget, Script())
    with budget.playing(10, 10), budget.playing(11, 10):
        sibling = of(11)
        one(replace(sibling, place=replace(sibling.place, deal=10)), 1)
        one(replace(sibling, place=replace(sibling.place, game=-2, deal=-2)), 1)
        with pytest.raises(AccountFault):
            one(replace(sibling, place=replace(sibling.place, deal=10)), 1)
    assert waits.whys == []


@pytest.mark.parametrize("seed", in_gate(range(60), 12))
def test_no_game_waits_forever_and_spending_stays_within_the_cap(seed: int) -> None:
    """Games of any length run in threads, some games are given up, and calls end in all possible ways."""
    chance, waits, settled = Random(seed), Waits(), list[Spend]()
    lengths = [chance.choice([3, 5, 8, 40]) for _ in range(12)]
    leaves = [chance.random() < 0.1 for _ in lengths]
    most_expensive = TARIFF.worst_cost(of(0).request).usd
    cap = int(chance.uniform(2, 40) * most_expensive)
    half = Spend(8, 8 * most_expensive // 2, 8 * most_expensive // 2)
    budget = Budget(Caps(usd=cap), waits, forecast=Forecast(PastGames({-1: 8}, replies=8, spent=half)))

    def answer(asked: Attempt, number: int) -> Reply:
        worst, digest = TARIFF.worst_cost(asked.request), sha256(f"{seed} {asked.place.key}".encode()).digest()
        usage = Usage(1 + digest[0] * (worst.usd - 2) // 255, 0, 0, 1, 0)
        assert budget.spent.usd + budget.reserved.usd <= cap
        ends: list[tuple[Reply | Exception, Spend]] = [
            *[(reply(usage=usage), TARIFF.cost(usage))] * 4,
            (reply(), worst),
            (TryFailed("connection", "lost", billed=True), worst),
            (TryFailed("rate_limit", "slowly"), Spend(1)),
            (AccountFault("no such model"), Spend(1)),
            (ZeroDivisionError(), worst),
        ]
        end, spent = ends[digest[1] % len(ends)]
        settled.append(spent)
        if isinstance(end, Exception):
            raise end
        return end

    send = through(budget, Sender(answer))

    def play(game: int) -> None:
        with budget.playing(game, game):
            for number in range(lengths[game]):
                budget.count_question(game)
                try:
                    send(of(game, number), 1)
                except (TryFailed, ZeroDivisionError):
                    continue
                except AccountFault:
                    return
                if leaves[game] and number == 2:
                    return
            budget.end_game(game)

    with ThreadPoolExecutor(6) as pool:
        for done in [pool.submit(play, game) for game in range(12)]:
            done.result(60)
    assert budget.spent == sum(settled, Spend())
    assert budget.spent.usd <= cap
    assert budget.reserved == Spend()


def uneven(request: Incoming) -> Response:
    """Answer depending on the question, so that games have very different lengths.

    Usage is about four bytes per token.
    """
    chance = sha256(request.raw).digest()
    into, out = len(request.raw) // 4, 20 + chance[2] * 2
    usage = {"prompt_tokens": into, "completion_tokens": out, "total_tokens": into + out}
    return Response(body=json.dumps(reply_body("chat", json.dumps({"answer": chance[0] % 4 == 0}), usage=usage)))


@pytest.mark.parametrize("left", in_gate([3, 15], 1))
def test_ctrl_c_ends_waiting_games(tmp_path: Path, left: int) -> None:
    with Server(uneven) as server:
        experiment = small(player_at(server, "chat"), games=20, turns=60)
        run = go(experiment, tmp_path / "r", stop_after=60 - left, caps=Caps(calls=60), in_flight=32)
    assert run.interrupted or "the budget is used up" in str(run.failure)
