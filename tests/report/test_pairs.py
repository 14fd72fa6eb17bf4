"""Pages that compare two contenders at the same positions."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any, Final

import pytest

from dubito.experiment.stored import open_recorded_run
from dubito.report.site import write_site
from tests.chromium import Chrome
from tests.cli.kit import run_in
from tests.experiment.kit import REPO
from tests.report.kit import SCRIPT, Page, hand_written, report_of, states

NAME: Final = f"doubter {SCRIPT}"
CONTENDERS: Final = ["ClaudeBot", {"bot": "MrDoubt", "name": NAME}]
LINK: Final = re.compile(r'<a href="((?:\w+/)?games/(\d+)\.html)#turn-(\d+)">See the game')


def played(folder: Path, games: int = 14, **config: Any) -> Path:
    settings: dict[str, Any] = {"contenders": CONTENDERS, "table_sizes": [4]}
    hand_written(folder, games, **settings | config)
    return folder


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = played(tmp_path_factory.mktemp("pairs") / "run")
    report_of(folder, odds=True)
    return folder


def positions(page: str) -> list[tuple[str, list[tuple[str, int, int]]]]:
    """Return each position's HTML, with the page, game and turn of both choices."""
    articles = page.split('<article class="position')[1:]
    return [
        (article, [(path, int(game), int(turn)) for path, game, turn in LINK.findall(article)]) for article in articles
    ]


def without_names(turn: dict[str, Any]) -> dict[str, Any]:
    """Return a turn without the public texts of its panels, which name the contenders."""
    panels = {key: panel and {**panel, "public": ""} for key, panel in turn["panels"].items()}
    return {**turn, "panels": panels}


