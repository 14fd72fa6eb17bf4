"""Write one game as a self-contained page that can be opened from disk, mail or any host."""

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from markupsafe import Markup

from dubito.commands import build_command
from dubito.errors import DubitoError, UsageError, one_line
from dubito.game import Game
from dubito.game.find import DUBITO, find_bots, find_game
from dubito.game.reader import A_PERSON
from dubito.game.record import GameRecord, Records, read_game_name
from dubito.model_settings import HOUSE
from dubito.packages import own_folder
from dubito.report.highlights import opening
from dubito.report.own_words import own_words
from dubito.report.render import Renderer, Site, embed_json
from dubito.report.sender import SharedGame, describe_sender, invite
from dubito.report.tables import GamePage, Page
from dubito.report.trim import TRIMS, longest_page, with_turns
from dubito.show.opponents import as_sentence
from dubito.show.story import (
    ModelDecisions,
    Texts,
    game_in_short,
    list_moves,
    page_title,
    story_of_record,
)
from dubito.store.folder import DATABASE
from dubito.store.run_db import RunDb

MAX_PAGE_BYTES: Final = 300_000  # size limit of a page in bytes; mail and chat programs accept it
_MAX_FILE_BYTES: Final = 10_000_000  # size limit of a file in bytes; the longest game needs less than one million
_CHANGED: Final = "This file was changed after the game: its log does not match its moves."
_STYLES: Final = ("look.css", "felt.css", "board.css", "viewer.css", "sender.css")
_SCRIPTS: Final = (
    "cards.js",
    "avatars.js",
    "scene.js",
    "board.js",
    "courses.js",
    "decisions.js",
    "sender.js",
    "viewer.js",
)


SHARE_RUN: Final = "share its run with `dubito report --site`"
_SEND_FILE: Final = "send the file itself; `dubito web` shows it under Saved games"


def saved_record(path: Path) -> tuple[Game, GameRecord]:
    """Load a record and its game from a file. Raises UsageError."""
    try:
        if path.stat().st_size > _MAX_FILE_BYTES:
            raise UsageError("this file is too large to be a saved game")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise UsageError("this file cannot be read") from None
    game = find_game(read_game_name(text, DUBITO), Path.cwd())
    return game, Records(game).load(text)


def page_of_file(path: Path, address: str, file_name: str) -> GamePage:
    """Return the page of a saved game, to be published at `address`.

    `file_name` is the name to show. Model calls are read from the store next to the file. If that fails, the page gives
    the reason. Raises UsageError if the game cannot be shown.
    """
    game, record = saved_record(path)
    story, warnings = _story_and_warnings(game, record, path)
    proof = f"Verify this game with: {build_command('replay', file_name, program='dubito')}"
    title = page_title(f"Game {path.stem}", story["names"], story["winners"])
    return GamePage(address, title, _short_deal(game, record), story | {"opens": opening(story)[0]}, proof, warnings)


def _story_and_warnings(
    game: Game, record: GameRecord, path: Path, for_others: bool = False, person: str = ""
) -> tuple[dict[str, Any], list[str]]:
    """Return the viewer's data including model calls, and warnings about the file."""
    story = story_of_record(game, record, for_others, person)
    warnings = [] if list(Records(game).replay(record)) == record.story else [_CHANGED]
    model_data: dict[str, Any] = {"decisions": [], "pieces": [], "shared": []}
    if record.number is not None:
        try:
            model_data = _load_model_calls(game, path.parent / DATABASE, record.number, story)
        except DubitoError as error:
            why = one_line(str(error).replace(str(path.parent / DATABASE), DATABASE))
            warnings.append(as_sentence(f"model requests cannot be shown: {why}"))
    del story["truths"]
    return story | model_data, warnings


def _short_deal(game: Game, record: GameRecord) -> str:
    rules = game.rules(**record.rules)
    if record.change is not None:
        return f"{game_in_short(game, rules, record.deal, None)} Some cards were changed.".lstrip()
    return game_in_short(game, rules, record.deal, record.seed)


def _load_model_calls(game: Game, database: Path, number: int, story: Mapping[str, Any]) -> dict[str, Any]:
    """Return the model calls of a game.

    Raises DubitoError if they cannot be read or belong to another game.
    """
    if not database.exists():
        raise UsageError(f"there is no {DATABASE} next to the file")
    with RunDb.open(database) as db:
        model_data = ModelDecisions(db, game).describe_game(number, story, Texts())
    # Models were asked at each of their moves, unless a mistake ended the game.
    asked, turns = {(one["seat"], one["turn"]) for one in model_data["decisions"]}, story["turns"]
    models = {seat for seat, _ in asked}
    moves = {(seat, number) for seat, number, _ in list_moves(turns) if seat in models}
    are_forfeits = all("forfeit" in turns[number - 1]["marks"] for _, number in moves - asked)
    if not asked <= moves or not are_forfeits:
        raise UsageError(f"the {DATABASE} next to the file contains a different game with this number")
    return model_data


