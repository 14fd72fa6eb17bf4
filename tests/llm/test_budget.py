"""Budgets: users' mistakes, caps with threads in any order, and the totals of whole runs."""

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from dubito.experiment.run import RunResult
from dubito.house.core import Call
from dubito.house.faults import PROBE, Faults
from dubito.house.server import House
from dubito.llm.budget import Budget, BudgetGuard
from dubito.llm.price_list import read_prices
from dubito.llm.prices import Price, Tariff
from dubito.llm.request import AccountFault, Usage
from dubito.store.spend import Caps, Spend, dollars
from tests.cli.kit import REPO, Shell
from tests.conftest import in_gate
from tests.llm.kit import (
    BOT_OF,
    PROTOCOLS,
    NoWait,
    Script,
    Server,
    ask,
    contender,
    player_at,
    respond,
    rows,
    run_cli,
    run_games,
    small,
)
from tests.llm.test_bad_input import sentence
from tests.llm.test_runs import check_counted_games

ENTRY = {"input": 2, "cached_input": 0.1, "cache_write": 2.5, "output": 10}


def refused(shell: Shell, *flags: str, **config: Any) -> str:
    message = sentence(run_cli(shell, contender("Asker"), flags=flags, **config), 2)
    assert not Path("r").exists(), "nothing was started"
    return message


@pytest.mark.parametrize(
    ("flag", "words"),
    [
        ("eur=5", "--budget: unknown key 'eur': choose from calls, tokens, usd"),
        ("5", "--budget: write it as usd=5,calls=1000, not '5'"),
        ("call=5", "--budget: unknown key 'call': did you mean 'calls'?"),
        ("usd=5,eur=5", "--budget: unknown key 'eur'"),
        ("usd=0", "--budget: must be greater than 0, not 0"),
        ("usd=many", "--budget: must be a number, not 'many'"),
        ("usd=", "--budget: must be a number, not ''"),
        ("usd=nan", "--budget: must be a finite number, not nan"),
        ("calls=0", "--budget: must be at least 1, not 0"),
        ("calls=1.5", "--budget: must be a whole number, not '1.5'"),
        ("", "--budget: "),
        ("usd=5,usd=6", "--budget: usd is set twice"),
    ],
)
def test_invalid_budget_flag_is_refused(shell: Shell, flag: str, words: str) -> None:
    assert refused(shell, "--budget", flag).startswith(words)


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        ({"eur": 5}, "c.yaml: unknown key 'eur': choose from calls, tokens, usd"),
        ({"calls": 0}, "c.yaml: budget.calls: must be at least 1, not 0"),
        ({"usd": "5"}, "c.yaml: budget.usd: must be a number, not '5'"),
        ({"usd": 0}, "c.yaml: budget.usd: must be greater than 0, not 0"),
        ({"tokens": 1.5}, "c.yaml: budget.tokens: must be a whole number, not 1.5"),
        (5, "c.yaml: budget: must be a mapping such as {usd: 5, calls: 1000}, not 5"),
    ],
)
def test_invalid_budget_in_a_config_is_refused(shell: Shell, budget: Any, words: str) -> None:
    assert refused(shell, budget=budget).startswith(words)


def test_budget_flag_keeps_other_caps(shell: Shell) -> None:
    """Caps that the flag does not mention keep the config's values."""
    with Server(lambda request: respond(request.protocol)) as server:
        ended = run_cli(shell, player_at(server), flags=("--budget", "calls=500"), budget={"tokens": 1})
    assert ended.code == 3
    assert server.requests == []


def test_dollars_need_a_price(shell: Shell) -> None:
    with Server(lambda request: respond(request.protocol)) as server:
        message = sentence(run_cli(shell, player_at(server, name="Asker"), budget={"usd": 5}), 2)
        assert server.requests == []
        assert message == (
            f"Asker: budget.usd needs the price of 'some-model' at {server.base_url('responses')}, which is unknown; "
            "remove budget.usd, or add this line with the provider's prices in USD per million tokens (these are the "
            'highest known prices): prices: {"some-model": '
            "{input: 30, cached_input: 30, cache_write: 30, output: 180}}"
        )
        assert not Path("r").exists()
        assert run_cli(shell, player_at(server), games=1, budget={"tokens": 10**9}).code == 0, (
            "other caps need no price"
        )


def test_prices_come_from_the_config_or_a_file(shell: Shell) -> None:
    Path("p.yaml").write_text(yaml.safe_dump({"some-model": ENTRY}))
    with Server(lambda request: respond(request.protocol)) as server:
        how: list[tuple[list[str], dict[str, Any]]] = [
            ([], {"prices": {"some-model": ENTRY}}),
            ([], {"prices": "p.yaml"}),
            (["--prices", "p.yaml"], {}),
            (["--prices", "p.yaml"], {"prices": {"some-model": dict.fromkeys(ENTRY, 7)}}),
        ]
        for number, (flags, config) in enumerate(how):
            flags += ["--output", f"run{number}", "--cache", f"cache{number}"]
            ended = run_cli(shell, player_at(server), games=1, flags=flags, budget={"usd": 5}, **config)
            assert ended.code == 0, ended.err
            costs = rows(Path(f"run{number}"), "SELECT DISTINCT picodollars FROM tries")
            assert costs == [(100 * 2_000_000 + 20 * 10_000_000,)]


