"""The pages: their content, and text from elsewhere, which is escaped."""

import html
import itertools
import json
import re
from pathlib import Path

import dubito.report
import dubito.web
from dubito.game.find import find_bots
from dubito.games.dubito.engine import Rules
from dubito.games.dubito.game import GAME
from dubito.show.person import SEEDS
from tests.engine.golden import RECORDS
from tests.web.kit import Browser, WebServer, serve

SCRIPT = "<script>alert(1)</script>"


def test_rules_match_the_engine(browser: Browser) -> None:
    for rules, players in ((Rules(), 4), (Rules(0, "contested"), 8)):
        query = f"players={players}&jokers={rules.jokers}&win_rule={rules.win_rule}"
        page = html.unescape(browser("GET", f"/rules?{query}").text)
        last = "winning at once" if rules.win_rule == "immediate" else "open to doubt"
        jokers = "two jokers" if rules.jokers else "no joker"
        assert f"The rules for {players} players, {jokers}, the last card {last}." in page
        sentences = GAME.words.rules(GAME.rules(jokers=rules.jokers, win_rule=rules.win_rule), players)
        assert not re.search(r"\b(he|his|him)\b", " ".join(sentences), re.IGNORECASE)
        for sentence in sentences:
            assert f"<p>{sentence}</p>" in page


def test_lobby_offers_all_bots_and_the_running_game(server: WebServer, browser: Browser) -> None:
    lobby = browser("GET", "/").text
    names = {bot.name for bot in find_bots(server.folder).hand_written()}
    assert all(f'<option value="{name}"' in lobby for name in names)
    assert "OpenAIBot" not in lobby
    assert "Continue</a>" not in lobby
    view = browser.sit()
    assert "Continue</a>" in browser("GET", "/").text
    browser.to_the_end(view)
    assert "Continue</a>" not in browser("GET", "/").text


def test_every_seed_can_be_entered_again(browser: Browser) -> None:
    (pattern,) = re.findall(r'name="seed"[^>]* pattern="([^"]*)"', browser("GET", "/").text)
    assert re.fullmatch(pattern, str(SEEDS - 1))


def test_a_finished_game_is_listed_and_opens(server: WebServer, browser: Browser) -> None:
    assert "No saved games yet" in browser("GET", "/games").text
    end = browser.to_the_end(browser.sit())
    assert f'<a href="games/{end["record"]}">' in browser("GET", "/games").text
    page = browser("GET", f"/games/{end['record']}")
    assert page.status == 200
    (game,) = re.findall(r'<script id="game" type="application/json">(.*?)</script>', page.text)
    document = json.loads(game)
    record = RECORDS.load((server.folder / f"{end['record']}.json").read_text())
    *frames, last = browser.view()["frames"][1:]
    assert len(frames) + 1 == len(record.outputs)
    assert last["said"][-1] == document["ending"]
    assert document["story"][:-1] == [" ".join(frame["said"]) for frame in frames]
    turns = [{"marks": []}, *document["turns"]]
    mine = [(before, turn) for before, turn in itertools.pairwise(turns) if turn["seat"] == end["me"]]
    met = [turn for before, turn in mine if "bluff" in before["marks"]]
    met = [turn for turn in met if "doubt" in turn["marks"] or turn["let_pass"]]  # only plays that could be doubted
    caught = sum("doubt" in turn["marks"] for turn in met)
    own = sum("bluff" in turn["marks"] for _, turn in mine)
    assert own > 1
    calls = sum("doubt" in turn["marks"] for _, turn in mine)
    figures = [figure for _, figure, _ in end["figures"]]
    assert figures == [f"{caught} of {len(met)}", f"{own}", f"{calls - caught}"]
    best = next(turn for kind, turn, _ in end["moments"] if kind == "best")
    assert document["story"][best - 1].startswith("You doubt ")
    browser.cookie = f"{browser.cookie}; dubito-name=Ada%20L."
    shared = browser("GET", f"/games/{end['record']}/share")
    assert shared.headers["content-disposition"] == 'attachment; filename="game.html"'
    assert f"<h1>Ada L. caught {caught} of {len(met)} bluffs</h1>" in shared.text
    assert browser("GET", "/games/none/share").status == 404


