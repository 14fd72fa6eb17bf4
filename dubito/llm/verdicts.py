"""What a server's error means, whichever protocol it speaks: whose fault it is, and whether to ask again.

Errors come as a status with a body, or within a body of status 200. Codes are matched whole, words anywhere in the
message; what stands in neither is told by the status alone.
"""

import json
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Final, Literal

from dubito.llm.request import parse_json

# of this try, as in TryFailed; then the user's to fix
Meaning = Literal["too_long", "refused", "rate_limit", "server", "size", "quota", "money", "key", "model", "request"]
_NESTED: Final = 6  # an error within an error within ...: routers hand on what others said
_STATUS_OF: Final[Mapping[str, int]] = {  # of errors that come with status 200 and have no number
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
        400,  # no prompt of ours has an image: the player's parameters have
    ),
}
_SERVER: Final = 500  # the status of an error with status 200 that says nothing known of itself

_TOO_LONG_CODES: Final = (
    *("context_length_exceeded", "exceed_context_size_error", "request_too_large"),
    "request_body_too_large_after_decoding",
)
_TOO_LONG: Final = (
    *("prompt is too long", "context window", "maximum context length"),  # Anthropic, OpenAI, vLLM and OpenRouter
    *("available context size", "exceed context limit", "exceeds the context"),  # llama.cpp, Anthropic, others
    *("input token count", "input length exceeds", "input is too long"),  # Gemini, others, Bedrock
    *("context_length_exceeded", "request_too_large"),
)
_MAY_BE_TOO_LONG: Final = (400, 422, 429)  # where the request itself may be at fault
_MAY_BE_TOO_LARGE: Final = (*_MAY_BE_TOO_LONG, 413)
_RATE: Final = re.compile(r"\b(?:per[ _-]?(?:min|hour|day)|[tr]p[md]\b|rate limit)")
_LARGER: Final = re.compile(
    r"\b(?:too (?:large|big)|larger than|(?:input or output|prompt or output) tokens must be reduced)"
)
_LIMIT: Final = re.compile(r"\blimit(?: is| of|:)? ?~?(\d[\d,]*)")
_ASKED: Final = re.compile(r"\brequested:? ?~?(\d[\d,]*)|\b(\d[\d,]*) tokens requested")
_MONEY_CODES: Final = (
    *("insufficient_quota", "billing_error", "billing_hard_limit_reached", "billing_not_active"),
    *("enforced_spend_limit_reached", "contract_spend_limit_reached", "linked_organization_spend_limit_reached"),
    "linked_organization_billing_unavailable",
)
_MONEY: Final = (
    *("insufficient_quota", "billing_error", "billing_hard_limit", "billing hard limit"),
    *("credit balance", "spend limit", "spend_limit", "spending limit", "specified api usage limits"),
    *("insufficient credits", "insufficient balance", "any credits", "available credits", "requires more credits"),
    "key limit exceeded",  # OpenRouter
)
_REFUSED_CODES: Final = re.compile(
    r"invalid_prompt|.*moderation.*|.*content_?(filter|policy|blocked).*|responsible_?ai_?policy_?violation"
    r"|(bio|cyber|usage)_policy.*|misalignment_policy_violation|.*safety.*|data_?inspection_?failed"
)
_REFUSED: Final = (
    *("content filtering policy", "content management policy", "content policy", "content_filter"),
    *("requires moderation", "moderation block", "usage policy", "usage policies", "usage guidelines"),
    *("content exists risk", "considered high risk", "inappropriate content", "content_policy_violation"),
)
_NO_FILTER: Final = (401, 404, 405, 429)  # whatever they say, it is not of this prompt
_UNKNOWN_MODEL: Final = re.compile(
    r"\b(?:invalid|unknown|unsupported) model\b|\bno such model\b|\bmodel (?:was |is )?not found\b"
    r"|\bmodel (?:name )?\S{1,200} (?:was |is )?(?:not found|does not exist|unknown)"
)
# A chat template without a system message; some servers answer so with status 500.
SYSTEM_ROLE: Final = re.compile(r"system role (?:is )?not supported|conversation roles must alternate")
_DISABLED: Final = ("organization_on_hold", "account_deactivated")
_QUOTA: Final = "exceeded your current quota"  # OpenAI and Gemini; Gemini also of a minute's
_NONE_AT_ALL: Final = re.compile(r"limit: 0\b")
_PER_DAY: Final = re.compile(r"per(?:day|month)")  # in Gemini's ids, beside which one of a minute may stand
_PER_MINUTE: Final = re.compile(r"per(?:minute|second)")
_DAY: Final = re.compile(
    r"(?:\bper[ _-]?|/ ?|\bfor (?:the|this) |by)(?:day|week|month)\b|\b(?:24 ?h(?:ou)?rs?|86,?400 ?s|today|tomorrow)\b"
    r"|\b[tr]p[dw]\b|\b(?:daily|weekly|monthly)\b.{0,40}\b(?:limit|quota)"  # above: GitHub's `UserByModelByDay`
)
_MINUTE: Final = re.compile(r"\bper[ _-]?(?:min|sec|hour)|/ ?(?:min(?:ute)?|sec(?:ond)?|hour)\b|\b[tr]p[hms]\b")
_RESET: Final = re.compile(
    r'"x-ratelimit-reset": ?"?(\d{13})\b'
)  # in an error of OpenRouter's: milliseconds since 1970
_MAY_BE_CROWDED: Final = (429, 503, 529)
_CALLS: Final = r"(?:request|connection|call|quer|session|job|generation|invocation)"
_AT_ONCE: Final = re.compile(
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
    """What an error means; `retry_after` are the seconds that the server asks for, if it asks for any."""

    meaning: Meaning
    status: int  # the answer's, or the one that an error with status 200 stands for
    retry_after: float | None = None
    is_concurrent: bool = False  # of a rate limit: it is one of calls under way


@dataclass(frozen=True, slots=True)
class _Said:
    """An error's parts: its codes and its message, in lower case, and all of its text."""

    codes: frozenset[str]
    words: str
    text: str
    flagged: bool  # names the reasons of a moderation


def verdict(status: int, text: str, headers: Mapping[str, str]) -> Verdict:
    """What an answer with an error's status means."""
    said = _parts_said(text)
    meaning = _meaning(status, said)
    if meaning not in ("rate_limit", "server", "quota"):
        return Verdict(meaning, status)
    asked = wait_asked(headers) or _delay(said) or None
    if meaning != "quota" and _is_of_calls_at_once(status, said):
        return Verdict("rate_limit", status, asked, is_concurrent=True)
    return Verdict(meaning, status, asked)


def text_of(error: Any) -> str:
    try:
        return error if isinstance(error, str) else json.dumps(error)
    except RecursionError:
        return "an error that is nested without end"


def verdict_within(error: Any, headers: Mapping[str, str]) -> Verdict:
    """What an error means that came with status 200."""
    text, status = text_of(error), _status_of(error)
    if status is None:  # its words may say whose fault it is; otherwise it is the server's
        found = verdict(400, text, headers)
        return found if found.meaning != "request" else verdict(_SERVER, text, headers)
    return verdict(status, text, headers)


def _meaning(status: int, said: _Said) -> Meaning:
    codes, words = said.codes, said.words
    if status in _MAY_BE_TOO_LARGE and _beyond_a_limit(words):
        return "size"
    if status == 413 or codes.intersection(_TOO_LONG_CODES) or (status in _MAY_BE_TOO_LONG and _has(words, _TOO_LONG)):
        return "too_long"
    if status == 402 or codes.intersection(_MONEY_CODES) or (400 <= status < 500 and _has(words, _MONEY)):
        return "money"
    if status not in _NO_FILTER and (
        any(_REFUSED_CODES.fullmatch(code) for code in codes)
        or (status < 500 and (said.flagged or _has(words, _REFUSED)))
    ):
        return "refused"
    if status in (400, 422, 500) and SYSTEM_ROLE.search(words):
        return "request"
    if status in (400, 422) and _UNKNOWN_MODEL.search(words):
        return "model"
    if status == 429 or (status == 403 and _DAY.search(words)):
        return _used_up(said) or "rate_limit"
    if status >= 500 or status in (408, 409, 425, 499):
        return "server"
    if status in (401, 403) or codes.intersection(_DISABLED):
        return "key"
    return "model" if status in (404, 405) else "request"


def _is_of_calls_at_once(status: int, said: _Said) -> bool:
    """Whether too many calls are under way, rather than too many a minute."""
    words = " ".join((*said.codes, said.words))
    if status not in _MAY_BE_CROWDED or _MINUTE.search(words):
        return False
    return _AT_ONCE.search(words) is not None or (status == 429 and "overloaded" in words)


def _beyond_a_limit(words: str) -> bool:
    """Whether a request alone is more tokens than the account may have in a minute: it would never pass.

    The output that it reserves counts: OpenAI and Groq say `Limit 10000, Requested 12500`.
    """
    if "token" not in words or not _RATE.search(words):
        return False
    if not (limit := _LIMIT.search(words)) or not (asked := _ASKED.search(words)):
        return _LARGER.search(words) is not None
    most, tokens = (int(number.replace(",", "")) for number in (limit[1], asked[1] or asked[2]))
    return tokens > most


def _used_up(said: _Said) -> Meaning | None:
    """What is gone for longer than an hour, if anything. Gemini has one sentence for a day and a minute, and ids."""
    if _QUOTA in said.words:
        if _NONE_AT_ALL.search(said.text):
            return "money"
        if _PER_DAY.search(said.text):
            return "quota"
        if not _PER_MINUTE.search(said.text) and _delay(said) is None:
            return "money"
    return "quota" if _DAY.search(said.words) and not _MINUTE.search(said.words) else None


def _has(text: str, words: tuple[str, ...]) -> bool:
    return any(each in text for each in words)


def _parts_said(text: str) -> _Said:
    """The parts of an error; where it has no known form, all of its text is its message."""
    codes, words, flagged = set[str](), list[str](), False
    for part in _objects_in(parse_json(text), _NESTED):
        codes |= {str(part[name]).lower() for name in ("code", "type", "error_code") if part.get(name)}
        words += [part[name] for name in ("message", "error", "detail") if isinstance(part.get(name), str)]
        flagged |= isinstance(part.get("reasons"), list)
    folded = text.lower()
    return _Said(frozenset(codes), "\n".join(words).lower() or folded, folded, flagged)


def _objects_in(value: Any, depth: int) -> Iterator[dict[str, Any]]:
    """The objects of an error that say something of it: itself, and those it quotes."""
    if isinstance(value, str) and value.startswith(("{", "[")):
        value = parse_json(value)
    if isinstance(value, list) and len(value) == 1:  # so Gemini packs it
        value = value[0]
    if isinstance(value, dict) and depth:
        yield value
        for name in ("error", "innererror", "details", "metadata", "raw", "message"):
            yield from _objects_in(value.get(name), depth - 1)


def _status_of(error: Any) -> int | None:
    """The status that an error within a body stands for; None if it says none."""
    for part in _objects_in(error, _NESTED):
        for name in ("code", "status", "type"):
            said = part.get(name)
            if isinstance(said, str) and said in _STATUS_OF:
                return _STATUS_OF[said]
            number = int(said) if isinstance(said, str) and re.fullmatch(r"\d{3}", said) else said
            if type(number) is int and 400 <= number <= 599:
                return number
    return None


def _delay(said: _Said) -> float | None:
    """The seconds that the body asks for: Gemini's `retryDelay`, or words such as `try again in 6m0s`."""
    for part in _details(said.text):
        if (found := _seconds(str(part.get("retrydelay", "")))) is not None:
            return found
    if reset := _RESET.search(said.text):
        return max(0.0, int(reset[1]) / 1000 - time.time())
    words = _DELAY.search(said.text)
    return _seconds(words[1]) if words else None


def _details(folded: str) -> Iterator[dict[str, Any]]:
    for part in _objects_in(parse_json(folded), _NESTED):
        details = part.get("details")
        yield from (each for each in details if isinstance(each, dict)) if isinstance(details, list) else ()


def _seconds(span: str) -> float | None:
    parts = _SPAN.findall(span)
    seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    return seconds if parts and seconds < float("inf") else None


def wait_asked(headers: Mapping[str, str]) -> float | None:
    """Seconds from `retry-after-ms`, or from `retry-after` in seconds or as a date; None if it says nothing usable."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        said = headers.get(name, "")
        try:
            seconds = float(said) / unit
        except ValueError:
            seconds = _until(said)
        if 0 < seconds < float("inf"):  # none at all is no time to wait for
            return seconds
    return None


def _until(date: str) -> float:
    """The seconds until an HTTP date, 0 if it is past; NaN if it is none."""
    try:
        return max(0.0, parsedate_to_datetime(date).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return float("nan")
