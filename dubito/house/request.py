"""What the house was asked: the identity of a request, and all chance that follows from it.

The answer is a function of (request, draw), a fault of (request, draw, try). A request is the canonical
JSON of protocol, path (below the address that the SDK was given) and body, so that its digest here is the
one that `dubito.llm` keeps; draw and try come in headers that no provider knows.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from random import Random
from typing import Any, Final, NoReturn

_DRAW_HEADER: Final = "x-dubito-draw"
TRY_HEADER: Final = "x-dubito-try"

JsonBody = dict[str, Any]


@dataclass(frozen=True)
class HeardRequest:
    """One try of one request; `body` is None if it was no JSON object, `try_number` 0 if it was no number from 1."""

    protocol: str
    base: str  # the part of the path that belongs to the server's address, not to the request
    path: str
    draw: str
    try_number: int
    raw: bytes

    @classmethod
    def of(cls, protocol: str, base: str, path: str, headers: Mapping[str, str], raw: bytes) -> "HeardRequest":
        """The request as it came in."""
        said = headers.get(TRY_HEADER, "1")
        number = int(said) if said.isascii() and said.isdecimal() and len(said) < 10 else 0
        return cls(protocol, base, path, headers.get(_DRAW_HEADER, "0"), number, raw)

    @property
    def body(self) -> JsonBody | None:
        """The body as JSON, None if it is no JSON object (NaN is no JSON)."""
        return self._read[0]

    @property
    def digest(self) -> str:
        """The request's own digest, of its canonical JSON. Neither draw nor try are in it."""
        return self._read[1]

    @cached_property
    def _read(self) -> tuple[JsonBody | None, str]:
        try:
            body = json.loads(self.raw.decode(), parse_constant=_no_json)
            if isinstance(body, dict):
                return body, self._digest(body)
        except (ValueError, RecursionError):
            pass
        return None, self._digest(self.raw.decode(errors="replace"))

    def _digest(self, body: object) -> str:
        path = self.path.removeprefix(self.base)
        return sha256(canonical({"protocol": self.protocol, "path": path, "body": body})).hexdigest()

    def digest_for(self, purpose: str, by_try: bool = False) -> str:
        """A digest that follows from purpose, request, draw and, if so asked, the try."""
        parts = [purpose, self.digest, self.draw, *([self.try_number] if by_try else [])]
        return sha256(canonical(parts)).hexdigest()

    def chance(self, purpose: str, by_try: bool = False) -> Random:
        """A stream of its own for the purpose, the same at every call."""
        return Random(int(self.digest_for(purpose, by_try), 16))


def canonical(value: object) -> bytes:
    """The one JSON of a value: keys sorted, no spaces, ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _no_json(constant: str) -> NoReturn:
    raise ValueError(constant)
