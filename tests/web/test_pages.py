"""The pages: what is written on them, and that foreign text stays text."""

import html
import json
from pathlib import Path

from dubito.record import load
from dubito.registry import find_bots
from dubito.rule_text import rule_sentences
from dubito.rules import Rules
from tests.web.kit import Browser, Served, served

SCRIPT = "<script>alert(1)</script>"


def test_the_rules_are_those_of_the_engine(browser: Browser) -> None:
    for rules, players in ((Rules(), 4), (Rules(0, "contested"), 8)):
        query = f"players={players}&jokers={rules.jokers}&win_rule={rules.win_rule}"
        page = html.unescape(browser("GET", f"/rules?{query}").text)
        last = "winning at once" if rules.win_rule == "immediate" else "open to doubt"
        jokers = "two jokers" if rules.jokers else "no joker"
        assert f"As they are played with {players} players, {jokers}, the last card {last}." in page
        for sentence in rule_sentences(rules, players):
            assert f"<p>{sentence}</p>" in page


def test_the_lobby_offers_every_hand_written_bot_and_the_game_under_way(server: Served, browser: Browser) -> None:
    lobby = browser("GET", "/").text
    names = {bot.name for bot in find_bots(server.folder).hand_written()}
    assert all(f'<option value="{name}"' in lobby for name in names)
    assert "OpenAIBot" not in lobby
    assert "Go on with it" not in lobby
    view = browser.sit()
    assert "Go on with it" in browser("GET", "/").text
    browser.to_the_end(view)
    assert "Go on with it" not in browser("GET", "/").text


def test_a_finished_game_is_listed_and_opens(server: Served, browser: Browser) -> None:
    assert "No game has been finished here yet" in browser("GET", "/games").text
    end = browser.to_the_end(browser.sit())
    assert f'<a href="/games/{end["record"]}">' in browser("GET", "/games").text
    assert browser("GET", f"/games/{end['record']}").status == 200
    game = browser("GET", f"/api/games/{end['record']}").json
    record = load((server.folder / f"{end['record']}.json").read_text())
    assert game["frames"][0]["hands"][0] == sorted(record.hands[0], key=lambda card: card or 99)
    assert [frame["said"] for frame in game["frames"]] == [frame["said"] for frame in browser.view()["frames"]]
    for frame, output in zip(game["frames"][1:], record.outputs, strict=True):
        assert sorted(frame["really"] or []) == sorted(output.cards or [])


def test_a_foreign_record_is_text_and_a_broken_one_a_sentence(server: Served, browser: Browser) -> None:
    end = browser.to_the_end(browser.sit(["ClaudeBot", "StefaBot"]))
    path = server.folder / f"{end['record']}.json"
    record = json.loads(path.read_text())
    (server.folder / f"{SCRIPT.replace('/', '_')}.json").write_text(json.dumps(record | {"players": [SCRIPT] * 3}))
    (server.folder / "broken.json").write_text("{}")
    first = record["outputs"][0] | {"cards": [1, 1, 1, 1]}
    (server.folder / "cheat.json").write_text(json.dumps(record | {"outputs": [first]}))
    listing = browser("GET", "/games").text
    assert "<script>alert" not in listing
    assert "&lt;script&gt;alert(1)" in listing
    page = browser("GET", "/games/%3Cscript%3Ealert(1)%3C_script%3E")
    assert (page.status, "<script>alert" in page.text) == (200, False)
    assert browser("GET", "/api/games/broken").json["error"].startswith("This is no game record: ")
    assert browser("GET", "/api/games/cheat").json == {
        "error": "Turn 1 of the record breaks the rules: 4 cards were played; play 1 to 3."
    }


def test_a_bots_own_words_are_escaped(tmp_path: Path) -> None:
    (tmp_path / "bots" / "manual").mkdir(parents=True)
    source = f"from bots.base import BotBase\nclass Mine(BotBase):\n    '''{SCRIPT} & more'''\n"
    (tmp_path / "bots" / "manual" / "mine.py").write_text(source)
    with served(tmp_path, find_bots(tmp_path)) as server:
        lobby = server.browser()("GET", "/").text
    assert SCRIPT not in lobby
    assert html.escape(SCRIPT) in lobby


def test_pages_hold_no_script_or_style_of_their_own(browser: Browser) -> None:
    for path in ("/", "/table", "/rules", "/games", "/nowhere"):
        page = browser("GET", path).text
        assert "<script>" not in page
        assert "<style" not in page
        assert " style=" not in page
        assert "http://" not in page
        assert "https://" not in page
