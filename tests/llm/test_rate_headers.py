"""Rate limit headers in all their forms."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dubito.llm.pacer import Limit, read_limits
from dubito.settings import parse_duration
from tests.conftest import any_text

NOW = 1_795_000_000.0  # 2026-11-18T11:06:40Z


def openai(**more: str) -> dict[str, str]:
    headers = {"limit_requests": "500", "remaining_requests": "499", "reset_requests": "120ms"} | more
    return {f"x-ratelimit-{name.replace('_', '-')}": value for name, value in headers.items()}


@pytest.mark.parametrize(
    ("reset", "seconds"),
    [
        *(("120ms", 0.12), ("6m0s", 360.0), ("1h2m3.5s", 3723.5), ("1s", 1.0), ("0s", 0.0), ("2d", 172_800.0)),
        *(("17", 17.0), ("0.25", 0.25), (f"{NOW + 9:.0f}", 9.0), (f"{(NOW + 9) * 1000:.0f}", 9.0)),
        *(("2026-11-18T11:06:50Z", 10.0), ("2026-11-18T11:06:30+00:00", 0.0)),
        *(("", None), ("soon", None), ("-1s", None), ("nan", None), ("1s and more", None)),
    ],
)
def test_time_until_the_limit_is_full_again(reset: str, seconds: float | None) -> None:
    (limit,) = read_limits(openai(reset_requests=reset), NOW)
    assert (limit.kind, limit.limit, limit.remaining) == ("requests", 500, 499)
    assert limit.reset == (None if seconds is None else pytest.approx(seconds, abs=1e-3))


def test_limits_are_read_by_kind() -> None:
    anthropic = {
        "Anthropic-RateLimit-Requests-Limit": "50",
        "Anthropic-RateLimit-Requests-Remaining": "49",
        "Anthropic-RateLimit-Requests-Reset": "2026-11-18T11:06:42Z",
        "anthropic-ratelimit-input-tokens-limit": "30000",
        "anthropic-ratelimit-input-tokens-remaining": "27000",
    }
    assert read_limits(anthropic, NOW) == [Limit("input-tokens", 30000, 27000, None), Limit("requests", 50, 49, 2.0)]
    both = openai(limit_tokens="30000", remaining_tokens="0", reset_tokens="1m0s")
    assert [(limit.kind, limit.remaining) for limit in read_limits(both, NOW)] == [("requests", 499), ("tokens", 0)]
    plain = {"X-RateLimit-Limit": "20", "X-RateLimit-Remaining": "3", "X-RateLimit-Reset": f"{(NOW + 30) * 1000:.0f}"}
    assert read_limits(plain, NOW) == [Limit("requests", 20, 3, 30.0)]


@pytest.mark.parametrize("left_out", ["limit_requests", "remaining_requests"])
@pytest.mark.parametrize("value", ["", "many", "-1", "inf", "nan", "1e300"])
def test_unparsable_rate_header_is_ignored(left_out: str, value: str) -> None:
    assert read_limits(openai(**{left_out: value}), NOW) == []


def test_limit_of_zero_is_ignored() -> None:
    assert read_limits(openai(limit_requests="0", remaining_requests="0"), NOW) == []


@given(st.dictionaries(st.sampled_from(sorted(openai())), any_text()))
def test_any_headers_are_read(headers: dict[str, str]) -> None:
    assert all(limit.limit > 0 and limit.remaining >= 0 for limit in read_limits(headers, NOW))


@pytest.mark.parametrize(
    ("text", "seconds"), [("30m", 1800.0), ("90s", 90.0), ("2h", 7200.0), ("30", None), ("", None)]
)
def test_duration_is_parsed(text: str, seconds: float | None) -> None:
    assert parse_duration(text) == seconds