def test_saved_game_is_played_on_from_a_turn(server: WebServer, browser: Browser) -> None:
    end = browser.to_the_end(browser.sit(seat=2))
    path = f"/api/games/{end['record']}/moment"
    record = RECORDS.load((server.folder / f"{end['record']}.json").read_text())
    for body, status, sentence in (
        ({"turn": 4, "seat": 1}, 400, "A person played this game, so only their seat can be taken over."),
        ({"turn": 4000, "seat": 2}, 400, "This game has no turn 4000 or no seat 2."),
        ({"turn": 0, "seat": 2}, 400, "This game has no turn 0 or no seat 2."),
        ({"turn": 4, "seat": -1}, 400, "Invalid request: seat: Input should be greater than or equal to 0."),
    ):
        refused = browser.post(path, body)
        assert (refused.status, refused.json["error"]) == (status, sentence)
    assert browser.post("/api/games/none/moment", {"turn": 4, "seat": 2}).status == 404
    seen = browser.post(path, {"turn": 4, "seat": 2})
    assert seen.status == 201
    view = browser.at_rest()
    assert (view["me"], view["asked"] or view["over"]) == (2, True)
    (file,) = (server.folder / "running").glob("*.json")
    setup = json.loads(file.read_text())["setup"]
    assert setup["begun"] == record.outputs[: len(setup["begun"])]
    assert len(setup["begun"]) == 3
    again = browser.to_the_end(view)
    replayed = RECORDS.load((server.folder / f"{again['record']}.json").read_text())
    assert replayed.outputs[:3] == record.outputs[:3]


def test_bots_text_is_escaped(tmp_path: Path) -> None:
    (tmp_path / "bots" / "manual").mkdir(parents=True)
    source = f"from bots.base import BotBase\nclass Mine(BotBase):\n    '''{SCRIPT} & more'''\n"
    (tmp_path / "bots" / "manual" / "mine.py").write_text(source)
    with serve(tmp_path, find_bots(tmp_path)) as server:
        lobby = server.browser()("GET", "/").text
    assert SCRIPT not in lobby
    assert html.escape(SCRIPT) in lobby


def test_colours_are_defined_in_one_sheet() -> None:
    """The style sheets of the report and the table use only defined names.

    Scripts and templates may set other names.
    """
    folders = [Path(path) / "static" for module in (dubito.report, dubito.web) for path in module.__path__]
    texts = {
        file: file.read_text() for folder in folders for file in folder.iterdir() if file.suffix in (".css", ".js")
    }
    templates = (Path(dubito.report.__file__).parent / "templates").glob("*.html")
    sources = [*texts.values(), *(file.read_text() for file in templates)]
    names = {name for text in sources for name in re.findall(r"(--[\w-]+):|setProperty\(\s*\"(--[\w-]+)\"", text)}
    for file, text in texts.items():
        if file.suffix == ".css":
            found = re.search(r":[^;{}]*(#[0-9a-fA-F]{3,8}\b|\b(rgb|hsl))", text)
            assert (found is None) == (file.name != "look.css"), file
            assert max(map(len, text.splitlines())) <= 120, file
            assert {*re.findall(r"var\((--[\w-]+)", text)} <= {name for pair in names for name in pair}, file


def test_palest_colour_of_a_map_differs_from_no_colour() -> None:
    """The difference is the sum over red, green and blue from the table's background, in both colour schemes."""
    sheet = (Path(dubito.report.__file__).parent / "static/look.css").read_text()
    for look in sheet.split("@media (prefers-color-scheme: dark)")[:2]:
        paper, palest = (re.search(rf"--{name}: #(\w{{6}})", look) for name in ("panel", "h0"))
        assert paper is not None
        assert palest is not None
        parts = zip(bytes.fromhex(paper[1]), bytes.fromhex(palest[1]), strict=True)
        assert sum(abs(one - other) for one, other in parts) >= 40


def test_pages_have_no_inline_script_or_style(browser: Browser) -> None:
    for path in ("/", "/table", "/rules", "/games", "/nowhere"):
        page = browser("GET", path).text
        assert "<script>" not in page
        assert "<style" not in page
        assert " style=" not in page
        assert "http://" not in page
        assert "https://" not in page
