"""Costs: exact sums, an upper bound, and complete price files."""

from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dubito.errors import UsageError
from dubito.files import read_yaml
from dubito.games.dubito.game import GAME
from dubito.house.core import model_names
from dubito.llm import price_list
from dubito.llm.price_list import (
    end_warnings,
    find_charged_by_call,
    find_price,
    find_unpriced,
    old_price_warning,
    parse_price,
    price_to_fill_in,
    read_prices,
)
from dubito.llm.prices import Price, PricingOptions, Tariff, Terms
from dubito.llm.request import Charges, Usage
from dubito.llm.settings import build_account
from dubito.model_settings import HOUSE
from dubito.store.spend import PICO, Spend, dollars
from tests.llm.kit import PROTOCOLS, ask, settings

GOOD = {"input": 2, "cached_input": 0.1, "cache_write": 2.5, "output": 10}
COUNTS = st.integers(0, 300_000)
PRICES = st.fixed_dictionaries(
    {name: st.integers(0, 10**8).map(lambda millionths: millionths / 10**6) for name in GOOD}
)


@st.composite
def usages(draw: st.DrawFn) -> Usage:
    into, out = draw(COUNTS), draw(COUNTS)
    cached = draw(st.integers(0, into))
    return Usage(into, cached, draw(st.integers(0, into - cached)), out, draw(st.integers(0, out)))


def exact(listed: dict[str, float], usage: Usage) -> Decimal:
    """Compute the cost in USD independently."""
    rates = {name: Decimal(repr(rate)) / 10**6 for name, rate in listed.items()}
    plain = usage.input - usage.cached - usage.cache_write
    into = plain * rates["input"] + usage.cached * rates["cached_input"] + usage.cache_write * rates["cache_write"]
    return into + usage.output * rates["output"]


def test_price_is_whole_picodollars_per_token() -> None:
    price = parse_price(GOOD, "x")
    assert price == Price(2_000_000, 100_000, 2_500_000, 10_000_000)
    assert (
        price.cost(Usage(1000, 600, 50, 30, 20)) == 350 * 2_000_000 + 600 * 100_000 + 50 * 2_500_000 + 30 * 10_000_000
    )
    assert PICO == 10**12
    assert parse_price(dict.fromkeys(GOOD, 0.000001), "x") == Price(1, 1, 1, 1)
    assert parse_price(dict.fromkeys(GOOD, 5000), "x") == Price(*[5 * 10**9] * 4)


@given(PRICES, usages())
def test_a_cost_is_exact(listed: dict[str, float], usage: Usage) -> None:
    cost = parse_price(listed, "x").cost(usage)
    assert type(cost) is int
    assert Decimal(cost) / PICO == exact(listed, usage)


@given(PRICES, usages())
def test_cache_saving_is_the_difference_to_no_cache(listed: dict[str, float], usage: Usage) -> None:
    price = parse_price(listed, "x")
    uncached = Usage(usage.input, 0, 0, usage.output, usage.reasoning)
    assert price.cache_saving(usage) == price.cost(uncached) - price.cost(usage)


@given(PRICES | st.none(), usages(), st.integers(0, 1000), st.integers(0, 1000))
def test_nothing_costs_more_than_the_worst_case(
    listed: dict[str, float] | None, usage: Usage, less: int, unused: int
) -> None:
    """Whatever is cached, if each token has at least one byte and the output limit holds."""
    tariff = Tariff(parse_price(listed, "x") if listed else None, max_output=usage.output + unused)
    request = ask(text="x" * (usage.input + less)).request
    worst, used = tariff.worst_cost(request), tariff.cost(usage)
    assert used.calls == worst.calls == 1
    assert used.tokens == usage.input + usage.output <= worst.tokens
    assert 0 <= used.usd <= worst.usd


def test_worst_case_uses_the_highest_prices() -> None:
    request = ask().request
    size = len(request.text.encode())
    assert Tariff(parse_price(GOOD, "x"), 99).worst_cost(request) == Spend(
        1, size + 99, size * 2_500_000 + 99 * 10_000_000
    )
    assert Tariff(None, 99).worst_cost(request) == Spend(1, size + 99, 0)
    dear = parse_price(GOOD | {"cached_input": 7}, "x")
    assert Tariff(dear, 99).worst_cost(request).usd == size * 7_000_000 + 99 * 10_000_000