GAPPED = {name: value for name, value in ENTRY.items() if name != "cache_write"}


def test_incomplete_price_is_refused(shell: Shell) -> None:
    """An incomplete price is rejected even if its model is not used."""
    words = "m: cache_write is missing: set it in USD per million tokens"
    assert refused(shell, prices={"m": GAPPED}).startswith(f"prices: {words}")
    Path("p.yaml").write_text(yaml.safe_dump({"fine": ENTRY, "m": GAPPED}))
    message = refused(shell, "--prices", "p.yaml")
    assert message.startswith(f"{Path('p.yaml').absolute()}: {words}")


@pytest.mark.parametrize("prices", [5, ["m"], True, None])
def test_invalid_prices_are_refused(shell: Shell, prices: Any) -> None:
    assert refused(shell, prices=prices).startswith("c.yaml: prices: must be ")


def test_dollars_need_the_price_of_what_costs_more(shell: Shell) -> None:
    """The list price does not include it; a user's own price does."""
    player = contender("Asker", "gpt-6-sol", parameters={"speed": "fast"}, base_url="https://api.openai.com/v1")
    stops = ["--offline", "--no-preflight"]
    message = sentence(run_cli(shell, player, flags=stops, budget={"usd": 5}), 2)
    assert message == (
        "Asker: parameters.speed: the list price of 'gpt-6-sol' does not cover it; set the price "
        "with this parameter in `prices.gpt-6-sol`, or remove the parameter or budget.usd"
    )
    assert not Path("r").exists()
    for config in ({"budget": {"usd": 5}, "prices": {"gpt-6-sol": ENTRY}}, {"budget": {"calls": 5}}):
        ended = run_cli(shell, player, flags=stops, **config)
        assert ended.code == 3
        assert "--offline: the cache has no reply" in ended.err


def test_dollar_budget_refuses_tools_charged_by_the_call(shell: Shell) -> None:
    with Server(lambda request: respond(request.protocol)) as server:
        player = player_at(server, name="Asker", parameters={"tools": [{"type": "web_search"}]})
        message = sentence(run_cli(shell, player, budget={"usd": 5}, prices={"some-model": ENTRY}), 2)
        assert message == (
            "Asker: parameters.tools: the server charges for its tools per call, and the price is "
            "unknown; remove the parameter or budget.usd"
        )
        assert server.requests == []
        free = {"some-model": dict.fromkeys(ENTRY, 0)}
        assert run_cli(shell, player, games=1, budget={"usd": 5}, prices=free).code == 0, (
            "the user's own server is free"
        )


PRICE = Price(2_000_000, 100_000, 2_500_000, 10_000_000)
TARIFF = Tariff(PRICE, max_output=1000)
WORST = TARIFF.worst_cost(ask().request)


def unseen(why: str) -> AbstractContextManager[None]:
    return nullcontext()


def new_budget(**caps: int) -> Budget:
    return Budget(Caps(**caps), unseen)


@pytest.mark.parametrize(
    ("caps", "cap"),
    [
        ({"usd": WORST.usd - 1}, "usd"),
        ({"tokens": WORST.tokens - 1}, "tokens"),
        ({"usd": 10**12, "tokens": 10**6, "calls": 0}, "calls"),
        ({"usd": WORST.usd - 1, "tokens": 1, "calls": 0}, "usd"),
    ],
)
def test_try_over_the_budget_is_not_made(caps: dict[str, int], cap: str) -> None:
    script, budget = Script(), new_budget(**caps)
    with pytest.raises(AccountFault) as refused:
        BudgetGuard(budget, TARIFF, script).send(ask(), 1)
    assert str(refused.value).startswith("the budget is used up: ")
    assert f"raise `budget.{cap}`" in str(refused.value)
    assert (script.numbers, budget.spent, budget.reserved) == ([], Spend(), Spend())


@pytest.mark.parametrize(
    ("caps", "spent", "sentence"),
    [
        ({"calls": 3}, Spend(3), "3 of 3 calls spent, and the next call needs up to 1; raise `budget.calls`"),
        ({"tokens": 2000}, Spend(1, 1999), "1,999 of 2,000 tokens spent, and the next call needs up to {}"),
        ({"usd": 5 * 10**12}, Spend(1, 1, 4_999_912 * 10**6), "$4.9999 of $5.0000 spent, and the next call needs up"),
    ],
)
def test_budget_message_states_spending_and_cap(caps: dict[str, int], spent: Spend, sentence: str) -> None:
    with pytest.raises(AccountFault) as refused:
        BudgetGuard(Budget(Caps(**caps), unseen, spent), TARIFF, Script()).send(ask(), 1)
    assert sentence.format(f"{WORST.tokens:,}") in str(refused.value)


