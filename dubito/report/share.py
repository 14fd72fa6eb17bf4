"""One game as a single self-contained page that opens from disk, mail or any host."""

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from markupsafe import Markup

from dubito.errors import DubitoError, UsageError, one_line
from dubito.experiment.stored import Run
from dubito.game import Game
from dubito.game.find import DUBITO, find_bots, find_game
from dubito.game.record import read_game_name, records_of
from dubito.game.words import A_PERSON, display_name, words_of
from dubito.llm.settings import HOUSE
from dubito.report.games import GameChoice, ShownGames
from dubito.report.highlights import opening
from dubito.report.render import Renderer, Site, embedded
from dubito.report.tables import GamePage, Page
from dubito.show.company import as_sentence
from dubito.show.odds import odds_or_reason
from dubito.show.run import CannotShowGame, ReplayedGames
from dubito.show.story import ModelDecisions, Texts, describe_results, game_in_short, story_of_record, title_of
from dubito.store.folder import DATABASE
from dubito.store.run_db import RunDb

_LEAST_BYTES_A_MOVE: Final = 200  # most games need 350 to 1,000
MAX_PAGE_BYTES: Final = 300_000  # size limit of a page in bytes, accepted by mail and chat programs
_MAX_FILE_BYTES: Final = 10_000_000  # size limit of a file in bytes; the longest game needs less than one million
_CHANGED: Final = "This file was changed after the game: its log does not match its moves."
_STYLES: Final = ("look.css", "report.css")
_SCRIPTS: Final = ("cards.js", "viewer.js")


_SHARE_RUN: Final = "share its run with `dubito report --site`"
_SEND_FILE: Final = "send the file itself; `dubito web` shows it under Saved games"


@dataclass(frozen=True, slots=True)
class SharedGame:
    """A game's page with its record, from which the recipient can replay it."""

    page: GamePage
    lead: str  # describes the game in a sentence or two
    dealt: str  # its variable rules and its deal
    record: str


def saved_record(path: Path) -> tuple[Game, Any]:
    """Load a record from a file, with its game. Raises UsageError."""
    try:
        if path.stat().st_size > _MAX_FILE_BYTES:
            raise UsageError("this file is too large for a game")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise UsageError("this file cannot be read") from None
    game = find_game(read_game_name(text, DUBITO), Path.cwd())
    return game, records_of(game).load(text)


def page_of_file(path: Path, address: str, file_name: str) -> GamePage:
    """Return the page of a saved game, to be published at `address`.

    `file_name` is the name to show. Model calls are read from the store next to the file; if that fails, the
    page says why. Raises UsageError if the game cannot be shown.
    """
    game, record = saved_record(path)
    story, warnings = _story_and_warnings(game, record, path)
    proof = f"Verify this game with: dubito replay {file_name}"
    title = title_of(f"Game {path.stem}", story["names"], story["winners"])
    return GamePage(address, title, _short_deal(game, record), story | {"opens": opening(story)[0]}, proof, warnings)


def _story_and_warnings(
    game: Game, record: Any, path: Path, for_others: bool = False
) -> tuple[dict[str, Any], list[str]]:
    """Return the viewer's data with model calls, and warnings about the file."""
    story = story_of_record(game, record, for_others)
    warnings = [] if list(records_of(game).replay(record)) == record.story else [_CHANGED]
    model_data: dict[str, Any] = {"decisions": [], "pieces": [], "shared": []}
    if record.number is not None:
        try:
            model_data = _load_model_calls(game, path.parent / DATABASE, record.number, story)
        except DubitoError as error:
            why = one_line(str(error).replace(str(path.parent / DATABASE), DATABASE))
            warnings.append(as_sentence(f"model requests are not shown: {why}"))
    del story["truths"]
    return story | model_data, warnings


def _short_deal(game: Game, record: Any) -> str:
    rules = game.rules(**record.rules) if isinstance(record.rules, dict) else record.rules
    return game_in_short(game, rules, record.deal, record.seed)


