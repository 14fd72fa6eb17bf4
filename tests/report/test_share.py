"""A shared game is one self-contained page that can be replayed."""

import base64
import html
import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from PIL import ImageFont

from dubito.experiment.stored import open_recorded_run
from dubito.games.dubito.game import GAME
from dubito.report import share
from dubito.report.own_words import model_moment
from dubito.report.picture import fit_names
from dubito.show.person import GUEST
from dubito.show.run import ReplayedGames
from tests.chromium import Chrome
from tests.cli.kit import Shell
from tests.conftest import in_gate
from tests.engine.golden import FOLDER, RECORDS
from tests.report.kit import PICTURE, SCRIPT, Page, drawn_in, pictures_linked, states


def record_on(page: Path) -> str:
    (address,) = [attrs["href"] for tag, attrs in Page(page).elements if attrs.get("download")]
    return base64.b64decode((address or "").partition(";base64,")[2]).decode()


@pytest.mark.parametrize(("which", "game"), in_gate([("models_run", 1), ("bots_run", 3)], 1))
def test_a_game_of_a_run_opens_alone_and_plays_again(
    which: str, game: int, shell: Shell, chrome: Chrome, request: pytest.FixtureRequest
) -> None:
    result = shell("share", str(request.getfixturevalue(which)), "--game", f"{game}", "--output", "sent.html")
    assert result.code == 0, result.err
    page = Path("sent.html")
    assert page.stat().st_size < share.MAX_PAGE_BYTES
    assert not [attrs for _, attrs in Page(page).elements if not (attrs.get("src") or "data:").startswith("data:")]
    links = re.findall(r'href="(http[^"]*)', page.read_text())
    assert {link.partition("?")[0] for link in links} <= {"http://127.0.0.1:8765/"}
    chrome.open(page.resolve())
    (data,) = Page(page).json
    turns, opens = len(data["turns"]), data["opens"]
    assert "a bluff" in data["story"][opens - 1]
    assert chrome.text("#turn").startswith(f"turn {opens} of {turns}")
    assert chrome.text("#said p") == data["story"][opens - 1]
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
    assert {"#facc15", "#60a5fa", "#f87171"} <= drawn_in(Path("game.png").read_bytes())  # one line per seat


def test_picture_needs_pillow_and_page_or_site_does_not(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shell("watch", "Sherlock", "StefaBot", "AdaptyBoi", "--save", "g.json", "--pace", "at-once").code == 0
    monkeypatch.setitem(sys.modules, "PIL", None)
    monkeypatch.delitem(sys.modules, "dubito.report.picture", raising=False)
    assert shell("share", "g.json").code == 0
    assert shell("run", "--games", "4", "--output", "r").code == 0
    site = shell("report", "r", "--site", "s")
    assert (site.code, pictures_linked(Path("s"), "")) == (0, {}), site.err
    Path("game.html").unlink()
    refused = shell("share", "g.json", "--url", "https://me.github.io/games/")
    assert (refused.code, refused.out, Path("game.html").exists()) == (2, "", False)
    assert refused.err == "dubito: --url needs Pillow to draw preview pictures; pip install 'dubito[pictures]'\n"


def test_persons_game_can_be_shared(shell: Shell, chrome: Chrome) -> None:
    record = RECORDS.load((FOLDER / "three_immediate.json").read_text())
    Path("g.json").write_text(RECORDS.dump(replace(record, players=[*record.players[:2], GUEST])))
    assert shell("share", "g.json").code == 0
    page, (game,) = Page(Path("game.html")), Page(Path("game.html")).json
    message = " ".join([game["about"], *game["story"], game["ending"]])
    assert not re.search(r"\b(you|your)\b", message, re.IGNORECASE)
    assert any(line.startswith("The person ") for line in game["story"])
    assert " the person" in message
    assert game["names"][2] == "A person"
    assert re.search(r"\ba person: ", game["about"], re.IGNORECASE)
    assert game["kinds"] == ["hand-written", "hand-written", "person"]
    assert game["about"].endswith(f"lost; {len(game['turns'])} turns.")
    assert "catch other players lying" in page.words
    chrome.screen(390)
    chrome.open(Path("game.html").resolve())
    top = "document.querySelector('{}').getBoundingClientRect().top"
    tops = [chrome.run(top.format(one)) for one in ("#boards .card", "#seats", "#said")]
    assert 0 < tops[0] < tops[1] < tops[2] < 844


def test_the_report_of_a_saved_game_is_its_one_page(shell: Shell) -> None:
    assert shell("watch", "Player1", "Player2", "Player3", "Player4", "--game", "bs", "--save", "g.json").code == 0
    assert shell("report", "g.json").out == "report: g.json-report/index.html\n"
    shell("share", "g.json")
    page = Path("g.json-report/index.html")
    assert page.read_bytes() == Path("game.html").read_bytes()
    assert shell("report", "g.json", "--output", "there").out == "report: there/index.html\n"
    refused = shell("report", "g.json", "--games", "0")
    assert refused.err == "dubito: --games only works with runs, and this is a saved game; leave it out\n"


def test_too_large_a_game_leaves_out_bodies_then_requests(
    models_run: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shared() -> tuple[int, bool, bool]:
        assert shell("share", str(models_run), "--game", "1", "--output", "g.html").code == 0
        (game,) = Page(Path("g.html")).json
        attempts = [attempt for one in game["decisions"] for attempt in one["attempts"]]
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
    result = shell("share", str(models_run), "--game", "1")
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert "the game does not fit into one page of 1 kB" in result.err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("share", "r"), "choose a game of the run with --game, for example: `dubito share r --game "),
        (("share", "games/2026"), "games/2026 does not exist: `dubito share` without arguments suggests games\n"),
        (("share", "r", "--game", "99"), "game 99 does not exist"),
        (("share", "c.txt"), "c.txt: this is not a game record"),
        (("share", "c.txt", "--game", "1"), "--game only works with runs, and this is a saved game; leave it out"),
        (
            ("share", "c.txt", "--url", "a.b"),
            "--url: not a web address: a.b; use one like https://me.github.io/games/",
        ),
        (("share", "r", "--game", "0", "--output", "."), ". is a folder; name a file: --output game.html"),
    ],
)
def test_bad_input_is_reported_in_one_sentence(
    bots_run: Path, shell: Shell, words: tuple[str, ...], sentence: str
) -> None:
    Path("r").symlink_to(bots_run)
    Path("c.txt").write_text("{}")
    result = shell(*words)
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert sentence in result.err


