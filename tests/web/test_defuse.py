"""Draw and defuse in the browser, on a phone and on a desktop."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chromium import Chrome
from tests.games.kit import registry_of
from tests.web.kit import WebServer, guests_of, serve


@pytest.fixture
def hall(tmp_path: Path) -> Iterator[WebServer]:
    with serve(tmp_path, others=[guests_of(registry_of("defuse"))]) as server:
        yield server


def test_lobby_names_the_hard_bots(hall: WebServer) -> None:
    browser = hall.browser()
    defuse = browser("GET", "/?game=defuse").text
    assert '<option value="Medium" selected>Medium</option>' in defuse
    assert '<option value="Sapper">Sapper (a hard game)</option>' in defuse
    assert '<option value="Sherlock">Sherlock (a hard game)</option>' in browser("GET", "/").text


def test_hard_game_starts_immediately(hall: WebServer, chrome: Chrome) -> None:
    chrome.open(f"http://127.0.0.1:{hall.port}/")
    assert chrome.run("[...document.querySelectorAll('.levels label')].map(e => e.textContent)") == [
        "Easy",
        "Medium",
        "Hard",
    ]
    chrome.run("document.querySelector('[name=name]').value = 'Ada <b>'")
    chrome.run("document.querySelector('.levels label:last-child').click()")
    chrome.run("document.querySelector('#start button').click()")  # the page is left and not drawn again
    chrome.until("location.pathname === '/table' && document.querySelectorAll('#seats .seat').length === 3")
    assert (
        chrome.run("[...document.querySelectorAll('#seats .name')].map(e => e.textContent).join()").count("Sherlock")
        == 3
    )
    assert chrome.text("#name") == "Ada <b>"


def test_other_game_starts_with_one_click_and_is_played_with_its_cards(hall: WebServer, chrome: Chrome) -> None:
    chrome.open(f"http://127.0.0.1:{hall.port}/")
    chrome.run("window.confirm = () => true; localStorage.setItem('dubito speed', '0')")
    chrome.run("document.querySelector('.game [data-game=defuse]').click()")
    chrome.until("location.pathname === '/table' && document.querySelector('#own.asked') !== null")
    held = chrome.run("document.querySelectorAll('#hand .card').length")
    assert held > 5
    assert chrome.text("#controls button") == "Draw a card"
    played = "document.querySelector('#hand button.card:not(:disabled)')"
    name = chrome.run(f"{played}?.getAttribute('aria-label')")
    assert name is None or name.startswith("Play ")
    chrome.run(f"({played} ?? document.querySelector('#controls button')).click()")
    chrome.until("document.querySelector('#log .by-me') !== null")
    lines = chrome.run("[...document.querySelectorAll('#log .by-me')].map(line => line.textContent)")
    assert any(line.startswith("You ") for line in lines)