def shared_file(path: Path, person: str = "", play_url: str = "") -> SharedGame:
    """Load a saved game for sharing. Raises UsageError.

    `person` is the name of the human player. `play_url` is the address of a site that plays without Python, if known.
    """
    game, record = saved_record(path)
    story, warnings = _story_and_warnings(game, record, path, for_others=True, person=person)
    bots, shared = find_bots(Path.cwd(), game.name).bots, Texts()
    shared.pieces, kinds = story["shared"], [*story["kinds"]]
    rest_by_seat = {one["seat"]: one["attempts"][-1]["rest"] for one in story["decisions"] if one["attempts"]}
    for seat, name in enumerate(record.players):
        # A seat with model calls is a model, or a fake model of the built-in server.
        if seat in rest_by_seat:
            model = str(json.loads(shared.read(rest_by_seat[seat])).get("model"))
            kinds[seat] = "fake model" if model.startswith(f"{HOUSE}-") else "model"
        elif name in bots and not bots[name].cls.is_model:
            kinds[seat] = kinds[seat] or ("program" if bots[name].cls.is_program else "hand-written")
    return build_shared_game(game, record, story | {"kinds": kinds}, story.pop("standing"), warnings, play_url, person)


def build_shared_game(
    game: Game,
    record: GameRecord,
    story: Mapping[str, Any],
    about: str,
    warnings: Sequence[str],
    play_url: str,
    person: str = "",
) -> SharedGame:
    me = story.get("me")
    sender = describe_sender(game, record, story, person or A_PERSON)
    title = sender.title if me is None else f"{sender.title[:1].upper()}{sender.title[1:]}"
    sent = {**story, "opens": sender.opens, "sent": True, "moment": sender.moment, "quote": sender.quote}
    kinds: Sequence[str | None] = story.get("kinds") or [None] * len(story["names"])
    # Offer the seat of a model, which readers will want to beat, or else the first seat.
    seat = next((seat for seat, kind in enumerate(kinds) if kind in ("model", "fake model")), 0) if me is None else me
    # The bots of the site that plays without Python. Without such bots, it lacks the game.
    found, home = find_bots(Path.cwd(), game.name).bots.values() if play_url else (), own_folder("bots")
    own = {bot.name for bot in found if bot.kind == "manual" and bot.file.is_relative_to(home)}
    return SharedGame(
        GamePage("game.html", title, about, sent, "", warnings),
        game.words.LEAD,
        _short_deal(game, record),
        Records(game).dump(record),
        "" if me is None else story["names"][me],
        sender.line,
        invite(game, record, kinds, seat, play_url if own else "", own),
    )


def shared_page(shared: SharedGame, picture: str = "") -> str:
    """Return the page as a single HTML file of at most `MAX_PAGE_BYTES` bytes.

    Parts are left out until the page fits, and the page lists them. Raises UsageError if the page is still too large.
    `picture` is the URL of the preview picture; it is empty if there is none.
    """
    text = _render(shared, picture)
    for what, trim in TRIMS:
        if len(text.encode()) <= MAX_PAGE_BYTES:
            return text
        if (trimmed := trim(shared)) != shared:
            shared = replace(trimmed, left_out=[*shared.left_out, what])
            text = _render(shared, picture)
    if len(text.encode()) <= MAX_PAGE_BYTES:
        return text
    spare = MAX_PAGE_BYTES - len(_render(replace(shared, page=with_turns(shared.page, 0)), picture).encode())
    page = longest_page(shared.page, spare - _SPARE_BYTES)
    if page is None:
        raise UsageError(size_message(), hint=SHARE_RUN if "game" in shared.page.story else _SEND_FILE)
    shown = f"all but {len(page.story['turns']):,} of its {len(shared.page.story['turns']):,} turns"
    return _render(replace(shared, page=page, left_out=[*shared.left_out, shown]), picture)


_SPARE_BYTES: Final = 500  # reserved for the sentence about what was left out


def size_message() -> str:
    return f"the game does not fit into one page of {MAX_PAGE_BYTES // 1000} kB"


def _render(shared: SharedGame, picture: str) -> str:
    page = shared.page
    static = files("dubito.report") / "static"
    style = "\n".join((static / name).read_text(encoding="utf-8") for name in _STYLES)
    scripts = [(static / name).read_text(encoding="utf-8") for name in _SCRIPTS]
    hashes = " ".join(f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" for script in scripts)
    record = f"data:application/json;base64,{b64encode(shared.record.encode()).decode()}" if shared.record else ""
    more = {
        "data": embed_json(page.data),
        "about": page.about,
        "lead": shared.lead,
        "dealt": shared.dealt,
        "style": Markup(style),  # noqa: S704, our own files
        "scripts": [*map(Markup, scripts)],
        "policy": f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:",
        "record": record,
        "picture": picture,
        "shared": shared,
        "quote": page.story["quote"] or _find_quote(page.story),
    }
    render = Renderer(Site("", pages=()))
    return render(Page("game.html", page.title, [], more, "shared.html"))


def _find_quote(story: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the model's reason for the decision nearest to the turn at which the page opens."""
    opens, found = story["opens"], None
    for one in story["decisions"]:
        reason = own_words(story, one)
        if reason and (found is None or abs(one["turn"] - opens) < abs(found["turn"] - opens)):
            found = {
                "text": reason,
                "seat": one["seat"],
                "turn": one["turn"],
                "link": one["link"],
            }
    return found
