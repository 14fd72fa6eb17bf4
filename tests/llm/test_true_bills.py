"""What a reply costs, reckoned by hand from the providers' pages of November 2026, a line of sums each.

Where the shipped list knowingly takes more than the page (docs/money.md says where), the name says `overstated`.
"""

import json
from decimal import Decimal
from typing import Any, Final

import pytest

from dubito.llm.price_list import find_price
from dubito.llm.prices import PICO, Asked, Tariff
from dubito.llm.protocols import read_reply
from dubito.llm.request import Api, RawReply, Request, Usage
from tests.llm.kit import PATH_OF, reply_body

OPENAI, ANTHROPIC = "https://api.openai.com/v1", "https://api.anthropic.com"
GEMINI, XAI, DEEPSEEK = (
    "https://generativelanguage.googleapis.com/v1beta/openai",
    "https://api.x.ai/v1",
    "https://api.deepseek.com",
)
WINDOWS: Final = {
    window: {"background": True, "background_options": {"completion_window": window}} for window in ("2h", "8h")
}
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


LATE = responses(10_000, 500)  # at 2 and 10: 0.02 + 0.005
CACHED = messages(1_000, 500, 6_000, 2_000)
REPLIES: dict[str, tuple[str, str, dict[str, Any], dict[str, Any], dict[str, Any], str]] = {
    # server, model, what was asked for, what the reply says besides, its usage, and the bill in dollars
    "plain": (OPENAI, "gpt-6-sol", {}, {"service_tier": "default"}, LATE, "0.025"),
    "a snapshot": (OPENAI, "gpt-6-sol-2026-09-01", {}, {}, LATE, "0.025"),
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
    # 4,000 at 1, 400 at 5, half of it: (0.004 + 0.002) / 2
    "batch": (OPENAI, "gpt-6.1-terra", {}, {"service_tier": "batch"}, responses(4_000, 400), "0.003"),
    "priority": (OPENAI, "gpt-6-sol", {}, {"service_tier": "priority"}, LATE, "0.05"),
    "fast": (OPENAI, "gpt-6-sol", {"service_tier": "fast"}, {"service_tier": "priority"}, LATE, "0.05"),
    "not fast after all": (OPENAI, "gpt-6-sol", {"service_tier": "fast"}, {"service_tier": "default"}, LATE, "0.025"),
    "fast, and the reply says nothing": (OPENAI, "gpt-6-sol", {"service_tier": "fast"}, {}, LATE, "0.05"),
    # 1,000 at 5, 100 at 30, 2.5 times: (0.005 + 0.003) * 2.5
    "priority at 2.5": (OPENAI, "gpt-5.5", {}, {"service_tier": "priority"}, responses(1_000, 100), "0.02"),
    "ultrafast": (OPENAI, "gpt-6.1-sol", {}, {"service_tier": "ultrafast"}, LATE, "0.15"),
    "overstated: 3 times until 2027-02-28": (OPENAI, "gpt-6.2-sol", {}, {"service_tier": "ultrafast"}, LATE, "0.15"),
    "overstated: nobody knows this tier": (OPENAI, "gpt-6-sol", {}, {"service_tier": "warp"}, LATE, "0.15"),
    "2 h": (OPENAI, "gpt-6.2-sol", WINDOWS["2h"], {"background": True}, LATE, "0.0175"),
    "8 h": (OPENAI, "gpt-6.2-sol", WINDOWS["8h"], {"background": True}, LATE, "0.015"),
    "8 h, and the reply came at once": (OPENAI, "gpt-6.2-sol", WINDOWS["8h"], {"background": False}, LATE, "0.025"),
    # 272,000 at 2, 1,000 at 10: 0.544 + 0.01; one token more, and it is 4 and 15: 1.088004 + 0.015
    "not yet long": (OPENAI, "gpt-6-sol", {}, {}, responses(272_000, 1_000), "0.554"),
    "long": (OPENAI, "gpt-6-sol", {}, {}, responses(272_001, 1_000), "1.103004"),
    # 100,000 at 4, 300,000 at 0.20, 2,000 at 15, half of it: (0.4 + 0.06 + 0.03) / 2
    "long, cached, flex": (
        *(OPENAI, "gpt-6.1-sol", {}, {"service_tier": "flex"}, responses(400_000, 2_000, 300_000), "0.245"),
    ),
    # 180,000 at 4, 100,000 at 10, 1,000 at 15, twice: (0.72 + 1 + 0.015) * 2
    "long, 12 h, priority": (
        *(OPENAI, "gpt-6.2-sol", TWELVE, {"service_tier": "priority"}),
        *(responses(280_000, 1_000, 0, 100_000, ttl_12h_tokens=100_000), "3.47"),
    ),
    # 1,000 at 4, 6,000 at 0.20, 2,000 at 5, 500 at 20: 0.004 + 0.0012 + 0.01 + 0.01
    "5 min": (ANTHROPIC, "claude-opus-5-5", {}, {}, CACHED, "0.0252"),
    # the 2,000 at 8: 0.016 instead of 0.01
    "1 h": (ANTHROPIC, "claude-opus-5-5", {}, {}, messages(1_000, 500, 6_000, 0, 2_000), "0.0312"),
    "5 min and 1 h": (ANTHROPIC, "claude-opus-5-5", {}, {}, messages(1_000, 500, 6_000, 1_000, 1_000), "0.0282"),
    "batch of messages": (ANTHROPIC, "claude-opus-5-5", {}, {}, CACHED | {"service_tier": "batch"}, "0.0126"),
    "fast mode": (ANTHROPIC, "claude-opus-5-5", {"speed": "fast"}, {}, CACHED | {"speed": "fast"}, "0.0504"),
    # 1,000 at 4, 500 at 20, twice: (0.004 + 0.01) * 2
    "fast mode, and the reply says nothing": (
        *(ANTHROPIC, "claude-opus-5-5", {"speed": "fast"}, {}, messages(1_000, 500), "0.028"),
    ),
    "in the US": (ANTHROPIC, "claude-opus-5-5", {}, {}, CACHED | {"inference_geo": "us"}, "0.02772"),
    # 1,000 at 5, 1,000 at 25: 0.03, times 2 and 1.1
    "fast in the US": (
        *(ANTHROPIC, "claude-opus-5", {}, {}, messages(1_000, 1_000, speed="fast", inference_geo="us"), "0.066"),
    ),
    "fast mode at 6": (ANTHROPIC, "claude-opus-4-6", {}, {}, messages(1_000, 1_000, speed="fast"), "0.18"),
    # 100,000 at 0.10, 1,000 at 0.50; above it 5 times: 120,000 at 0.50, 1,000 at 2.50
    "Haiku's 100,000": (ANTHROPIC, "claude-haiku-5-5", {}, {}, messages(100_000, 1_000), "0.0105"),
    "Haiku, long": (ANTHROPIC, "claude-haiku-5-5", {}, {}, messages(120_000, 1_000), "0.0625"),
    # 250,000 at 6, 1,000 at 22.50
    "Sonnet, long": (ANTHROPIC, "claude-sonnet-4-5-20250929", {}, {}, messages(250_000, 1_000), "1.5225"),
    # thoughts stand in the total alone: 100 at 0.50, 600 at 3
    "Gemini": (GEMINI, "gemini-3-flash-preview", {}, {}, chat(100, 20, 700), "0.00185"),
    # reasoning beside the output: 279 at 2, 95 at 6
    "xAI": (XAI, "grok-4.7", {}, {}, chat(279, 6, 374, 0, 89), "0.001128"),
    # more cached than there is input: 100 at 0.30, 300 at 0.006, 10 at 1.20
    "counted beside": (DEEPSEEK, "deepseek-flash", {}, {}, chat(100, 10, 110, 300), "0.0000438"),
}


def test_a_bill_is_the_providers(subtests: pytest.Subtests) -> None:
    for name in REPLIES:
        with subtests.test(name=name):
            server, model, asked, besides, usage, dollars = REPLIES[name]
            protocol: Api = "responses" if server == OPENAI else "messages" if server == ANTHROPIC else "chat"
            request = Request(protocol, PATH_OF[protocol], {"model": model} | asked)
            reply = read_reply(protocol, RawReply(200, json.dumps(reply_body(protocol, usage=usage, **besides))))
            assert reply.usage is not None
            billed = Tariff(find_price(server, model, {}), 99).of(reply.usage, reply.charges, Asked.by(request)).usd
            assert Decimal(billed) / PICO == Decimal(dollars)


def test_decisions_are_billed_by_their_input_alone() -> None:
    price = find_price(OPENAI, "gpt-6-luna", {}, "decisions")
    assert price is not None
    assert Decimal(price.of(Usage(2_500, 2_000, 300, 40, 0))) / PICO == Decimal("0.00025")  # 2,500 at 0.10