@pytest.mark.parametrize("text", ["é", "\U0001f0cf", "日本", "\x00", '"', "\\"])
def test_request_size_covers_the_sent_body(text: str) -> None:
    assert Tariff(None, 16).worst_cost(ask(text=text * 100).request).tokens >= len(text.encode()) * 100 + 16


@pytest.mark.parametrize("missing", GOOD)
def test_missing_price_is_named(missing: str) -> None:
    entry = {name: value for name, value in GOOD.items() if name != missing}
    with pytest.raises(UsageError, match=rf"^here: {missing} is missing: set it in USD per million tokens$"):
        parse_price(entry, "here")


A_PRICE = (
    r"a price needs \{input, cached_input, cache_write, output\}, numbers from 0 to 5,000 in USD per million tokens"
)


@pytest.mark.parametrize(
    "value", [-1, -0.000001, "2", "free", None, True, [2], {}, float("nan"), float("inf"), 5000.01, 10**400]
)
def test_invalid_price_is_refused(value: object) -> None:
    with pytest.raises(UsageError, match=rf"^here: output: {A_PRICE}$"):
        parse_price(GOOD | {"output": value}, "here")


@pytest.mark.parametrize("entry", [None, 2, "free", [], [2, 1, 2, 10], True])
def test_invalid_entry_is_refused(entry: object) -> None:
    with pytest.raises(UsageError, match=rf"^here: {A_PRICE}$"):
        parse_price(entry, "here")


@pytest.mark.parametrize("value", [0.0000001, 1.2345678])
def test_a_price_with_too_many_decimals_is_refused(value: float) -> None:
    with pytest.raises(
        UsageError, match=r"^here: input: a price can have at most 6 decimals, in USD per million tokens$"
    ):
        parse_price(GOOD | {"input": value}, "here")


@pytest.mark.parametrize(
    ("key", "hint"), [("ouput", "did you mean 'output'?"), ("batch", "choose from"), ("\x1b[2J", "choose from")]
)
def test_unknown_key_suggests_the_nearest(key: str, hint: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_price(GOOD | {key: 1}, "here")
    assert str(refused.value).startswith("here: unknown key ")
    assert hint in str(refused.value)
    assert str(refused.value).isprintable()


def test_prices_are_read_from_a_mapping_or_a_file(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(yaml.safe_dump({"m": GOOD, 4: {**GOOD}}))
    expected = {"m": parse_price(GOOD, "x"), "4": parse_price(GOOD, "x")}
    assert read_prices("p.yaml", "prices", tmp_path) == expected
    assert read_prices(str(tmp_path / "p.yaml"), "prices", Path("/nowhere")) == expected
    assert read_prices({"m": GOOD, "4": GOOD}, "prices", tmp_path) == expected
    assert read_prices({}, "prices", tmp_path) == {}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"m: {}\nn: {}\nm: {}", "p.yaml, line 3: not valid YAML: the key 'm' is set twice"),
        (b"m: {input: 1, input: 2}", "p.yaml, line 1: not valid YAML: the key 'input' is set twice"),
        (
            b"4: %(good)s\n'4': %(good)s" % {b"good": b"{input: 1, cached_input: 1, cache_write: 1, output: 1}"},
            "p.yaml: 4 appears twice",
        ),
        (b"m: {input: 1, cached_input: 1, cache_write: 1}", "p.yaml: m: output is missing"),
        (b"m: 7", "p.yaml: m: a price needs {input, "),
        (b"- m", "p.yaml: a file of prices needs lines such as `MODEL: {"),
        (b"", "p.yaml: a file of prices needs lines such as `MODEL: {"),
        (b"m: {", "p.yaml, line 1: not valid YAML: "),
        (b"m: \xff\xfe", "p.yaml is not UTF-8 text"),
        (b"m: !!python/object/apply:os.getcwd []", "p.yaml, line 1: not valid YAML: "),
        (None, "p.yaml: No such file or directory"),
    ],
)
def test_invalid_price_file_is_refused_in_one_sentence(tmp_path: Path, content: bytes | None, words: str) -> None:
    if content is not None:
        (tmp_path / "p.yaml").write_bytes(content)
    with pytest.raises(UsageError) as refused:
        read_prices("p.yaml", "prices", tmp_path)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


