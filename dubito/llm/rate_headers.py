"""What a server says of its rate limits in headers: `x-ratelimit-*` and `anthropic-ratelimit-*`.

OpenAI counts the time until all is there again as a duration (`6ms`, `1m30s`), Anthropic says when that is (RFC 3339),
others say seconds, or the moment in seconds or milliseconds since 1970.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

_NAME: Final = re.compile(
    r"(?:x-ratelimit-(?P<what>limit|remaining|reset)(?:-(?P<of>[a-z-]+))?"
    r"|anthropic-ratelimit-(?P<aof>[a-z-]+)-(?P<awhat>limit|remaining|reset))"
)
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|us|d|h|m|s)")
_SECONDS: Final = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_AT_ONCE: Final = ("concurren", "parallel", "connection", "flight")  # no rates: refusals tell those limits in time
_EPOCH: Final = 1e9  # a number of seconds from which it is no duration but a moment
_MOST: Final = 1e14


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit: what it counts (`requests`, `tokens`, `input-tokens`, ...), how much of it there is and is left."""

    kind: str
    limit: float
    remaining: float
    reset: float | None  # seconds until all of it is there again; None if that is not said


def limits_of(headers: Mapping[str, str], time: float) -> list[Limit]:
    """All limits that are told completely enough to be followed; `time` is the time of day, in seconds since 1970."""
    found: dict[str, dict[str, str]] = {}
    for name, value in headers.items():
        if match := _NAME.fullmatch(name.lower()):
            kind = match["of"] or match["aof"] or "requests"
            found.setdefault(kind, {})[match["what"] or match["awhat"]] = value.strip()
    limits = []
    for kind, said in sorted(found.items()):
        limit, remaining = _number(said.get("limit")), _number(said.get("remaining"))
        if any(word in kind for word in _AT_ONCE):
            continue
        if limit is not None and limit > 0 and remaining is not None:
            limits.append(Limit(kind, limit, remaining, _seconds(said.get("reset", ""), time)))
    return limits


def duration(text: str) -> float | None:
    """The seconds in `1h2m3.5s`, `350ms`; None if it is no such text."""
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)


def _number(text: str | None) -> float | None:
    try:
        value = float(text) if text else -1.0
    except ValueError:
        return None
    return value if 0 <= value < _MOST else None


def _seconds(text: str, time: float) -> float | None:
    number = _number(text) if text else None
    if number is not None:
        if number < _EPOCH:
            return number
        moment = number / 1000 if number > _EPOCH * 100 else number
        return max(0.0, moment - time)
    said = duration(text)
    if said is not None:
        return said
    try:
        moment = datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        return None
    return max(0.0, moment - time)
