"""Draw and defuse in the browser: a whole game by its buttons, at a phone and at a desk."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from dubito.game.record import records_of
from dubito.games.defuse.game import GAME
from tests.chromium import Chrome
from tests.conftest import in_gate
from tests.games.kit import registry_of
from tests.web.kit import Served, guests_of, served
from tests.web.test_other_games import ASKED, OVER, deal

BUTTONS = "[...document.querySelectorAll('#answer button')].map(button => button.textContent)"
SEATS = "[...document.querySelectorAll('#seats .name + .held')].map(held => held.textContent)"


@pytest.fixture
def hall(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path, others=[guests_of(registry_of("defuse"))]) as server:
        yield server


def an_act(chrome: Chrome) -> str:
    """A see card while there is one, else whatever draws; where the bomb went it goes to the bottom."""
    acts: list[str] = chrome.run(BUTTONS)
    if "draw" not in acts:
        bottom = chrome.text("#prompt").removesuffix(" the bottom.").split()[-1]
        assert acts == [str(place) for place in range(int(bottom) + 1)], "a button a place"
        return bottom
    return "see" if "see" in acts else "draw"


@pytest.mark.parametrize(("width", "dark"), in_gate([(1440, True), (390, False)], 1))
def test_a_game_is_played_to_its_end(hall: Served, chrome: Chrome, width: int, dark: bool) -> None:
    chrome.screen(width, dark=dark)
    deal(chrome, hall, "defuse")
    assert chrome.run(BUTTONS) == ["draw", "skip", "bottom", "see"], "no shuffle card is held"
    assert chrome.run(SEATS) == ["6 cards", "6 cards"]
    assert chrome.text("#prompt") == "Draw a card, or play a see, skip or bottom card?"
    done = []
    while not chrome.run(OVER):
        done.append(an_act(chrome))
        chrome.run(
            f"[...document.querySelectorAll('#answer button')].find(b => b.textContent === '{done[-1]}').click()"
        )
        chrome.until(f"{ASKED} || {OVER}")
        assert chrome.run("document.documentElement.scrollWidth") <= width
        if done == ["see"]:
            assert "You have seen, from the top: nothing, see, see." in chrome.text("#sees")
    assert {"see", "draw"} < {*done}, "and a place"
    assert chrome.text("#result") in ("For you: won.", "For you: lost.")
    (path,) = hall.folder.glob("*.json")
    records = records_of(GAME)
    record = records.load(path.read_text())
    assert list(records.replay(record)) == record.story
    chrome.open(chrome.run("document.querySelector('#watch').href"), "#turn=1")
    assert "You play a see card." in chrome.text("#said")
    assert "from the top: " in chrome.text("#pile")


def test_the_lobby_says_who_is_hard(hall: Served) -> None:
    browser = hall.browser()
    defuse = browser("GET", "/?game=defuse").text
    assert '<option value="Medium" selected>Medium</option>' in defuse
    assert '<option value="Sapper">Sapper (a hard game)</option>' in defuse
    assert '<option value="Sherlock">Sherlock (a hard game)</option>' in browser("GET", "/").text


def test_a_hard_game_begins_at_once(hall: Served, chrome: Chrome) -> None:
    chrome.open(f"http://127.0.0.1:{hall.port}/")
    assert chrome.run("[...document.querySelectorAll('.now button')].map(e => e.textContent)") == [
        "an easy game",
        "a fair game",
        "a hard game",
    ]
    chrome.run("document.querySelector('.now button:last-child').click()")  # the page goes: it is not drawn again
    chrome.until("location.pathname === '/table' && document.querySelectorAll('#seats li').length === 4")
    assert (
        chrome.run("[...document.querySelectorAll('#seats li')].map(e => e.textContent).join()").count("Sherlock") == 3
    )
