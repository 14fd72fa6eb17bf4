"""Render pages as HTML.

Templates escape all texts. JSON data is embedded in a form that cannot close its HTML element.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from types import CodeType
from typing import Any, Final

from jinja2 import BytecodeCache, Environment, PackageLoader, StrictUndefined
from jinja2.bccache import Bucket
from markupsafe import Markup, escape

from dubito.errors import printable
from dubito.report.tables import (
    Chart,
    GamePage,
    HeatMap,
    Ladder,
    Links,
    NamedValues,
    Page,
    Paragraph,
    Pills,
    PositionFilters,
    ResultTable,
    ScoreChart,
    ShownPosition,
    Tiles,
    Verbatim,
)

COMPARE: Final = ("compare.html", "Compare")  # only in runs with several contenders
_PAGES: Final = (
    ("index.html", "Overview"),
    ("games.html", "Games"),
    COMPARE,
    ("strategy.html", "Strategy"),
    ("index.html#players", "Players"),
    ("index.html#settings", "More"),
)
_KINDS: Final[dict[type, str]] = {
    Paragraph: "words",
    NamedValues: "facts",
    Verbatim: "verbatim",
    Tiles: "tiles",
    Pills: "pills",
    ShownPosition: "position",
    PositionFilters: "position_filters",
    Links: "links",
    ScoreChart: "scores",
    Ladder: "ladder",
    Chart: "chart",
    HeatMap: "map",
    ResultTable: "table",
}
_PLACEHOLDERS: Final = (
    Markup("\0title"),
    Markup("\0data"),
)  # placeholders for a game's title and data in the viewer's page


@dataclass(frozen=True, slots=True)
class Site:
    """Settings shared by all pages of a report or a server."""

    name: str  # name of the run
    pages: Sequence[tuple[str, str]] = _PAGES  # paths and titles in the menu
    static: str = "static/"
    icon: str = "data:,"
    served: bool = False  # whether a server with its own security policy serves the page, with all data inside
    address: str | None = None  # URL, ending in `/`; empty if unknown, None if the site is not published


@dataclass(eq=False)
class _TemplateCache(BytecodeCache):
    """Cache of compiled templates, shared by all reports of a process."""

    _code: dict[tuple[str, str], CodeType] = field(default_factory=dict)

    def load_bytecode(self, bucket: Bucket) -> None:
        bucket.code = self._code.get((bucket.key, bucket.checksum))

    def dump_bytecode(self, bucket: Bucket) -> None:
        assert bucket.code is not None
        self._code[bucket.key, bucket.checksum] = bucket.code


_TEMPLATES: Final = _TemplateCache()


class Renderer:
    """Renders pages as HTML."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self._environment = Environment(
            loader=PackageLoader("dubito.report"),
            autoescape=True,
            finalize=escape_text,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            bytecode_cache=_TEMPLATES,
        )
        self._environment.filters["json"] = embed_json
        self._environment.filters["kind"] = lambda block: _KINDS[type(block)]
        self._environment.tests["long"] = lambda text: len(str(text)) > 40
        self._environment.globals |= {"site": site}

    def __call__(self, page: Page) -> str:
        root = "../" * page.path.count("/")
        return self._environment.get_template(page.template).render(page=page, root=root)


class Viewer:
    """Renders game pages. The template is rendered once, since pages differ only in title and data."""

    def __init__(self, render: Renderer, folder: str) -> None:
        """Render the template for games in this folder, such as `games`."""
        title, data = _PLACEHOLDERS
        shell = render(Page(f"{folder}/", title, [], {"data": data}, "game.html"))
        self._head, self._to_heading, rest = shell.split(title)
        self._to_data, self._end = rest.split(data)

    def __call__(self, page: GamePage) -> str:
        title = escape(printable(page.title))
        parts = (self._head, title, self._to_heading, title, self._to_data, embed_json(page.data), self._end)
        return "".join(parts)


def escape_text(value: Any) -> Any:
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def escape_values(value: Any) -> Any:
    """Escape all texts in an object that a script displays."""
    if isinstance(value, dict):
        return {escape_text(key): escape_values(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [escape_values(inner) for inner in value]
    return escape_text(value)


def embed_json(value: Any) -> Markup:
    write = partial(json.dumps, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    text = write(value)
    if "\\u" in text or printable(text) != text:  # most pages have nothing to escape
        text = write(escape_values(value))
    return Markup(text.replace("<", "\\u003c"))  # noqa: S704


def script_of(name: str, value: Any) -> str:
    return f"window.{name} = {embed_json(value)};\n"
