"""A shared game is one self-contained page that can be replayed."""

import base64
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dubito.games.dubito.record import dump, load
from dubito.report import share
from dubito.show.person import GUEST
from dubito.show.run import ReplayedGames
from tests.chromium import Chrome
from tests.cli.kit import Shell
from tests.conftest import in_gate
from tests.engine.golden import FOLDER
from tests.report.kit import PICTURE, SCRIPT, Page, drawn_in, pictures_linked


def record_on(page: Path) -> str:
    (address,) = [attrs["href"] for tag, attrs in Page(page).elements if attrs.get("download")]
    return base64.b64decode((address or "").partition(";base64,")[2]).decode()


@pytest.mark.parametrize(("which", "game"), in_gate([("models_run", 1), ("bots_run", 3)], 1))
def test_a_game_of_a_run_opens_alone_and_plays_again(
    which: str, game: int, shell: Shell, chrome: Chrome, request: pytest.FixtureRequest
) -> None:
    """Names are hostile in these runs, and some replies."""
    said = shell("share", str(request.getfixturevalue(which)), "--game", f"{game}", "--output", "sent.html")
    assert said.code == 0, said.err
    page = Path("sent.html")
    assert page.stat().st_size < share.MAX_PAGE_BYTES
    assert not [attrs for _, attrs in Page(page).elements if not (attrs.get("src") or "data:").startswith("data:")]
    assert 'href="http' not in page.read_text()
    chrome.open(page.resolve())
    (told,) = Page(page).json
    turns, opens = len(told["turns"]), told["opens"]
    assert "a bluff" in told["story"][opens - 1]
    assert chrome.text("#turn").startswith(f"turn {opens} of {turns}")
    assert chrome.text("#said p") == told["story"][opens - 1]
    chrome.key("Home")
    assert chrome.text("#turn") == f"deal ({turns} turns follow)"
    chrome.open(page.resolve(), "#turn-2")
    assert chrome.text("#turn").startswith(f"turn 2 of {turns}")
    chrome.run("document.querySelector('[data-go=last]').click()")
    assert chrome.run("window.ran") is None
    chrome.screen(390)
    assert chrome.run("document.documentElement.scrollWidth") == 390
    Path("game.json").write_text(record_on(page))
    assert shell("replay", "game.json").out.startswith(f"identical: {turns} turns")


def test_a_saved_game_is_shared_with_the_record_it_has(shell: Shell) -> None:
    assert shell("watch", "Sherlock", "StefaBot", "AdaptyBoi", "--save", "g.json", "--pace", "at-once").code == 0
    assert shell("share", "g.json").out == f"page: game.html ({Path('game.html').stat().st_size // 1000} kB)\n"
    assert record_on(Path("game.html")) == Path("g.json").read_text()
    assert PICTURE.findall(Path("game.html").read_text()) == []
    assert shell("share", "g.json", "--url", "https://me.github.io/games/").code == 0
    assert '<meta property="og:image" content="https://me.github.io/games/game.png">' in Path("game.html").read_text()
    assert {"#facc15", "#60a5fa", "#f87171"} <= drawn_in(Path("game.png").read_bytes())  # a line for each seat


