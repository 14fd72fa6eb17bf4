"""The pages in a real browser, opened from disk without a network."""

import itertools
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.chromium import Chrome
from tests.report.kit import HOSTILE, SCRIPT, Page, data, hands, pile, played, report_of, states, stating

AT_LENGTH = pytest.mark.at_length
FADED = "[...document.querySelectorAll('.scroll')].map(box => box.classList.contains('more'))"
WIDER = "[...document.querySelectorAll('.scroll')].map(box => box.scrollWidth > box.clientWidth + 2)"
HEADERS = "[...document.querySelectorAll('.block table:not(.map) thead tr')].map(row => row.offsetHeight)"
LEFT = "[...document.querySelectorAll('#games tbody tr')].filter(r => !r.hidden).map(r => r.cells[0].textContent)"


def game_with(run: Path, nodes: str = "C", attempts: int = 1) -> tuple[Path, int, int]:
    """Find a decision at one of these nodes with this many attempts, and return its game page and place."""
    for page in sorted((run / "report" / "games").glob("*.html")):
        (game,) = Page(page).json
        for place, decision in enumerate(game["decisions"]):
            if decision["node"] in nodes and len(decision["attempts"]) == attempts:
                return page, decision["turn"], place
    raise AssertionError("no such decision")


@pytest.mark.parametrize(
    ("which", "width", "dark"),
    [
        pytest.param("bots_run", 1440, False, marks=AT_LENGTH),
        ("models_run", 390, True),
        pytest.param("stating_run", 1440, False, marks=AT_LENGTH),
        pytest.param("bots_run", 390, True, marks=AT_LENGTH),
        pytest.param("models_run", 1440, False, marks=AT_LENGTH),
        pytest.param("stating_run", 390, True, marks=AT_LENGTH),
    ],
)
def test_every_page_opens_without_an_error(
    which: str, width: int, dark: bool, chrome: Chrome, request: pytest.FixtureRequest, at_length: bool
) -> None:
    """The gate opens only the longest and the shortest of the bots' similar pages, and one game."""
    run: Path = request.getfixturevalue(which)
    pages = [path for path in (run / "report").rglob("*.html") if path.parent.name not in ("bots", "games")]
    bots = sorted((run / "report" / "bots").glob("*.html"), key=lambda page: page.stat().st_size)
    pages += bots if at_length else [bots[0], bots[-1]]
    chrome.screen(width, dark=dark)
    for page in [*pages, run / "report" / "games" / "0.html"]:
        chrome.open(page)
        assert chrome.errors == []
        assert all(address.startswith(("file:", "data:", "about:")) for address in chrome.asked), chrome.asked
        assert chrome.run("document.documentElement.scrollWidth") <= width, page
        assert chrome.run("window.ran") is None
        charts = chrome.run("[...document.querySelectorAll('.drawing')].map(c => c.querySelectorAll('path').length)")
        assert all(paths > 5 for paths in charts), (page, charts)
        assert len(charts) > 0 or page.name not in ("strategy.html", "neighbours.html")
        assert chrome.run(FADED) == chrome.run(WIDER), page
        if (which, width, page.name) == ("models_run", 390, "index.html"):
            assert max(chrome.run(HEADERS)) < 62, "headers have at most two lines"


@pytest.mark.parametrize("width", [390, 1440])
def test_first_screen_answers_with_a_sentence_and_a_chart(width: int, models_run: Path, chrome: Chrome) -> None:
    """The answer, the cost and the first players are visible without scrolling, and nothing large is loaded."""
    chrome.screen(width, 900)
    chrome.forget()
    chrome.open(models_run / "report" / "index.html")
    assert chrome.text("h1") == "It is too early to name a winner."
    below = "[...document.querySelectorAll('h1, .pills, .scores .row')].map(e => e.getBoundingClientRect().bottom)"
    assert max(chrome.run(below)[:4]) < 900
    assert not any("echarts" in address for address in chrome.asked)
    places = "[...document.querySelectorAll('.scores .dot')].map(dot => dot.getBoundingClientRect().x)"
    scores = [row["score"] for row in data(models_run / "report", "players")]
    assert [place for _, place in sorted(zip(scores, chrome.run(places), strict=True))] == sorted(chrome.run(places))


