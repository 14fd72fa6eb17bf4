"""OpenSpiel's games in the browser: whole games by their buttons."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chromium import Chrome
from tests.games.kit import registry_of
from tests.web.kit import Served, guests_of, served
from tests.web.test_other_games import ASKED, OVER, deal

pytest.importorskip("pyspiel", reason="OpenSpiel is an extra: pip install 'dubito[openspiel]'")

GAMES = ("openspiel:kuhn_poker", "openspiel:phantom_ttt", "openspiel:nim")


@pytest.fixture
def hall(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path, others=[guests_of(registry_of(game)) for game in GAMES]) as server:
        yield server


@pytest.mark.parametrize(
    ("game", "width"),
    [(GAMES[0], 390), pytest.param(GAMES[1], 1440, marks=pytest.mark.at_length), (GAMES[2], 390)],
)
def test_a_game_is_played_to_its_end(hall: Served, chrome: Chrome, game: str, width: int) -> None:
    chrome.screen(width)
    deal(chrome, hall, game)
    chrome.until(f"{ASKED} || {OVER}")
    moves = 0
    while not chrome.run(OVER):
        moves += 1
        legal = chrome.run("[...document.querySelectorAll('#answer button')].map(button => button.disabled)")
        assert legal
        assert not any(legal)
        held = chrome.run(
            "[...document.querySelectorAll('#held [role=img]')].map(card => card.getAttribute('aria-label'))"
        )
        assert (game == GAMES[0]) == (held != [])
        assert game == GAMES[0] or "as OpenSpiel writes it:" in chrome.text("#sees")
        assert not held or f"You hold the {held[0]}." in chrome.text("#sees")
        chrome.run("document.querySelector('#answer button').click()")
        chrome.until(f"{ASKED} || {OVER}")
        assert chrome.run("document.documentElement.scrollWidth") <= width
    assert moves
    assert chrome.text("#result").startswith("For you: return ")
    (path,) = hall.folder.glob("*.json")
    assert f'"game":"{game}"' in path.read_text().replace(" ", "")
    chrome.open(chrome.run("document.querySelector('#watch').href"), "#turn=1")
    assert chrome.text("#said")
    if game == GAMES[2]:  # nothing is hidden: moves are told, and what nobody reads is folded
        told = chrome.run("[...document.querySelectorAll('.story li')].map(one => one.textContent)")
        assert all(": pile:" in line for line in told)
        assert chrome.text(".pile details").startswith("The board, as OpenSpiel writes it(")
        assert not chrome.run("document.querySelector('.pile details').open")