def test_budget_message_includes_calls_that_were_in_flight() -> None:
    budget = new_budget(usd=WORST.usd)
    budget.reserve(WORST, 0)
    budget.spent += Spend(usd=1)
    with pytest.raises(AccountFault) as refused:
        budget.reserve(Spend(usd=WORST.usd), 0)
    budget.settle(0, WORST, WORST, is_reply=True)
    assert f"used up: {dollars(WORST.usd + 1)} of" in str(refused.value)


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
ALL = Caps(calls=10**6, tokens=10**12, usd=10**18)  # high caps, so that all three are counted


def play(house: House, folder: Path, caps: Caps) -> tuple[RunResult, str]:
    """Run a player of each protocol with that server, and return the final budget."""
    watch = NoWait()
    players = [
        contender(api, MODELS[api], BOT_OF[api], api=api, base_url=house.base_url(api), max_output=32, tries=30)
        for api in PROTOCOLS
    ]
    of, how = small(*players, games=6, turns=14), {"prices": PRICES, "cache": folder / "cache"}
    return run_games(of, folder / "run", watch, in_flight=32, caps=caps, **how), watch.describe_use()


@contextmanager
def playing(folder: Path, caps: Caps, **faults: float) -> Iterator[tuple[RunResult, House, str]]:
    with House(faults=Faults(**faults)) as house:
        run, shown = play(house, folder, caps)
        yield run, house, shown


def cost(call: Call) -> int:
    price: Price = PRICES[str(call.model)]
    return price.cost(Usage(call.input_tokens, call.cached_tokens, 0, call.output_tokens, 0))


def billed(calls: list[Call]) -> Spend:
    tokens = sum(call.input_tokens + call.output_tokens for call in calls)
    return Spend(len(calls), tokens, sum(cost(call) for call in calls))


def in_tries(run: RunResult) -> Spend:
    ((calls, tokens, usd),) = rows(run.folder, "SELECT count(*), sum(tokens), sum(picodollars) FROM tries")
    return Spend(calls, tokens, usd)


def in_budget(message: str) -> dict[str, tuple[str, str]]:
    return {cap: (spent, held) for cap, spent, held in re.findall(r"(\w+): (\S+) spent, (\S+) reserved", message)}


def check_books(run: RunResult, house: House, message: str) -> Spend:
    """Check that server, rows, budget and summary agree on calls, input and output tokens, and picodollars."""
    spent = billed(house.calls)
    assert in_tries(run) == spent
    assert in_budget(message) == {
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
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunResult, Spend]:
    with playing(tmp_path_factory.mktemp("whole"), ALL) as (run, house, shown):
        assert run.failure is None
        return run, check_books(run, house, shown)


@pytest.mark.parametrize(("cap", "share"), in_gate([("calls", 0.6), ("tokens", 0.5), ("usd", 0.4)], [("usd", 0.4)]))
def test_no_run_exceeds_its_cap_and_counts_agree(
    tmp_path: Path, whole: tuple[RunResult, Spend], cap: str, share: float
) -> None:
    complete, took = whole
    most = int(getattr(took, cap) * share)
    caps: Any = replace(ALL, **{cap: most})
    with playing(tmp_path, caps, rate_limit=0.15, server_error=0.1) as (run, house, shown):
        spent = check_books(run, house, shown)
    assert getattr(spent, cap) <= most
    assert getattr(spent, cap) > 0.2 * most, "the run stopped far below the cap"
    assert f"raise `budget.{cap}`" in str(run.failure)
    assert {call.status for call in house.calls} >= {200, 429, 500}
    check_counted_games(run, complete)


def test_a_cap_that_is_not_reached_changes_nothing(tmp_path: Path, whole: tuple[RunResult, Spend]) -> None:
    """Transient faults cost calls, but no tokens and no money."""
    complete, took = whole
    with playing(tmp_path, ALL, rate_limit=0.15, server_error=0.1) as (run, house, shown):
        spent = check_books(run, house, shown)
    assert run.failure is None
    assert run.results_digest == complete.results_digest
    asked = billed([call for call in house.calls if call.draw != PROBE])  # probes do not count
    assert (asked.tokens, asked.usd) == (took.tokens, took.usd)
    assert spent.calls > took.calls


def test_run_stopped_by_its_budget_resumes_with_more(tmp_path: Path, whole: tuple[RunResult, Spend]) -> None:
    """Earlier spending counts, so the totals are those of an uninterrupted run."""
    complete, took = whole
    with House() as house:
        cut, _ = play(house, tmp_path, replace(ALL, tokens=took.tokens // 2))
        assert cut.failure is not None
        again, shown = play(house, tmp_path, replace(ALL, tokens=took.tokens // 2))
        assert again.failure is not None, "the cap is still used up"
        run, shown = play(house, tmp_path, ALL)
    assert run.failure is None
    assert check_books(run, house, shown) == took
    assert run.results_digest == complete.results_digest


def test_progress_shows_dollars_without_a_cap(tmp_path: Path) -> None:
    with playing(tmp_path, Caps()) as (_, house, shown):
        assert shown.endswith(f" calls, {dollars(billed(house.calls).usd)}")