def test_position_is_where_two_games_of_a_deal_first_differ(run: Path) -> None:
    found = positions((run / "report/compare.html").read_text())
    assert len(found) > 5
    for _, ((path, game, turn), (other_path, other_game, other_turn)) in found:
        assert (turn, game // 2) == (other_turn, other_game // 2)
        one, other = (Page(run / "report" / each).json[0]["turns"] for each in (path, other_path))
        assert [*map(without_names, one[: turn - 1])] == [*map(without_names, other[: turn - 1])]
        assert one[turn - 1]["seat"] == other[turn - 1]["seat"]
        assert one[turn - 1] != other[turn - 1]


def test_positions_with_the_largest_difference_come_first(run: Path) -> None:
    costs = []
    with open_recorded_run(run) as source:
        for text, choices in positions((run / "report/compare.html").read_text()):
            scores = []
            for _, game, _ in choices:
                ((row,),) = source.db.read("SELECT outcome FROM games WHERE game = ?", (game,))
                outcome = source.outcome(row)
                assert outcome.contender_seat is not None
                scores.append(50 * outcome.measure_seats(source.game.results)[outcome.contender_seat][0])
            assert re.findall(r"<b>Score (\d+) %</b>", text) == [*map(str, scores)]
            costs.append(abs(scores[0] - scores[1]))
            assert text.count(" chance of winning right after") == 2
    assert costs == sorted(costs, reverse=True)
    assert costs[0] > 0


def test_names_of_contenders_are_escaped(run: Path) -> None:
    page = (run / "report/compare.html").read_text()
    assert SCRIPT not in page
    assert Page(run / "report/compare.html").words.count(SCRIPT) > 5


def test_same_player_twice_makes_the_same_decisions(tmp_path: Path) -> None:
    twins = ["ClaudeBot", {"bot": "ClaudeBot", "name": "Twin"}]
    report = report_of(played(tmp_path / "run", games=6, contenders=twins))
    page = Page(report / "compare.html")
    assert "They never decided differently in 3 compared games." in page.words
    assert positions((report / "compare.html").read_text()) == []


def test_run_without_pairs_has_no_page_to_compare(bots_run: Path) -> None:
    assert not (bots_run / "report/compare.html").exists()
    assert "compare.html" not in (bots_run / "report/index.html").read_text()


def test_site_compares_contenders_of_several_runs(tmp_path: Path) -> None:
    """The runs have the same deals. Each position links to both reports."""
    runs = {
        name: played(tmp_path / name, games=8, contenders=[name], seed=seed)
        for name, seed in (("ClaudeBot", 0), ("MrDoubt", 0), ("StefaBot", 1))
    }
    del runs["StefaBot"]
    write_site(tmp_path / "site", "Site", "", runs, REPO)
    found = positions((tmp_path / "site/compare.html").read_text())
    assert found
    for _, choices in found:
        assert [path.partition("/")[0] for path, _, _ in choices] in (
            ["ClaudeBot", "MrDoubt"],
            ["MrDoubt", "ClaudeBot"],
        )
        assert all((tmp_path / "site" / path).exists() for path, _, _ in choices)
    runs = {"ClaudeBot": tmp_path / "ClaudeBot", "StefaBot": tmp_path / "StefaBot"}
    write_site(tmp_path / "other", "Site", "", runs, REPO)
    assert not (tmp_path / "other/compare.html").exists()


def test_only_the_own_move_of_a_turn_with_several_is_named(tmp_path: Path) -> None:
    """A turn of BS consists of a play and the answers of the other seats."""
    players = ("--bots", "Jerk,Player2,ConMan,Hoarder", "--contenders", "CalculatingLiar,Player1")
    run_in(tmp_path, "run", "--game", "bs", *players, "--games", "20", "--workers", "1", "--output", "r", "--quiet")
    page = (tmp_path / "r/report/compare.html").read_text()
    found = re.findall(r'<p class="did"><strong>(.*?)</strong> (.*?) <span class="what(.*?)">(.*?)</span>', page)
    assert len(found) >= 20
    assert {what for _, _, _, what in found} <= {"lie", "honest play", "doubt", "let it pass"}
    assert {(is_lie, what == "lie") for _, _, is_lie, what in found} == {(" lie", True), ("", False)}
    for (one, cards, _, what), (other, other_cards, _, other_what) in zip(found[::2], found[1::2], strict=True):
        assert (one, cards) != (other, other_cards), (what, other_what)
        assert bool(cards) == (what in ("lie", "honest play"))


def test_board_shows_what_the_seat_saw(run: Path) -> None:
    """The counts, the pile and the hand are those of the game's page before the turn, and nobody else's cards."""
    shown = 0
    for text, ((path, _, turn), _) in positions((run / "report/compare.html").read_text()):
        game = Page(run / "report" / path).json[0]
        board = text[: text.index('<div class="choices">')]
        assert "data-cards" not in board  # nobody else's cards
        panels = states(game)[turn - 1]
        seat = game["turns"][turn - 1]["seat"]
        own = next(panel for panel in panels if panel.get("seat") == seat)
        (hand,) = re.findall(r"data-hand='(.*?)'", board)
        assert json.loads(hand) == [game["faces"][card] for card in own["cards"]]
        others = [panel["public"] for panel in panels if panel.get("seat", seat) != seat]
        assert sorted(re.findall(r"<small>(.*?)</small>", board)) == sorted(others)
        pile = sum(panel.get("backs", 0) for panel in panels if "seat" not in panel)
        assert re.findall(r'data-backs="(\d+)"', board) == [str(min(9, pile))] * bool(pile)
        if "Doubt it?" in text:
            assert f"<q>{game['turns'][turn - 2]['speech']}</q>" in text
            shown += 1
    assert shown > 3


def test_headline_names_the_most_frequent_difference(run: Path) -> None:
    page = (run / "report/compare.html").read_text()
    both = [kinds.split(" / ") for kinds in re.findall(r'<article class="position" data-kinds="(.*?)"', page)]
    (heading,) = re.findall(r'<h1 class="hero">(.*?)</h1>', page)
    same = sum(mine == theirs for mine, theirs in both)
    most = max(Counter((mine, theirs) for mine, theirs in both if mine != theirs).values())
    count = same if 2 * same > len(both) else most
    assert heading.endswith(f" {count} of the {len(both)} choices that differ")


def test_filters_show_positions_of_their_kind(run: Path, chrome: Chrome) -> None:
    chrome.open(run / "report/compare.html")
    buttons = chrome.run("[...document.querySelectorAll('.filters button')].map(one => one.dataset.kinds)")
    assert len(buttons) > 2
    shown = (
        "[...document.querySelectorAll('.position')].filter(one => one.checkVisibility()).map(one => one.dataset.kinds)"
    )
    every = chrome.run(shown)
    for kinds in (*buttons[1:], buttons[0]):
        chrome.run(f"document.querySelector('.filters [data-kinds=\"{kinds}\"]').click()")
        assert chrome.run(shown) == [one for one in every if kinds in (one, "")]
        assert chrome.run("document.querySelector('.filters [aria-pressed=true]').dataset.kinds") == kinds


def test_page_without_common_games_says_so(tmp_path: Path) -> None:
    report = report_of(played(tmp_path / "run", games=6), games="0")
    assert "no deal has pages for both games" in (report / "compare.html").read_text()