def test_chart_is_near_its_numbers_with_full_names(bots_run: Path, chrome: Chrome) -> None:
    """The better of two bots is further to the right, at the distance that the axis shows."""
    chrome.screen(390)
    chrome.open(bots_run / "report" / "strategy.html")
    game = json.loads(chrome.text("figure.chart script"))
    scores = sorted((point[0] for point in game["series"][0]["points"]), reverse=True)
    dots = sorted(
        chrome.run(
            "(c => c.getOption().series[0].data.map(d => c.convertToPixel({xAxisIndex: 0}, d[0])))"
            "(echarts.getInstanceByDom(document.querySelector('.drawing')))"
        ),
        reverse=True,
    )
    assert len(dots) == len(scores)
    assert (dots[0] - dots[1]) / (dots[0] - dots[-1]) == pytest.approx(
        (scores[0] - scores[1]) / (scores[0] - scores[-1]), abs=1e-3
    )
    drawn = chrome.run("document.querySelector('.drawing').textContent")
    assert SCRIPT.replace(" ", "") in drawn.replace(" ", "").replace("\n", "")
    outside = chrome.run(
        "(box => [...document.querySelectorAll('.drawing text')].filter(t => { const r = t.getBoundingClientRect(); "
        "return r.left < box.left - 1 || r.right > box.right + 1; }).map(t => t.textContent))"
        "(document.querySelector('.drawing').getBoundingClientRect())"
    )
    assert outside == []


def briefest(run: Path) -> tuple[Path, Any]:
    games = {page: Page(page).json[0] for page in (run / "report" / "games").glob("*.html")}
    page = min(games, key=lambda page: (len(games[page]["turns"]), page))
    return page, games[page]


def test_the_viewer_steps_by_keys_buttons_and_links(bots_run: Path, chrome: Chrome) -> None:
    page = bots_run / "report" / "games" / "0.html"
    (game,) = Page(page).json
    last = len(game["turns"])
    chrome.open(page)
    assert chrome.text("#turn").startswith(f"turn {game['opens']} of {last}")
    assert chrome.text("#said").startswith(game["story"][game["opens"] - 1])
    assert game["turns"][game["opens"] - 1]["caught"], "a lie is revealed there"
    chrome.key("Home")
    assert chrome.text("#turn").startswith("deal")
    for key, expected in (("ArrowRight", 1), ("ArrowRight", 2), ("ArrowLeft", 1), ("End", last), ("Home", 0)):
        chrome.key(key)
        assert chrome.run("location.hash") == f"#turn-{expected}"
    chrome.click("[data-go=on]")
    assert chrome.text("#turn").startswith(f"turn 1 of {last}")
    assert chrome.text("#said") == chrome.text(".story li")
    chrome.go_to(f"turn={last}")
    assert chrome.text("#turn").startswith(f"turn {last} of {last}")
    assert game["ending"] in chrome.text("#said")


def test_cards_move_from_hand_to_board_without_suits(bots_run: Path, chrome: Chrome) -> None:
    page, game = briefest(bots_run)
    chrome.open(page, "#turn-0")
    chrome.key("h")  # opens all hands
    seen: list[list[list[list[str]]]] = chrome.run(
        "(() => { const cards = (list) => [...list].map(item => [...item.querySelectorAll('.card')]"
        ".map(card => `${card.getAttribute('aria-label')} ${card.innerHTML}`)); "
        "const seen = () => ['#seats > li', '.plays > li'].map(which => cards(document.querySelectorAll(which))); "
        "const all = [seen()]; "
        f"for (let turn = 1; turn <= {len(game['turns'])}; turn++) "
        "{ slider.value = turn; slider.dispatchEvent(new Event('input')); all.push(seen()); } return all; })()"
    )
    for turn, (before, (held, laid)) in zip(game["turns"], itertools.pairwise(seen), strict=True):
        if played(turn):
            assert sorted(before[0][turn["seat"]]) == sorted(held[turn["seat"]] + laid[0])
        else:
            taken = {card for hand in held for card in hand} - {card for hand in before[0] for card in hand}
            assert taken <= {card for play in laid for card in play}
        shown = {card for hand in held for card in hand}
        assert len(shown) == len({card.partition(" ")[0] for card in shown})


