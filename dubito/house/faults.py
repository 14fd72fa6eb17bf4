"""Fault injection: choose which tries, replies and batches get a fault, and which one.

A repeated try always gets the same fault. A try can get an error instead of the answer, or an answer that is not sent
normally. A complete reply with status 200 can have a wrong text, a wrong structure, or wrong bytes. A batch can end
late, lack entries, or fail.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from math import isfinite
from random import Random
from typing import Any, AnyStr, Final, Literal

from dubito.errors import UsageError, one_line, suggestion
from dubito.house.request import HouseRequest, JsonBody, RefusalKind, canonical_bytes
from dubito.house.wires import ModelOutput

PAGE: Final = b"<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head><body>Bad Gateway</body></html>"
_DEEP_TEXT: Final = 2_000  # twice what Python's JSON parser accepts, but short enough for the usual output limit
_DEEP_BODY: Final = 100_000
_REFUSAL: Final = "I'm sorry, but I can't help with that."
# Would clear, rename and color a terminal.
_ESCAPES: Final = "\x1b[2J\x1b]0;house\x07\x1b[31m\r\x00\u202e"


@dataclass(frozen=True, slots=True)
class ContentFault:
    """How to change a reply's text and body. `pack` is called with the body and a size in bytes."""

    write: Callable[[str], ModelOutput] = ModelOutput
    pack: Callable[[JsonBody, int], bytes] = lambda body, size: canonical_bytes(body)
    media: str = "application/json"
    has_usage: bool = True  # whether the reply still contains the usage


def _change_text(change: Callable[[str], str]) -> ContentFault:
    return ContentFault(write=lambda text: ModelOutput(change(text)))


_USAGE: Final = ("usage", "usageMetadata")  # fields with the token counts


def _change_body(pack: Callable[[JsonBody, int], bytes]) -> ContentFault:
    return ContentFault(pack=pack, has_usage=False)


def _with_bad_usage(body: JsonBody) -> JsonBody:
    return {name: dict.fromkeys(value, -1) if name in _USAGE else value for name, value in body.items()}


CONTENT_FAULTS: Final[Mapping[str, ContentFault]] = {
    "fenced": _change_text(lambda text: f"```json\n{text}\n```"),
    "prose": _change_text(lambda text: f"I have thought about it. My answer is {text}. I hope this helps!"),
    "wrong_string": _change_text(lambda text: _replace_answer(text, _as_text(_find_answer(text)))),
    "wrong_number": _change_text(lambda text: _replace_answer(text, _as_number(_find_answer(text)))),
    "wrong_null": _change_text(lambda text: _replace_answer(text, None)),
    "nan": _change_text(lambda text: _replace_answer(text, float("nan"))),
    "no_answer": _change_text(lambda text: "{}"),
    "duplicate_keys": _change_text(lambda text: f'{text[:-1]},"answer":{json.dumps(not _find_answer(text))}}}'),
    "extra_fields": _change_text(lambda text: f'{text[:-1]},"confidence":"high"}}'),
    "surrogate": _change_text(lambda text: f'{text[:-1]},"mood":"\ud83d"}}'),
    "escapes": _change_text(lambda text: f"{_ESCAPES}{text}"),
    "deep": _change_text(lambda text: f'{{"answer":{"[" * _DEEP_TEXT}{"]" * _DEEP_TEXT}}}'),
    "empty_text": _change_text(lambda text: ""),
    "no_output": ContentFault(write=lambda text: ModelOutput(None)),
    "reasoning_only": ContentFault(write=lambda text: ModelOutput(None, "stop", f"I would say {text}")),
    "reasoning_cut": ContentFault(write=lambda text: ModelOutput(None, "length", f"I would say {text}, but then")),
    "cut_off": ContentFault(write=lambda text: ModelOutput(_first_half(text), "length")),
    "refusal": ContentFault(write=lambda text: ModelOutput(_REFUSAL, "refused")),
    "content_filter": ContentFault(write=lambda text: ModelOutput(_first_half(text), "filtered")),
    "unknown_fields": ContentFault(pack=lambda body, size: canonical_bytes(_with_unknown(body))),
    "huge": ContentFault(pack=lambda body, size: canonical_bytes({**body, "padding": "x" * size})),
    "no_usage": _change_body(
        lambda body, size: canonical_bytes({name: body[name] for name in body if name not in _USAGE})
    ),
    "bad_usage": _change_body(lambda body, size: canonical_bytes(_with_bad_usage(body))),
    "deep_body": _change_body(
        lambda body, size: canonical_bytes(body)[:-1] + b',"deep":' + b"[" * _DEEP_BODY + b"]" * _DEEP_BODY + b"}"
    ),
    "truncated_json": _change_body(lambda body, size: _first_half(canonical_bytes(body))),
    "broken_json": _change_body(lambda body, size: canonical_bytes(body).replace(b'"', b"'")),
    "wrong_shape": _change_body(lambda body, size: canonical_bytes([body])),
    "empty_body": _change_body(lambda body, size: b""),
    "html": ContentFault(pack=lambda body, size: PAGE, media="text/html", has_usage=False),
}


