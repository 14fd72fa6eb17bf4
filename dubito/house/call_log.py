"""The call log: one record for every request that was answered or struck by a fault. Never a key in it."""

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from threading import Lock
from typing import IO

from dubito.errors import UsageError


@dataclass(frozen=True, slots=True)
class Call:
    """One request and what became of it; `request` is its digest. Tokens are those that the reply itself states."""

    protocol: str
    path: str
    model: str | None  # None if the request did not get as far as to name one
    status: int  # 0 if no whole answer was sent
    request: str
    draw: str
    try_number: int
    input_tokens: int = 0  # cached ones included, in both protocols
    output_tokens: int = 0
    cached_tokens: int = 0
    understood: bool | None = None  # whether the policy found the facts in the prompt; None if it was not asked
    fault: str | None = None

    def unsent(self) -> "Call":
        """The same request, to which no whole answer was sent."""
        return replace(self, status=0, input_tokens=0, output_tokens=0, cached_tokens=0)


class CallLog:
    """All calls in order, in memory and, if a file is given, as JSON lines. Any thread may read it."""

    def __init__(self, file: Path | None = None) -> None:
        self._lock = Lock()
        self._calls: list[Call] = []
        self._file: IO[str] | None = None
        if file is not None:
            try:
                self._file = file.open("a", encoding="utf-8")
            except OSError as error:
                raise UsageError(f"the call log {file} cannot be written: {error.strerror}") from error

    def add(self, call: Call) -> None:
        """Keep a call; it is in the file when this returns."""
        with self._lock:
            self._calls.append(call)
            if self._file is not None:
                self._file.write(json.dumps(asdict(call)) + "\n")
                self._file.flush()

    def calls(self) -> list[Call]:
        """A copy of all calls so far."""
        with self._lock:
            return list(self._calls)

    def close(self) -> None:
        """Close the file; the calls stay."""
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None
