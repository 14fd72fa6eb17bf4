"""The finished games of a folder: their list, and each of them as the report's viewer shows it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final

from starlette.exceptions import HTTPException

from dubito.errors import DubitoError, UsageError, one_line
from dubito.game import Spec
from dubito.game_registry import DUBITO, find_game
from dubito.human import as_sentence
from dubito.record import game_named, records_of
from dubito.report.parts import GamePage
from dubito.report.questions import AskedQuestions
from dubito.report.render import Renderer, Site, Viewer
from dubito.report.story import of_record, title_of
from dubito.report.texts import Texts
from dubito.store.folder import DATABASE
from dubito.store.run_db import RunDb
from dubito.telling import told_of

VIEWER: Final = "/viewer"  # where the report's static files are served
_MOST: Final = 10_000_000  # bytes of a file; the longest game takes less than one
_CHANGED: Final = "This file was changed since the game was recorded: its story is another than its turns tell."
_PAGES: Final = (("/", "Play"), ("/games", "Saved games"), ("/rules", "Rules"))
_SITE: Final = Site("", (), _PAGES, f"{VIEWER}/", "/static/icon.svg", served=True)


@dataclass(frozen=True, slots=True)
class SavedLine:
    """A game in the list; of a file that cannot be shown, only why."""

    name: str
    fault: str | None = None
    players: Sequence[str] = ()
    ended: str = ""  # for the person at the table, or, where there was none, for who won
    turns: int = 0


def listed(folder: Path) -> list[SavedLine]:
    """The games of a folder, the newest first: their names begin with the time."""
    lines = []
    for name, path in sorted(_files(folder).items(), reverse=True):
        try:
            about = path.stat()
        except OSError:  # it has just been deleted
            continue
        lines.append(_line(name, path, about.st_mtime_ns, about.st_size))
    return lines


def page(folder: Path, name: str) -> str:
    """A game's page; raises HTTPException where there is none, UsageError where it cannot be shown."""
    path = _files(folder).get(name)
    if path is None:
        raise HTTPException(404, "There is no such game.")
    spec, record = _record(path)
    told = of_record(spec, record)
    warnings = [] if list(records_of(spec).replay(record)) == record.story else [_CHANGED]
    asked: dict[str, Any] = {"decisions": [], "pieces": [], "shared": []}
    if record.number is not None:
        try:
            asked = _asked(spec, folder / DATABASE, record.number, told)
        except DubitoError as error:
            why = one_line(str(error).replace(str(folder / DATABASE), DATABASE))
            warnings.append(as_sentence(f"what models were asked in this game is not shown: {why}"))
    proof = f"dubito replay {folder.name}/{path.name} proves that the game was played so."
    del told["truths"]
    title = title_of(f"Game {name}", told["names"], told["winners"])
    return _viewer()(GamePage(f"/games/{name}", title, _about(spec, record), told | asked, proof, warnings))


@cache
def _viewer() -> Viewer:
    return Viewer(Renderer(_SITE), "/games")


def _files(folder: Path) -> dict[str, Path]:
    """The files of games by their names, without those that no address can name."""
    return {path.stem: path for path in folder.glob("*.json") if path.is_file() and path.stem.isprintable()}


def _record(path: Path) -> tuple[Spec, Any]:
    """The record in a file, and its game."""
    try:
        if path.stat().st_size > _MOST:
            raise UsageError("this file is too large for a game")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise UsageError("this file cannot be read") from None
    spec = find_game(game_named(text, DUBITO), Path.cwd())
    return spec, records_of(spec).load(text)


@lru_cache(maxsize=4096)
def _line(name: str, path: Path, changed: int, size: int) -> SavedLine:
    """`changed` and `size` are the file's, so that it is read once and again only when it is another."""
    try:
        spec, record = _record(path)
        told = of_record(spec, record)
    except UsageError as error:
        return SavedLine(name, as_sentence(str(error)))
    return SavedLine(name, None, told["names"], _ended(spec, told), len(told["turns"]))


def _ended(spec: Spec, told: Mapping[str, Any]) -> str:
    """In the game's words, or how it ended for the person, or else for everybody."""
    if own := getattr(told_of(spec), "ended", None):
        return str(own(told))
    if told["me"] is not None:
        return str(told["ended"][told["me"]])
    return ", ".join(f"{name} {how}" for name, how in zip(told["names"], told["ended"], strict=True))


def _about(spec: Spec, record: Any) -> str:
    rules = record.rules if not isinstance(record.rules, dict) else spec.rules(**record.rules)
    cards = "" if record.seed is None else f"; deal {record.deal} of seed {record.seed}"
    return f"{told_of(spec).in_short(rules)}{cards}."


def _asked(spec: Spec, database: Path, number: int, told: Mapping[str, Any]) -> dict[str, Any]:
    """What models were asked; raises DubitoError if it cannot be read, or belongs to another game."""
    if not database.exists():
        raise UsageError(f"there is no {DATABASE} beside its file")
    texts = Texts()
    with RunDb.open(database) as db:
        asked = AskedQuestions(db, spec)
        decisions = asked.decisions(number, told, texts)
    fits = getattr(told_of(spec), "fits", None)
    if not all(decision["turn"] and (fits is None or fits(decision, told["turns"])) for decision in decisions):
        raise UsageError(f"the {DATABASE} beside its file has another game under its number")
    return {"decisions": decisions, "pieces": texts.pieces, "shared": asked.shared.pieces}
