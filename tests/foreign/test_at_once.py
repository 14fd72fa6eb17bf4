"""Servers that limit concurrent calls receive fewer at once, and no call waits for an unused rate."""

import json
from pathlib import Path
from typing import Final

import pytest

from dubito.llm.pacer import Limit, Pacer, read_limits
from dubito.llm.verdicts import judge_error
from tests.foreign.kit import play_at
from tests.foreign.server import Answer, Foreign, Habits
from tests.foreign.simulation import simulated
from tests.llm.kit import outcomes_of


def error_body(message: str, **more: object) -> object:
    return {"error": {"message": message, **more}}


CROWDED: Final[dict[str, tuple[int, object]]] = {  # status and body that servers send
    "Anthropic": (
        429,
        error_body("Number of concurrent connections has exceeded your rate limit.", type="rate_limit_error"),
    ),
    "W&B": (429, error_body("Concurrency limit reached for requests")),
    "Moonshot": (
        429,
        error_body("Your account org-1 request reached organization max concurrency: 1, try after 1 seconds"),
    ),
    "Zhipu": (
        429,
        error_body("\u60a8\u5f53\u524d\u4f7f\u7528\u8be5API\u7684\u5e76\u53d1\u6570\u8fc7\u9ad8", code="1302"),
    ),
    "LiteLLM": (429, error_body("Max parallel request limit reached", type="None", code="429")),
    "a relay": (429, {"error": "Too many concurrent requests", "limit": 1}),
    "a model of a relay": (429, {"message": "Too many concurrent requests for this model"}),
    "Azure": (429, error_body("Too many pending requests")),
    "Ollama": (503, {"error": "server busy, please try again.  maximum pending requests exceeded"}),
    "llama.cpp": (503, error_body("no slot available", code=503, type="unavailable_error")),
    "TGI": (429, {"error": "Model is overloaded", "error_type": "overloaded"}),
    "a code": (429, error_body("Slow down.", code="concurrency_limit_exceeded")),
}
MINUTE: Final = "Rate limit reached for gpt-4o in organization org-1 on requests per min (RPM): Limit 500, Used 500."
OF_A_RATE: Final[dict[str, tuple[int, object]]] = {
    "OpenAI": (429, error_body(MINUTE, code="rate_limit_exceeded")),
    "LiteLLM, of three": (429, error_body("Crossed TPM / RPM / Max Parallel Request Limit: rpm_limit: 5")),
    "no wait stated": (429, "Too Many Requests"),
}


@pytest.mark.parametrize("name", CROWDED)
def test_refusal_about_concurrent_calls_is_recognized(name: str) -> None:
    status, body = CROWDED[name]
    found = judge_error(status, json.dumps(body), {})
    assert (found.meaning, found.is_concurrent) == ("rate_limit", True)


@pytest.mark.parametrize("name", OF_A_RATE)
def test_other_refusal_is_not_about_concurrency(name: str) -> None:
    status, body = OF_A_RATE[name]
    assert not judge_error(status, json.dumps(body), {}).is_concurrent


@pytest.mark.parametrize(
    ("status", "words"), [(503, "The model is overloaded. Please try again later."), (500, "concurrent map writes")]
)
def test_server_error_is_not_a_concurrency_limit(status: int, words: str) -> None:
    assert judge_error(status, json.dumps({"error": {"message": words}}), {}).meaning == "server"


def test_concurrency_headers_are_not_rates() -> None:
    headers = {"x-ratelimit-limit-concurrent-requests": "8", "x-ratelimit-remaining-concurrent-requests": "0"}
    assert read_limits(headers, 0.0) == []


@pytest.mark.parametrize("in_flight", [32, 128])
@pytest.mark.parametrize("at_once", [1, 2, 8, 30])
def test_speed_matches_the_allowed_concurrency(at_once: int, in_flight: int) -> None:
    end = simulated(None, in_flight, 1000, at_once=at_once, latency=(0.2, 0.4))
    assert end.seconds <= 1000 * 0.3 / at_once * 1.25, "a fifth of the time is spent in transit"
    assert end.refused <= in_flight + 10
    assert end.pace.per_minute() is None, "the rate was not the cause"


def test_higher_concurrency_is_kept_if_accepted() -> None:
    """The server accepts eight calls at once, later any number."""
    pace = Pacer()
    calls = [pace.start(0.0) for _ in range(9)]
    pace.count_concurrency_refusal(0.1, 1.0, is_pause_asked=False)
    assert pace.delay(0.2, {}) > 0
    now = 0.3
    for _ in range(400):
        pace.count_accepted(calls.pop(0), now, [])
        while pace.delay(now, {}) == 0:
            calls.append(pace.start(now))
        now += 0.05
    assert len(calls) > 12


def test_permanently_empty_limit_is_ignored() -> None:
    """Some proxies always send the same rate limit headers, which are believed only after a refusal."""
    pace, now = Pacer(), 0.0
    limits = [Limit("requests", 2.0, 0.0, 60.0)]
    for number in range(40):
        while (seconds := pace.delay(now, {})) > 0:
            now += seconds
        pace.count_accepted(pace.start(now), now, limits)
        now += 0.5
        if number == 10:
            begun = now
    assert now - begun == 29 * 0.5
    pace.count_refusal(pace.start(now), now, 1.0, limits)
    assert pace.delay(now + 1.5, {}) > 0


AT_ONCE: Final[dict[str, Habits]] = {
    "eight": Habits(
        at_once=8, crowded=Answer(429, json.dumps(CROWDED["Anthropic"][1])), latency=(0.2, 0.4), scale=10.0
    ),
    "one": Habits(at_once=1, crowded=Answer(503, json.dumps(CROWDED["llama.cpp"][1])), latency=(0.2, 0.4), scale=20.0),
    "no wait": Habits(
        at_once=8,
        crowded=Answer(429, json.dumps(CROWDED["W&B"][1]), {"retry-after": "0"}),
        latency=(0.2, 0.4),
        scale=10.0,
    ),
}


@pytest.mark.at_length  # a slow machine has too few calls in flight to be refused
@pytest.mark.parametrize("name", AT_ONCE)
def test_run_works_with_a_low_concurrency_limit(tmp_path: Path, name: str) -> None:
    with Foreign(AT_ONCE[name]) as server:
        run = play_at(server, tmp_path / name, 32, games=16)
    assert run.failure is None
    assert outcomes_of(tmp_path / name).keys() == {"model"}
    refused = server.count(429) + server.count(503)
    assert 0 < refused <= 40
