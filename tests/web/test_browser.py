"""A whole game in a real browser, by keyboard and by mouse."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from dubito.games.dubito.record import load, replay
from dubito.registry import find_bots
from tests.chromium import Chrome
from tests.web.kit import Served, served

ASKED = "document.querySelector('#own.asked') !== null"
OVER = "document.querySelector('#end')?.hidden === false"
LOG = "[...document.querySelectorAll('#log li')].map(item => [item.value, item.textContent]).reverse()"
DEAL = """
(() => {{
  localStorage.setItem('dubito speed', '{speed}');
  const form = document.querySelector('#lobby');
  form.size.value = '{size}';
  form.size.dispatchEvent(new Event('change'));
  form.seat.value = '{seat}';
  form.seed.value = '{seed}';
  if (form.size.value === '8') form.bot[0].value = '{long}';
  form.requestSubmit();
}})()
"""
CUT = """
[...document.querySelectorAll('.name, .held, .badge, button, dt')]
  .filter(element => element.scrollWidth > element.clientWidth + 1).map(element => element.innerText)
"""
LONG = "AnExceedinglyLongWindedBotWhoseNameNeverSeemsToEndAtAll"


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server whose bots include one with a long name and a script in its description."""
    folder = tmp_path_factory.mktemp("bots")
    (folder / "bots" / "manual").mkdir(parents=True)
    source = f"from bots.base import BotBase\nclass {LONG}(BotBase):\n    '''<script>document.title = 'x'</script>'''\n"
    (folder / "bots" / "manual" / f"{LONG.lower()}.py").write_text(source)
    with served(folder / "games", find_bots(folder)) as server:
        yield server


@pytest.fixture(autouse=True)
def at_home(table: Served, chrome: Chrome) -> Iterator[None]:
    """No request goes anywhere else."""
    yield
    assert {urlsplit(address).netloc for address in chrome.asked} <= {"", f"127.0.0.1:{table.port}"}


def _deal(chrome: Chrome, table: Served, size: int = 4, seat: int = 0, seed: int = 1, speed: int = 0) -> None:
    chrome.open(f"http://127.0.0.1:{table.port}/rules")
    chrome.run("localStorage.clear()")
    chrome.open(f"http://127.0.0.1:{table.port}/")
    chrome.until("document.querySelectorAll('.opponent[hidden]').length === 4")  # its script has run
    chrome.run("window.confirm = () => true")
    chrome.run(DEAL.format(size=size, seat=seat, seed=seed, speed=speed, long=LONG))
    chrome.until(f"location.pathname === '/table' && ({ASKED} || {OVER})")


def _text(chrome: Chrome, selector: str) -> str:
    text: str = chrome.run(f"document.querySelector({selector!r}).innerText")
    return text


def test_a_whole_game_by_mouse_is_saved_and_stepped_through(chrome: Chrome, table: Served) -> None:
    _deal(chrome, table)
    while not chrome.run(OVER):
        chrome.run(
            """(() => {
              const doubt = document.querySelector('#doubt');
              const told = document.querySelectorAll('#log li').length;
              if (!doubt.hidden && !doubt.disabled && told % 3 === 0) doubt.click();
              else { document.querySelector('#hand button').click(); document.querySelector('#put').click(); }
            })()"""
        )
        chrome.until(f"{ASKED} || {OVER}")
    assert _text(chrome, "#result") in ("A hard win!", "A soft win!", "You lose this one.")
    (path,) = table.folder.glob("*.json")
    record = load(path.read_text())
    assert list(replay(record)) == record.story
    log: list[tuple[int, str]] = chrome.run(LOG)
    assert len(log) == len(record.story)  # the deal for the seal
    chrome.run("document.querySelector('#watch').click()")
    chrome.until("location.pathname.startsWith('/games/') && document.querySelector('#viewer')?.hidden === false")
    for turn in range(1, len(record.outputs) + 1):
        chrome.key("ArrowRight")
        assert chrome.run("location.hash") == f"#turn-{turn}"
        said = chrome.run("[...document.querySelectorAll('#said p')].map(line => line.textContent).join(' ')")
        assert said == " ".join(line for number, line in log if number == turn)
    assert chrome.text("#turn") == f"turn {len(record.outputs)} of {len(record.outputs)}"
    assert "You" in chrome.text("#seats")


