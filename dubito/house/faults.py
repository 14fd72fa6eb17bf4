"""Faults on purpose: which tries and which replies are struck, and by what. The same try is struck again."""

from collections.abc import Mapping
from math import isfinite
from typing import Final

from dubito.errors import UsageError, one_line, suggestion
from dubito.house.content_faults import CONTENT_FAULTS, NO_REPLIES
from dubito.house.request import HeardRequest
from dubito.house.transport_faults import SLOW, TRANSPORT_FAULTS, Parameters, TransportFault

PROBE: Final = "probe"  # the draw of a call that asks whether anybody answers
PARAMETERS: Final = ("retry_after", "interval", "size")


def _even(share: float, *names: str) -> dict[str, float]:
    return dict.fromkeys(names, share / len(names))


_PASSING: Final = tuple(name for name in TRANSPORT_FAULTS if name not in SLOW)
MIXES: Final[Mapping[str, Mapping[str, float]]] = {  # of a mix's share, the part of each fault
    "transport": _even(1, *_PASSING),
    "content": _even(1, *CONTENT_FAULTS),
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
        parts = _parts(shares)
        self._of_tries = {name: parts[name] for name in TRANSPORT_FAULTS if name in parts}
        self._of_replies = {name: parts[name] for name in CONTENT_FAULTS if name in parts}
        for kind, struck in (("tries", self._of_tries), ("replies", self._of_replies)):
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

    @property
    def size(self) -> int:
        """Bytes that a huge body has more than its like."""
        return self._parameters.size


def _parts(shares: Mapping[str, float]) -> dict[str, float]:
    """The probability of each single fault."""
    known = {**{name: {name: 1.0} for name in (*TRANSPORT_FAULTS, *CONTENT_FAULTS)}, **MIXES}
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