def _change_answers(change: Callable[[list[JsonBody]], list[JsonBody]]) -> ContentFault:
    return _change_text(lambda text: json.dumps(change(json.loads(text))))


def _change_first_answer(**fields: Any) -> ContentFault:
    return _change_answers(lambda answers: [{**answers[0], **fields}, *answers[1:]])


# Faults in replies of the Decisions API.
DECISION_FAULTS: Final[Mapping[str, ContentFault]] = {
    "declined": _change_answers(lambda answers: [{"type": "refusal", "name": answers[0]["name"]}, *answers[1:]]),
    "missing": _change_answers(lambda answers: answers[:-1]),
    "doubled": _change_answers(lambda answers: [answers[0], *answers]),
    "reordered": _change_answers(
        lambda answers: [*answers[1:], answers[0]] if len(answers) > 1 else [*answers, *answers]
    ),
    "unoffered": _change_first_answer(choice="perhaps"),
    "off_scale": _change_first_answer(probability=1.5, probabilities=[{"value": True, "probability": 1.5}]),
    "uneven": _change_first_answer(
        probability=-0.1, probabilities=[{"value": value, "probability": 0.7} for value in (True, False)]
    ),
}
# Faults of whole batches.
BATCH_FAULTS: Final[Sequence[str]] = (
    "late_batch",  # the batch ends at the fourth poll
    "failed_batch",  # no entries are processed
    "expired_batch",  # every second entry is not processed
    "unreadable_file",  # the results are truncated on the first read
    "reordered_entries",
    "doubled_entries",
    "missing_entries",  # the last entry is missing, although it was processed
)
NO_REPLIES: Final = frozenset({"truncated_json", "broken_json", "deep_body", "wrong_shape", "empty_body", "html"})


def _find_answer(text: str) -> Any:
    content = json.loads(text)
    answer = content.get("answer") if isinstance(content, dict) else None
    return '"answer":true' in text if answer is None or isinstance(answer, bool) else answer


def _as_text(answer: Any) -> str:
    return f"{answer}!" if isinstance(answer, str) else json.dumps(answer)


def _as_number(answer: Any) -> float:
    if isinstance(answer, bool):
        return int(answer)
    return answer + 0.5 if isinstance(answer, int) else 1


def _replace_answer(text: str, value: object) -> str:
    content = json.loads(text)
    return json.dumps({**(content if isinstance(content, dict) else {}), "answer": value}, separators=(",", ":"))


