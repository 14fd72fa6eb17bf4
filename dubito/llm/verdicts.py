"""Interpret a server's error, for all protocols: whose fault it is, and whether to retry.

An error is an HTTP status with a body, or a body with status 200. `known_errors.py` has the errors with a known
meaning. If none fits, the status decides.
"""

import json
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Final

from dubito.errors import one_line
from dubito.llm.known_errors import OVER_MINUTE_LIMIT, USED_UP, KnownError, Meaning, find_known_error
from dubito.llm.request import ProtocolName, parse_json

_MAX_NESTING: Final = 6  # maximum nesting of errors, since routers pass on what other servers sent
# The statuses of errors with HTTP status 200 and no code.
_STATUS_OF: Final[Mapping[str, int]] = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    **dict.fromkeys(("server_error", "api_error"), 500),
    "timeout_error": 504,
    "overloaded_error": 529,
    "data_residency_mismatch": 400,
    **dict.fromkeys(
        (
            *("invalid_image", "invalid_image_format", "invalid_base64_image", "invalid_image_url", "image_too_large"),
            *("image_too_small", "image_parse_error", "invalid_image_mode", "image_file_too_large"),
            *("unsupported_image_media_type", "empty_image_file", "image_file_not_found"),
        ),
        # Our prompts have no images, so the player's parameters must contain one.
        400,
    ),
}
_SERVER: Final = 500  # the status of an unknown error with status 200