def _load_model_calls(game: Game, database: Path, number: int, story: Mapping[str, Any]) -> dict[str, Any]:
    """Return the model calls of a game.

    Raises DubitoError if they cannot be read or belong to another game.
    """
    if not database.exists():
        raise UsageError(f"there is no {DATABASE} in its folder")
    with RunDb.open(database) as db:
        model_data = ModelDecisions(db, game).of_game(number, story, Texts())
    fits = words_of(game).fits
    if not all(
        decision["turn"] and (fits is None or fits(decision, story["turns"])) for decision in model_data["decisions"]
    ):
        raise UsageError(f"the {DATABASE} in its folder has a different game with this number")
    return model_data


def shared_file(path: Path) -> SharedGame:
    """Load a saved game for sharing. Raises UsageError."""
    game, record = saved_record(path)
    if path.stat().st_size > MAX_PAGE_BYTES:  # checked before the game is replayed
        raise UsageError(_size_message(), hint=_SEND_FILE)
    story, warnings = _story_and_warnings(game, record, path, for_others=True)
    kinds = _kinds(game, story, record.players)
    return _shared(game, record, story | {"kinds": kinds}, story.pop("standing"), warnings)


def _kinds(game: Game, story: Mapping[str, Any], players: Sequence[str]) -> list[str | None]:
    """Return what decided for each seat, as far as known.

    A seat with model calls is a model, or a fake model of the built-in server.
    """
    bots, shared = find_bots(Path.cwd(), game.name).bots, Texts()
    shared.pieces, kinds = story["shared"], [*story["kinds"]]
    rest_by_seat = {one["seat"]: one["attempts"][-1]["rest"] for one in story["decisions"] if one["attempts"]}
    for seat, name in enumerate(players):
        if seat in rest_by_seat:
            model = str(json.loads(shared.read(rest_by_seat[seat])).get("model"))
            kinds[seat] = "stand-in" if model.startswith(f"{HOUSE}-") else "model"
        elif name in bots and not bots[name].cls.is_model:
            kinds[seat] = kinds[seat] or "hand-written"
    return kinds


def _shared(game: Game, record: Any, story: Mapping[str, Any], about: str, warnings: Sequence[str]) -> SharedGame:
    names = [A_PERSON if seat == story.get("me") else name for seat, name in enumerate(story["names"])]
    title = title_of(f"A game of {display_name(game)}", names, story["winners"])
    opens, opens_at = opening(story)
    sent = {**story, "opens": opens, "sent": True, "opens_at": opens_at}
    page = GamePage("game.html", title, about, sent, "", warnings)
    return SharedGame(page, words_of(game).LEAD, _short_deal(game, record), records_of(game).dump(record))


