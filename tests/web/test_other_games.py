"""Other games in the browser: offered, played, stored and resumed, without revealing hidden cards."""

import json
import re
import shutil
from collections.abc import Iterator
from copy import copy, deepcopy
from dataclasses import replace
from html import unescape
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest

from dubito.cli.opponents import load_family
from dubito.game import node_view
from dubito.game.find import find_bots
from dubito.games.bs.engine import State
from dubito.games.bs.game import GAME
from dubito.games.bs.knowledge import BSRules
from dubito.show.person import Sitting, seat_person, set_up
from dubito.web.tables import frame_in_words
from tests.chromium import Chrome
from tests.conftest import in_gate
from tests.games.kit import changed_game
from tests.llm.test_any_game import HOME
from tests.web.kit import Browser, WebServer, guests_of, serve

BOTS = ["Player1", "Player4", "CalculatingLiar"]
ASKED = "document.querySelector('#own.asked') !== null"
OVER = "document.querySelector('#end')?.hidden === false"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(HOME, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def hall(home: Path) -> Iterator[WebServer]:
    """Serve three games, one of which accepts more numbers than there are buttons or legal moves."""
    bs, guess = (find_bots(home, name) for name in ("bs", "guess"))
    many = changed_game(guess.game, legal=lambda view: range(1, 31) if view.node == "number" else None)
    with serve(home / "kept", others=[guests_of(bs), guests_of(replace(guess, game=many))]) as server:
        yield server


RANKS = ["ace", *map(str, range(2, 11)), "jack", "queen", "king"]


def an_answer(view: Any) -> Any:
    """Return an honest answer if possible, and sometimes an accusation."""
    frame = view["frames"][-1]
    question = frame["question"]
    if question["kind"] == "bool":
        return frame["move"] % 5 == 0
    number = RANKS.index(frame["sees"][-1].removesuffix("s.").split()[-1])
    return [card for card in question["options"] if card == number] or question["options"][:1]


def to_the_end(browser: Browser, view: Any) -> Any:
    while not view["over"]:
        view = browser.play(an_answer(view))
    return view


def test_scene_of_an_accusation_shows_no_hidden_cards_and_who_takes_them(hall: WebServer) -> None:
    browser = hall.browser()
    to_the_end(browser, browser.sit(BOTS, game="bs", seed=9))
    frames = browser.view()["frames"]
    scenes = [(before, after) for before, after in pairwise(frames[:-1]) if after["scene"]]
    assert {after["scene"]["stamp"] for _, after in scenes} == {"lie", "honest"}
    for before, after in scenes:
        scene, (pile,) = after["scene"], before["boards"]
        assert (scene["call"], scene["cards"], scene["wrong"]) == ("BS!", [], [])
        assert (scene["count"], scene["pile"]) == (pile["plays"][-1]["count"], pile["backs"])
        assert after["backs"][scene["taker"]] - before["backs"][scene["taker"]] == scene["pile"]


def test_game_continues_after_a_restart(home: Path) -> None:
    others = [guests_of(find_bots(home, "bs"))]
    with serve(home / "kept", others=others) as server:
        browser = server.browser()
        view = browser.sit(BOTS, game="bs", seed=9)
        for _ in range(7):
            view = browser.play(an_answer(view))
        seen = browser.view()
    with serve(home / "kept", others=others) as server:
        again = Browser(server.port, browser.cookie, browser.turn)
        assert again.view() == seen
        assert to_the_end(again, seen)["over"]
    with serve(home / "kept") as server:
        refused = Browser(server.port, browser.cookie)("GET", "/api/table")
        assert (refused.status, refused.json["error"]) == (
            410,
            "This game cannot continue: unknown game 'bs'; choose from dubito.",
        )
        assert Browser(server.port, browser.cookie)("GET", "/table").status == 200


def test_invalid_move_is_refused_and_changes_nothing(hall: WebServer, subtests: pytest.Subtests) -> None:
    for answer, sentence in [
        (True, "This is not an answer to `cards`: give cards, as numbers separated by spaces."),
        ([], "Nothing was played; play at least one card."),
        ([13], "This is not an answer to `cards`: "),
        (["0"], "This is not an answer to `cards`: "),
        ([True], "This is not an answer to `cards`: "),
        ([[0]], "This is not an answer to `cards`: "),
        ([0] * 5, "The hand holds "),
        ({"cards": [0], "number": 0}, "This is not an answer to `cards`: "),
        (None, "This is not an answer to `cards`: "),
    ]:
        with subtests.test(answer=answer, sentence=sentence):
            browser = hall.browser()
            view = browser.sit(BOTS, game="bs", seat=0)
            refused = browser.post("/api/moves", {"turn": 0, "answer": answer})
            assert (refused.status, refused.json["error"][: len(sentence)]) == (400, sentence)
            assert browser.view() == view


def test_answer_other_than_yes_or_no_is_refused(hall: WebServer, subtests: pytest.Subtests) -> None:
    for answer in [1, "yes", None, [True], {"bs": True}]:
        with subtests.test(answer=answer):
            browser = hall.browser()
            view = browser.sit(BOTS, game="bs", seat=1, seed=4)
            assert view["frames"][-1]["question"]["node"] == "bs"
            refused = browser.post("/api/moves", {"turn": view["turn"], "answer": answer})
            assert (refused.status, refused.json) == (400, {"error": "This is not an answer to `bs`: give yes or no."})


def test_two_worlds_that_differ_in_hidden_cards_look_the_same(home: Path) -> None:
    guests = guests_of(find_bots(home, "bs"))
    for seed in range(2):
        sitting = seat_person(guests, set_up(GAME, BOTS, BSRules(), seed % 4, seed), 0)
        while not sitting.state.over:
            given = None
            if sitting.is_asked:
                cards = list(cast(Any, sitting.state).cards(sitting.me, None))
                given = cards[:1] if node_view(sitting.state).node == "cards" else bool(len(cards) % 2)
            moment, view = sitting.step(given)
            frame = frame_in_words(sitting, 1, moment, view)
            assert replace(frame_in_words(_games_with_bot(sitting), 1, moment, view), truth=frame.truth) == frame
            assert bool(frame.truth) == sitting.state.over


def _games_with_bot(sitting: Sitting) -> Sitting:
    """Return the same game for this seat, with the other hands and the pile dealt differently."""
    other, game = copy(sitting), deepcopy(sitting.state)
    assert isinstance(game, State)
    other.state, other.teller = game, copy(sitting.teller)
    other.teller._game = game  # type: ignore[attr-defined]
    unseen = [hand for seat, hand in enumerate([*game.hands, game.pile]) if seat != other.me]
    pool = sorted(card for hand in unseen for card in hand.cards)
    for hand in unseen:
        size = len(hand.cards)
        hand.__init__(pool[:size])  # type: ignore[misc]
        pool = pool[size:]
    return other


def test_lobby_offers_games_with_their_rules(hall: WebServer) -> None:
    browser = hall.browser()
    lobby, other = browser("GET", "/").text, browser("GET", "/?game=bs").text
    for name in ("dubito", "bs", "guess"):
        assert f'data-game="{name}"' in lobby
    assert '<option value="ClaudeBot"' in lobby
    assert 'name="jokers"' in lobby
    assert '<option value="Hoarder"' in other
    assert 'name="jokers"' not in other
    assert '<option value="ClaudeBot"' not in other
    assert "If nobody has won after 1,000 rounds" in browser("GET", "/rules?game=bs").text
    for path in ("/?game=chess", "/rules?game=chess"):
        refused = browser("GET", path)
        assert refused.status == 400
        assert "Unknown game &#39;chess&#39;; " in refused.text


def test_table_of_an_invalid_game_is_refused(hall: WebServer) -> None:
    for asked, sentence in (
        ({"game": "bs", "bots": BOTS[:2]}, "BS needs 4 players, not 3."),
        ({"game": "bs", "bots": ["ClaudeBot"] * 3}, "Unknown player 'ClaudeBot'; "),
        ({"game": "bs", "bots": BOTS, "rules": {"max_rounds": 0}}, "Rules: max_rounds: "),
        ({"game": "bs", "bots": BOTS, "rules": {"jokers": 1}}, "Rules: jokers: "),
    ):
        answer = hall.browser().post("/api/table", asked)
        assert (answer.status, answer.json["error"][: len(sentence)]) == (400, sentence)


def deal(chrome: Chrome, server: WebServer, game: str, seed: int = 5) -> None:
    chrome.forget_what_is_stored(f"http://127.0.0.1:{server.port}")
    chrome.open(f"http://127.0.0.1:{server.port}/?game={game}")
    chrome.run(
        "localStorage.setItem('dubito speed', '0'); window.confirm = () => true; "
        f"(form => {{ form.seed.value = '{seed}'; form.seat.value = '0'; form.requestSubmit(); }})"
        "(document.querySelector('#lobby'))"
    )
    chrome.until(f"location.pathname === '/table' && {ASKED}")


@pytest.fixture
def brief(home: Path) -> Iterator[WebServer]:
    with serve(home / "kept", others=[guests_of(find_bots(home, "bs"), max_rounds=2)]) as server:
        yield server


@pytest.mark.parametrize(("width", "dark"), in_gate([(390, True), (1440, False)], 1))
def test_bs_can_be_played_in_a_browser(brief: WebServer, chrome: Chrome, width: int, dark: bool) -> None:
    chrome.screen(width, dark=dark)
    deal(chrome, brief, "bs")
    assert chrome.text("#prompt") == "Your turn: play cards as aces."
    assert chrome.run("document.querySelector('#answer button').disabled")
    chrome.click("#hand button")
    assert chrome.text("#answer button") == "Play one ace"
    while not chrome.run(OVER):
        assert chrome.run("document.documentElement.scrollWidth") <= width
        chrome.run(
            "(() => { const card = document.querySelector('#hand button[aria-pressed=false]'); card?.click(); "
            "[...document.querySelectorAll('#answer button')].at(-1).click(); })()"
        )
        chrome.until(f"{ASKED} || {OVER}")
    assert chrome.text("#result") in ("You win!", "You lose", "Nobody wins")
    chrome.open(chrome.run("document.querySelector('#watch').href"), "#turn=2")
    assert "plays" in chrome.text("#said")
    assert chrome.run("document.querySelectorAll('#boards .truth').length") > 0
    assert chrome.errors == []


def test_each_kind_of_answer_has_its_control(hall: WebServer, chrome: Chrome) -> None:
    deal(chrome, hall, "guess", seed=1)
    buttons = "[...document.querySelectorAll('#answer button')].map(button => button.textContent)"
    assert chrome.run(buttons) == ["high", "low", "none"]
    chrome.run("[...document.querySelectorAll('#answer button')].at(-1).click()")
    chrome.until(f"{ASKED} && document.querySelector('#hand button') !== null")
    cards = "[...document.querySelectorAll('#hand button')].map(card => card.textContent.trim())"
    assert chrome.run(cards) == ["1", "2", "3", "5"], "all cards are shown, since the game does not say which are held"
    chrome.run("document.querySelectorAll('#hand button')[1].click()")
    chrome.click("#answer button")
    chrome.until(f"{ASKED} && document.querySelector('#answer [type=number]') !== null")
    assert chrome.text("#answer .left") == "a whole number from 1 to 30"
    for none in ("", "31"):
        chrome.run(f"document.querySelector('#answer [type=number]').value = '{none}'")
        chrome.click("#answer button")
        assert chrome.text("#error") == "", "no request was sent"
    chrome.run("document.querySelector('#answer [type=number]').value = '12'")
    chrome.click("#answer button")
    chrome.until("document.querySelector('#error').textContent !== ''")
    assert chrome.text("#error") == "12 is not legal now."
    assert len(chrome.errors) == 1, "the browser's own message for a 400"
    chrome.forget()
    chrome.run("document.querySelector('#answer [type=number]').value = '7'")
    chrome.click("#answer button")
    chrome.until(f"{ASKED} && document.querySelector('#answer button')?.textContent === 'Yes'")
    chrome.run("document.querySelectorAll('#answer button')[1].click()")
    chrome.until(f"{ASKED} && document.querySelector('#answer button')?.textContent === 'high'")
    assert chrome.run(buttons) == ["high", "low"], "used hints have no button"


def test_lobby_pictures_games_of_an_installed_family_and_lists_the_rest(home: Path) -> None:
    pytest.importorskip("pyspiel")
    with serve(home / "kept", family=load_family) as server:
        browser = server.browser()
        lobby = browser("GET", "/").text
        assert 'data-game="openspiel:kuhn_poker"' in lobby
        hidden, nothing_hidden = lobby.partition(" games in which nothing is hidden")[::2]
        assert re.search(r"\d+ more games with hidden cards or moves</summary>", hidden)
        assert ("game=openspiel:chess" in hidden, "game=openspiel:chess" in nothing_hidden) == (False, True)
        assert "game=openspiel:universal_poker" in hidden
        tile = unescape(lobby[lobby.index('data-game="openspiel:kuhn_poker"') :]).partition(">")[0]
        assert {level: bots[0] for level, bots in json.loads(re.findall(r"\{.*\}", tile)[0]).items()} == {
            "easy": "UniformRandom",
            "hard": "Solved",
        }
        assert '<a href="./?game=openspiel:goofspiel">goofspiel</a>' in lobby
        assert 'data-game="openspiel:goofspiel"' in browser("GET", "/?game=openspiel:goofspiel").text
        view = browser.sit(["UniformRandom"], game="openspiel:kuhn_poker", seed=1)
        while not view["over"]:
            view = browser.play(view["frames"][-1]["question"]["options"][0])
        assert re.fullmatch(r"You (win|lose) \d chips?\.", view["ended"])
        for name in ("openspiel:2048", "openspiel:kuhn_poker(players=9)"):
            refused = browser.post("/api/table", {"bots": ["UniformRandom"], "game": name})
            assert (refused.status, refused.json["error"][:13]) == (400, "Unknown game ")