_MAY_BE_TOO_LARGE: Final = (400, 413, 422, 429)
_RATE: Final = re.compile(r"\b(?:per[ _-]?(?:min|hour|day)|[tr]p[md]\b|rate limit)")
_LARGER: Final = re.compile(
    r"\b(?:too (?:large|big)|larger than|(?:input or output|prompt or output) tokens must be reduced)"
)
_LIMIT: Final = re.compile(r"\blimit(?: is| of|:)? ?~?(\d[\d,]*)")
_REQUESTED: Final = re.compile(r"\brequested:? ?~?(\d[\d,]*)|\b(\d[\d,]*) tokens requested")
_QUOTA: Final = "exceeded your current quota"  # OpenAI and Gemini; Gemini uses it for limits per minute, too
_ZERO_LIMIT: Final = re.compile(r"limit: 0\b")
# Parts of Gemini's ids, which may appear together.
_PER_DAY: Final = re.compile(r"per(?:day|month)")
_PER_MINUTE: Final = re.compile(r"per(?:minute|second)")
_DAY: Final = re.compile(
    r"(?:\bper[ _-]?|/ ?|\bfor (?:the|this) |by)(?:day|week|month)\b|\b(?:24 ?h(?:ou)?rs?|86,?400 ?s|today|tomorrow)\b"
    r"|\b[tr]p[dw]\b|\b(?:daily|weekly|monthly)\b.{0,40}\b(?:limit|quota)"  # above: GitHub's `UserByModelByDay`
)
_MINUTE: Final = re.compile(r"\bper[ _-]?(?:min|sec|hour)|/ ?(?:min(?:ute)?|sec(?:ond)?|hour)\b|\b[tr]p[hms]\b")
_OUTPUT: Final = "failed_generation"  # Groq's field with the rejected output
_MESSAGE_NAMES: Final = ("message", "error", "detail")
_TITLE: Final = re.compile(r"<title>\s*([^<]+?)\s*</title>", re.IGNORECASE)
# From an OpenRouter error, in milliseconds since 1970.
_RESET: Final = re.compile(r'"x-ratelimit-reset": ?"?(\d{13})\b')
_MAY_BE_CONCURRENT: Final = (429, 503, 529)
_CALLS: Final = r"(?:request|connection|call|quer|session|job|generation|invocation)"
_CONCURRENT_WORDS: Final = re.compile(
    r"concurren|\u5e76\u53d1"  # Anthropic, Mistral, Moonshot, W&B and others, Zhipu
    rf"|(?:parallel|simultaneous|in[ -]?flight|pending|outstanding)[ _-]{_CALLS}"  # LiteLLM, Ollama, Azure
    rf"|{_CALLS}\w* (?:in parallel|in[ -]?flight|simultaneously|at once|at the same time)"
    r"|too many (?:open )?connections|\b(?:no|all) (?:\w+ )?slots?\b|\bslots? (?:un|not )available"  # llama.cpp
)
_UNIT: Final = r"(?:ms|milliseconds?|seconds?|minutes?|hours?|[smhd])(?![a-z])"
_DELAY: Final = re.compile(rf"(?:(?:try again|retry) (?:in|after)|wait) ((?:\d+(?:\.\d+)? ?{_UNIT} ?)+)")
_SPAN: Final = re.compile(r"(\d+(?:\.\d+)?) ?(ms|milli|[smhd])")
_UNITS: Final = {"ms": 0.001, "milli": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The interpretation of an error."""

    meaning: Meaning
    status: int  # the answer's status, or the equivalent one for an error with status 200
    retry_after: float | None = None  # seconds, if the server asks to wait
    is_concurrent: bool = False  # whether a rate limit applies to calls in flight
    known: KnownError | None = None  # the row of the table that fits


@dataclass(frozen=True, slots=True)
class _ErrorParts:
    """The parts of an error, in lower case."""

    codes: frozenset[str]
    words: str  # its messages
    text: str  # the whole text
    has_moderation_reasons: bool


def judge_error(status: int, text: str, headers: Mapping[str, str], protocol: ProtocolName | None = None) -> Verdict:
    """Interpret a response whose status is an error. Without a protocol, settings of any API may help."""
    parts = _parse_parts(text)
    known = _look_up_error(status, parts, protocol)
    meaning = known.meaning if known else _find_meaning(status, parts)
    if meaning not in ("rate_limit", "server", "quota"):
        return Verdict(meaning, status, known=known)
    seconds = parse_retry_after(headers) or _find_delay(parts) or None
    if meaning != "quota" and _is_concurrency_limit(status, parts):
        return Verdict("rate_limit", status, seconds, is_concurrent=True)
    return Verdict(meaning, status, seconds)


def error_text(error: Any) -> str:
    try:
        return error if isinstance(error, str) else json.dumps(error)
    except RecursionError:
        return "an error that is nested too deeply"


def judge_error_in_body(error: Any, headers: Mapping[str, str], protocol: ProtocolName | None = None) -> Verdict:
    """Interpret an error in a response with status 200."""
    text, status = error_text(error), _find_status(error)
    if status is None:
        # The words may name the cause. If not, it is the server's fault.
        verdict = judge_error(400, text, headers, protocol)
        return verdict if verdict.meaning != "request" or verdict.known else judge_error(_SERVER, text, headers)
    return judge_error(status, text, headers, protocol)


@dataclass(frozen=True, slots=True)
class RejectedOutput:
    """A model's output that the server rejected with an error."""

    text: str | None  # the output, if the error contains it
    problem: str


def parse_rejected_output(body: Any) -> RejectedOutput | None:
    """Return the model's output that an error's body reports as invalid, or None for any other body."""
    text = error_text(body)
    if judge_error(400, text, {}).meaning != "malformed":
        return None
    parts = _find_error_objects(body, _MAX_NESTING)
    output = next((part[_OUTPUT] for part in parts if isinstance(part.get(_OUTPUT), str)), None)
    return RejectedOutput(output, f"the server rejected it: {one_line(extract_sentence(text), 240).rstrip('.')}")


def extract_sentence(text: str) -> str:
    """Return the server's own sentence: the messages in an error, the title of a page, or else the whole text."""
    messages = list[str]()
    for part in _find_error_objects(parse_json(text), _MAX_NESTING):
        messages += [message for message in _messages(part) if not message.startswith(("{", "["))]
    if title := _TITLE.search(text):
        messages.append(title[1])
    different = [message for message in dict.fromkeys(messages) if message.strip()]
    return ": ".join(one for one in different if not any(one != other and one in other for other in different)) or text


def _messages(part: Mapping[str, Any]) -> Iterator[str]:
    """Yield the messages of an error object, and FastAPI's messages about invalid fields."""
    yield from (part[name] for name in _MESSAGE_NAMES if isinstance(part.get(name), str))
    detail = part.get("detail")
    for item in detail if isinstance(detail, list) else ():
        if isinstance(item, dict) and isinstance(item.get("msg"), str):
            where = item.get("loc")
            yield f"{'.'.join(map(str, where))}: {item['msg']}" if isinstance(where, list) else item["msg"]


def _look_up_error(status: int, parts: _ErrorParts, protocol: ProtocolName | None) -> KnownError | None:
    if status in _MAY_BE_TOO_LARGE and _exceeds_minute_limit(parts.words):
        return OVER_MINUTE_LIMIT
    if status == 429 and _find_used_up(parts) == "money":
        return USED_UP
    return find_known_error(status, "\n".join((*sorted(parts.codes), parts.words)), protocol)


def _find_meaning(status: int, parts: _ErrorParts) -> Meaning:
    """Return what the status means."""
    if parts.has_moderation_reasons and status not in (401, 404, 405, 429) and status < 500:
        return "refused"
    if status == 429 or (status == 403 and _DAY.search(parts.words)):
        return _find_used_up(parts) or "rate_limit"
    return "server" if status >= 500 or status in (408, 409, 425, 499) else "request"


def _is_concurrency_limit(status: int, parts: _ErrorParts) -> bool:
    """Return whether too many calls are in flight, rather than too many per minute."""
    words = " ".join((*parts.codes, parts.words))
    if status not in _MAY_BE_CONCURRENT or _MINUTE.search(words):
        return False
    return _CONCURRENT_WORDS.search(words) is not None or (status == 429 and "overloaded" in words)


def _exceeds_minute_limit(words: str) -> bool:
    """Return whether a request has more tokens than the account can use per minute, so it can never succeed.

    The count includes the output that the request reserves: OpenAI and Groq report `Limit 10000, Requested 12500`.
    """
    if "token" not in words or not _RATE.search(words):
        return False
    if not (limit := _LIMIT.search(words)) or not (requested := _REQUESTED.search(words)):
        return _LARGER.search(words) is not None
    most, tokens = (int(number.replace(",", "")) for number in (limit[1], requested[1] or requested[2]))
    return tokens > most


def _find_used_up(parts: _ErrorParts) -> Meaning | None:
    """Return which limit is used up for more than an hour, if any.

    Gemini uses the same message for daily and per-minute limits, so the quota ids decide.
    """
    if _QUOTA in parts.words:
        if _ZERO_LIMIT.search(parts.text):
            return "money"
        if _PER_DAY.search(parts.text):
            return "quota"
        if not _PER_MINUTE.search(parts.text) and _find_delay(parts) is None:
            return "money"
    return "quota" if _DAY.search(parts.words) and not _MINUTE.search(parts.words) else None


def _parse_parts(text: str) -> _ErrorParts:
    """Parse an error. If its form is unknown, its whole text becomes the message."""
    codes, words, has_reasons = set[str](), list[str](), False
    for part in _find_error_objects(parse_json(text), _MAX_NESTING):
        codes |= {str(part[name]).lower() for name in ("code", "type", "error_code") if part.get(name)}
        words += _messages(part)
        has_reasons |= isinstance(part.get("reasons"), list)
    folded = text.lower()
    return _ErrorParts(frozenset(codes), "\n".join(words).lower() or folded, folded, has_reasons)


def _find_error_objects(value: Any, depth: int) -> Iterator[dict[str, Any]]:
    """Yield the error object and the objects nested in it."""
    if isinstance(value, str) and value.startswith(("{", "[")):
        value = parse_json(value)
    # Gemini wraps errors in a list.
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, dict) and depth:
        yield value
        for name in ("error", "innererror", "details", "metadata", "raw", "message"):
            yield from _find_error_objects(value.get(name), depth - 1)