def test_a_move_by_keyboard_alone(chrome: Chrome, table: Served) -> None:
    _deal(chrome, table, seed=2)
    chrome.run("document.querySelector('#speed').focus()")
    chrome.key("Tab")  # over the skip button, which is disabled
    assert chrome.run("document.activeElement === document.querySelector('#hand').children[0]")
    chrome.key("ArrowRight")
    chrome.key(" ")
    chrome.key("End")
    chrome.key(" ")
    assert chrome.run("[...document.querySelectorAll('#hand [aria-pressed=true]')].length") == 2
    assert chrome.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    chrome.key("Tab")
    assert chrome.run("document.activeElement.id") == "number"
    chrome.key("Tab")
    assert chrome.run("document.activeElement.innerText").startswith("Put down 2 cards as ")
    chrome.key("Enter")
    chrome.until(f"document.querySelectorAll('#log .mine').length && ({ASKED} || {OVER})")
    assert "You put down 2 cards" in _text(chrome, "#log")


def test_more_than_three_cards_are_not_chosen(chrome: Chrome, table: Served) -> None:
    _deal(chrome, table, seed=3)
    chrome.run("[...document.querySelectorAll('#hand button')].slice(0, 5).forEach(button => button.click())")
    assert chrome.run("document.querySelectorAll('#hand [aria-pressed=true]').length") == 3
    assert _text(chrome, "#error") == "You may put down at most 3 cards."


def test_moves_are_shown_one_by_one_and_can_be_skipped(chrome: Chrome, table: Served) -> None:
    _deal(chrome, table, seed=4)
    chrome.run("document.querySelector('#speed').append(new Option('for ever', 2 ** 30, true, true))")
    chrome.run("document.querySelector('#hand button').click(); document.querySelector('#put').click()")
    chrome.until("document.querySelectorAll('#log .mine').length === 1")
    assert not chrome.run(ASKED)
    assert not chrome.run("document.querySelector('#skip').disabled")
    chrome.run("document.querySelector('#skip').click()")
    chrome.until(f"{ASKED} || {OVER}")
    assert chrome.run("document.querySelectorAll('#log li').length") >= 4


def test_a_reload_changes_nothing_and_a_lost_game_is_said(chrome: Chrome, table: Served) -> None:
    _deal(chrome, table, seed=5)
    before = _text(chrome, "main")
    chrome("Page.reload")
    chrome.until(f"{ASKED} && document.readyState === 'complete'")
    assert _text(chrome, "main") == before
    for path in (table.folder / "running").iterdir():
        path.unlink()
    chrome.run("document.querySelector('#hand button').click(); document.querySelector('#put').click()")
    chrome.until("document.querySelector('#error').innerText !== ''")
    assert _text(chrome, "#error") == "You have no game here: choose your bots first."
    chrome.until("document.querySelector('#prompt').innerText.startsWith('There is no game to show.')")
    chrome.errors.clear()  # the console tells of the 404s


@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("dark", [False, True])
def test_nothing_is_cut_off(chrome: Chrome, table: Served, width: int, dark: bool) -> None:
    _deal(chrome, table, size=8)
    for path in ("/", "/table", "/rules", "/games"):
        chrome.open(f"http://127.0.0.1:{table.port}{path}")
        chrome.until(f"location.pathname !== '/table' || {ASKED}")
        chrome.screen(width, 844, dark)
        assert chrome.run("document.documentElement.scrollWidth") <= width
        assert chrome.run(CUT) == []
    assert chrome.run("document.title") != "x"


@pytest.mark.parametrize("dark", [False, True])
def test_text_stands_out_from_its_ground(chrome: Chrome, table: Served, dark: bool) -> None:
    """Contrast of at least 4.5, as WCAG AA asks, for every text of the table."""
    _deal(chrome, table)
    chrome.screen(1440, 900, dark)
    contrast = (Path(__file__).parent / "contrast.js").read_text()
    assert chrome.run(contrast) == []
