"""Token counts in replies, the cost of each reply, and the bills of whole runs."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pytest

from dubito.llm.price_list import find_price
from dubito.llm.prices import Price, PricingOptions, Tariff
from dubito.llm.protocols import read_reply
from dubito.llm.request import Charges, RawReply, Request, Usage
from dubito.model_settings import Api
from dubito.store.spend import PICO, Caps
from tests.cli.kit import Shell
from tests.conftest import in_gate
from tests.llm.kit import (
    PATH_OF,
    PROBE,
    PROTOCOLS,
    Incoming,
    NoWait,
    Response,
    Server,
    player_at,
    reply_body,
    respond,
    rows,
    run_cli,
    run_games,
    small,
)

NAMES = {  # names of input, output, and the details of each
    "responses": ("input_tokens", "output_tokens", "input_tokens_details", "output_tokens_details"),
    "chat": ("prompt_tokens", "completion_tokens", "prompt_tokens_details", "completion_tokens_details"),
    "messages": ("input_tokens", "output_tokens", None, "output_tokens_details"),
}


def usage(protocol: Api, usage: Any) -> Usage | None:
    return read_reply(protocol, RawReply(200, json.dumps(reply_body(protocol, usage=usage)))).usage


def counts(protocol: Api, into: Any, out: Any) -> dict[str, Any]:
    return {NAMES[protocol][0]: into, NAMES[protocol][1]: out}


@pytest.mark.parametrize("protocol", ["responses", "chat"])
def test_openai_counts_cached_tokens_within_the_input(protocol: Api) -> None:
    into, out, of_input, of_output = NAMES[protocol]
    reported = {
        into: 1000,
        of_input: {"cached_tokens": 600, "cache_write_tokens": 50},
        out: 30,
        of_output: {"reasoning_tokens": 20},
    }
    assert usage(protocol, reported) == Usage(1000, 600, 50, 30, 20)


def test_anthropic_counts_cached_tokens_beside_the_input() -> None:
    reported = {
        "input_tokens": 1000,
        "cache_read_input_tokens": 600,
        "cache_creation_input_tokens": 50,
        "output_tokens": 30,
        "output_tokens_details": {"thinking_tokens": 20},
    }
    assert usage("messages", reported) == Usage(1650, 600, 50, 30, 20)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("details", [None, {}, [], 7, "x", {"other_tokens": 3}])
def test_empty_usage_details_count_as_zero(protocol: Api, details: Any) -> None:
    reported = {name: details for name in NAMES[protocol][2:] if name}
    assert usage(protocol, counts(protocol, 100, 20) | reported) == Usage(100, 0, 0, 20, 0)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_null_usage_details_count_as_zero(protocol: Api) -> None:
    """Some compatible servers send null details."""
    into = dict.fromkeys(["cached_tokens", "cache_write_tokens"])
    out = dict.fromkeys(["reasoning_tokens", "thinking_tokens"])
    apart = dict.fromkeys(["cache_read_input_tokens", "cache_creation_input_tokens"])
    _, _, of_input, of_output = NAMES[protocol]
    reported = apart | {str(of_output): out} | ({of_input: into} if of_input else {})
    assert usage(protocol, counts(protocol, 100, 20) | reported) == Usage(100, 0, 0, 20, 0)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("count", ["600", 1.5, -1, True, [5], 2**24 + 1])
def test_invalid_usage_detail_is_missing_usage(protocol: Api, count: Any) -> None:
    of_input = NAMES[protocol][2]
    reported = {of_input: {"cached_tokens": count}} if of_input else {"cache_read_input_tokens": count}
    assert usage(protocol, counts(protocol, 1000, 20) | reported) is None


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("reported", [None, [], 7, "x", {}])
def test_missing_usage_is_none(protocol: Api, reported: Any) -> None:
    assert usage(protocol, reported) is None


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("count", [None, "100", 1.5, -1, True, [], 2**24 + 1])
def test_invalid_count_is_missing_usage(protocol: Api, count: Any) -> None:
    assert usage(protocol, counts(protocol, count, 5)) is None
    assert usage(protocol, counts(protocol, 5, count)) is None


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_contradictory_counts_are_missing_usage(protocol: Api) -> None:
    """Prompts and texts have at least one token. Errors may have none."""
    assert usage(protocol, counts(protocol, 0, 0)) is None
    assert usage(protocol, counts(protocol, 0, 5)) is None
    assert usage(protocol, counts(protocol, 100, 0)) is None
    assert usage("messages", counts("messages", 0, 5) | {"cache_read_input_tokens": 90}) == Usage(90, 90, 0, 5, 0)
    refused = reply_body(protocol, None, "filter", usage=counts(protocol, 100, 0))
    assert read_reply(protocol, RawReply(200, json.dumps(refused))).usage == Usage(100, 0, 0, 0, 0)
    failed = reply_body(protocol, None, usage=counts(protocol, 0, 0), choices=None, content=None, output=None)
    reported = read_reply(protocol, RawReply(200, json.dumps(failed | {"error": {"message": "no"}})))
    assert reported.non_reply
    assert reported.usage == Usage(0, 0, 0, 0, 0)


def chat_counts(into: int, out: int, total: int | None, reasoning: int | None = None) -> dict[str, Any]:
    details = {} if reasoning is None else {"completion_tokens_details": {"reasoning_tokens": reasoning}}
    return {"prompt_tokens": into, "completion_tokens": out, "total_tokens": total} | details


@pytest.mark.parametrize(
    ("values", "output"),
    [
        (chat_counts(279, 6, 374, 89), 95),  # xAI: reasoning is not part of the completion
        (chat_counts(10_120, 1499, 14_428, 2809), 4308),
        (chat_counts(100, 20, 700), 600),  # Gemini: thoughts are only in the total
        (chat_counts(100, 50, 150, 30), 50),  # OpenAI: reasoning is part of the output
        (chat_counts(100, 50, None, 30), 50),
        (chat_counts(100, 6, None, 89), 95),  # more reasoning than output cannot be part of it
        (chat_counts(100, 6, 106, 89), 95),
        (chat_counts(100, 50, 20), 50),
    ],
)
def test_output_is_the_largest_reading(values: dict[str, Any], output: int) -> None:
    read = usage("chat", values)
    assert read is not None
    assert (read.input, read.output) == (values["prompt_tokens"], output)
    details = values.get("completion_tokens_details")
    same = {
        "input_tokens": read.input,
        "output_tokens": values["completion_tokens"],
        "total_tokens": values["total_tokens"],
    }
    assert usage("responses", same | ({"output_tokens_details": details} if details else {})) == read


@pytest.mark.parametrize("protocol", ["responses", "chat"])
@pytest.mark.parametrize("total", ["600", 1.5, -1, True, 2**24 + 1])
def test_invalid_total_is_missing_usage(protocol: Api, total: Any) -> None:
    assert usage(protocol, counts(protocol, 100, 20) | {"total_tokens": total}) is None


def test_anthropic_cache_write_is_the_larger_of_both_counts() -> None:
    reported = counts("messages", 100, 20) | {
        "cache_creation_input_tokens": 30,
        "cache_creation": {"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 40},
    }
    assert usage("messages", reported) == Usage(150, 0, 50, 20, 0)
    assert usage("messages", reported | {"cache_creation_input_tokens": 70}) == Usage(170, 0, 70, 20, 0)


def charges(protocol: Api, **changes: Any) -> Charges:
    return read_reply(protocol, RawReply(200, json.dumps(reply_body(protocol, **changes)))).charges


@pytest.mark.parametrize("protocol", ["responses", "chat"])
@pytest.mark.parametrize("tier", ["default", "flex", "priority", "fast", "ultrafast", "scale", "something new"])
def test_service_tier_is_read(protocol: Api, tier: str) -> None:
    assert charges(protocol, service_tier=tier) == Charges((("service_tier", tier),))


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("tier", [None, 7, []])
def test_invalid_service_tier_is_ignored(protocol: Api, tier: Any) -> None:
    assert charges(protocol, service_tier=tier) == Charges()
    assert charges("messages", usage=counts("messages", 1, 1) | {"service_tier": tier, "speed": None}) == Charges()


def test_anthropic_service_fields_are_read() -> None:
    text = {
        "service_tier": "priority",
        "speed": "fast",
        "inference_geo": "us",
        "cache_creation": {"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 40},
        "server_tool_use": {"web_search_requests": 3, "web_fetch_requests": 2},
    }
    modes = (("service_tier", "priority"), ("speed", "fast"), ("inference_geo", "us"))
    assert charges("messages", usage=counts("messages", 100, 20) | text) == Charges(modes, 40, 5)


def test_the_providers_own_tools_are_counted() -> None:
    calls = [{"type": kind} for kind in ("web_search_call", "file_search_call", "mcp_call", "reasoning")]
    output = [*calls, *reply_body("responses")["output"]]
    assert charges("responses", output=output) == Charges(tool_calls=2)
    usage = counts("chat", 1, 1) | {"server_tool_use": {"web_search_requests": 4}}
    assert charges("chat", usage=usage) == Charges(tool_calls=4)


def test_openai_long_cache_writes_are_counted() -> None:
    details = {"cache_write_tokens": 50, "cache_write_tokens_details": {"ttl_30m_tokens": 20, "ttl_12h_tokens": 30}}
    assert charges("responses", usage=counts("responses", 100, 1) | {"input_tokens_details": details}).long_writes == 30
    assert charges("chat", usage=counts("chat", 100, 1) | {"prompt_tokens_details": details}).long_writes == 30


@pytest.mark.parametrize("protocol", ["responses", "chat"])
def test_tokens_that_do_not_fit_into_the_input_are_counted_beside_it(protocol: Api) -> None:
    name = str(NAMES[protocol][2])
    reported = counts(protocol, 100, 1)
    assert usage(protocol, reported | {name: {"cached_tokens": 60, "cache_write_tokens": 40}}) == Usage(
        100, 60, 40, 1, 0
    )
    assert usage(protocol, reported | {name: {"cached_tokens": 60, "cache_write_tokens": 41}}) == Usage(
        201, 60, 41, 1, 0
    )
    kept = {"cache_write_tokens": 10, "cache_write_tokens_details": {"ttl_30m_tokens": 20, "ttl_12h_tokens": 30}}
    assert usage(protocol, reported | {name: kept}) == Usage(100, 0, 50, 1, 0)


OPENAI, ANTHROPIC = "https://api.openai.com/v1", "https://api.anthropic.com"
GEMINI, XAI, DEEPSEEK = (
    "https://generativelanguage.googleapis.com/v1beta/openai",
    "https://api.x.ai/v1",
    "https://api.deepseek.com",
)
TWELVE: Final = {"prompt_cache_options": {"ttl": "12h"}}


def responses(into: int, out: int, cached: int = 0, written: int = 0, **lifetimes: int) -> dict[str, Any]:
    details: dict[str, Any] = {"cached_tokens": cached, "cache_write_tokens": written}
    if lifetimes:
        details["cache_write_tokens_details"] = lifetimes
    return {"input_tokens": into, "input_tokens_details": details, "output_tokens": out}


def messages(into: int, out: int, read: int = 0, five: int = 0, hour: int = 0, **served: str) -> dict[str, Any]:
    kept = {"ephemeral_5m_input_tokens": five, "ephemeral_1h_input_tokens": hour}
    cached = {"cache_read_input_tokens": read, "cache_creation_input_tokens": five + hour, "cache_creation": kept}
    return {"input_tokens": into, "output_tokens": out} | cached | served


def chat(into: int, out: int, total: int, cached: int = 0, reasoning: int = 0) -> dict[str, Any]:
    details = {"prompt_tokens_details": {"cached_tokens": cached}}
    beside = {"completion_tokens_details": {"reasoning_tokens": reasoning}}
    return {"prompt_tokens": into, "completion_tokens": out, "total_tokens": total} | details | beside


LATE = responses(10_000, 500)  # $2 and $10 per million tokens: 0.02 + 0.005
CACHED = messages(1_000, 500, 6_000, 2_000)
REPLIES: dict[str, tuple[str, str, dict[str, Any], dict[str, Any], dict[str, Any], str]] = {
    # Server, model, request options, reply options, usage, and the bill in dollars.
    "plain": (OPENAI, "gpt-6-sol", {}, {"service_tier": "default"}, LATE, "0.025"),
    # 2,000 at 2, 8,000 at 0.20: 0.004 + 0.0016 + 0.005
    "cached": (OPENAI, "gpt-6-sol", {}, {}, responses(10_000, 500, 8_000), "0.0106"),
    # 2,000 at 2, 6,000 at 0.10, 2,000 at 2.50, 1,000 at 10: 0.004 + 0.0006 + 0.005 + 0.01
    "written": (OPENAI, "gpt-6.1-sol", {}, {}, responses(10_000, 1_000, 6_000, 2_000), "0.0196"),
    # 2,000 at 2, 8,000 at 5, 100 at 10: 0.004 + 0.04 + 0.001
    "12 h": (OPENAI, "gpt-6.2-sol", TWELVE, {}, responses(10_000, 100, 0, 8_000, ttl_12h_tokens=8_000), "0.045"),
    "12 h, and the reply says nothing": (OPENAI, "gpt-6.2-sol", TWELVE, {}, responses(10_000, 100, 0, 8_000), "0.045"),
    # 2,000 at 2, 5,000 at 2.50, 3,000 at 5, 100 at 10: 0.004 + 0.0125 + 0.015 + 0.001
    "both lifetimes": (
        *(OPENAI, "gpt-6.2-sol", {}, {}),
        *(responses(10_000, 100, 0, 8_000, ttl_30m_tokens=5_000, ttl_12h_tokens=3_000), "0.0325"),
    ),
    "flex": (OPENAI, "gpt-6-sol", {"service_tier": "flex"}, {"service_tier": "flex"}, LATE, "0.0125"),
    "flex, and the reply says nothing": (OPENAI, "gpt-6-sol", {"service_tier": "flex"}, {}, LATE, "0.025"),
    # 4,000 at 1, 400 at 5, half price: (0.004 + 0.002) / 2
    "batch": (OPENAI, "gpt-6.1-terra", {}, {"service_tier": "batch"}, responses(4_000, 400), "0.003"),
    "priority": (OPENAI, "gpt-6-sol", {}, {"service_tier": "priority"}, LATE, "0.05"),
    "fast": (OPENAI, "gpt-6-sol", {"service_tier": "fast"}, {"service_tier": "priority"}, LATE, "0.05"),
    "not fast after all": (OPENAI, "gpt-6-sol", {"service_tier": "fast"}, {"service_tier": "default"}, LATE, "0.025"),
    "fast, and the reply says nothing": (OPENAI, "gpt-6-sol", {"service_tier": "fast"}, {}, LATE, "0.05"),
    "ultrafast": (OPENAI, "gpt-6.1-sol", {}, {"service_tier": "ultrafast"}, LATE, "0.15"),
    "overstated: 3 times until 2027-02-28": (OPENAI, "gpt-6.2-sol", {}, {"service_tier": "ultrafast"}, LATE, "0.15"),
    "overstated: nobody knows this tier": (OPENAI, "gpt-6-sol", {}, {"service_tier": "warp"}, LATE, "0.15"),
    # 272,000 at 2, 1,000 at 10: 0.544 + 0.01. With one token more, the rates are 4 and 15: 1.088004 + 0.015
    "not yet long": (OPENAI, "gpt-6-sol", {}, {}, responses(272_000, 1_000), "0.554"),
    "long": (OPENAI, "gpt-6-sol", {}, {}, responses(272_001, 1_000), "1.103004"),
    # 100,000 at 4, 300,000 at 0.20, 2,000 at 15, half price: (0.4 + 0.06 + 0.03) / 2
    "long, cached, flex": (
        *(OPENAI, "gpt-6.1-sol", {}, {"service_tier": "flex"}, responses(400_000, 2_000, 300_000), "0.245"),
    ),
    # 180,000 at 4, 100,000 at 10, 1,000 at 15, double price: (0.72 + 1 + 0.015) * 2
    "long, 12 h, priority": (
        *(OPENAI, "gpt-6.2-sol", TWELVE, {"service_tier": "priority"}),
        *(responses(280_000, 1_000, 0, 100_000, ttl_12h_tokens=100_000), "3.47"),
    ),
    # 1,000 at 4, 6,000 at 0.20, 2,000 at 5, 500 at 20: 0.004 + 0.0012 + 0.01 + 0.01
    "5 min": (ANTHROPIC, "claude-opus-5-5", {}, {}, CACHED, "0.0252"),
    # 2,000 at 8 cost 0.016 instead of 0.01
    "1 h": (ANTHROPIC, "claude-opus-5-5", {}, {}, messages(1_000, 500, 6_000, 0, 2_000), "0.0312"),
    "batch of messages": (ANTHROPIC, "claude-opus-5-5", {}, {}, CACHED | {"service_tier": "batch"}, "0.0126"),
    "fast mode": (ANTHROPIC, "claude-opus-5-5", {"speed": "fast"}, {}, CACHED | {"speed": "fast"}, "0.0504"),
    # 1,000 at 4, 500 at 20, double price: (0.004 + 0.01) * 2
    "fast mode, and the reply says nothing": (
        *(ANTHROPIC, "claude-opus-5-5", {"speed": "fast"}, {}, messages(1_000, 500), "0.028"),
    ),
    "in the US": (ANTHROPIC, "claude-opus-5-5", {}, {}, CACHED | {"inference_geo": "us"}, "0.02772"),
    # 1,000 at 5, 1,000 at 25: 0.03, times 2 and 1.1
    "fast in the US": (
        *(ANTHROPIC, "claude-opus-5", {}, {}, messages(1_000, 1_000, speed="fast", inference_geo="us"), "0.066"),
    ),
    # 100,000 at 0.10, 1,000 at 0.50; five times as much above the limit: 120,000 at 0.50, 1,000 at 2.50
    "Haiku's 100,000": (ANTHROPIC, "claude-haiku-5-5", {}, {}, messages(100_000, 1_000), "0.0105"),
    "Haiku, long": (ANTHROPIC, "claude-haiku-5-5", {}, {}, messages(120_000, 1_000), "0.0625"),
    # Thoughts are only in the total: 100 at 0.50, 600 at 3.
    "Gemini": (GEMINI, "gemini-3-flash-preview", {}, {}, chat(100, 20, 700), "0.00185"),
    # Reasoning in addition to the output: 279 at 2, 95 at 6.
    "xAI": (XAI, "grok-4.7", {}, {}, chat(279, 6, 374, 0, 89), "0.001128"),
    # More cached tokens than input: 100 at 0.30, 300 at 0.006, 10 at 1.20.
    "counted beside": (DEEPSEEK, "deepseek-flash", {}, {}, chat(100, 10, 110, 300), "0.0000438"),
}


def test_usage_is_read_in_the_providers_form(subtests: pytest.Subtests) -> None:
    for name in REPLIES:
        with subtests.test(name=name):
            server, model, asked, besides, usage, dollars = REPLIES[name]
            protocol: Api = "responses" if server == OPENAI else "messages" if server == ANTHROPIC else "chat"
            request = Request(protocol, PATH_OF[protocol], {"model": model} | asked)
            reply = read_reply(protocol, RawReply(200, json.dumps(reply_body(protocol, usage=usage, **besides))))
            assert reply.usage is not None
            billed = (
                Tariff(find_price(server, model, {}), 99)
                .cost(reply.usage, reply.charges, PricingOptions.from_request(request))
                .usd
            )
            assert Decimal(billed) / PICO == Decimal(dollars)


def test_decisions_are_billed_by_their_input_alone() -> None:
    price = find_price(OPENAI, "gpt-6-luna", {}, "decisions")
    assert price is not None
    assert Decimal(price.cost(Usage(2_500, 2_000, 300, 40, 0))) / PICO == Decimal("0.00025")  # 2,500 at 0.10


RUN_PRICE = Price(2_000_000, 100_000, 2_500_000, 10_000_000)
EACH = 100 * RUN_PRICE.input + 20 * RUN_PRICE.output  # picodollars per reply of the server
ERROR = {"code": "server_error", "message": "no"}
CHOICE = {"index": 0, "message": {"role": "assistant", "content": "I thi"}, "finish_reason": "error", "error": ERROR}
BEGUN: dict[Api, dict[str, Any]] = {  # an error after part of an answer
    "responses": {"status": "failed", "error": ERROR},
    "chat": {"choices": [CHOICE]},
}
ALONE = {"error": {"code": 502, "message": "Bad gateway"}}


def tries_after(folder: Path, server_says: Response, protocol: Api) -> tuple[list[Any], str]:
    """Return the tries of a run whose first call gets this answer, and its final budget."""
    calls: list[Incoming] = []

    def answer(request: Incoming) -> Response:
        calls.append(request)
        return server_says if len(calls) == 1 else respond(request.protocol)

    watch = NoWait()
    with Server(answer) as server:
        players = small(player_at(server, protocol), games=1, turns=9)
        how = {"prices": {"some-model": RUN_PRICE}, "caps": Caps(usd=PICO), "preflight": False}
        run = run_games(players, folder, watch, in_flight=1, **how)
    assert run.failure is None
    query = (
        "SELECT state, kind, error, picodollars, assumed, raw IS NOT NULL FROM tries ORDER BY decision, attempt, try"
    )
    return rows(folder, query), watch.describe_use()


@pytest.mark.parametrize("protocol", BEGUN)
@pytest.mark.parametrize(("usage", "assumed"), [(True, False), (False, True)])
def test_an_error_after_a_part_of_an_answer_is_billed(
    tmp_path: Path, protocol: Api, usage: bool, assumed: bool
) -> None:
    """The call is billed by its usage or at the worst case. Row and budget agree, and the body is stored."""
    body = reply_body(protocol, **BEGUN[protocol])
    response = Response(body=json.dumps(body if usage else {**body, "usage": None}))
    tries, budget = tries_after(tmp_path / "r", response, protocol)
    state, kind, error, cost, was_assumed, kept = tries[0]
    assert (state, kind, bool(was_assumed), kept) == ("failed", "server", assumed, 1)
    assert error.startswith("status 200 with an error in the body: ")
    assert (cost == EACH) is usage
    assert cost >= EACH
    total = sum(cost for _, _, _, cost, *_ in tries)
    assert f"usd: ${total / PICO:,.4f} spent, $0.0000 reserved" in budget


@pytest.mark.parametrize("protocol", in_gate(PROTOCOLS, 1))
def test_an_error_alone_costs_nothing(tmp_path: Path, protocol: Api) -> None:
    tries, _ = tries_after(tmp_path / "r", Response(body=json.dumps(ALONE)), protocol)
    state, kind, error, cost, assumed, kept = tries[0]
    assert (state, kind, cost, assumed, kept) == ("failed", "server", 0, 0, 1)
    assert "Bad gateway" in error
    assert tries[1][0] == "received"


@pytest.mark.usefixtures("unhurried")
def test_error_with_status_200_is_a_failed_call(shell: Shell) -> None:
    body = json.dumps(reply_body("responses", status="failed", error=ERROR))
    with Server(lambda request: respond("responses") if PROBE in request.raw else Response(body=body)) as server:
        ended = run_cli(shell, player_at(server, tries=1), games=1, rules={"max_turns": 4}, flags=["--no-preflight"])
    assert ended.code == 0
    assert "fallback:unreachable" in ended.out
    status = shell("status", "r").out
    failed = sum(PROBE not in request.raw for request in server.requests)
    assert f"failed calls, server: {failed}" in status
    assert "fallback:malformed" not in status


def test_cap_holds_with_separate_reasoning_tokens(tmp_path: Path) -> None:
    """Reasoning tokens are separate, as at xAI; completion tokens alone would give a tenth of the bill."""
    usage = {
        "prompt_tokens": 300,
        "completion_tokens": 20,
        "total_tokens": 520,
        "completion_tokens_details": {"reasoning_tokens": 200},
    }
    true = 300 * RUN_PRICE.input + 220 * RUN_PRICE.output
    cap = 25 * true
    with Server(lambda request: respond("chat", usage=usage)) as server:
        players = small(player_at(server, "chat", max_output=400), games=40, turns=20)
        how: dict[str, Any] = {"prices": {"some-model": RUN_PRICE}, "caps": Caps(usd=cap), "preflight": False}
        run = run_games(players, tmp_path / "r", in_flight=16, **how)
    assert run.failure is not None
    assert "the budget is used up" in str(run.failure)
    calls = len(server.requests)
    assert 0 < calls * true <= cap, "the server's own bill is within the cap"
    assert rows(tmp_path / "r", "SELECT sum(picodollars), max(assumed) FROM tries") == [(calls * true, 0)]


@pytest.mark.parametrize("protocol", in_gate(PROTOCOLS, ["messages"]))
def test_cap_holds_if_a_server_reports_zero_tokens(tmp_path: Path, protocol: Api) -> None:
    """Each reply counts at its worst case, because its cost is unknown."""
    nothing = dict.fromkeys(["input_tokens", "output_tokens", "prompt_tokens", "completion_tokens", "total_tokens"], 0)
    cap = 400 * EACH
    with Server(lambda request: respond(request.protocol, usage=nothing)) as server:
        players = small(player_at(server, protocol, max_output=20), games=40, turns=20)
        how: dict[str, Any] = {"prices": {"some-model": RUN_PRICE}, "caps": Caps(usd=cap), "preflight": False}
        run = run_games(players, tmp_path / "r", **how)
    assert run.failure is not None
    assert "the budget is used up" in str(run.failure)
    assert 0 < len(server.requests) * EACH <= cap, "the server's own bill is within the cap"
    ((usd, assumed),) = rows(tmp_path / "r", "SELECT sum(picodollars), sum(assumed) FROM tries")
    assert (usd <= cap, assumed) == (True, len(server.requests))


def test_server_tool_calls_are_billed(tmp_path: Path) -> None:
    usage = {"input_tokens": 100, "output_tokens": 20, "server_tool_use": {"web_search_requests": 2}}
    with Server(lambda request: respond("messages", usage=usage)) as server:
        players = small(player_at(server, "messages"), games=1, turns=9)
        run_games(players, tmp_path / "r", prices={"some-model": RUN_PRICE}, preflight=False)
    query = "SELECT DISTINCT picodollars FROM tries"
    assert rows(tmp_path / "r", query) == [(EACH + 2 * PICO // 40,)]
