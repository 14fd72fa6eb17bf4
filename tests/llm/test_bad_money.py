"""What users get wrong about budgets and prices: one sentence each, before anything starts."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.kit import Shell
from tests.llm.kit import Server, asker, contender, played, rows, says
from tests.llm.test_bad_input import sentence

PRICE = {"input": 2, "cached_input": 0.1, "cache_write": 2.5, "output": 10}


def refused(shell: Shell, *flags: str, **config: Any) -> str:
    said = sentence(played(shell, contender("Asker"), flags=flags, **config), 2)
    assert not Path("r").exists(), "nothing was started"
    return said


@pytest.mark.parametrize(
    ("flag", "words"),
    [
        ("eur=5", "--budget: unknown key 'eur': choose from calls, tokens, usd"),
        ("5", "--budget: say it as usd=5 or usd=5,calls=1000, not '5'"),
        ("call=5", "--budget: unknown key 'call': did you mean 'calls'?"),
        ("usd=5,eur=5", "--budget: unknown key 'eur'"),
        ("usd=0", "--budget: must be greater than 0, not 0"),
        ("usd=many", "--budget: must be a number, not 'many'"),
        ("usd=", "--budget: must be a number, not ''"),
        ("usd=nan", "--budget: must be a finite number, not nan"),
        ("usd=inf", "--budget: must be a finite number, not inf"),
        ("calls=0", "--budget: must be at least 1, not 0"),
        ("calls=1.5", "--budget: must be a whole number, not 1.5"),
        ("calls=many", "--budget: must be a whole number, not 'many'"),
        ("calls=", "--budget: must be a whole number, not ''"),
        ("", "--budget: "),
        (",", "--budget: "),
        ("usd=5,usd=6", "--budget: usd stands twice"),
        ("tokens=1e6", "--budget: must be a whole number, not 1000000.0"),
    ],
)
def test_a_flag_that_is_no_budget(shell: Shell, flag: str, words: str) -> None:
    assert refused(shell, "--budget", flag).startswith(words)


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        ({"eur": 5}, "c.yaml: unknown key 'eur': choose from calls, tokens, usd"),
        ({"calls": 0}, "c.yaml: budget.calls: must be at least 1, not 0"),
        ({"usd": "5"}, "c.yaml: budget.usd: must be a number, not '5'"),
        ({"usd": True}, "c.yaml: budget.usd: must be a number, not True"),
        ({"usd": 0}, "c.yaml: budget.usd: must be greater than 0, not 0"),
        ({"tokens": 1.5}, "c.yaml: budget.tokens: must be a whole number, not 1.5"),
        (5, "c.yaml: budget: must be a "),
        (["usd"], "c.yaml: budget: must be a "),
    ],
)
def test_a_config_without_a_proper_budget(shell: Shell, budget: Any, words: str) -> None:
    assert refused(shell, budget=budget).startswith(words)


def test_a_flag_takes_no_other_cap_away(shell: Shell) -> None:
    """As with the rules: what a flag does not say stands as the config says it."""
    with Server(lambda heard: says(heard.protocol)) as server:
        ended = played(shell, asker(server), flags=("--budget", "calls=500"), budget={"tokens": 1})
    assert ended.code == 3
    assert server.heard == []


def test_dollars_need_a_price(shell: Shell) -> None:
    with Server(lambda heard: says(heard.protocol)) as server:
        said = sentence(played(shell, asker(server, name="Asker"), budget={"usd": 5}), 2)
        assert server.heard == []
        assert said == (
            f"Asker: budget.usd needs a price of 'some-model' at {server.base_url('responses')}, and there is none: "
            "remove budget.usd, or add this line, with the numbers of its page in USD per million tokens (those here "
            'are the dearest that are known): prices: {"some-model": '
            "{input: 30, cached_input: 30, cache_write: 30, output: 180}}"
        )
        assert not Path("r").exists()
        assert played(shell, asker(server), games=1, budget={"tokens": 10**9}).code == 0, "other caps need none"


def test_prices_are_said_in_the_config_or_in_a_file(shell: Shell) -> None:
    Path("p.yaml").write_text(yaml.safe_dump({"some-model": PRICE}))
    with Server(lambda heard: says(heard.protocol)) as server:
        how: list[tuple[list[str], dict[str, Any]]] = [
            ([], {"prices": {"some-model": PRICE}}),
            ([], {"prices": "p.yaml"}),
            (["--prices", "p.yaml"], {}),
            (["--prices", "p.yaml"], {"prices": {"some-model": dict.fromkeys(PRICE, 7)}}),
        ]
        for number, (flags, config) in enumerate(how):
            flags += ["--output", f"run{number}", "--cache", f"cache{number}"]
            ended = played(shell, asker(server), games=1, flags=flags, budget={"usd": 5}, **config)
            assert ended.code == 0, ended.err
            costs = rows(Path(f"run{number}"), "SELECT DISTINCT picodollars FROM tries")
            assert costs == [(100 * 2_000_000 + 20 * 10_000_000,)]


GAPPED = {name: value for name, value in PRICE.items() if name != "cache_write"}


def test_a_price_with_a_gap(shell: Shell) -> None:
    """Also of a model that nobody asks: whoever has it in a file means to use it."""
    words = "m: cache_write is missing: say it in USD per million tokens"
    assert refused(shell, prices={"m": GAPPED}).startswith(f"prices: {words}")
    Path("p.yaml").write_text(yaml.safe_dump({"fine": PRICE, "m": GAPPED}))
    said = refused(shell, "--prices", "p.yaml")
    assert said.startswith(f"{Path('p.yaml').absolute()}: {words}")


@pytest.mark.parametrize("prices", [5, ["m"], True, None])
def test_prices_that_are_none(shell: Shell, prices: Any) -> None:
    assert refused(shell, prices=prices).startswith("c.yaml: prices: must be ")


def test_dollars_need_the_price_of_what_costs_more(shell: Shell) -> None:
    """The list price is not it; a price of one's own is."""
    player = contender("Asker", "gpt-6-sol", parameters={"speed": "fast"}, base_url="https://api.openai.com/v1")
    stops = ["--offline", "--no-preflight"]
    said = sentence(played(shell, player, flags=stops, budget={"usd": 5}), 2)
    assert said == (
        "Asker: parameters.speed: the list price of 'gpt-6-sol' does not say what that costs: say in "
        "`prices.gpt-6-sol` what it costs with it, or remove the parameter, or budget.usd"
    )
    assert not Path("r").exists()
    for config in ({"budget": {"usd": 5}, "prices": {"gpt-6-sol": PRICE}}, {"budget": {"calls": 5}}):
        ended = played(shell, player, flags=stops, **config)
        assert ended.code == 3
        assert "--offline: the cache has no reply" in ended.err


def test_dollars_hold_no_tools_that_are_charged_by_the_call(shell: Shell) -> None:
    with Server(lambda heard: says(heard.protocol)) as server:
        player = asker(server, name="Asker", parameters={"tools": [{"type": "web_search"}]})
        said = sentence(played(shell, player, budget={"usd": 5}, prices={"some-model": PRICE}), 2)
        assert said == (
            "Asker: parameters.tools: the server charges for its tools by the call, which no price here says: remove "
            "the parameter, or budget.usd"
        )
        assert server.heard == []
        free = {"some-model": dict.fromkeys(PRICE, 0)}
        assert played(shell, player, games=1, budget={"usd": 5}, prices=free).code == 0, "a server of one's own"