def test_own_price_overrides_the_list_price() -> None:
    own = {"gpt-6-sol": Price(1, 2, 3, 4), "mine": Price(5, 6, 7, 8)}
    openai = "https://api.openai.com/v1"
    listed = find_price(openai, "gpt-6-sol", {})
    assert listed is not None
    assert find_price(openai, "gpt-6-sol", own) == own["gpt-6-sol"] != listed
    assert find_price("http://127.0.0.1:1/v1", "mine", own) == own["mine"]
    assert find_price("http://127.0.0.1:1/v1", "gpt-6-sol", {}) is None, "another server has its own prices"
    assert find_price(openai, "gpt-7", {}) is None
    assert find_price(openai, "free", {"free": Price(0, 0, 0, 0)}) == Price(0, 0, 0, 0)


SHIPPED: dict[str, Any] = read_yaml(Path(price_list.__file__).with_name("prices.yaml"))
LINES = [
    (server, model, entry)
    for server, listed in SHIPPED["servers"].items()
    if server != HOUSE
    for model, entry in listed["models"].items()
]


def test_each_shipped_price_has_a_date_and_a_source() -> None:
    assert len(LINES) > 100
    for server, model, entry in LINES:
        assert (type(entry["as_of"]), entry["as_of"] >= date(2026, 11, 1)) == (date, True), (server, model)
        assert set(entry["source"]) <= set("GLP"), (server, model)
        assert entry.get("ends", date.max) >= entry["as_of"], (server, model)
        price = find_price(server, model, {})
        assert price == parse_price(entry, "x")
        assert 0 < price.cached_input <= price.input <= price.cache_write <= price.long_write
        assert price.input <= price.output


def test_the_shipped_prices_are_found_by_protocol_and_by_the_name_of_a_snapshot() -> None:
    servers = {build_account(settings(protocol, base_url=None)).server for protocol in PROTOCOLS} | {HOUSE}
    assert servers < set(SHIPPED["servers"])
    assert find_price(ANTHROPIC, "claude-haiku-4-5-20251001", {}) == find_price(ANTHROPIC, "claude-haiku-4-5", {})
    assert find_price(ANTHROPIC, "claude-haiku-4-5-mini", {}) is None
    assert {find_price(HOUSE, model, {}) for model in model_names(GAME)} == {find_price(HOUSE, "house-random", {})}


OPENAI, ANTHROPIC = "https://api.openai.com/v1", "https://api.anthropic.com"
USED = Usage(1000, 600, 50, 30, 20)


def served(server: str, model: str, *modes: tuple[str, str], usage: Usage = USED) -> Fraction:
    price = find_price(server, model, {})
    assert price is not None
    return Fraction(price.cost(usage, Charges(modes)), replace(price, terms=Terms()).cost(usage))


@pytest.mark.parametrize(
    ("server", "model", "modes", "times"),
    [
        (OPENAI, "gpt-6-sol", [], 1),
        (OPENAI, "gpt-6-sol", [("service_tier", "something new")], 6),
        (OPENAI, "gpt-4o", [("service_tier", "batch")], 1),
        (ANTHROPIC, "claude-opus-5", [("inference_geo", "us")], 1.1),
        (ANTHROPIC, "claude-opus-5", [("inference_geo", "eu")], 1.1),
        (ANTHROPIC, "claude-sonnet-5", [("speed", "fast")], 6),
        (ANTHROPIC, "claude-sonnet-5", [("speed", "fast"), ("inference_geo", "us")], 6.6),
        (HOUSE, "house-sharp", [("service_tier", "priority")], None),
    ],
)
def test_unlisted_service_tier_costs_the_servers_highest_price(
    server: str, model: str, modes: list[tuple[str, str]], times: float | None
) -> None:
    if times is None:
        assert find_price(server, model, {}).cost(USED, Charges(tuple(modes))) == 0  # type: ignore[union-attr]
    else:
        assert served(server, model, *modes) == Fraction(str(times))


def test_long_cache_write_without_a_price_costs_the_highest() -> None:
    price = Price(100, 10, 125, 500)
    assert price.cost(USED, Charges(long_writes=20)) - price.cost(USED) == 20 * (250 - 125)
    assert price.worst_cost(1000, 0, PricingOptions(long_ttl=True)) == 1000 * 250
    text = parse_price(GOOD | {"long_write": 4}, "x")
    assert text.cost(USED, Charges(long_writes=20)) - text.cost(USED) == 20 * (4_000_000 - 2_500_000)


def test_own_price_is_for_the_requested_service_tier() -> None:
    own = find_price(OPENAI, "gpt-6-sol", {"gpt-6-sol": Price(1, 2, 3, 4)})
    assert own is not None
    assert own.cost(USED, Charges((("service_tier", "priority"),))) == own.cost(USED)


