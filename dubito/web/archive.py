"""The finished games of a folder: their list, and each of them as the report's viewer shows it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, Final

from starlette.exceptions import HTTPException

from dubito.errors import DubitoError, UsageError, one_line
from dubito.game import Spec
from dubito.game.record import records_of
from dubito.game.words import told_of
from dubito.report.render import Renderer, Site, Viewer
from dubito.report.tables import GamePage
from dubito.show.person import as_sentence
from dubito.show.story import ModelDecisions, Texts, story_of_record, title_of
from dubito.store.folder import DATABASE
from dubito.store.run_db import RunDb
from dubito.web.guard import VIEWER
from dubito.web.summaries import Summaries, Summary, dealt_at, files, record_in

_CHANGED: Final = "This file was changed since the game was recorded: its story is another than its turns tell."
PAGES: Final = (("/", "Play"), ("/games", "Saved games"), ("/rules", "Rules"))
_SITE: Final = Site("", (), PAGES, f"{VIEWER}/", "/static/icon.svg", served=True)


@dataclass(frozen=True, slots=True)
class SavedLine:
    """A game in the list."""

    name: str
    when: str  # it was dealt, as the clock of this machine has it
    summary: Summary


def saved_games(summaries: Summaries) -> list[SavedLine]:
    """The games of a folder, the latest first."""
    dealt = sorted(((dealt_at(name, one), name, one) for name, one in summaries().items()), reverse=True)
    return [SavedLine(name, f"{at.day} {at:%b %Y, %H:%M}", one) for at, name, one in dealt]


def zone() -> str:
    """What the clock of this machine calls its time."""
    return datetime.now().astimezone().tzname() or "local time"


def page(folder: Path, name: str) -> str:
    """A game's page; raises HTTPException where there is none, UsageError where it cannot be shown."""
    path = files(folder).get(name)
    if path is None:
        raise HTTPException(404, "There is no such game.")
    spec, record = record_in(path)
    told = story_of_record(spec, record)
    warnings = [] if list(records_of(spec).replay(record)) == record.story else [_CHANGED]
    asked: dict[str, Any] = {"decisions": [], "pieces": [], "shared": []}
    if record.number is not None:
        try:
            asked = _asked(spec, folder / DATABASE, record.number, told)
        except DubitoError as error:
            why = one_line(str(error).replace(str(folder / DATABASE), DATABASE))
            warnings.append(as_sentence(f"what models were asked in this game is not shown: {why}"))
    proof = f"dubito replay {path.relative_to(folder.parent)} proves that the game was played so."
    del told["truths"]
    title = title_of(f"Game {name}", told["names"], told["winners"])
    return _viewer()(GamePage(f"/games/{name}", title, _about(spec, record), told | asked, proof, warnings))


@cache
def _viewer() -> Viewer:
    return Viewer(Renderer(_SITE), "/games")


def _about(spec: Spec, record: Any) -> str:
    rules = record.rules if not isinstance(record.rules, dict) else spec.rules(**record.rules)
    cards = "" if record.seed is None else f"; deal {record.deal} of seed {record.seed}"
    return f"{told_of(spec).in_short(rules)}{cards}."


def _asked(spec: Spec, database: Path, number: int, told: Mapping[str, Any]) -> dict[str, Any]:
    """What models were asked; raises DubitoError if it cannot be read, or belongs to another game."""
    if not database.exists():
        raise UsageError(f"there is no {DATABASE} beside its file")
    with RunDb.open(database) as db:
        asked = ModelDecisions(db, spec).of_game(number, told, Texts())
    fits = getattr(told_of(spec), "fits", None)
    if not all(decision["turn"] and (fits is None or fits(decision, told["turns"])) for decision in asked["decisions"]):
        raise UsageError(f"the {DATABASE} beside its file has another game under its number")
    return asked