def _find_status(error: Any) -> int | None:
    """Return the HTTP status that an error in a body corresponds to, or None."""
    for part in _find_error_objects(error, _MAX_NESTING):
        for name in ("code", "status", "type"):
            value = part.get(name)
            if isinstance(value, str) and value in _STATUS_OF:
                return _STATUS_OF[value]
            number = int(value) if isinstance(value, str) and re.fullmatch(r"\d{3}", value) else value
            if type(number) is int and 400 <= number <= 599:
                return number
    return None


def _find_delay(parts: _ErrorParts) -> float | None:
    """Return the seconds to wait from the body: Gemini's `retryDelay`, or words such as `try again in 6m0s`."""
    for part in _find_error_objects(parse_json(parts.text), _MAX_NESTING):
        details = part.get("details")
        for detail in details if isinstance(details, list) else ():
            delay = detail.get("retrydelay", "") if isinstance(detail, dict) else ""
            if (seconds := _parse_span(str(delay))) is not None:
                return seconds
    if reset := _RESET.search(parts.text):
        return max(0.0, int(reset[1]) / 1000 - time.time())
    words = _DELAY.search(parts.text)
    return _parse_span(words[1]) if words else None


def _parse_span(span: str) -> float | None:
    parts = _SPAN.findall(span)
    seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    return seconds if parts and seconds < float("inf") else None


def parse_retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait from `retry-after-ms` or `retry-after` (seconds or date), or None."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        value = headers.get(name, "")
        try:
            seconds = float(value) / unit
        except ValueError:
            seconds = _seconds_until(value)
        if 0 < seconds < float("inf"):
            return seconds
    return None


def _seconds_until(date: str) -> float:
    """Return the seconds until an HTTP date: 0 if it has passed, NaN if the text is not a date."""
    try:
        return max(0.0, parsedate_to_datetime(date).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return float("nan")
