"""What can befall a try: an error in place of the answer, or an answer that does not arrive as it should."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final, Literal

from dubito.house.refusal import RefusalKind


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
    """What the faults' names leave open."""

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
SLOW: Final = frozenset({"rate_limit_long", "stall", "stall_body", "trickle"})  # what only a deadline or a cap ends