def shared_game(source: Run, number: int) -> SharedGame:
    """Return a game of a run for sharing.

    Raises UsageError if the run has no such game, or it cannot be replayed.
    """
    decisions = ModelDecisions(source.db, source.game)
    shown = ShownGames(source, GameChoice([number], ""), ReplayedGames(source), decisions)
    try:
        record = shown.games.record(number, max_moves := MAX_PAGE_BYTES // _LEAST_BYTES_A_MOVE)
    except CannotShowGame as error:
        raise UsageError(f"game {number} of {source} cannot be shared: {error}") from None
    if record is None:
        raise UsageError(f"{_size_message()} (more than {max_moves:,} moves)", hint=_SHARE_RUN)
    (page,) = shown.pages()
    story = {**page.told, "shared": shown.asked.shared.pieces}
    ((row,),) = source.db.read("SELECT outcome FROM games WHERE game = ?", (number,))
    about = describe_results(source.game.results, source.outcome(row), story["names"], len(story["turns"]))
    shared = _shared(source.game, record, story, about, page.warnings)
    shared_page(shared)  # refuse games that are too large before computing odds, which takes some seconds
    story["odds"] = odds_or_reason(source, number)
    return _shared(source.game, record, story, about, page.warnings)


def shared_page(shared: SharedGame, picture: str = "") -> str:
    """Return the page as the text of one file of at most `MAX_PAGE_BYTES` bytes.

    Parts are left out until it fits. Raises UsageError if the game alone is too large. `picture` is the URL of the
    preview picture; empty: none.
    """
    if _estimate_bytes(shared) <= MAX_PAGE_BYTES:
        for leaner in (lambda told: told, _without_bodies, _without_requests, _without_odds):
            page = replace(shared.page, told=leaner(shared.page.told))
            text = _render(replace(shared, page=page), picture)
            if len(text.encode()) <= MAX_PAGE_BYTES:
                return text
    instead = _SHARE_RUN if "game" in shared.page.told else _SEND_FILE
    raise UsageError(f"{_size_message()} ({len(shared.page.told['turns']):,} turns)", hint=instead)


def _size_message() -> str:
    return f"the game needs more than {MAX_PAGE_BYTES // 1000} kB as one page"


def _estimate_bytes(shared: SharedGame) -> int:
    story = {key: shared.page.told[key] for key in ("turns", "story") if key in shared.page.told}
    return len(str(embedded(story)).encode()) + len(shared.record.encode()) * 4 // 3


def _without_odds(story: Mapping[str, Any]) -> Mapping[str, Any]:
    why = {"why": "the page would be too large to send"}
    return {**_without_requests(story), **({"odds": why} if "odds" in story else {})}


def _without_bodies(story: Mapping[str, Any]) -> Mapping[str, Any]:
    return _with_attempts(story, raw=None)


def _without_requests(story: Mapping[str, Any]) -> Mapping[str, Any]:
    return _with_attempts(story, raw=None, system=[], said=[])


def _with_attempts(story: Mapping[str, Any], **changed: Any) -> Mapping[str, Any]:
    """Return the data with these changes to every attempt, and without unused texts."""
    pieces, shared, kept = Texts(), Texts(), Texts()
    pieces.pieces, shared.pieces = story["pieces"], story["shared"]
    rest = Texts()

    def copy_text(runs: list[int] | None, old: Texts, new: Texts) -> list[int] | None:
        return None if runs is None else new.add(old.read(runs))

    def strip_attempt(attempt: Mapping[str, Any]) -> dict[str, Any]:
        one = {**attempt, **changed}
        said = [[role, copy_text(runs, pieces, kept)] for role, runs in one["said"]]
        texts = {key: copy_text(one[key], pieces, kept) for key in ("reply", "raw")}
        system = [copy_text(runs, shared, rest) for runs in one["system"]]
        return one | texts | {"said": said, "system": system, "rest": copy_text(one["rest"], shared, rest)}

    decisions = [{**one, "attempts": [strip_attempt(each) for each in one["attempts"]]} for one in story["decisions"]]
    return {**story, "decisions": decisions, "pieces": kept.pieces, "shared": rest.pieces}


def _render(shared: SharedGame, picture: str) -> str:
    page = shared.page
    static = files("dubito.report") / "static"
    style = "\n".join((static / name).read_text(encoding="utf-8") for name in _STYLES)
    scripts = [(static / name).read_text(encoding="utf-8") for name in _SCRIPTS]
    hashes = " ".join(f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" for script in scripts)
    more = {
        "data": embedded(page.data),
        "about": page.about,
        "lead": shared.lead,
        "dealt": shared.dealt,
        "style": Markup(style),  # noqa: S704, our own files
        "scripts": [*map(Markup, scripts)],
        "policy": f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:",
        "record": _data_url("application/json", shared.record.encode()),
        "picture": picture,
    }
    render = Renderer(Site("", pages=()))
    return render(Page("game.html", page.title, [], more, "shared.html"))


def _data_url(kind: str, data: bytes) -> str:
    return f"data:{kind};base64,{b64encode(data).decode()}"