def _first_half(text: AnyStr) -> AnyStr:
    return text[: len(text) // 2]


def _with_unknown(value: object) -> object:
    """Add an unknown field to each object in the value."""
    if isinstance(value, list):
        return [_with_unknown(item) for item in value]
    if isinstance(value, dict):
        return {name: _with_unknown(item) for name, item in value.items()} | {"house_novelty": {"since": 2027}}
    return value


@dataclass(frozen=True, slots=True)
class Delivery:
    """How much of an answer is sent, and what happens to the connection afterwards.

    `interval` is the delay after each byte. `hold` keeps the client waiting until the client or the server stops.
    """

    part: Literal["nothing", "half the head", "half the body", "all"]
    end: Literal["close", "reset", "hold"] = "close"
    interval: float | None = None  # seconds; None means no wait


@dataclass(frozen=True, slots=True)
class TransportFault:
    """An error with its headers, or a delivery fault."""

    error: RefusalKind | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    page: bool = False  # whether the error's body is a web page, like a proxy's
    delivery: Delivery | None = None


@dataclass(frozen=True, slots=True)
class Parameters:
    retry_after: float  # seconds
    interval: float  # seconds
    size: int  # bytes


# A date in the past never requests a delay.
_PAST: Final = "Thu, 01 Jan 2026 00:00:00 GMT"
_GARBLED: Final = ("soon", "", "-1", "nan", "1,5", "0x10", "Thu, 32 Foo 2026 25:61:00 GMT")
_LONG: Final[Sequence[Mapping[str, str]]] = (
    {"retry-after": "7200"},
    {"retry-after": "1e12"},
    {"retry-after": "inf"},
    {"retry-after": "9" * 400},
    {"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"},
    {"retry-after-ms": "7200000.5"},
)


def _rate_limit_fault(value: str, name: str = "retry-after") -> TransportFault:
    return TransportFault("rate_limit", {name: value})


TRANSPORT_FAULTS: Final[Mapping[str, Callable[[Random, Parameters], TransportFault]]] = {
    "rate_limit": lambda chance, parameters: _rate_limit_fault(f"{parameters.retry_after:g}"),
    "rate_limit_bare": lambda chance, parameters: TransportFault("rate_limit"),
    "rate_limit_ms": lambda chance, parameters: _rate_limit_fault(
        f"{1000 * parameters.retry_after:g}", "retry-after-ms"
    ),
    "rate_limit_date": lambda chance, parameters: _rate_limit_fault(_PAST),
    "rate_limit_garbled": lambda chance, parameters: _rate_limit_fault(chance.choice(_GARBLED)),
    "rate_limit_long": lambda chance, parameters: TransportFault("rate_limit", chance.choice(_LONG)),
    "server_error": lambda chance, parameters: TransportFault("server_error"),
    "bad_gateway": lambda chance, parameters: TransportFault("bad_gateway", page=True),
    "unavailable": lambda chance, parameters: TransportFault("unavailable"),
    "overloaded": lambda chance, parameters: TransportFault("overloaded"),
    "reset": lambda chance, parameters: TransportFault(delivery=Delivery("nothing", "reset")),
    "dropped": lambda chance, parameters: TransportFault(delivery=Delivery("nothing")),
    "cut_headers": lambda chance, parameters: TransportFault(delivery=Delivery("half the head")),
    "cut_body": lambda chance, parameters: TransportFault(delivery=Delivery("half the body")),
    "stall": lambda chance, parameters: TransportFault(delivery=Delivery("nothing", "hold")),
    "stall_body": lambda chance, parameters: TransportFault(delivery=Delivery("half the body", "hold")),
    "trickle": lambda chance, parameters: TransportFault(delivery=Delivery("all", interval=parameters.interval)),
}
_ALL: Final = (*TRANSPORT_FAULTS, *CONTENT_FAULTS, *DECISION_FAULTS, *BATCH_FAULTS)
# Faults that only end because of a deadline or a cap.
SLOW: Final = frozenset({"rate_limit_long", "stall", "stall_body", "trickle"})


PROBE: Final = "probe"  # the draw of a probe, which only tests whether the model answers
PARAMETERS: Final = ("retry_after", "interval", "size")


def _equal_parts(share: float, *names: str) -> dict[str, float]:
    return dict.fromkeys(names, share / len(names))


_TRANSIENT: Final = tuple(name for name in TRANSPORT_FAULTS if name not in SLOW)
# The part of each fault in a mix.
MIXES: Final[Mapping[str, Mapping[str, float]]] = {
    "transport": _equal_parts(1, *_TRANSIENT),
    "content": _equal_parts(1, *CONTENT_FAULTS),
    "decisions": _equal_parts(1, *DECISION_FAULTS),
    "batches": _equal_parts(1, *BATCH_FAULTS),
    "storm": _equal_parts(2 / 3, *_TRANSIENT) | _equal_parts(1 / 3, *CONTENT_FAULTS),
}


class Faults:
    """The probability of each transport fault (per try) and each content fault (per reply).

    Args:
        retry_after: The delay in seconds requested by `rate_limit` and `rate_limit_ms`.
        interval: Seconds between two bytes of a `trickle`.
        size: Number of bytes added by `huge`.
        **shares: Probabilities by fault or by mix (`MIXES`). They are added up.

    Raises UsageError.
    """

    def __init__(
        self, *, retry_after: float = 0.01, interval: float = 1.0, size: float = 3_000_000, **shares: float
    ) -> None:
        for name, number in {"retry_after": retry_after, "interval": interval, "size": size}.items():
            if not (isfinite(number) and number >= 0):
                raise UsageError(f"{name} must be a non-negative number, not {number}")
        self.parameters = Parameters(retry_after, interval, int(size))
        known = {**{name: {name: 1.0} for name in _ALL}, **MIXES}
        parts: dict[str, float] = {}
        for name, share in shares.items():
            if name not in known:
                hint = suggestion(name, (*known, *PARAMETERS))
                raise UsageError(f"unknown fault '{one_line(name)}': {hint}")
            if not 0 <= share <= 1:
                raise UsageError(f"{name} must be a probability from 0 to 1, not {share}")
            for fault, part in known[name].items():
                parts[fault] = parts.get(fault, 0.0) + share * part
        self._tries = {name: parts[name] for name in TRANSPORT_FAULTS if name in parts}
        self._replies = {name: parts[name] for name in (*CONTENT_FAULTS, *DECISION_FAULTS) if name in parts}
        self._batches = {name: parts[name] for name in BATCH_FAULTS if name in parts}
        kinds = {"tries": self._tries, "replies": self._replies, "batches": self._batches}
        for kind, probabilities in kinds.items():
            if (total := sum(probabilities.values())) > 1 + 1e-9:
                raise UsageError(f"the shares of faults of {kind} must add up to at most 1, not {total:g}")

    @classmethod
    def parse(cls, text: str) -> "Faults":
        """Parse `NAME:NUMBER,NAME:NUMBER`. Raises UsageError."""
        numbers: dict[str, float] = {}
        for part in text.split(","):
            name, _, number = (word.strip() for word in part.partition(":"))
            try:
                value = float(number)
            except ValueError:
                form = "NAME:SHARE, such as storm:0.3 or rate_limit:0.1,server_error:0.1"
                raise UsageError(f"write faults as {form}, not '{one_line(part)}'") from None
            if name in numbers:
                raise UsageError(f"the fault '{one_line(name)}' appears twice")
            numbers[name] = value
        return cls(**numbers)

    def find_for_try(self, request: HouseRequest) -> tuple[str, TransportFault] | None:
        """Return this try's fault and its name. Probes get no faults, because faults affect calls, not accounts."""
        if request.draw == PROBE:
            return None
        chance = request.chance("fault", by_try=True)
        name = _pick(self._tries, chance.random())
        return None if name is None else (name, TRANSPORT_FAULTS[name](chance, self.parameters))

    def find_for_reply(self, request: HouseRequest) -> str | None:
        """Return the name of the fault in the reply to this request and draw, which is the same for every try.

        An exception are bodies that are not replies, which depend on the try from the second one. Probes get no faults.
        """
        name = _pick(self._replies, request.chance("content fault").random())
        if name not in NO_REPLIES:
            return name
        if request.draw == PROBE:
            return None
        if request.try_number < 2:
            return name
        bodies = {fault: share for fault, share in self._replies.items() if fault in NO_REPLIES}
        return _pick(bodies, request.chance("content fault", by_try=True).random())

    def find_for_batch(self, entries: bytes) -> str | None:
        return _pick(self._batches, Random(sha256(entries).digest()).random())


def _pick(shares: Mapping[str, float], point: float) -> str | None:
    """Pick a fault with these probabilities; `point` is uniform in [0, 1)."""
    for name, share in shares.items():
        point -= share
        if point < 0:
            return name
    return None