def test_viewer_jumps_to_the_next_bluff_and_plays(bots_run: Path, chrome: Chrome) -> None:
    page, game = briefest(bots_run)
    bluff, *_ = [turn for turn, one in enumerate(game["turns"], 1) if "bluff" in one["marks"]]
    doubt, *_ = [turn for turn, one in enumerate(game["turns"], 1) if turn > bluff and "doubt" in one["marks"]]
    later = next(turn for turn, one in enumerate(game["turns"], 1) if turn > bluff and "bluff" in one["marks"])
    chrome.open(page, "#turn-0")
    for wanted in (bluff, later):
        chrome.key("b")
        assert chrome.run("location.hash") == f"#turn-{wanted}"
    assert chrome.run("[...document.querySelectorAll('#strip .told')].map(e => Number(e.getAttribute('x1')))") == [
        turn for turn, one in enumerate(game["turns"], 1) if "bluff" in one["marks"]
    ]
    assert chrome.run("document.querySelectorAll('#strip svg[role] polyline').length") == len(game["names"])
    half = len(game["turns"]) // 2
    chrome.run(
        "(() => { const strip = document.querySelector('#strip svg[role]'), all = strip.getBoundingClientRect(); "
        f"const clientX = all.left + all.width * {half / len(game['turns'])}; "
        "strip.dispatchEvent(new MouseEvent('click', { clientX, bubbles: true })); })()"
    )
    assert chrome.run("location.hash") == f"#turn-{half}"
    chrome.go_to(f"turn-{bluff}")
    chrome.click("[data-find=doubt]")
    assert chrome.run("location.hash") == f"#turn-{doubt}"
    chrome.go_to(f"turn-{len(game['turns']) - 3}")
    chrome.run("document.activeElement.blur(), speed.append(new Option('at once', '1', true, true))")
    chrome.key(" ")
    chrome.until(f"location.hash === '#turn-{len(game['turns'])}'")
    assert chrome.text("#play") == "▶ Play"


def test_doubt_is_played_before_its_turn_is_drawn_and_a_click_skips_it(bots_run: Path, chrome: Chrome) -> None:
    page = bots_run / "report" / "games" / "0.html"
    (game,) = Page(page).json
    doubt = next(turn for turn, one in enumerate(game["turns"], 1) if "scene" in one)
    scene = game["turns"][doubt - 1]["scene"]
    chrome.screen(1440)
    chrome.open(page, f"#turn-{doubt - 1}")
    frozen = "[...document.querySelectorAll('#said, #turn, .held')].map(one => one.textContent)"
    before = chrome.run(frozen)
    chrome.run("speed.append(new Option('for ever', 2 ** 20, true, true))")
    chrome.run("document.querySelector('#play').click()")
    chrome.until("document.querySelector('.table').dataset.scene === 'call'")
    assert chrome.run(frozen) == before
    assert chrome.run("document.querySelectorAll('.reveal .flip').length") == len(scene["cards"])
    assert chrome.text(f"#seats li:nth-child({scene['caller'] + 1}) .bubble.call") == "Dubito!"
    chrome.click(".reveal")
    chrome.until(f"location.hash === '#turn-{doubt}'")
    assert chrome.text("#said p") == game["story"][doubt - 1]
    assert chrome.run("document.querySelectorAll('.reveal, .bubble.call').length") == 0


def test_stepping_onto_a_doubt_plays_its_scene_and_a_second_step_ends_it(bots_run: Path, chrome: Chrome) -> None:
    page = bots_run / "report" / "games" / "0.html"
    (game,) = Page(page).json
    doubt = next(turn for turn, one in enumerate(game["turns"], 1) if "scene" in one)
    chrome.screen(1440)
    chrome.open(page, f"#turn-{doubt - 1}")
    before = chrome.text("#said")
    chrome.run("speed.append(new Option('for ever', 2 ** 20, true, true))")
    chrome.key("ArrowRight")
    chrome.until("document.querySelector('.table').dataset.scene === 'call'")
    assert (chrome.text("#said"), chrome.run("location.hash")) == (before, f"#turn-{doubt - 1}")
    chrome.key("ArrowRight")
    assert (chrome.text("#said"), chrome.run("location.hash")) == (game["story"][doubt - 1], f"#turn-{doubt}")
    assert chrome.run("[document.querySelectorAll('.reveal').length, document.querySelectorAll('.stamp').length]") == [
        0,
        1,
    ]
    chrome.key("ArrowLeft")
    chrome.run("speed.append(new Option('at once', '1', true, true)), window.heard = []")
    chrome.run("new MutationObserver(() => heard.push(said.textContent)).observe(said, {childList: true})")
    chrome.key("ArrowRight")
    chrome.until(f"location.hash === '#turn-{doubt}'")
    assert chrome.run("[heard, said.ariaLive]") == [[game["story"][doubt - 1]], "polite"]  # one sentence, at the end
    assert chrome.run("document.querySelectorAll('.reveal, .stamp').length") == 0  # the pile has been taken