ASKED: list[dict[str, Any]] = [
    *({"service_tier": tier} for tier in ("default", "flex", "batch", "priority", "fast", "ultrafast", "auto", "warp")),
    {"speed": "fast", "inference_geo": "us"},
    {"cache_control": {"type": "ephemeral", "ttl": "1h"}},
    {"prompt_cache_options": {"ttl": "12h"}, "service_tier": "ultrafast"},
]


@given(st.sampled_from(LINES), st.sampled_from(ASKED), usages(), st.booleans(), st.booleans())
def test_reply_at_the_requested_tier_costs_at_most_the_reserve(
    line: tuple[str, str, Any], parameters: dict[str, Any], usage: Usage, silent: bool, long: bool
) -> None:
    """Whatever the reply reports or omits about its tier and cache lifetimes, at the highest interpretation."""
    server, model, _ = line
    request = ask(text="x" * usage.input, **parameters).request
    asked = PricingOptions.from_request(request)
    charges = Charges(() if silent else asked.modes, usage.cache_write if long and asked.long_ttl else 0)
    tariff = Tariff(find_price(server, model, {}), usage.output)
    assert tariff.cost(usage, charges, asked).usd <= tariff.worst_cost(request).usd


@pytest.mark.parametrize(
    ("parameters", "times"),
    [({"service_tier": "default"}, 1), ({"service_tier": "priority"}, 2), ({"service_tier": "auto"}, 6), ({}, 1)],
)
def test_worst_case_is_for_the_requested_service_tier(parameters: dict[str, Any], times: int) -> None:
    price = find_price(OPENAI, "gpt-6-sol", {})
    assert price is not None
    plain, request = replace(price, terms=Terms()), ask(**parameters).request
    assert Tariff(price, 99).worst_cost(request).usd == Tariff(plain, 99).worst_cost(request).usd * times


@pytest.mark.parametrize(
    ("parameters", "dear", "called"),
    [
        ({}, None, None),
        ({"service_tier": "flex", "speed": "standard", "reasoning": {"effort": "low"}}, None, None),
        ({"service_tier": "auto"}, None, None),
        ({"service_tier": "priority"}, None, None),
        ({"service_tier": "ultrafast"}, "service_tier", None),
        ({"speed": "fast"}, "speed", None),
        ({"inference_geo": "us"}, "inference_geo", None),
        ({"cache_control": {"type": "ephemeral", "ttl": "5m"}}, None, None),
        ({"prompt_cache_options": {"mode": "implicit", "ttl": "12h"}}, None, None),
        ({"tools": [{"type": "web_search"}]}, None, "tools"),
        ({"tools": []}, None, None),
        ({"web_search_options": {"search_context_size": "low"}}, None, "web_search_options"),
        ({"plugins": [{"id": "web"}]}, None, "plugins"),
    ],
)
def test_parameters_whose_cost_is_not_in_the_price(
    parameters: dict[str, Any], dear: str | None, called: str | None
) -> None:
    price = find_price(OPENAI, "gpt-6-sol", {})
    assert price is not None
    assert (find_unpriced(parameters, price), find_charged_by_call(parameters)) == (dear, called)


def test_tier_chosen_by_anthropic_has_no_price() -> None:
    price = find_price(ANTHROPIC, "claude-opus-5", {})
    assert price is not None
    assert find_unpriced({"service_tier": "auto"}, price) == "service_tier"


def test_cache_lifetime_needs_its_own_price() -> None:
    price, kept = find_price(OPENAI, "gpt-5.5", {}), {"prompt_cache_options": {"ttl": "12h"}}
    assert price is not None
    assert find_unpriced(kept, price) == "prompt_cache_options"


