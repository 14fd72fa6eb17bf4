"""The finished games of a folder: their list, and each of them as the report's viewer shows it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from starlette.exceptions import HTTPException

from dubito.errors import DubitoError, UsageError, one_line
from dubito.games.dubito.record import GameRecord, load, replay
from dubito.human import as_sentence
from dubito.report.parts import game_page
from dubito.report.questions import Questions
from dubito.report.render import Renderer, Site
from dubito.report.story import of_record
from dubito.report.texts import Texts
from dubito.store.folder import DATABASE
from dubito.store.run_db import RunDb

VIEWER: Final = "/viewer"  # where the report's static files are served
_MOST: Final = 10_000_000  # bytes of a file; the longest game takes less than one
_JOKERS: Final = ("No joker", "One joker", "Two jokers")
_OPENING: Final = "AB"  # the nodes that are asked on an empty board
_LAST_CARD: Final = {"immediate": "winning at once", "contested": "open to doubt"}
_CHANGED: Final = "This file was changed since the game was recorded: its story is another than its turns tell."
_PAGES: Final = (("/", "Play"), ("/games", "Saved games"), ("/rules", "Rules"))
_RENDER: Final = Renderer(Site("", (), _PAGES, f"{VIEWER}/", "/static/icon.svg", served=True))


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
    record = _record(path)
    told = of_record(record)
    warnings = [] if list(replay(record)) == record.story else [_CHANGED]
    asked: Mapping[str, Any] = {"decisions": [], "pieces": [], "shared": []}
    if record.number is not None:
        try:
            asked = _asked(folder / DATABASE, record.number, told["turns"])
        except DubitoError as error:
            why = one_line(str(error).replace(str(folder / DATABASE), DATABASE))
            warnings.append(as_sentence(f"what models were asked in this game is not shown: {why}"))
    proof = f"dubito replay {folder.name}/{path.name} proves that the game was played so."
    return _RENDER(game_page(f"/games/{name}", f"Game {name}", _about(record), told | dict(asked), proof, warnings))


def _files(folder: Path) -> dict[str, Path]:
    """The files of games by their names, without those that no address can name."""
    return {path.stem: path for path in folder.glob("*.json") if path.is_file() and path.stem.isprintable()}


def _record(path: Path) -> GameRecord:
    try:
        if path.stat().st_size > _MOST:
            raise UsageError("this file is too large for a game")
        return load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        raise UsageError("this file cannot be read") from None


@lru_cache(maxsize=4096)
def _line(name: str, path: Path, changed: int, size: int) -> SavedLine:
    """`changed` and `size` are the file's, so that it is read once and again only when it is another."""
    try:
        told = of_record(_record(path))
    except UsageError as error:
        return SavedLine(name, as_sentence(str(error)))
    return SavedLine(name, None, told["names"], _ended(told), len(told["turns"]))


def _ended(told: Mapping[str, Any]) -> str:
    places, me = told["places"], told["me"]
    unfinished = "unfinished" if told["capped"] else "lost"
    if me is None:
        return f"a hard win for {told['names'][places.index(1)]}" if 1 in places else unfinished
    return {None: unfinished, 1: "a hard win"}.get(places[me], "a soft win")


def _about(record: GameRecord) -> str:
    rules = f"{_JOKERS[record.rules.jokers]}, the last card {_LAST_CARD[record.rules.win_rule]}"
    cards = "" if record.seed is None else f"; deal {record.deal} of seed {record.seed}"
    return f"{rules}{cards}."


def _asked(database: Path, number: int, turns: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """What models were asked; raises DubitoError if it cannot be read, or belongs to another game."""
    if not database.exists():
        raise UsageError(f"there is no {DATABASE} beside its file")
    texts = Texts()
    with RunDb.open(database) as db:
        asked = Questions(db)
        decisions = asked.decisions(number, turns, texts)
    openings = {place for place, turn in enumerate(turns, start=1) if "cards" in turn and turn["pile"] == place - 1}
    for decision in decisions:
        if not decision["turn"] or (decision["node"] in _OPENING) != (decision["turn"] in openings):
            raise UsageError(f"the {DATABASE} beside its file has another game under its number")
    return {"decisions": decisions, "pieces": texts.pieces, "shared": asked.shared.pieces}