def test_link_to_the_turn_in_view_can_be_copied(bots_run: Path, chrome: Chrome) -> None:
    chrome.open(bots_run / "report" / "games" / "0.html", "#turn-3")
    chrome.run("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    chrome.key("Home")
    chrome.key("ArrowRight")
    chrome.click("#link")
    assert chrome.text("#link") == "Copied"
    assert chrome.run("copied") == chrome.run("location.href")
    assert chrome.run("copied").endswith("/games/0.html#turn-1")


def test_each_decision_has_a_link(stating_run: Path, chrome: Chrome) -> None:
    """The link opens the decision, which shows the model's answer and the truth next to its seat."""
    page, turn, place = game_with(stating_run)
    (game,) = Page(page).json
    decision = game["decisions"][place]
    for width, height in ((1440, 900), (390, 844)):
        chrome.screen(width, height)
        chrome.open(page, f"#turn-{turn}-C")
        boxes = (
            "[...document.querySelectorAll('{}')].map(one => one.getBoundingClientRect()).map(b => [b.top, b.bottom])"
        )
        (spoken,), (heading,), tabs = (
            chrome.run(boxes.format(one)) for one in ("#said", ".linked h3", ".linked [role=tab]")
        )
        assert 0 <= spoken[0] < spoken[1] <= height
        assert heading[0] >= 0
        assert [bottom <= height for _, bottom in tabs] == [True] * 5
        assert width == 1440 or spoken[1] < heading[0]
    assert chrome.run("[...document.querySelectorAll('.asked[open]')].map(e => e.parentElement.id)") == [
        f"asked-turn-{turn}-C"
    ]
    chrome.screen(1440)
    tabs = "[...document.querySelectorAll('.linked [role=tab]')].map(one => [one.textContent, one.ariaSelected])"
    chosen = [title for title, chosen in chrome.run(tabs) if chosen == "true"]
    seen = (
        "[...document.querySelectorAll('.linked pre')].filter(one => one.checkVisibility()).map(one => one.textContent)"
    )
    assert (chosen, len(chrome.run(seen))) == (["Reply"], 1)
    assert '"answer"' in chrome.run(seen)[0]
    chrome.run("document.querySelector('.linked [role=tab]').focus()")
    chrome.key("ArrowRight")  # the viewer stays on this turn
    assert "Do you doubt?" in chrome.run(seen)[0]
    assert chrome.run("location.hash") == f"#turn-{turn}-C"
    spoken = chrome.text("#thoughts")
    name = game["names"][decision["seat"]]
    assert spoken.startswith(f"{name}Doubt? {'yes' if decision['answer'] else 'no'}I ")
    truth = "✗ a bluff" if "bluff" in game["turns"][turn - 2]["marks"] else "✓ honest"
    stated = f"{round(100 * decision['p_bluff'])} %. Actually: {truth}."
    assert f"Stated probability that the last play is a bluff: {stated}" in spoken
    wrong = [one for one in game["decisions"] if "wrong" in one]
    for is_mistake, words in ((True, "✗ {}"), (False, "It {}.")):
        one = next(one for one in wrong if one["mistake"] is is_mistake)
        chrome.go_to(f"turn-{one['turn']}")
        assert words.format(one["wrong"]) in chrome.text("#thoughts")
    chrome.run("document.activeElement.blur()")
    chrome.key("h")  # opens all hands
    chrome.key("h")  # hides hands, and also model texts, since they reveal cards
    assert chrome.run("document.querySelectorAll('.thought, .decision').length") == 0
    assert "Press “Show one hand” (H) to see both." in chrome.text("#decisions")
    chrome.key("h")
    assert chrome.run("document.querySelectorAll('.decision').length") > 0


def test_one_hand_is_open_and_all_or_none_can_be(bots_run: Path, chrome: Chrome) -> None:
    page = bots_run / "report" / "games" / "0.html"
    (game,) = Page(page).json
    chrome.open(page, "#turn-0")
    held = [len(hand) for hand in hands(game)[0]]
    open_cards = "[...document.querySelectorAll('#seats > li')].map(seat => seat.querySelectorAll('.card').length)"
    assert chrome.run(open_cards) == [held[0], 0, 0]
    chrome.click("#seats li:nth-child(2) .avatar")
    assert chrome.run(open_cards) == [0, held[1], 0]
    assert chrome.text("#open") == "Show all hands"
    chrome.key("h")
    assert chrome.run(open_cards) == held
    assert chrome.text("#open") == "Hide hands"
    chrome.key("h")
    assert chrome.text("#open") == "Show one hand"
    assert chrome.run("document.querySelectorAll('#seats .card').length") == 0
    assert f"{len(hands(game)[0][0])} cards" in chrome.text("#seats li")
    chrome.key("ArrowRight")
    assert chrome.run("document.querySelectorAll('#boards .card:not(.back)').length") == 0
    chrome.click("#open")
    chrome.click("#open")
    assert chrome.run("document.querySelectorAll('#boards .truth').length") > 0


def test_report_shows_the_command_that_plays_on(bots_run: Path, chrome: Chrome) -> None:
    chrome.screen(390)
    chrome.open(bots_run / "report" / "games" / "2.html", "#turn-3")
    chrome.click("#play-on")
    command = f"dubito web --from {bots_run}:2"
    assert f"You begin at the start of turn 3. Run: {command}:3 --seat 0" in chrome.text("#moment")
    chrome.key("ArrowRight")
    chrome.run("document.querySelectorAll('#seats .seat')[1].click()")
    assert f"{command}:4 --seat 1" in chrome.text("#moment")
    assert chrome.run("document.documentElement.scrollWidth") <= 390
    chrome.click("#play-on")
    assert chrome.text("#moment") == ""


def test_a_decision_has_its_prompt_and_its_reply(models_run: Path, chrome: Chrome) -> None:
    page, turn, place = game_with(models_run)
    (game,) = Page(page).json
    decision = game["decisions"][place]
    chrome.open(page, f"#turn={turn}")
    words = chrome.text("#decisions")
    history = chrome.run("document.querySelectorAll('.story li').length")
    assert f"Doubt? {'yes' if decision['answer'] else 'no'} answered" in words
    assert "You are playing Dubito" in words
    assert f"You are seat {decision['seat']}." in words
    assert '{"answer": true}' in words
    assert "from the provider · 1 call" in words
    assert "100 tokens in (0 cached), 20 out · cost unknown" in words
    assert history == len(game["turns"])
    assert f"{pile(game, states(game)[turn - 1])[-1][1]}. Do you doubt?" in words
    assert f"Decision {decision['number']}, seat {decision['seat']}, node C (should_doubt)" in words


def test_hostile_reply_is_shown_but_not_executed(models_run: Path, chrome: Chrome) -> None:
    page, turn, _ = game_with(models_run, "ABCDE", attempts=2)
    chrome.open(page, f"#turn={turn}")
    assert HOSTILE in chrome.text("#decisions")
    assert "answered after a re-ask" in chrome.text("#decisions")
    assert "Re-ask 1" in chrome.text("#decisions")
    assert chrome.run("window.ran") is None
    assert chrome.run("document.querySelectorAll('#decisions script, #decisions img').length") == 0


def test_decision_shows_that_its_reply_is_cached(stating_run: Path, tmp_path: Path, chrome: Chrome) -> None:
    (tmp_path / "cache").symlink_to(stating_run.parent / "cache")
    stating(tmp_path / "run")
    report_of(tmp_path / "run", games="0")
    page, turn, _ = game_with(tmp_path / "run")
    chrome.open(page, f"#turn={turn}")
    assert chrome.text("#decisions .cost").startswith("from the cache · ")
    assert chrome.text("#decisions .cost").endswith(" · no call")


def test_games_can_be_filtered_by_winner(bots_run: Path, chrome: Chrome) -> None:
    """The filter lists the games that a player won, not all that it played."""
    listed = data(bots_run / "report", "games")
    won = [row for row in listed if "UsualBot (place 1)" in row["seats"]]
    with_stefa = [row for row in won if "StefaBot" in row["seats"]]
    assert 0 < len(with_stefa) < len(won) < sum("UsualBot" in row["seats"] for row in listed)
    chrome.open(bots_run / "report" / "games.html")
    for typed, wanted in (
        ("UsualBot (place 1)", won),
        ("StefaBot usualbot  place 1", with_stefa),
        ("usualbot place 1", won),
    ):
        value = json.dumps(typed)
        chrome.run(f"(f => {{ f.value = {value}; f.dispatchEvent(new Event('input', {{bubbles: true}})); }})(filter)")
        assert chrome.run(LEFT) == [row["game"] for row in wanted], typed
        assert chrome.text("#found") == f"{len(wanted)} of 60 games shown"


def test_on_a_phone_filters_collapse_and_games_are_cards(models_run: Path, chrome: Chrome) -> None:
    wide, turns = (
        "document.documentElement.scrollWidth",
        "[...document.querySelectorAll('#games tbody tr')].map(r => r.cells[{}].textContent)",
    )
    for width, folds in ((1440, False), (390, True)):
        chrome.screen(width)
        chrome.open(models_run / "report" / "games.html")
        seen = "document.querySelector('[data-passes]').checkVisibility()"
        assert (
            chrome.run("document.querySelector('.filters summary').checkVisibility()")
            is chrome.run("!" + seen)
            is folds
        )
        assert chrome.run(f"{wide} <= {width}")
    box = "(box => box.scrollWidth <= box.clientWidth)(document.querySelector('#games .scroll'))"
    assert chrome.run(box)  # the whole row is in view
    titles = chrome.run("[...document.querySelectorAll('#games thead th')].map(one => one.textContent)")
    assert chrome.run("[...document.querySelector('#games tbody tr').cells].map(one => one.dataset.title)") == titles
    chrome.click(".filters summary")
    assert chrome.run(seen)
    place = titles.index("turns")
    order = "document.querySelector('.order select')"
    chrome.run(f"(s => {{ s.value = {place}; s.dispatchEvent(new Event('change')); }})({order})")
    found = [int(cell) for cell in chrome.run(turns.format(place))]
    assert found == sorted(found, reverse=True)


def test_games_are_filtered_by_winner_and_event(models_run: Path, chrome: Chrome) -> None:
    listed = data(models_run / "report", "games")
    chrome.open(models_run / "report" / "games.html")
    winner = next(row["winner"] for row in listed if row["fallbacks"] and row["winner"])
    wanted = [row["game"] for row in listed if row["winner"] == winner and row["fallbacks"]]
    chrome.run(f"document.querySelector('[data-passes=is]').value = {json.dumps(winner)}")
    chrome.click("[data-passes=some]")
    assert chrome.run(LEFT) == wanted


def test_games_are_filtered_by_length_and_missing_event(models_run: Path, tmp_path: Path, chrome: Chrome) -> None:
    """One game on the page has no fallback."""
    report, listed = models_run / "report", data(models_run / "report", "games")
    shutil.copytree(report / "static", tmp_path / "static", ignore=shutil.ignore_patterns("echarts*"))
    page = re.sub(r'"fallbacks":\d+', '"fallbacks":0', (report / "games.html").read_text(), count=1)
    (tmp_path / "games.html").write_text(page)
    chrome.open(tmp_path / "games.html")
    chrome.click("[data-passes=some]")
    assert chrome.run(LEFT) == [row["game"] for row in listed[1:] if row["fallbacks"]]
    chrome.click("[data-passes=some]")
    longest = max(row["turns"] for row in listed)
    chrome.run(
        f"(f => {{ f.value = {longest}; f.dispatchEvent(new Event('input', {{bubbles: true}})); }})("
        "document.querySelector('[data-passes=least]'))"
    )
    assert chrome.run(LEFT) == [row["game"] for row in listed if row["turns"] == longest]


def test_a_table_is_sorted_by_its_headers(bots_run: Path, chrome: Chrome) -> None:
    """The keyboard works too: descending first, then ascending. Screen readers announce headers."""
    column = "[...document.querySelectorAll('#players tbody tr')].map(row => row.cells[3].textContent)"
    games = sorted((row["games"] for row in data(bots_run / "report", "players")), reverse=True)
    chrome.open(bots_run / "report" / "index.html")
    chrome.run("document.querySelectorAll('#players th button')[3].focus()")
    chrome.key("Enter")
    assert chrome.run(column) == [f"{count}" for count in games]
    assert chrome.run("document.querySelectorAll('#players th')[3].ariaSort") == "descending"
    chrome.key("Enter")
    assert chrome.run(column) == [f"{count}" for count in reversed(games)]
    chrome.run("document.querySelectorAll('#players tbody td')[2].textContent = '-'")
    for _ in range(2):  # unknown values come last in both orders
        chrome.click("#players thead th:nth-child(4) button")
        assert chrome.run(column)[-1] == "-"
    chrome.click("#players thead th:nth-child(2) button")
    assert chrome.run("document.querySelectorAll('#players th[aria-sort]').length") == 1