def test_share_without_a_name_lists_games(bots_run: Path, shell: Shell) -> None:
    assert "there are no games here yet; play one with `dubito web`" in shell("share").err
    Path("runs").mkdir()
    Path("runs/r").symlink_to(bots_run)
    (suggested,) = re.findall(
        r"choose a game: (`dubito share runs/r --game \d+` \(.*a bluff.*\))\n", shell("share").err
    )
    Path("games").mkdir()
    Path("games/one.json").touch()
    last = "`dubito share games/one.json` (the last game played here)"
    assert shell("share").err == f"dubito: choose a game: {last} or {suggested}\n"
    assert shell("report", "runs").err == "dubito: runs is a folder of runs; name one of them, such as runs/r\n"


def test_suggested_game_was_won_and_has_the_most_cards_at_stake(models_run: Path, shell: Shell) -> None:
    ((game, event),) = re.findall(r"--game (\d+)` \((.+)\)$", shell("share", str(models_run)).err.strip())
    with open_recorded_run(models_run) as source:
        games = dict(ReplayedGames(source).stories(range(source.tally.games)))
    found = {number: model_moment(game) for number, game in games.items() if game["winners"]}
    moments = {number: moment for number, moment in found.items() if moment}
    assert 1 < len(moments) < len(games)
    assert moments[int(game)].stake == max(moment.stake for moment in moments.values())
    assert moments[int(game)].event == event


def test_runs_are_a_site_with_an_index(models_run: Path, stating_run: Path, shell: Shell, chrome: Chrome) -> None:
    assert shell("export", str(stating_run), "two.zip").code == 0
    named = ("--title", f"Ours {SCRIPT}", "--about", "Two.", "--url", "https://me.github.io/site")
    result = shell("report", str(models_run), "two.zip", *named, "--site", "s")
    assert (result.code, result.out) == (0, "site: s/index.html\n"), result.err
    page = Page(Path("s/index.html"))
    assert "Two." in page.words
    assert [row[1].strip() for row in page.tables["runs"][1:]] == ["Dubito", "Dubito"]
    chrome.screen(390)  # here a run is a card with its result in view
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
    assert all("#facc15" in drawn for drawn in pictures.values())  # the point of a player
    assert "two</p>" in Path("s/two/games/0.html").read_text()
    again = shell("report", "two.zip", "two.zip", "--site", "t")
    assert (again.code, Path("t").exists()) == (2, False)
    assert "two runs are named two" in again.err


