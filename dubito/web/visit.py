"""A visit to a page of a site and its answer. A server or a worker in the visitor's browser carries them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from dubito.report.render import escape_values

_NO_HEADERS: Final[Mapping[str, str]] = {}
VIEWER: Final = "viewer"  # address of the report's static files
POLICY: Final = "default-src 'self'; base-uri 'none'; form-action 'self'; object-src 'none'"  # Content-Security-Policy


@dataclass(frozen=True, slots=True)
class Visit:
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    name: str = ""  # the saved game in the path, if any
    body: bytes = b""
    secret: str | None = None  # identifies the visitor's table
    person: str = ""  # the name that the visitor entered in the lobby


@dataclass(frozen=True, slots=True)
class PageAnswer:
    content: str | dict[str, Any]  # a page, or an object for a page's script
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    secret: str | None = None  # sent with the visitor's next visits

    @property
    def kind(self) -> str:
        return "text/html" if isinstance(self.content, str) else "application/json"

    @property
    def text(self) -> str:
        if isinstance(self.content, str):
            return self.content
        return json.dumps(escape_values(self.content), ensure_ascii=False, allow_nan=False, separators=(",", ":"))


class Refused(Exception):
    """Raised when a visit is refused, with an HTTP status and a sentence."""

    def __init__(self, status: int, sentence: str, headers: Mapping[str, str] = _NO_HEADERS) -> None:
        super().__init__(sentence)
        self.status, self.sentence, self.headers = status, sentence, headers