def test_a_picture_needs_pillow_and_a_page_does_not(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shell("watch", "Sherlock", "StefaBot", "AdaptyBoi", "--save", "g.json", "--pace", "at-once").code == 0
    monkeypatch.setitem(sys.modules, "PIL", None)
    monkeypatch.delitem(sys.modules, "dubito.report.picture", raising=False)
    assert shell("share", "g.json").code == 0
    Path("game.html").unlink()
    refused = shell("share", "g.json", "--url", "https://me.github.io/games/")
    assert (refused.code, refused.out, Path("game.html").exists()) == (2, "", False)
    assert refused.err == "dubito: --url needs Pillow to draw preview pictures; pip install 'dubito[pictures]'\n"


def test_persons_game_can_be_shared(shell: Shell, chrome: Chrome) -> None:
    record = load((FOLDER / "three_immediate.json").read_text())
    Path("g.json").write_text(dump(replace(record, players=[*record.players[:2], GUEST])))
    assert shell("share", "g.json").code == 0
    page, (told,) = Page(Path("game.html")), Page(Path("game.html")).json
    said = " ".join([told["about"], *told["story"], told["ending"]])
    assert not re.search(r"\b(you|your)\b", said, re.IGNORECASE)
    assert any(line.startswith("The person ") for line in told["story"])
    assert " the person" in said
    assert told["names"][2] == "A person"
    assert re.search(r"\ba person: ", told["about"], re.IGNORECASE)
    assert told["kinds"] == ["hand-written", "hand-written", "person"]
    assert told["about"].endswith(f"lost; {len(told['turns'])} turns.")
    assert "catch other players lying" in page.words
    chrome.screen(390)
    chrome.open(Path("game.html").resolve())
    assert "Starts at the first bluff that was caught." in chrome.text("#said")
    assert re.search(r"\bA person \d+$", chrome.text("#board"))
    top = "document.querySelector('{}').getBoundingClientRect().top"
    assert chrome.run(top.format("#said")) < chrome.run(top.format("#board")) < 844
    assert chrome.run(top.format("#board")) < chrome.run(top.format("#seats")) < chrome.run(top.format("#strip"))


def test_the_report_of_a_saved_game_is_its_one_page(shell: Shell) -> None:
    assert shell("watch", "Player1", "Player2", "Player3", "Player4", "--game", "bs", "--save", "g.json").code == 0
    assert shell("report", "g.json").out == "report: g.json-report/index.html\n"
    shell("share", "g.json")
    page = Path("g.json-report/index.html")
    assert page.read_bytes() == Path("game.html").read_bytes()
    assert shell("report", "g.json", "--output", "there").out == "report: there/index.html\n"
    refused = shell("report", "g.json", "--games", "0")
    assert refused.err == "dubito: --games is only for runs, and this is one saved game; leave it out\n"


def test_too_large_a_game_leaves_out_bodies_then_requests(
    models_run: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shared() -> tuple[int, bool, bool]:
        assert shell("share", str(models_run), "--game", "1", "--output", "g.html").code == 0
        (told,) = Page(Path("g.html")).json
        attempts = [attempt for one in told["decisions"] for attempt in one["attempts"]]
        assert any(attempt["reply"] for attempt in attempts)
        size = Path("g.html").stat().st_size
        return size, any(attempt["raw"] for attempt in attempts), any(attempt["said"] for attempt in attempts)

    whole, *there = shared()
    assert there == [True, True]
    monkeypatch.setattr(share, "MAX_PAGE_BYTES", whole - 1)
    smaller, *there = shared()
    assert there == [False, True]
    monkeypatch.setattr(share, "MAX_PAGE_BYTES", smaller - 1)
    assert shared()[1:] == (False, False)
    monkeypatch.setattr(share, "MAX_PAGE_BYTES", 1000)
    said = shell("share", str(models_run), "--game", "1")
    assert (said.code, said.err.count("\n")) == (2, 1)
    assert "the game needs more than 1 kB as one page" in said.err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("share", "r"), "choose a game of the run with --game, for example: dubito share r --game 0"),
        (("share", "games/2026"), "games/2026 does not exist: `dubito share` without arguments suggests games\n"),
        (("share", "r", "--game", "99"), "there is no game 99"),
        (("share", "c.txt"), "c.txt: this is not a game record"),
        (("share", "c.txt", "--game", "1"), "--game is only for runs, and this is one saved game; leave it out"),
        (
            ("share", "c.txt", "--url", "a.b"),
            "--url: not a page's address: a.b; use one like https://me.github.io/games/",
        ),
        (("share", "r", "--game", "0", "--output", "."), ". is a folder; name a file: --output game.html"),
    ],
)
def test_bad_input_is_one_sentence(bots_run: Path, shell: Shell, words: tuple[str, ...], sentence: str) -> None:
    Path("r").symlink_to(bots_run)
    Path("c.txt").write_text("{}")
    said = shell(*words)
    assert (said.code, said.err.count("\n")) == (2, 1)
    assert sentence in said.err