def test_own_price_accepts_all_keys_of_the_list() -> None:
    entry = GOOD | {"long_write": 5, "above": {"tokens": 10, "times": 2, "output_times": 1.5}, "service_tier": {"x": 3}}
    price = parse_price(entry | {"as_of": date(2026, 11, 24), "source": "mine", "ends": date(2027, 1, 1)}, "x")
    assert price.cost(Usage(11, 0, 0, 2, 0), Charges((("service_tier", "x"),))) == (11 * 4 + 2 * 15) * 3 * PICO // 10**6


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (
            {"above": 5},
            "here: above: write it as {tokens: 200000, times: 2, output_times: 1.5}, with factors from 1 to 100",
        ),
        ({"above": {"tokens": 5}}, "here: above: write it as {tokens: "),
        (
            {"speed": {"fast": 0}},
            "here: speed: write it as {VALUE: FACTOR}, with price factors ",
        ),
        ({"service_tier": 2}, "here: service_tier: write it as {VALUE: FACTOR}"),
        ({"long_write": -1}, "here: long_write: a price needs {"),
        ({"ends": "soon"}, "here: ends: must be a day, such as 2026-11-30"),
    ],
)
def test_invalid_term_is_refused(more: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_price(GOOD | more, "here")
    assert str(refused.value).startswith(words)


def test_suggested_price_line_is_valid_and_the_highest() -> None:
    line = yaml.safe_load(price_to_fill_in("org/new:4"))
    price = read_prices(line["prices"], "prices", Path())["org/new:4"]
    for server, model, _ in LINES:
        listed = find_price(server, model, {})
        assert listed is not None
        assert listed.worst_cost(1000, 99) <= price.worst_cost(1000, 99)


def test_end_of_a_model_is_announced_30_days_before() -> None:
    def announcement(*day: int, model: str = "claude-sonnet-4-5") -> str | None:
        return next(iter(end_warnings(ANTHROPIC, model, {}, date(*day))), None)

    start, after = "note: the provider retires claude-sonnet-4-5", "after that, this run cannot be repeated"
    assert announcement(2026, 10, 30) is None
    assert announcement(2026, 10, 31) == f"{start} on 2026-11-30, in 30 days: {after}"
    assert announcement(2026, 11, 29) == f"{start} on 2026-11-30, in 1 day: {after}"
    assert announcement(2026, 11, 30) == f"{start} on 2026-11-30, today: {after}"
    assert str(announcement(2026, 12, 1)).startswith(
        "note: the provider retired claude-sonnet-4-5 on 2026-11-30, so it may no longer answer"
    )
    assert str(announcement(2026, 11, 24, model="claude-sonnet-4-5-20250929")).startswith(f"{start}-20250929")
    assert announcement(2026, 11, 24, model="claude-sonnet-5") is None
    assert end_warnings("http://127.0.0.1:1/v1", "claude-sonnet-4-5", {}, date(2026, 11, 24)) == []


def test_end_of_fast_mode_is_announced_to_those_who_use_it() -> None:
    def ends(model: str, *day: int, **parameters: str) -> list[str]:
        return end_warnings(ANTHROPIC, model, parameters, date(*day))

    assert ends("claude-opus-4-8", 2026, 11, 29, speed="fast") == [
        "note: the provider retires `speed: fast` of claude-opus-4-8 on 2026-11-30, in 1 day: after that, this run "
        "cannot be repeated"
    ]
    assert ends("claude-opus-4-8", 2026, 11, 29, speed="standard") == ends("claude-opus-4-8", 2026, 11, 29) == []
    (gone,) = ends("claude-opus-4-7", 2026, 11, 29, speed="fast")
    assert "retired `speed: fast` of claude-opus-4-7 on 2026-07-24, so it may be refused or have no effect" in gone
    assert ends("claude-opus-5-5", 2026, 11, 29, speed="fast") == []


def test_old_list_prices_are_reported() -> None:
    read: date = SHIPPED["servers"][OPENAI]["models"]["gpt-6-sol"]["as_of"]
    assert old_price_warning(OPENAI, "gpt-6-sol", {}, read + timedelta(days=60)) is None
    assert old_price_warning(OPENAI, "gpt-6-sol", {}, read + timedelta(days=61)) == (
        f"the list prices of {OPENAI} were last checked on {read}, 61 days ago: "
        "check them, and put new prices into `prices`"
    )
    later = read + timedelta(days=9999)
    assert old_price_warning(OPENAI, "gpt-6-sol", {"gpt-6-sol": Price(1, 2, 3, 4)}, later) is None, (
        "the price is the user's own"
    )
    assert old_price_warning(OPENAI, "no-such-model", {}, later) is None
    assert old_price_warning("http://127.0.0.1:1/v1", "gpt-6-sol", {}, later) is None
    assert old_price_warning(HOUSE, "house-sharp", {}, later) is None, "this server is always free"


@pytest.mark.parametrize(
    ("pico", "message"),
    [
        (0, "$0.0000"),
        (1_234_500_000_000, "$1.2345"),
        (49_999_999, "$0.0000"),
        (50_000_000, "$0.0001"),
        (-5 * 10**11, "-$0.5000"),
        (12_345 * PICO, "$12,345.0000"),
    ],
)
def test_amounts_are_formatted(pico: int, message: str) -> None:
    assert dollars(pico) == message
