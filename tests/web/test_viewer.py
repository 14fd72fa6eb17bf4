"""Saved games in the report's viewer: each turn, and errors for files that cannot be shown."""

import html
import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import pytest

from dubito.game.record import GameRecord
from tests.chromium import Chrome
from tests.engine.golden import FOLDER, RECORDS
from tests.llm.kit import KEY, YES, Incoming, Response, Server, respond, rows
from tests.report.kit import pile, states
from tests.web.kit import Answer, Browser, WebServer, model_at, serve, table_with

SCRIPT: Final = "<script>window.ran = 1</script>"
HOSTILE: Final = f'</script>{SCRIPT}<img src=x onerror="window.ran = 1">'


def golden(name: str = "three_immediate") -> GameRecord:
    return RECORDS.load((FOLDER / f"{name}.json").read_text())


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    """Serve a game of bots, one with awkward names, and one that a person played against models."""

    def answer(request: Incoming) -> Response:
        question = request.conversation[-1]["content"]
        if not request.re_asked and "kings" in question:
            return respond(request.protocol, HOSTILE)
        return respond(request.protocol, '{"answer": false}' if "2 cards as" in question else YES)

    home = tmp_path_factory.mktemp("saved")
    with pytest.MonkeyPatch.context() as patch, Server(answer) as model:
        patch.setenv("SOME_KEY", KEY)
        patch.chdir(home)
        with table_with(home, model_at(model, name=HOSTILE), preflight=False) as server:
            browser = server.browser()
            end = browser.to_the_end(browser.sit(["MrDoubt", HOSTILE, HOSTILE], seat=0, seed=2))
            (server.folder / f"{end['record']}.json").rename(server.folder / "models.json")
            (server.folder / "bots.json").write_text(RECORDS.dump(golden()))
            (server.folder / "foreign.json").write_text(RECORDS.dump(replace(golden(), players=[HOSTILE] * 3)))
            yield server


def address(of: WebServer, name: str) -> str:
    return f"http://127.0.0.1:{of.port}/games/{name}"


def data(browser: Browser, name: str) -> Any:
    page = browser("GET", f"/games/{name}")
    assert page.status == 200, page.text
    return json.loads(page.text.partition('type="application/json">')[2].partition("</script>")[0])


def test_models_request_is_shown_at_its_turn(saved: WebServer, chrome: Chrome) -> None:
    ((asked,),) = rows(saved.folder, "SELECT count(*) FROM decisions WHERE game >= 0")
    game = data(saved.browser(), "models")
    assert len(game["decisions"]) == asked > 3
    doubts = [decision for decision in game["decisions"] if decision["node"] == "C"]
    assert len(doubts) > 1
    chrome.open(address(saved, "models"))
    for decision in doubts[:2]:
        turn = decision["turn"]
        chrome.go_to(f"turn={turn}")
        words = chrome.text("#decisions")
        assert f"Doubt? {'yes' if decision['answer'] else 'no'} answered" in words
        assert f"You are seat {decision['seat']}." in words
        claim = pile(game, states(game)[turn - 1])[-1][1]
        assert f"{claim}. Do you doubt?" in words
        assert '{"answer": true}' in words
        assert "from the provider · 1 call" in words
        assert ("doubts" in chrome.text("#said")) == decision["answer"]
    others = {decision["turn"] for decision in game["decisions"]}
    chrome.go_to(f"turn={min(set(range(1, 30)) - others)}")
    assert chrome.text("#decisions") == ""


def fits(chrome: Chrome) -> None:
    for width, dark in ((390, True), (1440, False)):
        chrome.screen(width, dark=dark)
        assert chrome.run("document.documentElement.scrollWidth") <= width


def test_foreign_text_fits_the_window_and_is_never_executed(saved: WebServer, chrome: Chrome) -> None:
    chrome.open(address(saved, "foreign"), "#turn=1")
    assert f"{HOSTILE} 2" in chrome.text("#seats")
    assert f"{HOSTILE} 0 plays " in chrome.text("#said")
    chrome.go_to("turn=20")
    fits(chrome)
    decisions = data(saved.browser(), "models")["decisions"]
    turn = next(decision["turn"] for decision in decisions if len(decision["attempts"]) == 2)
    chrome.open(address(saved, "models"), f"#turn={turn}")
    assert HOSTILE in chrome.text("#decisions")
    assert "Re-ask 1" in chrome.text("#decisions")
    assert HOSTILE in chrome.text("#seats")
    fits(chrome)
    assert chrome.run("window.ran") is None
    assert chrome.run("document.querySelectorAll('main img').length") == 0
    chrome.open(f"http://127.0.0.1:{saved.port}/games")
    assert HOSTILE in chrome.text(".saved")
    fits(chrome)
    assert chrome.run("window.ran") is None


def test_button_opens_the_table_at_the_turn(saved: WebServer, chrome: Chrome) -> None:
    chrome.open(address(saved, "models"), "#turn=4")
    assert chrome.text("#play-on") == "Play on from here"
    chrome.click("#play-on")
    chrome.until("location.pathname === '/table' && document.querySelector('#log li')")
    chrome.open(address(saved, "foreign"), "#turn=4")
    assert chrome.text("#play-on") == f"Play on from here as {HOSTILE} 0"
    fits(chrome)
    chrome.run("window.confirm = () => false")
    chrome.click("#play-on")
    assert chrome.run("location.pathname") == "/games/foreign"


def lose(folder: Path) -> None:
    for path in folder.glob("run.db*"):
        path.unlink()