def test_share_without_a_name_lists_games(bots_run: Path, shell: Shell) -> None:
    assert "there are no games here yet; play one with `dubito web`" in shell("share").err
    Path("runs").mkdir()
    Path("runs/r").symlink_to(bots_run)
    assert shell("share").err == "dubito: choose a game: `dubito share runs/r --game 0`\n"
    Path("games").mkdir()
    Path("games/one.json").touch()
    last = "`dubito share games/one.json` (the last game played here)"
    assert shell("share").err == f"dubito: choose a game: {last} or `dubito share runs/r --game 0`\n"
    assert shell("report", "runs").err == "dubito: runs is a folder of runs; name one of them, such as runs/r\n"


def test_runs_are_a_site_with_an_index(models_run: Path, stating_run: Path, shell: Shell, chrome: Chrome) -> None:
    assert shell("export", str(stating_run), "two.zip").code == 0
    named = ("--title", f"Ours {SCRIPT}", "--about", "Two.", "--url", "https://me.github.io/site")
    said = shell("report", str(models_run), "two.zip", *named, "--site", "s")
    assert (said.code, said.out) == (0, "site: s/index.html\n"), said.err
    page = Page(Path("s/index.html"))
    assert "Two." in page.words
    assert [row[1].strip() for row in page.tables["runs"][1:]] == ["Dubito", "Dubito"]
    chrome.screen(390)  # where a run is a card, with its answer in view
    chrome.open(Path("s/index.html"))
    ends = "[...document.querySelectorAll('#runs td')].map(cell => cell.getBoundingClientRect().right)"
    assert max(chrome.run(ends)) < 390
    assert SCRIPT not in Path("s/index.html").read_text()
    links = [str(attrs["href"]) for tag, attrs in page.elements if tag == "a"]
    assert [link for link in links if link.endswith("/index.html")] == ["run/index.html", "two/index.html"]
    for link in links:
        assert (Path("s") / link).is_file() or link == "#main"
    pictures = pictures_linked(Path("s"), "https://me.github.io/site/")
    assert [*pictures] == ["index.html", "run/index.html", "two/index.html"]
    assert all("#facc15" in drawn for drawn in pictures.values())  # a player's point
    assert "two</p>" in Path("s/two/games/0.html").read_text()
    again = shell("report", "two.zip", "two.zip", "--site", "t")
    assert (again.code, Path("t").exists()) == (2, False)
    assert "two runs are named two" in again.err


@pytest.mark.usefixtures("bots_run")
def test_game_with_too_many_moves_is_refused_early(
    bots_run: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tell(games: ReplayedGames, game: int) -> dict[str, Any]:
        raise AssertionError("the story of the game was told")

    monkeypatch.setattr("dubito.show.run.ReplayedGames.play", tell)
    monkeypatch.setattr("dubito.report.share.MAX_PAGE_BYTES", 1000)
    said = shell("share", str(bots_run), "--game", "0")
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith("dubito: the game needs more than 1 kB as one page (more than 5 moves); share its run")


def test_large_saved_game_is_refused_early(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def play(*_: object, **__: object) -> None:
        raise AssertionError("the game was played again")

    assert shell("watch", "StefaBot", "ClaudeBot", "MrDoubt", "--save", "g.json").code == 0
    monkeypatch.setattr("dubito.report.share.MAX_PAGE_BYTES", 1000)
    monkeypatch.setattr("dubito.report.share.story_of_record", play)
    said = shell("share", "g.json")
    assert (said.code, "the game needs more than 1 kB as one page; send the file itself" in said.err) == (2, True)
