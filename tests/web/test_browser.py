"""Whole games in a real browser, by keyboard and by mouse."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import pytest

from dubito.game.find import find_bots
from dubito.games.dubito.game import GAME
from dubito.games.dubito.sentences import card_name
from dubito.show.person import set_up
from tests.chromium import Chrome
from tests.conftest import in_gate
from tests.engine.golden import RECORDS
from tests.web.kit import WebServer, serve

ASKED = "document.querySelector('#own.asked') !== null"
OVER = "document.querySelector('#end')?.hidden === false"
LOG = "[...document.querySelectorAll('#log li')].map(item => [item.value, item.textContent]).reverse()"
DEAL = """
(() => {{
  localStorage.setItem('dubito speed', '{speed}');
  localStorage.setItem('dubito tips', 'open doubt bluff');
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
CARDS = """
(() => {
  const seen = (where) => [...document.querySelectorAll(where + ' .card:not(.back)')]
    .map((card) => [card.textContent, card.innerHTML, card.getAttribute('aria-label')]);
  return { hand: seen('#own:not([hidden])'), pile: seen('.pile'), seats: seen('#seats'), end: seen('#left') };
})()
"""
A_MOVE = """
(() => {
  const doubt = document.querySelector('#answer .other');
  const told = document.querySelectorAll('#log li').length;
  if (doubt && told % 3 === 0) doubt.click();
  else { document.querySelector('#hand button').click(); document.querySelector('#put').click(); }
})()
"""
WIDEST = "Math.max(...[...document.querySelectorAll('#end *')].map(one => one.getBoundingClientRect().right))"
# The space above the highest opponent, and below an open hand to the pile, if it is below.
ROOM_AT_END = """
(() => {
  const box = (where) => document.querySelector(where).getBoundingClientRect();
  const hand = [...document.querySelectorAll('.seat .open:not(:empty)')].map((one) => one.getBoundingClientRect());
  const pile = box('.pile');
  const above = hand.filter((one) => one.left < pile.right && one.right > pile.left);
  return [box('.seat[data-side=""]').top - box('.felt').top, ...above.map((one) => pile.top - one.bottom)];
})()
"""
LONG = "AnExceedinglyLongWindedBotWhoseNameNeverSeemsToEndAtAll"


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    """Serve bots that include one with a long name and a script in its description."""
    folder = tmp_path_factory.mktemp("bots")
    (folder / "bots" / "manual").mkdir(parents=True)
    source = f"from bots.base import BotBase\nclass {LONG}(BotBase):\n    '''<script>document.title = 'x'</script>'''\n"
    (folder / "bots" / "manual" / f"{LONG.lower()}.py").write_text(source)
    with serve(folder / "games", find_bots(folder)) as server:
        yield server


@pytest.fixture(autouse=True)
def at_home(table: WebServer, chrome: Chrome) -> Iterator[None]:
    yield
    assert {urlsplit(address).netloc for address in chrome.asked} <= {"", f"127.0.0.1:{table.port}"}


def _deal(chrome: Chrome, table: WebServer, size: int = 4, seat: int = 0, seed: int = 1, speed: int = 0) -> None:
    chrome.forget_what_is_stored(f"http://127.0.0.1:{table.port}")
    chrome.open(f"http://127.0.0.1:{table.port}/")
    chrome.until("document.querySelectorAll('.opponent[hidden]').length === 4")  # the script has run
    chrome.run("window.confirm = () => true")
    chrome.run(DEAL.format(size=size, seat=seat, seed=seed, speed=speed, long=LONG))
    chrome.until(f"location.pathname === '/table' && ({ASKED} || {OVER})")


def _move(chrome: Chrome) -> None:
    chrome.run(A_MOVE)
    chrome.until(f"{ASKED} || {OVER}")


def _text(chrome: Chrome, selector: str) -> str:
    text: str = chrome.run(f"document.querySelector({selector!r}).innerText")
    return text


def test_game_played_by_mouse_is_saved_and_can_be_viewed(chrome: Chrome, table: WebServer) -> None:
    _deal(chrome, table, size=3)
    while not chrome.run(OVER):
        _move(chrome)
    assert _text(chrome, "#result") in ("You win!", "You came second", "You lost")
    (path,) = table.folder.glob("*.json")
    record = RECORDS.load(path.read_text())
    assert list(RECORDS.replay(record)) == record.story
    log: list[tuple[int, str]] = chrome.run(LOG)
    lines = [line for line in record.story if line.startswith("turn ")]
    assert len(log) == len(lines) + 2  # the deal and the ending
    chrome.run("document.querySelector('#watch').click()")
    chrome.until("location.pathname.startsWith('/games/') && document.querySelector('#viewer')?.hidden === false")
    last = len(record.outputs)
    lines = [" ".join(line for number, line in log if number == turn) for turn in range(1, last + 1)]
    assert chrome.run("[...document.querySelectorAll('.story li')].map(line => line.textContent)")[:-1] == lines[:-1]
    for key, turn in (("Home", 0), ("ArrowRight", 1), ("End", last)):
        chrome.key(key)
        assert chrome.run("location.hash") == f"#turn-{turn}"
    spoken = chrome.run("[...document.querySelectorAll('#said p')].map(line => line.textContent).join(' ')")
    assert (chrome.text("#turn"), spoken) == (f"turn {last} of {last}", lines[-1])
    assert "You" in chrome.text("#seats")


COVERED_CORNERS = """
[...document.querySelectorAll('#hand .card')].filter((card) => {
  const corner = new DOMPoint(12, 16).matrixTransform(card.querySelector('svg').getScreenCTM());
  return document.elementFromPoint(corner.x, corner.y)?.closest('.card') !== card;
}).map((card) => card.getAttribute('aria-label'))
"""


def test_move_can_be_made_by_keyboard(chrome: Chrome, table: WebServer) -> None:
    chrome.screen(390, 844)
    _deal(chrome, table, seed=2)
    chrome.run("document.querySelector('#speed').focus()")
    chrome.key("Tab")  # skips the disabled skip button
    assert chrome.run("document.activeElement === document.querySelector('#hand button')")
    assert chrome.run(COVERED_CORNERS) == []
    chrome.key("ArrowRight")
    chrome.key(" ")
    chrome.key("End")
    chrome.key(" ")
    assert chrome.run("[...document.querySelectorAll('#hand [aria-pressed=true]')].length") == 2
    assert chrome.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    chrome.key("Tab")
    assert chrome.run("document.activeElement.id") == "number"
    chrome.key("Tab")
    assert chrome.run("document.activeElement.innerText") == "Play 2 cards"
    chrome.key("Enter")
    chrome.until(f"document.querySelectorAll('#log .by-me').length && ({ASKED} || {OVER})")
    lines: list[str] = chrome.run("[...document.querySelectorAll('#log li')].map(line => line.textContent)")
    mine = next(place for place, line in enumerate(lines) if line.startswith("You play 2 cards"))
    assert mine
    assert chrome.text("#heard") == " ".join(reversed(lines[: mine + 1]))  # every line, although the page did not wait


def test_end_shows_all_hands_without_suits_and_offers_a_rematch(chrome: Chrome, table: WebServer) -> None:
    """Cards of the same number look the same, in hands and face up, because the game has no suits.

    At the end nothing covers the board, and Enter starts the next game.
    """
    _deal(chrome, table, size=4, seed=5)
    turned = 0
    while not chrome.run(OVER):
        shown = chrome.run(CARDS)
        cards = shown["hand"] + shown["pile"]
        assert len({looks for _, looks, _ in cards}) == len({name.split(",")[0] for *_, name in cards})
        assert shown["seats"] == []
        turned += len(shown["pile"])
        _move(chrome)
    assert turned > 0
    assert chrome.run("document.activeElement.id") == "rematch"
    last = chrome.run("fetch('/api/table').then(answer => answer.json())")
    hands = [faces for _, faces in last["frames"][-1]["truth"]]
    assert last["frames"][-1]["hand"] == hands[last["me"]]
    others = [*hands[last["me"] + 1 :], *hands[: last["me"]]]
    for where, shown in (("seats", others), ("end", [hands[last["me"]]])):
        names = [name for hand in shown for name, *_ in hand]
        assert [name for *_, name in chrome.run(CARDS)[where]] == names
    assert chrome.run(
        "(box => [.1, .5, .9].every(share => document.elementFromPoint(box.x + share * box.width, "
        "box.y + box.height / 2).closest('.felt')))(document.querySelector('.felt').getBoundingClientRect())"
    )
    last_move = chrome.run("[...document.querySelectorAll('#log li')].slice(0, 3).map(line => line.className)")
    assert last_move[:2] == ["after", "after"], "the end follows from a move, and is nobody's own line"
    assert last_move[2] != "after"
    for width in (900, 1440):
        chrome.screen(width, 900)
        room = chrome.run(ROOM_AT_END)
        assert len(room) == 2
        assert min(room) >= 0, "neither the edge nor the pile covers the opponent at the top"
    against = "; ".join(f"{name}: {won} won, {lost} lost" for name, (won, lost) in last["against"].items())
    assert against
    assert _text(chrome, "#against") == f"Your record against {against}."
    chrome.screen(390, 844)
    chrome.run("dubitoCards.fan(document.querySelector('#left'), Array.from({length: 30}, () => dubitoCards.back()))")
    assert chrome.run(f"{WIDEST} <= 390"), "even a large hand leaves the panel on the screen"
    chrome.key("Enter")
    chrome.until(f"{ASKED} && !{OVER}")
    assert chrome.run("document.querySelectorAll('#seats .card:not(.back)').length") == 0
    assert chrome.run("document.querySelector('#log li:last-child').textContent").startswith("The cards are dealt")
    assert chrome.run("document.activeElement.closest('#hand') !== null")


MIDDLES = """
[...document.querySelectorAll('.seat, .felt')].map(one => one.getBoundingClientRect())
  .map(box => [box.x + box.width / 2, box.y + box.height / 2])
"""


@pytest.mark.parametrize("size", in_gate([3, 8], {8}))
def test_opponents_sit_around_the_board(chrome: Chrome, table: WebServer, size: int) -> None:
    """Opponents sit clockwise in playing order on half an ellipse, starting at the person's left."""
    chrome.screen(1440)
    _deal(chrome, table, size=size, seat=1)
    (x, y), *seats = chrome.run(MIDDLES)
    # Clockwise, starting at the bottom of the table.
    angles = [(math.atan2(at_y - y, at_x - x) - math.pi / 2) % math.tau for at_x, at_y in seats]
    assert len(angles) == size - 1
    assert angles == sorted(angles)
    assert seats[0][0] < x < seats[-1][0]


def test_hand_and_questions_stay_visible_on_a_phone_with_eight_seats(chrome: Chrome, table: WebServer) -> None:
    chrome.screen(390, 844)
    _deal(chrome, table, size=8, seat=1)
    inside = (
        "[...document.querySelectorAll('#prompt, #hand .card, #answer button')].map(one => one.getBoundingClientRect())"
        ".every(box => box.top >= 0 && box.bottom <= innerHeight)"
    )
    for _ in range(4):
        chrome.run("scrollTo(0, 0)")
        assert chrome.run(inside)
        _move(chrome)


UNCOVERED = """
(() => {
  scrollTo(0, 0);
  const needed = ['.bubble', '.round b', '.pile .latest:last-child', '#prompt', '#answer .other', '#put'];
  const shown = (one) => {
    const box = one.getBoundingClientRect();
    const spots = [[.5, .1], [.5, .5], [.5, .9]].map(([x, y]) => [box.x + x * box.width, box.y + y * box.height]);
    return spots.every(([x, y]) => one.contains(document.elementFromPoint(x, y)?.closest('.card') ??
      document.elementFromPoint(x, y)));
  };
  const all = [...needed.map((what) => document.querySelector(what)), ...document.querySelectorAll('#hand .card')];
  return all.map((one, place) => one && (one.matches('#hand .card') ? one.getBoundingClientRect().bottom <= innerHeight
    : shown(one)) ? '' : needed[place] ?? 'hand').filter(Boolean);
})()
"""
PLACES = (
    "['#put', '#answer .other'].map(what => (b => [b.x, b.y])(document.querySelector(what).getBoundingClientRect()))"
)
SCREENS = [(720, 450), (844, 390), (390, 844), (360, 640), (1440, 900)]


@pytest.mark.parametrize("size", in_gate([4, 7], {7}))
def test_claim_is_beside_the_button_and_nothing_one_needs_is_covered(
    chrome: Chrome, table: WebServer, size: int
) -> None:
    """The buttons are where they were on the turn before."""
    for screen in SCREENS:
        chrome.screen(1440)
        _deal(chrome, table, size=size, seat=1, seed=11)
        chrome.screen(*screen)
        places = []
        for _ in range(4):
            if chrome.run("document.querySelector('#answer .other') !== null"):
                claim = chrome.run("document.querySelector('.bubble').textContent.replace('!', '')")
                assert chrome.text("#prompt").endswith(f" claims {claim}. Doubt it?")
                assert chrome.run(UNCOVERED) == [], screen
                places.append(chrome.run(PLACES))
            chrome.run("document.querySelector('#hand button').click()")
            chrome.run("document.querySelector('#put').click()")
            chrome.until(f"{ASKED} || {OVER}")
        assert len(places) > 1
        assert places.count(places[0]) == len(places), screen


FROZEN = """
(() => {
  const read = (where) => [...document.querySelectorAll(where)].map((one) => one.textContent);
  return {
    held: read('.seat .held'), hand: document.querySelectorAll('#hand .card').length, log: read('#log li'),
    badges: read('.seat .badge'), claim: read('.seat .bubble:not(.call)'), round: read('.round'), now: read('#now'),
    heard: read('#heard'), pile: document.querySelectorAll('.pile .card').length,
  };
})()
"""
SCENE = "document.querySelector('#felt').dataset.scene"


@pytest.mark.parametrize("calm", [False, True])
def test_doubt_is_played_on_the_table_as_it_was(chrome: Chrome, table: WebServer, calm: bool) -> None:
    """Nothing tells how it ends before the last card turns; then the pile flies, and only then words follow."""
    chrome.screen(1440)
    _deal(chrome, table, seat=1, seed=11)
    motion = {"name": "prefers-reduced-motion", "value": "reduce" if calm else "no-preference"}
    chrome("Emulation.setEmulatedMedia", features=[motion])
    chrome.run("document.querySelector('#speed').value = '1100'")
    before = chrome.run(FROZEN)
    watch = (
        "window.seen = []; new MutationObserver(() => seen.push([document.querySelector('#felt').dataset.scene ?? '', "
        f"{FROZEN.strip()}, document.querySelectorAll('.reveal .turned').length])).observe("
        "document.querySelector('#felt'), {attributeFilter: ['data-scene', 'class'], subtree: true})"
    )
    chrome.run(watch)
    chrome.run("document.querySelector('#answer .other').click()")
    chrome.until(f"{SCENE} === undefined && seen.length > 0 && document.querySelector('#heard').textContent !== ''")
    seen: list[tuple[str, Any, int]] = chrome.run("seen")
    states = [state for state, *_ in seen if state]
    assert list(dict.fromkeys(states)) == ["call", "turn", "stamp", "flight"]
    assert sorted({turned for _, _, turned in seen}) == [0, 1, 2, 3]
    frozen = [text for state, text, _ in seen if state in ("call", "turn", "stamp")]
    assert all(text == before for text in frozen)
    after = next(text for _, text, _ in seen if text["heard"] != before["heard"])
    assert after["heard"] == ["You doubt ClaudeBot, who shows 3 3 3: honest. You pick up 3 cards."]
    assert after["hand"] == before["hand"] + 3
    assert len(after["log"]) == len(before["log"]) + 1
    assert after["pile"] == 0


def test_a_key_or_a_click_skips_a_doubt(chrome: Chrome, table: WebServer) -> None:
    for skip in ("key", "click"):
        chrome.screen(1440)
        _deal(chrome, table, seat=1, seed=11)
        chrome.run("document.querySelector('#speed').append(new Option('for ever', 2 ** 30, true, true))")
        chrome.run("document.querySelector('#answer .other').click()")
        chrome.until(f"{SCENE} === 'call'")
        if skip == "key":
            chrome.key("Enter")
        else:
            chrome.click("#felt .reveal")
        chrome.until(f"{SCENE} === undefined")
        assert chrome.text("#heard").startswith("You doubt ClaudeBot, who shows 3 3 3: honest.")


def test_fast_mode_limits_the_time_of_all_opponents_together(chrome: Chrome, table: WebServer) -> None:
    """All their moves take at most 1.5 seconds, whatever their number."""
    _deal(chrome, table, size=8, seed=2, speed=450)
    chrome.run(
        "window.times = []; window.later = setTimeout; "
        "window.setTimeout = (act, time) => { later(act, time === 10 ? 10 : 0 * times.push(time)); }"
    )
    sums = []
    for _ in range(3):
        chrome.run("times.length = 0")
        chrome.run(A_MOVE)
        chrome.until(ASKED)
        sums.append(chrome.run("times.reduce((sum, time) => sum + time, 0)"))
    assert all(1000 < taken < 1501 for taken in sums), sums


def test_at_most_three_cards_can_be_chosen(chrome: Chrome, table: WebServer) -> None:
    _deal(chrome, table, seed=4)
    chrome.run("[...document.querySelectorAll('#hand button')].slice(0, 5).forEach(button => button.click())")
    assert chrome.run("document.querySelectorAll('#hand [aria-pressed=true]').length") == 3
    assert _text(chrome, "#error") == "You can play at most 3 cards."
    chrome.run("document.querySelector('#speed').append(new Option('for ever', 2 ** 30, true, true))")
    chrome.run("document.querySelector('#put').click()")
    chrome.until("document.querySelectorAll('#log .by-me').length === 1")
    assert not chrome.run(ASKED)
    assert not chrome.run("document.querySelector('#skip').disabled")
    chrome.run("document.querySelector('#skip').click()")
    chrome.until(f"{ASKED} || {OVER}")
    assert chrome.run("document.querySelectorAll('#log li').length") >= 4


def test_reload_changes_nothing_and_lost_game_is_reported(chrome: Chrome, table: WebServer) -> None:
    _deal(chrome, table, seed=5)
    before = _text(chrome, "main")
    chrome("Page.reload")
    chrome.until(f"{ASKED} && document.readyState === 'complete'")
    assert _text(chrome, "main") == before
    for path in (table.folder / "running").iterdir():
        path.unlink()
    chrome.run("document.querySelector('#hand button').click(); document.querySelector('#put').click()")
    chrome.until("document.querySelector('#error').innerText !== ''")
    assert _text(chrome, "#error") == "You have no game here. Start one first."
    chrome.until("document.querySelector('#prompt').innerText.startsWith('No game to show.')")
    chrome.errors.clear()  # the console reports 404s


def test_nothing_is_cut_off_and_text_has_enough_contrast(chrome: Chrome, table: WebServer) -> None:
    """WCAG AA requires a contrast of at least 4.5 for every text."""
    _deal(chrome, table, size=8)
    contrast = (Path(__file__).parent / "contrast.js").read_text()
    for path in ("", "/", "/rules", "/games"):
        if path:
            chrome.open(f"http://127.0.0.1:{table.port}{path}")
        for width, dark in ((390, False), (1440, True)):
            chrome.screen(width, 844, dark)
            assert chrome.run("document.documentElement.scrollWidth") <= width
            assert chrome.run(CUT) == []
            assert chrome.run(contrast) == []
        assert chrome.run("document.title") != "x"


def test_cards_of_a_shared_game_are_dealt_by_its_link(chrome: Chrome, table: WebServer) -> None:
    chrome.open(
        f"http://127.0.0.1:{table.port}/?game=dubito&bots=ClaudeBot+StefaBot&seed=5&deal=3&seat=1&rules=%7B%22jokers%22%3A1%7D"
    )
    assert chrome.run("document.activeElement.id") == "accept"
    assert chrome.text("#against") == "You play against ClaudeBot, StefaBot."
    chrome.run("window.confirm = () => true; document.querySelector('#accept').click()")
    chrome.until(f"location.pathname === '/table' && ({ASKED} || {OVER})")
    kept = chrome.run("fetch('/api/table').then(answer => answer.json())")
    assert (kept["names"], kept["rules"]["jokers"]) == (["ClaudeBot", "You", "StefaBot"], 1)
    setup = set_up(GAME, ["ClaudeBot", "StefaBot"], GAME.rules(jokers=1), 1, 5, 3)
    cards = [card_name(card) for card in cast(Any, setup.deal_game(GAME)[0]).hands[1].cards]
    assert sorted(name for name, *_ in kept["frames"][0]["hand"]) == sorted(cards)


def test_three_tips_teach_a_first_game_and_a_click_ends_them(chrome: Chrome, table: WebServer) -> None:
    _deal(chrome, table, seat=0, seed=2)
    chrome.run("localStorage.removeItem('dubito tips')")
    chrome("Page.reload")
    chrome.until(f"{ASKED} && document.readyState === 'complete'")
    assert chrome.text("#tip span").startswith("You open the round.")
    chrome.run(
        "(field => { field.value = 12; field.dispatchEvent(new Event('change')); })(document.querySelector('#number'))"
    )
    chrome.click("#hand button")
    assert chrome.text("#tip span").startswith("This would be a bluff.")
    assert chrome.text("#hint") == "This would be a bluff."
    chrome.click("#tip button")
    assert chrome.run("document.querySelector('#tip').hidden")
    chrome.click("#put")
    chrome.until(f"document.querySelector('#log .by-me') !== null && ({ASKED} || {OVER})")
    assert chrome.run("document.querySelector('#tip').hidden")