def damage(folder: Path) -> None:
    lose(folder)
    (folder / "run.db").write_bytes(b"x" * 5000)


def change(folder: Path, what: str) -> None:
    with closing(sqlite3.connect(folder / "run.db")) as connection, connection:
        connection.execute(f"UPDATE decisions SET {what}")  # noqa: S608


def longer(folder: Path) -> None:
    change(folder, "turn = 999 WHERE node = 'C'")


def other(folder: Path) -> None:
    change(folder, "turn = turn - 1 WHERE turn > 1")


def without(change: Callable[[Path], None], saved: WebServer, tmp_path: Path) -> str:
    """Return the warnings on the page of a game with models after a change of its folder."""
    for path in (*saved.folder.glob("run.db*"), saved.folder / "models.json"):
        shutil.copy(path, tmp_path)
    change(tmp_path)
    with serve(tmp_path) as server:
        game = data(server.browser(), "models")
        assert game["decisions"] == []
        (warning,) = game["warnings"]
    return str(warning)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lose, "there is no run.db next to the file."),
        (damage, "shown: run.db is damaged or not a run store: "),
        (longer, "the run.db next to the file contains a different game with this number."),
        (other, "the run.db next to the file contains a different game with this number."),
    ],
    ids=["lost", "damaged", "of a longer game", "of another game"],
)
def test_game_is_shown_without_unreadable_parts(
    change: Callable[[Path], None], sentence: str, saved: WebServer, tmp_path: Path
) -> None:
    text = without(change, saved, tmp_path)
    assert text.startswith("Model requests cannot be shown: ")
    assert sentence in text


def test_changed_game_is_reported(server: WebServer, browser: Browser) -> None:
    record = golden()
    for name, story in (("same", record.story), ("other", record.story[:-1])):
        (server.folder / f"{name}.json").write_text(RECORDS.dump(replace(record, story=story)))
    (warning,) = data(browser, "other")["warnings"]
    assert warning.startswith("This file was changed after the game: ")
    assert data(browser, "same")["warnings"] == []


def refused(browser: Browser, name: str) -> str:
    """Return the one sentence on an error page."""
    page: Answer = browser("GET", f"/games/{quote(name)}")
    assert page.status == 400
    assert "<script" not in page.text
    return html.unescape(page.text.partition('</h1>\n<p class="error">')[2].partition("</p>")[0])


def test_incomplete_game_is_reported_in_one_sentence(server: WebServer, browser: Browser) -> None:
    record = golden()
    broken = replace(record, outputs=[[False, 1, [1, 1, 1, 1]]])
    after = replace(record, outputs=[*record.outputs, record.outputs[0]])
    turns = len(record.outputs)
    texts = {
        "empty": ("", "This is not a game record: the file: "),
        "half": (RECORDS.dump(record)[:2000], "This is not a game record: the file: "),
        "other": ("{}", "This is not a game record: game: Field required."),
        "number": (RECORDS.dump(replace(record, number=-1)), "This is not a game record: number: "),
        "cheat": (RECORDS.dump(broken), "Turn 1 of the record breaks the rules: 4 cards were played; play 1 to 3."),
        "after": (
            RECORDS.dump(after),
            f"Turn {turns + 1} of the record breaks the rules: the game is over.",
        ),
        "early": (
            RECORDS.dump(replace(record, outputs=record.outputs[:9])),
            "The record ends after 9 turns, before the game is over.",
        ),
        SCRIPT.replace("/", "_"): ('{"players": "' + SCRIPT.replace("/", "") + '"}', "This is not a game record: "),
        "deep": ("[" * 100_000, "This is not a game record: the file: "),
        "large": (" " * 10_000_001, "This file is too large to be a saved game."),
    }
    for name, (text, sentence) in texts.items():
        (server.folder / f"{name}.json").write_text(text)
        assert refused(browser, name).startswith(sentence)
    (server.folder / "bytes.json").write_bytes(b"\xff\xfe")
    assert refused(browser, "bytes") == "This file cannot be read."
    listing = browser("GET", "/games")
    assert listing.status == 200
    assert listing.text.count("This game cannot be shown. ") == len(texts) + 1
    assert "<script" not in listing.text


def test_list_shows_players_and_results(server: WebServer, browser: Browser) -> None:
    end = browser.to_the_end(browser.sit(seat=0))
    for number, name in enumerate(("three_immediate", "eight_contested_capped")):
        (server.folder / f"0{number}.json").write_text(RECORDS.dump(golden(name)))
    os.mkfifo(server.folder / "waits.json")
    (server.folder / "folder.json").mkdir()
    (server.folder / os.fsdecode(b"\xff.json")).write_text("")
    words = " ".join(html.unescape(browser("GET", "/games").text).split())
    assert words.index(end["record"]) < words.index("games/01") < words.index("games/00")  # latest first
    won = [name for name, lost in zip(end["names"], end["frames"][-1]["lost"], strict=True) if not lost]
    assert end["result"] == "losses"
    dealt = datetime.fromtimestamp(server.clock.now)
    assert f"{dealt.day} {dealt:%b %Y, %H:%M} \u2013 you lost to {' and '.join(won)}, {end['turn']} turns</a>" in words
    assert "AdaptyBoi won against ClaudeBot and RiskCounter, 24 turns" in words
    assert "RandomBoi 7 won against " in words
    assert words.count('/share" download') == 3
    (server.folder / "00.json").write_text("{}")
    assert "This game cannot be shown. This is not a game record: " in browser("GET", "/games").text
