"""Why the cache has no reply to a request: the entry nearest to it, and which of its parts differ.

Nearest is, in this order: the same request, the same draw, the longest common beginning of the texts.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, AnyStr, Final

from dubito.llm.cache import CacheEntry

_SHOWN: Final = 100  # characters of a part, on either side
_BEFORE: Final = 30  # of them before the place where two texts part
_NOTHING: Final = object()  # there is no such part


@dataclass(frozen=True, slots=True)
class RequestDifference:
    """A part in which a request and an entry differ."""

    part: str  # such as `body.model`, or `body.input.1.content, line 12`
    wanted: str
    stored: str


def nearest(entries: Iterable[CacheEntry], server: str, request: str, draw: str) -> CacheEntry | None:
    """The entry nearest to the request of this text; None if there is none. Goes through all of them."""

    def likeness(entry: CacheEntry) -> tuple[bool, bool, int, bool]:
        same = entry.request == request
        return (
            same,
            entry.draw == draw,
            len(request) if same else common(entry.request, request),
            entry.server == server,
        )

    return max(entries, key=likeness, default=None)


def differences(server: str, request: str, draw: str, entry: CacheEntry) -> list[RequestDifference]:
    """All parts in which they differ."""
    found = []
    if server != entry.server:
        found.append(RequestDifference("server", server, entry.server))
    if draw != entry.draw:
        found.append(RequestDifference("draw (seed, deal, seat, decision, attempt or sample)", draw, entry.draw))
    return found + parts(request, entry.request)


def parts(wanted: str, stored: str) -> list[RequestDifference]:
    """The parts in which the canonical texts of two requests differ."""
    return list(_parts("", json.loads(wanted), json.loads(stored)))


def _parts(where: str, wanted: Any, stored: Any) -> Iterator[RequestDifference]:
    one, other = _json(wanted), _json(stored)
    if one == other:
        return
    if isinstance(wanted, dict) and isinstance(stored, dict):
        for key in sorted({*wanted, *stored}):
            yield from _parts(f"{where}.{key}".lstrip("."), wanted.get(key, _NOTHING), stored.get(key, _NOTHING))
    elif isinstance(wanted, list) and isinstance(stored, list):
        for place, items in enumerate(zip_longest(wanted, stored, fillvalue=_NOTHING)):
            yield from _parts(f"{where}.{place}", *items)
    elif isinstance(wanted, str) and isinstance(stored, str):
        yield _text(where, wanted, stored)
    else:
        yield RequestDifference(where, _brief(one), _brief(other))


def _json(value: Any) -> str:
    """The value as it stands in a request: 1 differs from 1.0, and a missing value from null."""
    return "(nothing)" if value is _NOTHING else json.dumps(value, sort_keys=True)


def _text(where: str, wanted: str, stored: str) -> RequestDifference:
    """The first line in which two texts differ, from shortly before the place on."""
    pairs = enumerate(zip_longest(wanted.split("\n"), stored.split("\n"), fillvalue="(no such line)"), start=1)
    line, (one, other) = next(pair for pair in pairs if pair[1][0] != pair[1][1])
    start = max(0, common(one, other) - _BEFORE) if max(len(one), len(other)) > _SHOWN else 0
    shown = (_brief(one, start), _brief(other, start))
    return RequestDifference(f"{where}, line {line}" if "\n" in wanted + stored else where, *shown)


def _brief(text: str, start: int = 0) -> str:
    end = start + _SHOWN
    return f"{'...' if start else ''}{text[start:end]}{'...' if len(text) > end else ''}"


def common(one: AnyStr, other: AnyStr) -> int:
    """How many characters, or bytes, both begin with."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low
