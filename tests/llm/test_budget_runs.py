"""Whole runs at a cap, with rate limits and server errors, 32 games in flight: the books of everybody agree."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dubito.experiment.run import Played
from dubito.house.core import Call
from dubito.house.faults import PROBE, Faults
from dubito.house.server import House
from dubito.llm.budget import Caps
from dubito.llm.price_list import read_prices
from dubito.llm.prices import Price, dollars
from dubito.llm.request import Usage
from dubito.store.model_log import Spend
from tests.cli.kit import REPO
from tests.conftest import in_gate
from tests.llm.kit import BOT_OF, PROTOCOLS, Unhurried, contender, ran, rows, small
from tests.llm.test_runs import check_kept

PRICES = read_prices(
    {
        "house-sharp": {"input": 2, "cached_input": 0.1, "cache_write": 2.5, "output": 10},
        "house-honest": {"input": 4, "cached_input": 0.2, "cache_write": 5, "output": 20},
        "house-random": {"input": 0.1, "cached_input": 0.01, "cache_write": 0.125, "output": 0.5},
    },
    "",
    REPO,
)
MODELS = dict(zip(PROTOCOLS, PRICES, strict=True))
ALL = Caps(calls=10**6, tokens=10**12, usd=10**18)  # so that all three are counted


def play(house: House, folder: Path, caps: Caps) -> tuple[Played, str]:
    """A run of a player in each protocol at that house, and what the budget says at its end."""
    watch = Unhurried()
    players = [
        contender(api, MODELS[api], BOT_OF[api], api=api, base_url=house.base_url(api), max_output=32, tries=30)
        for api in PROTOCOLS
    ]
    of, how = small(*players, games=6, turns=16), {"prices": PRICES, "cache": folder / "cache"}
    return ran(of, folder / "run", watch, in_flight=32, caps=caps, **how), watch.used()


@contextmanager
def playing(folder: Path, caps: Caps, **faults: float) -> Iterator[tuple[Played, House, str]]:
    with House(faults=Faults(**faults)) as house:
        run, said = play(house, folder, caps)
        yield run, house, said


def cost(call: Call) -> int:
    price: Price = PRICES[str(call.model)]
    return price.of(Usage(call.input_tokens, call.cached_tokens, 0, call.output_tokens, 0))


def billed(calls: list[Call]) -> Spend:
    tokens = sum(call.input_tokens + call.output_tokens for call in calls)
    return Spend(len(calls), tokens, sum(cost(call) for call in calls))


def in_tries(run: Played) -> Spend:
    ((calls, tokens, usd),) = rows(run.folder, "SELECT count(*), sum(tokens), sum(picodollars) FROM tries")
    return Spend(calls, tokens, usd)


def in_budget(said: str) -> dict[str, tuple[str, str]]:
    return {cap: (spent, held) for cap, spent, held in re.findall(r"(\w+): (\S+) spent, (\S+) reserved", said)}


def check_books(run: Played, house: House, said: str) -> Spend:
    """House, rows, budget and summary agree: the calls, the tokens in and out, the picodollars. All of it."""
    spent = billed(house.calls)
    assert in_tries(run) == spent
    assert in_budget(said) == {
        "calls": (f"{spent.calls:,}", "0"),
        "tokens": (f"{spent.tokens:,}", "0"),
        "usd": (dollars(spent.usd), "$0.0000"),
    }
    for api, log in run.models.items():
        own = [call for call in house.calls if call.protocol == api]
        assert log.tokens["input"] == sum(call.input_tokens for call in own)
        assert log.tokens["output"] == sum(call.output_tokens for call in own)
        assert log.tokens["cached"] == sum(call.cached_tokens for call in own)
        assert (log.calls, log.picodollars, log.assumed) == (len(own), billed(own).usd, 0)
    return spent


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Played, Spend]:
    with playing(tmp_path_factory.mktemp("whole"), ALL) as (run, house, said):
        assert run.failure is None
        return run, check_books(run, house, said)


@pytest.mark.parametrize(("cap", "share"), in_gate([("calls", 0.6), ("tokens", 0.5), ("usd", 0.4)], [("usd", 0.4)]))
def test_no_run_passes_its_cap_and_all_books_agree(
    tmp_path: Path, whole: tuple[Played, Spend], cap: str, share: float
) -> None:
    complete, took = whole
    most = int(getattr(took, cap) * share)
    caps: Any = replace(ALL, **{cap: most})
    with playing(tmp_path, caps, rate_limit=0.15, server_error=0.1) as (run, house, said):
        spent = check_books(run, house, said)
    assert getattr(spent, cap) <= most
    assert getattr(spent, cap) > 0.2 * most, "it stopped long before it had to"
    assert f"raise `budget.{cap}`" in str(run.failure)
    assert {call.status for call in house.calls} >= {200, 429, 500}
    check_kept(run, complete)


def test_a_cap_that_is_not_reached_changes_nothing(tmp_path: Path, whole: tuple[Played, Spend]) -> None:
    """Faults that pass cost calls, but no tokens and no money."""
    complete, took = whole
    with playing(tmp_path, ALL, rate_limit=0.15, server_error=0.1) as (run, house, said):
        spent = check_books(run, house, said)
    assert run.failure is None
    assert run.results_digest == complete.results_digest
    asked = billed([call for call in house.calls if call.draw != PROBE])  # a probe of an account in trouble is none
    assert (asked.tokens, asked.usd) == (took.tokens, took.usd)
    assert spent.calls > took.calls


def test_a_run_stopped_by_its_budget_goes_on_with_more(tmp_path: Path, whole: tuple[Played, Spend]) -> None:
    """And what it spent before counts: in the end the books are those of a run at once."""
    complete, took = whole
    with House() as house:
        cut, _ = play(house, tmp_path, replace(ALL, tokens=took.tokens // 2))
        assert cut.failure is not None
        again, said = play(house, tmp_path, replace(ALL, tokens=took.tokens // 2))
        assert again.failure is not None, "the same cap is as used up as before"
        run, said = play(house, tmp_path, ALL)
    assert run.failure is None
    assert check_books(run, house, said) == took
    assert run.results_digest == complete.results_digest
