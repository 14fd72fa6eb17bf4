"""Draw and defuse in the browser: a whole game by its buttons, at a phone and at a desk."""

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


def test_the_lobby_says_who_is_hard(hall: WebServer) -> None:
    browser = hall.browser()
    defuse = browser("GET", "/?game=defuse").text
    assert '<option value="Medium" selected>Medium</option>' in defuse
    assert '<option value="Sapper">Sapper (a hard game)</option>' in defuse
    assert '<option value="Sherlock">Sherlock (a hard game)</option>' in browser("GET", "/").text


def test_a_hard_game_begins_at_once(hall: WebServer, chrome: Chrome) -> None:
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
