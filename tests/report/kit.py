"""Helpers for report tests: two small runs, page contents, and hostile text that must not run."""

import csv
import json
import re
from collections.abc import Mapping, Sequence
from html.parser import HTMLParser
from io import BytesIO
from pathlib import Path
from typing import Any, Final

from PIL import Image

from dubito.experiment.run import RunResult
from dubito.report.site import write_report
from tests.experiment.kit import REPO, experiment, play_all
from tests.llm.kit import Incoming, Response, Server, contender, player_at, respond, run_games, small

PICTURE: Final = re.compile(r'property="og:image" content="([^"]+)"')
SCRIPT: Final = "<script>window.ran = 1</script>"
TEMPLATE: Final = "{{ 7 * 7 }}{% raw %}"
HOSTILE: Final = f'</script>{SCRIPT}<img src=x onerror="window.ran = 1">'


def drawn_in(picture: bytes) -> set[str]:
    """Return the colours of a link's picture, after checking that it is a PNG of the usual size."""
    with Image.open(BytesIO(picture)) as image:
        assert (image.format, image.size) == ("PNG", (1200, 630))
        counted: Any = image.convert("RGB").getcolors(2**20)
        return {"#{:02x}{:02x}{:02x}".format(*colour) for _, colour in counted}


def pictures_linked(site: Path, address: str) -> dict[str, set[str]]:
    """Return the colours of each linked picture of a site with this address, by page."""
    pages = ((page, PICTURE.search(page.read_text())) for page in sorted(site.rglob("*.html")))
    linked = {page.relative_to(site).as_posix(): found[1] for page, found in pages if found}
    assert all(link.startswith(address) for link in linked.values())
    return {page: drawn_in((site / link.removeprefix(address)).read_bytes()) for page, link in linked.items()}


def hand_written(folder: Path, games: int = 60, **config: Any) -> RunResult:
    named = [{"bot": "RandomBoi", "name": SCRIPT}, {"bot": "SusBoi", "name": TEMPLATE}]
    settings: dict[str, Any] = {"table_sizes": [3, 5], "bots": ["StefaBot", "UsualBot", *named]}
    return play_all(experiment(games=games, **settings | config), folder)


def models(folder: Path, games: int = 6) -> RunResult:
    """Return a run of two model players in turn, with some re-asks and some failures."""

    def answer(request: Incoming) -> Response:
        question = str(request.conversation[-1]["content"])  # Messages uses blocks
        if request.protocol == "messages" and "queens" in question:
            return respond(request.protocol, HOSTILE)
        if not request.re_asked and "kings" in question:
            return respond(request.protocol, HOSTILE)
        return respond(request.protocol)

    with Server(answer) as server:
        both = player_at(server, name="asked again"), player_at(server, "messages", name=f"fails {SCRIPT}", reasks=0)
        return run_games(small(*both, games=games, turns=60), folder)


def stating(folder: Path) -> RunResult:
    return run_games(small(contender("states", "house-sharp", prompt="reasoned"), games=5, turns=40), folder)


def report_of(run: Path, **options: Any) -> Path:
    return write_report(run, REPO, **options).parent


def states(game: Mapping[str, Any]) -> list[list[dict[str, Any]]]:
    """Return a game page's panels before the first turn and after each turn."""
    found = [game["panels"]]
    for turn in game["turns"]:
        changed = dict(enumerate(found[-1])) | {int(place): panel for place, panel in turn["panels"].items()}
        found.append([panel for _, panel in sorted(changed.items()) if panel])
    return found


def hands(game: Mapping[str, Any]) -> list[list[list[str]]]:
    """Return the names of each seat's cards before the first turn and after each turn."""
    return [
        [[game["faces"][card][0] for card in panel.get("cards", [])] for panel in panels if "seat" in panel]
        for panels in states(game)
    ]


def played(turn: Mapping[str, Any]) -> list[int]:
    """Return the cards that were played in a turn, as indexes of faces, or an empty list."""
    return next((cards for _, cards in turn["truth"] if cards), [])


def pile(game: Mapping[str, Any], panels: Sequence[Mapping[str, Any]]) -> list[list[Any]]:
    """Return the plays on the pile."""
    return [game["plays"][each] for panel in panels for each in panel.get("plays", [])]


def data(report: Path, key: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads((report / "data" / f"{key}.json").read_text())["rows"]
    return rows


def records(report: Path, key: str) -> list[dict[str, str]]:
    with (report / "data" / f"{key}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


class Page(HTMLParser):
    """A page parsed as a browser would: elements with attributes, table cells, and the JSON in it."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.tables: dict[str, list[list[str]]] = {}
        self.json: list[Any] = []
        self.words = ""
        self._table = self._in = ""
        self._script = ""
        self._is_data = self._cell = False
        self.feed(page.read_text())
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.elements.append((tag, attributes))
        self._in = tag
        if tag == "div" and attributes.get("class") == "block":
            self._table = attributes["id"] or ""
            self.tables[self._table] = []
        elif tag == "tr" and self._table:
            self.tables[self._table].append([])
        elif tag in ("td", "th") and self._table:
            self.tables[self._table][-1].append("")
            self._cell = True
        elif tag == "script":
            self._script, self._is_data = "", attributes.get("type") == "application/json"

    def handle_endtag(self, tag: str) -> None:
        if tag == "script" and self._is_data:
            self.json.append(json.loads(self._script))
        if tag in ("td", "th"):
            self._cell = False
        if tag == "table":
            self._table = ""
        self._in = ""

    def handle_data(self, data: str) -> None:
        if self._in == "script":
            self._script += data
            return
        self.words += data
        if self._table and self._cell:
            self.tables[self._table][-1][-1] += data
