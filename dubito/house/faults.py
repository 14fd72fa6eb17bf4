"""Faults on purpose: which tries and which replies are struck, and by what. The same try is struck again.

A try gets an error in place of the answer, or an answer that does not arrive as it should; a reply that arrives in
full, with status 200, is wrong in its text, its shape, or its bytes; a batch comes late, in part, or not at all.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from math import isfinite
from random import Random
from typing import Any, AnyStr, Final, Literal

from dubito.errors import UsageError, one_line, suggestion
from dubito.house.request import HeardRequest, JsonBody, RefusalKind, canonical_bytes
from dubito.house.wires import ModelOutput

PAGE: Final = b"<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head><body>Bad Gateway</body></html>"
_DEEP_TEXT: Final = 2_000  # Python's own reader gives up at half of it, and it fits the usual limit on output
_DEEP_BODY: Final = 100_000
_REFUSAL: Final = "I'm sorry, but I can't help with that."
_ESCAPES: Final = "\x1b[2J\x1b]0;house\x07\x1b[31m\r\x00\u202e"  # what would clear, name and colour a terminal


@dataclass(frozen=True, slots=True)
class ContentFault:
    """What is written in place of the text, and what is sent in place of the body; `size` of `pack` is in bytes."""

    write: Callable[[str], ModelOutput] = ModelOutput
    pack: Callable[[JsonBody, int], bytes] = lambda body, size: canonical_bytes(body)
    media: str = "application/json"
    counted: bool = True  # whether a reader finds the usage in it


def _in_text(text: Callable[[str], str]) -> ContentFault:
    return ContentFault(write=lambda said: ModelOutput(text(said)))


def _in_body(pack: Callable[[JsonBody, int], bytes]) -> ContentFault:
    return ContentFault(pack=pack, counted=False)


CONTENT_FAULTS: Final[Mapping[str, ContentFault]] = {
    "fenced": _in_text(lambda text: f"```json\n{text}\n```"),
    "prose": _in_text(lambda text: f"I have thought about it. My answer is {text}. I hope this helps!"),
    "wrong_string": _in_text(lambda text: _answering(text, _as_text(_answer(text)))),
    "wrong_number": _in_text(lambda text: _answering(text, _as_number(_answer(text)))),
    "wrong_null": _in_text(lambda text: _answering(text, None)),
    "nan": _in_text(lambda text: _answering(text, float("nan"))),
    "no_answer": _in_text(lambda text: "{}"),
    "duplicate_keys": _in_text(lambda text: f'{text[:-1]},"answer":{json.dumps(not _answer(text))}}}'),
    "extra_fields": _in_text(lambda text: f'{text[:-1]},"confidence":"high"}}'),
    "surrogate": _in_text(lambda text: f'{text[:-1]},"mood":"\ud83d"}}'),
    "escapes": _in_text(lambda text: f"{_ESCAPES}{text}"),
    "deep": _in_text(lambda text: f'{{"answer":{"[" * _DEEP_TEXT}{"]" * _DEEP_TEXT}}}'),
    "empty_text": _in_text(lambda text: ""),
    "no_output": ContentFault(write=lambda text: ModelOutput(None)),
    "reasoning_only": ContentFault(write=lambda text: ModelOutput(None, "stop", f"I would say {text}")),
    "reasoning_cut": ContentFault(write=lambda text: ModelOutput(None, "length", f"I would say {text}, but then")),
    "cut_off": ContentFault(write=lambda text: ModelOutput(_half(text), "length")),
    "refusal": ContentFault(write=lambda text: ModelOutput(_REFUSAL, "refused")),
    "content_filter": ContentFault(write=lambda text: ModelOutput(_half(text), "filtered")),
    "unknown_fields": ContentFault(pack=lambda body, size: canonical_bytes(_with_unknown(body))),
    "huge": ContentFault(pack=lambda body, size: canonical_bytes({**body, "padding": "x" * size})),
    "no_usage": _in_body(lambda body, size: canonical_bytes({name: body[name] for name in body if name != "usage"})),
    "bad_usage": _in_body(lambda body, size: canonical_bytes({**body, "usage": dict.fromkeys(body["usage"], -1)})),
    "deep_body": _in_body(
        lambda body, size: canonical_bytes(body)[:-1] + b',"deep":' + b"[" * _DEEP_BODY + b"]" * _DEEP_BODY + b"}"
    ),
    "truncated_json": _in_body(lambda body, size: _half(canonical_bytes(body))),
    "broken_json": _in_body(lambda body, size: canonical_bytes(body).replace(b'"', b"'")),
    "wrong_shape": _in_body(lambda body, size: canonical_bytes([body])),
    "empty_body": _in_body(lambda body, size: b""),
    "html": ContentFault(pack=lambda body, size: PAGE, media="text/html", counted=False),
}


def _in_answers(change: Callable[[list[JsonBody]], list[JsonBody]]) -> ContentFault:
    return _in_text(lambda text: json.dumps(change(json.loads(text))))


def _in_first(**fields: Any) -> ContentFault:
    return _in_answers(lambda answers: [{**answers[0], **fields}, *answers[1:]])


DECISION_FAULTS: Final[Mapping[str, ContentFault]] = {  # what only a decision can have wrong
    "declined": _in_answers(lambda answers: [{"type": "refusal", "name": answers[0]["name"]}, *answers[1:]]),
    "missing": _in_answers(lambda answers: answers[:-1]),
    "doubled": _in_answers(lambda answers: [answers[0], *answers]),
    "reordered": _in_answers(lambda answers: [*answers[1:], answers[0]] if len(answers) > 1 else [*answers, *answers]),
    "unoffered": _in_first(choice="perhaps"),
    "off_scale": _in_first(probability=1.5, probabilities=[{"value": True, "probability": 1.5}]),
    "uneven": _in_first(
        probability=-0.1, probabilities=[{"value": value, "probability": 0.7} for value in (True, False)]
    ),
}
BATCH_FAULTS: Final[Sequence[str]] = (  # of which each strikes a whole batch
    "late_batch",  # it has ended at the fourth look
    "failed_batch",  # nothing of it is processed
    "expired_batch",  # every second entry is not processed
    "unreadable_file",  # what came of it is cut short when it is read first
    "reordered_entries",
    "doubled_entries",
    "missing_entries",  # the last one, though it was processed
)
NO_REPLIES: Final = frozenset({"truncated_json", "broken_json", "deep_body", "wrong_shape", "empty_body", "html"})


def _answer(text: str) -> Any:
    said = json.loads(text)
    answer = said.get("answer") if isinstance(said, dict) else None
    return '"answer":true' in text if answer is None or isinstance(answer, bool) else answer


def _as_text(answer: Any) -> str:
    return f"{answer}!" if isinstance(answer, str) else json.dumps(answer)


def _as_number(answer: Any) -> float:
    if isinstance(answer, bool):
        return int(answer)
    return answer + 0.5 if isinstance(answer, int) else 1


def _answering(text: str, value: object) -> str:
    said = json.loads(text)
    return json.dumps({**(said if isinstance(said, dict) else {}), "answer": value}, separators=(",", ":"))


def _half(text: AnyStr) -> AnyStr:
    return text[: len(text) // 2]


def _with_unknown(value: object) -> object:
    """The value with a field that nobody knows in each of its objects."""
    if isinstance(value, list):
        return [_with_unknown(item) for item in value]
    if isinstance(value, dict):
        return {name: _with_unknown(item) for name, item in value.items()} | {"house_novelty": {"since": 2027}}
    return value


@dataclass(frozen=True, slots=True)
class Delivery:
    """How much of an answer is sent, and what becomes of the connection then; `interval` is the wait after each byte.

    `hold` leaves the client waiting until it or the house ends.
    """

    part: Literal["nothing", "half the head", "half the body", "all"]
    end: Literal["close", "reset", "hold"] = "close"
    interval: float | None = None  # None: at once


@dataclass(frozen=True, slots=True)
class TransportFault:
    """An error with its headers, or, without one, a delivery."""

    error: RefusalKind | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    page: bool = False  # the error has a web page for a body, as of something that stands before the provider
    delivery: Delivery | None = None


@dataclass(frozen=True, slots=True)
class Parameters:
    retry_after: float  # seconds
    interval: float  # seconds
    size: int  # bytes


_PAST: Final = "Thu, 01 Jan 2026 00:00:00 GMT"  # no clock here: a date in the past asks for no wait
_GARBLED: Final = ("soon", "", "-1", "nan", "1,5", "0x10", "Thu, 32 Foo 2026 25:61:00 GMT")
_LONG: Final[Sequence[Mapping[str, str]]] = (
    {"retry-after": "7200"},
    {"retry-after": "1e12"},
    {"retry-after": "inf"},
    {"retry-after": "9" * 400},
    {"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"},
    {"retry-after-ms": "7200000.5"},
)


def _limit(value: str, name: str = "retry-after") -> TransportFault:
    return TransportFault("rate_limit", {name: value})


TRANSPORT_FAULTS: Final[Mapping[str, Callable[[Random, Parameters], TransportFault]]] = {
    "rate_limit": lambda chance, given: _limit(f"{given.retry_after:g}"),
    "rate_limit_bare": lambda chance, given: TransportFault("rate_limit"),
    "rate_limit_ms": lambda chance, given: _limit(f"{1000 * given.retry_after:g}", "retry-after-ms"),
    "rate_limit_date": lambda chance, given: _limit(_PAST),
    "rate_limit_garbled": lambda chance, given: _limit(chance.choice(_GARBLED)),
    "rate_limit_long": lambda chance, given: TransportFault("rate_limit", chance.choice(_LONG)),
    "server_error": lambda chance, given: TransportFault("server_error"),
    "bad_gateway": lambda chance, given: TransportFault("bad_gateway", page=True),
    "unavailable": lambda chance, given: TransportFault("unavailable"),
    "overloaded": lambda chance, given: TransportFault("overloaded"),
    "reset": lambda chance, given: TransportFault(delivery=Delivery("nothing", "reset")),
    "dropped": lambda chance, given: TransportFault(delivery=Delivery("nothing")),
    "cut_headers": lambda chance, given: TransportFault(delivery=Delivery("half the head")),
    "cut_body": lambda chance, given: TransportFault(delivery=Delivery("half the body")),
    "stall": lambda chance, given: TransportFault(delivery=Delivery("nothing", "hold")),
    "stall_body": lambda chance, given: TransportFault(delivery=Delivery("half the body", "hold")),
    "trickle": lambda chance, given: TransportFault(delivery=Delivery("all", interval=given.interval)),
}
_ALL: Final = (*TRANSPORT_FAULTS, *CONTENT_FAULTS, *DECISION_FAULTS, *BATCH_FAULTS)
SLOW: Final = frozenset({"rate_limit_long", "stall", "stall_body", "trickle"})  # what only a deadline or a cap ends


PROBE: Final = "probe"  # the draw of a call that asks whether anybody answers
PARAMETERS: Final = ("retry_after", "interval", "size")


def _even(share: float, *names: str) -> dict[str, float]:
    return dict.fromkeys(names, share / len(names))


_PASSING: Final = tuple(name for name in TRANSPORT_FAULTS if name not in SLOW)
MIXES: Final[Mapping[str, Mapping[str, float]]] = {  # of a mix's share, the part of each fault
    "transport": _even(1, *_PASSING),
    "content": _even(1, *CONTENT_FAULTS),
    "decisions": _even(1, *DECISION_FAULTS),
    "batches": _even(1, *BATCH_FAULTS),
    "storm": _even(2 / 3, *_PASSING) | _even(1 / 3, *CONTENT_FAULTS),
}


class Faults:
    """The probability of each fault: a transport fault's at a try, a content fault's at a reply.

    Keywords are the names of faults and of MIXES, whose parts add up. `retry_after` is the wait in seconds that
    `rate_limit` and `rate_limit_ms` ask for, `interval` the seconds between two bytes of a `trickle`, `size`
    the bytes that `huge` adds. Raises UsageError.
    """

    def __init__(
        self, *, retry_after: float = 0.01, interval: float = 1.0, size: float = 3_000_000, **shares: float
    ) -> None:
        for name, number in {"retry_after": retry_after, "interval": interval, "size": size}.items():
            if not (isfinite(number) and number >= 0):
                raise UsageError(f"{name} is a number from 0, not {number}")
        self._parameters = Parameters(retry_after, interval, int(size))
        parts = _fault_shares(shares)
        self._of_tries = {name: parts[name] for name in TRANSPORT_FAULTS if name in parts}
        self._of_replies = {name: parts[name] for name in (*CONTENT_FAULTS, *DECISION_FAULTS) if name in parts}
        self._of_batches = {name: parts[name] for name in BATCH_FAULTS if name in parts}
        kinds = {"tries": self._of_tries, "replies": self._of_replies, "batches": self._of_batches}
        for kind, struck in kinds.items():
            if sum(struck.values()) > 1 + 1e-9:
                raise UsageError(f"the shares of {kind} struck are together at most 1, not {sum(struck.values()):g}")

    @classmethod
    def parse(cls, text: str) -> "Faults":
        """The faults spelled `NAME:NUMBER,NAME:NUMBER`. Raises UsageError."""
        numbers: dict[str, float] = {}
        for part in text.split(","):
            name, _, number = (word.strip() for word in part.partition(":"))
            try:
                value = float(number)
            except ValueError:
                spelled = "are NAME:SHARE, as in storm:0.3 or rate_limit:0.1,server_error:0.1"
                raise UsageError(f"faults {spelled}, not '{one_line(part)}'") from None
            if name in numbers:
                raise UsageError(f"faults name '{one_line(name)}' twice")
            numbers[name] = value
        return cls(**numbers)

    def of_try(self, asked: HeardRequest) -> tuple[str, TransportFault] | None:
        """What befalls this try, with its name. A probe is spared: a fault strikes calls, never a whole account."""
        if asked.draw == PROBE:
            return None
        chance = asked.chance("fault", by_try=True)
        name = _struck(self._of_tries, chance.random())
        return None if name is None else (name, TRANSPORT_FAULTS[name](chance, self._parameters))

    def of_reply(self, asked: HeardRequest) -> str | None:
        """The name of what is wrong with the reply to this request and draw, whichever try gets it.

        A body that is no reply is tried again: from the second try on it strikes by the try, and no probe.
        """
        name = _struck(self._of_replies, asked.chance("content fault").random())
        if name not in NO_REPLIES:
            return name
        if asked.draw == PROBE:
            return None
        if asked.try_number < 2:
            return name
        bodies = {fault: share for fault, share in self._of_replies.items() if fault in NO_REPLIES}
        return _struck(bodies, asked.chance("content fault", by_try=True).random())

    def of_batch(self, entries: bytes) -> str | None:
        return _struck(self._of_batches, Random(sha256(entries).digest()).random())

    @property
    def size(self) -> int:
        return self._parameters.size


def _fault_shares(shares: Mapping[str, float]) -> dict[str, float]:
    known = {**{name: {name: 1.0} for name in _ALL}, **MIXES}
    parts: dict[str, float] = {}
    for name, share in shares.items():
        if name not in known:
            hint = suggestion(name, (*known, *PARAMETERS))
            raise UsageError(f"there is no fault called '{one_line(name)}': {hint}")
        if not 0 <= share <= 1:
            raise UsageError(f"{name} is a probability from 0 to 1, not {share}")
        for fault, part in known[name].items():
            parts[fault] = parts.get(fault, 0.0) + share * part
    return parts


def _struck(shares: Mapping[str, float], point: float) -> str | None:
    """The faults share one throw, each its part of it, in the order of the catalogue."""
    for name, share in shares.items():
        point -= share
        if point < 0:
            return name
    return None
