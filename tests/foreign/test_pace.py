"""The pacer against simulated providers: few refusals, and the full rate is used."""

from collections.abc import Callable
from itertools import cycle, product
from typing import Any

import pytest

from dubito.llm.pacer import Limit, Pacer
from tests.conftest import in_gate
from tests.foreign.limits import Bucket, Limiter, Window
from tests.foreign.simulation import simulated

RATE = 500.0  # requests per minute
TOKENS = 3_000_000.0  # tokens per minute
A_CALL = 10_600.0  # tokens, including the maximum output

Case = tuple[Callable[[], Limiter], float, dict[str, Any]]  # the server's limit, calls per minute, simulation options
CASES: dict[str, Case] = {
    "small bursts, headers": (lambda: Bucket(RATE, 8), RATE, {"kind": "requests", "retry_after": "exact"}),
    "small bursts, headers, no time": (lambda: Bucket(RATE, 8), RATE, {"kind": "requests"}),
    "large bursts, headers": (lambda: Bucket(RATE, 500), RATE, {"kind": "requests", "retry_after": "exact"}),
    "small bursts, exact times": (lambda: Bucket(RATE, 8), RATE, {"retry_after": "exact"}),
    "small bursts, whole seconds": (lambda: Bucket(RATE, 8), RATE, {"retry_after": "whole"}),
    "small bursts, no limits stated": (lambda: Bucket(RATE, 8), RATE, {}),
    "large bursts, whole seconds": (lambda: Bucket(RATE, 500), RATE, {"retry_after": "whole"}),
    "large bursts, no limits stated": (lambda: Bucket(RATE, 500), RATE, {}),
    "slow, moments in seconds": (
        lambda: Bucket(50, 50),
        50,
        {"kind": "requests", "retry_after": "whole", "resolution": 1.0},
    ),
    "slow, small bursts, moments": (
        lambda: Bucket(50, 5),
        50,
        {"kind": "requests", "retry_after": "whole", "resolution": 1.0},
    ),
    "tokens, headers": (lambda: Bucket(TOKENS, TOKENS / 10), TOKENS / A_CALL, {"kind": "tokens", "cost": A_CALL}),
    "tokens, no limits stated": (lambda: Bucket(TOKENS, TOKENS / 10), TOKENS / A_CALL, {"cost": A_CALL}),
    "fast, whole seconds": (
        lambda: Bucket(6000, 100),
        6000,
        {"retry_after": "whole", "latency": (0.1, 0.3)},
    ),
}
WINDOWS: dict[str, dict[str, Any]] = {
    "headers": {"kind": "requests", "retry_after": "whole"},
    "whole seconds": {"retry_after": "whole"},
    "no limits stated": {},
}


@pytest.mark.parametrize(("in_flight", "case"), in_gate(product([32, 128], CASES), zip(cycle([32, 128]), CASES)))
def test_rate_reaches_90_percent_with_at_most_5_percent_refused(case: str, in_flight: int) -> None:
    limiter, rate, headers = CASES[case]
    end = simulated(limiter(), in_flight, 400 if rate < 100 else 3000 if rate < 1000 else 9000, **headers)
    assert end.share <= 0.05
    assert min(rate, in_flight / sum(headers.get("latency", (1, 3))) * 2 * 60) * 0.9 <= end.rate


@pytest.mark.parametrize("in_flight", [32, 128])
@pytest.mark.parametrize("headers", WINDOWS)
def test_fixed_window_is_used_up(headers: str, in_flight: int) -> None:
    end = simulated(Window(RATE), in_flight, 1500, **WINDOWS[headers])
    assert end.share <= 0.05
    assert end.seconds <= 1500 / RATE * 60 * 1.05


@pytest.mark.parametrize("headers", ["headers", "nothing"])
def test_sequential_calls_are_not_slowed(headers: str) -> None:
    end = simulated(Bucket(RATE, 8), 1, 200, kind="requests" if headers == "headers" else None)
    assert end.refused == 0
    assert end.seconds <= 200 * 2.2


def test_calls_without_limits_are_not_slowed() -> None:
    end = simulated(None, 512, 10_000, latency=(2.0, 2.0))
    assert end.seconds <= 10_000 / 512 * 2 + 2 + 3.5, "includes the first call and the slow start"


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("retry_after", ["exact", None])
def test_unavoidable_refusals_do_not_stop_a_run(retry_after: Any, seed: int) -> None:
    end = simulated(None, 32, 1000, at_random=0.2, latency=(0.2, 0.4), retry_after=retry_after, seed=seed)
    assert end.seconds < 60 + 2 * end.refused


def test_exhausted_daily_limit_pauses_until_its_reset() -> None:
    pace = Pacer()
    sent = pace.start(0.0)
    pace.count_refusal(sent, 0.1, 7200.0, [Limit("requests", 1000, 0, 7200.0)])
    assert pace.delay(1.0, {}) == pytest.approx(7199.1)


def test_after_a_pause_one_call_goes_first() -> None:
    pace = Pacer()
    calls = [pace.start(0.0) for _ in range(4)]
    pace.count_refusal(calls[0], 0.1, 5.0)
    assert pace.delay(2.0, {}) == pytest.approx(3.1)
    assert pace.delay(5.2, {}) <= 0.05
    pace.start(5.3)
    assert pace.delay(5.4, {}) > 0, "no other call is sent with the probe"
    assert pace.delay(5.9, {}) == 0, "the probe was not refused"


def test_reported_rate_is_shown() -> None:
    pace = Pacer()
    assert pace.per_minute() is None
    pace.count_accepted(pace.start(0.0), 0.0, [Limit("requests", 500, 499, 0.12)])
    assert pace.per_minute() == pytest.approx(480)