@pytest.mark.usefixtures("bots_run")
def test_game_with_too_many_moves_is_refused_early(
    bots_run: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tell(games: ReplayedGames, game: int) -> dict[str, Any]:
        raise AssertionError("the game's story was described")

    monkeypatch.setattr("dubito.show.run.ReplayedGames.play", tell)
    monkeypatch.setattr("dubito.report.share_run._MAX_MOVES", 5)
    result = shell("share", str(bots_run), "--game", "0")
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(
        "dubito: the game does not fit into one page of 300 kB (more than 5 moves); share its run"
    )


def test_long_game_keeps_turns_around_its_best_moment_and_says_so(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, chrome: Chrome
) -> None:
    assert shell("watch", "Sherlock", "StefaBot", "AdaptyBoi", "--save", "g.json", "--pace", "at-once").code == 0
    shell("share", "g.json")
    (whole,) = Page(Path("game.html")).json
    bytes_of_turns = len(json.dumps([whole["turns"], whole["story"]]))
    room = Path("game.html").stat().st_size - len(Path("g.json").read_text()) * 4 // 3 - bytes_of_turns // 2
    monkeypatch.setattr(share, "MAX_PAGE_BYTES", room)
    assert shell("share", "g.json").code == 0
    page, (game,) = Page(Path("game.html")), Page(Path("game.html")).json
    first, turns = game["first"], len(game["turns"])
    assert Path("game.html").stat().st_size <= room
    assert 1 < turns < len(whole["turns"])
    assert f"leaves out the record, all but {turns} of its {len(whole['turns'])} turns." in page.words
    assert states(game) == states(whole)[first : first + turns + 1]
    assert game["story"] == whole["story"][first : first + turns]
    assert game["opens"] + first == whole["opens"]
    chrome.open(Path("game.html").resolve())
    assert chrome.text("#turn").startswith(f"turn {whole['opens']} of ")


def test_shared_page_shows_how_readers_call_the_program(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("g.json").write_text((FOLDER / "three_immediate.json").read_text())
    monkeypatch.setattr("sys.argv", ["/home/ada/.venv/bin/dubito"])
    assert shell("share", "g.json").code == 0
    assert " dubito play " in " ".join(Page(Path("game.html")).words.split())
    assert "/home/ada" not in Path("game.html").read_text()


@pytest.mark.parametrize("command", ["replay", "share", "report"])
def test_page_given_instead_of_its_record_is_explained(shell: Shell, command: str) -> None:
    Path("g.json").write_text((FOLDER / "three_immediate.json").read_text())
    assert shell("share", "g.json").code == 0
    refused = shell(command, "game.html")
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "this is a page; download the game's record, which is linked at the end of the page" in refused.err


def test_names_in_pictures_are_whole_or_cut_in_the_middle_and_never_alike() -> None:
    assert fit_names(["ClaudeBot", "openai:gpt-5-mini-2025-08-07@reasoned"], 420)[1] == [
        "ClaudeBot",
        "openai:gpt-5-mini-2025-08-07@reasoned",
    ]
    long = "a-model-with-a-long-name-of-a-far-away-provider@its-prompt"
    size, names = fit_names([f"{long}-1", f"{long}-2", f"1{long}2{long}", f"1{long}3{long}"], 420)
    assert [name[-2:] for name in names] == ["-1", "-2", " 1", " 2"]
    assert all(name.startswith(("a-model", "1a-model")) for name in names)
    assert max(map(ImageFont.load_default(size).getlength, names)) <= 420
    assert fit_names(["\u0639\u0644\u064a", "\u0645\u0646\u0649"], 420)[1] == ["??? 1", "??? 2"]


def test_shared_page_is_about_its_sender(shell: Shell, chrome: Chrome, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page shows the name, the best moment, a line to copy, and how to play the same cards."""
    record = RECORDS.load((FOLDER / "three_immediate.json").read_text())
    Path("g.json").write_text(RECORDS.dump(replace(record, players=[GUEST, *record.players[1:]])))
    name = r"Ada \1 <b>"
    assert shell("share", "g.json", "--name", name).code == 0
    page, (game,) = Page(Path("game.html")), Page(Path("game.html")).json
    assert game["names"][0] == name
    headline = re.search(rf"{re.escape(name)} caught (\d+) of (\d+) bluffs?", page.words)
    assert headline is not None
    caught, faced = map(int, headline.groups())
    assert game["moment"].startswith(f"Best moment, turn {game['opens']}: {name} caught ")
    assert game["story"][game["opens"] - 1].startswith(f"{name} doubts ")
    assert f"I caught {caught} of {faced} bluff" in page.words
    chrome.open(Path("game.html").resolve())
    assert chrome.text("#seats .mover b") == name
    command = chrome.text(".invitation > code")
    assert command.startswith(f"dubito play {' '.join(record.players[1:])} --seed {record.seed} ")
    link = chrome.run("document.querySelector('.invitation .button').href")
    query = {key: value for key, (value,) in parse_qs(urlsplit(link).query).items()}
    assert (query["bots"].split(), query["seat"]) == ([*record.players[1:]], "0")
    assert (query["seed"], query["deal"]) == (f"{record.seed}", f"{record.deal}")


SCREENS = [(1440, 900), (390, 844), (720, 450), (844, 390), (360, 640)]
OVERLAPS = (Path(__file__).parents[1] / "web" / "overlaps.js").read_text()
BOTS = ("Sherlock", "StefaBot", "AdaptyBoi", "ClaudeBot", "MrDoubt", "RandomBoi", "JustPutCards", "MrNoDoubt")


LONG_NAMES = ("openai:a-model-with-a-rather-long-name-2026-11@reasoned-v12", f"{'Long' * 11}-Bot-Longest")


@pytest.mark.parametrize("seats", in_gate(range(2, 9), {8}))
def test_nothing_on_the_felt_covers_anything_else(shell: Shell, chrome: Chrome, seats: int, at_length: bool) -> None:
    """No card, chip, bubble, tag, stamp or name overlaps another on any turn of a whole game."""
    duel = ["--duel"] if seats == 2 else []
    named = ("--save", "g.json", "--pace", "at-once", "--seed", "3")
    assert shell("watch", *BOTS[:seats], *duel, *named).code == 0
    if seats == 8:
        record = RECORDS.load(Path("g.json").read_text())
        Path("g.json").write_text(RECORDS.dump(replace(record, players=[*LONG_NAMES, *record.players[2:]])))
    assert shell("share", "g.json").code == 0
    step = 1 if at_length else 5
    for width, height in SCREENS if at_length else SCREENS[:2]:
        chrome.screen(width, height)
        chrome.open(Path("game.html").resolve(), "#turn-0")
        found = chrome.run(
            "(() => { const found = {}; const last = Number(document.querySelector('#slider').max); "
            "for (let turn = 0; turn <= last; turn++) { "
            f"if (turn % {step} === 0) {{ const pairs = {OVERLAPS.strip().removesuffix(';')}; "
            "if (pairs.length) found[turn] = pairs; } "
            "slider.value = turn + 1; slider.dispatchEvent(new Event('input')); } "
            "return found; })()"
        )
        assert found == {}, (width, height)


def test_cards_can_be_played_at_a_site_that_has_the_game(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    record = RECORDS.load((FOLDER / "three_immediate.json").read_text())
    mine = "from bots.base import BotBase\nclass Mine(BotBase):\n    pass\n"
    Path("bots/manual").mkdir(parents=True)
    Path("bots/manual/mine.py").write_text(mine)
    Path("g.json").write_text(RECORDS.dump(replace(record, players=[GUEST, "Mine", record.players[2]])))
    assert shell("share", "g.json", "--play-url", "https://me.example/play").code == 0
    page = Path("game.html").read_text()
    (link,) = re.findall(r'href="(https://me.example/play/[?][^"]+)"', page)
    query = parse_qs(urlsplit(html.unescape(link)).query)
    assert query["bots"] == [f"{GAME.words.BOTS[1]} {record.players[2]}"]  # readers do not have the user's bot
    assert "It opens in your browser and installs nothing." in page
    assert "dubito web" not in page.partition("Can you do better?")[2].partition("</section>")[0]
    monkeypatch.setattr("dubito.report.share.own_folder", lambda name: Path("elsewhere"))  # the site has no such game
    assert shell("share", "g.json", "--play-url", "https://me.example/play").code == 0
    assert 'href="http://127.0.0.1:8765/?' in Path("game.html").read_text()
    result = shell("share", "g.json", "--play-url", "me.example")
    assert result.err.startswith("dubito: --play-url: not a web address: me.example")
