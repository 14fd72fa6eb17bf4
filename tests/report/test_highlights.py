"""A report's highlights, recomputed from its pages, and their links."""

from itertools import pairwise
from pathlib import Path
from typing import Any

from dubito.report.highlights import opening
from tests.report.kit import Page, data, hands, played


def games(run: Path) -> dict[int, dict[str, Any]]:
    pages = (run / "report" / "games").glob("*.html")
    return {int(page.stem): Page(page).json[0] for page in pages}


def row_of(run: Path, kind: str) -> tuple[str, str]:
    """Return the text of a highlight and the target of its link."""
    page = Page(run / "report" / "games.html")
    cells = {row[0].strip(): row[1].strip() for row in page.tables["highlights"][1:]}
    links = [str(attrs["href"]) for tag, attrs in page.elements if tag == "a" and "href" in attrs]
    at = [row["highlight"] for row in data(run / "report", "highlights")].index(kind)
    return cells[kind], [link for link in links if link.startswith("games/")][at]  # links to games come first


def test_highlights_are_the_largest_pickup_and_longest_lies(bots_run: Path) -> None:
    most, longest = 0, 0
    for game in games(bots_run).values():
        held, row = [[len(hand) for hand in each] for each in hands(game)], [0] * len(game["names"])
        grown = (now - then for before, after in pairwise(held) for then, now in zip(before, after, strict=True))
        most = max(most, *grown)
        for turn, after in zip(game["turns"], [*game["turns"][1:], None], strict=True):
            if played(turn):
                told_on = "bluff" in turn["marks"] and (after is None or bool(played(after)))
                row[turn["seat"]] = row[turn["seat"]] + 1 if told_on else 0
                longest = max(longest, row[turn["seat"]])
    assert row_of(bots_run, "most cards picked up")[0].endswith(f" picked up {most} cards")
    assert row_of(bots_run, "longest run of lies")[0].endswith(f"got away with {longest} bluffs in a row")


def test_the_most_confident_mistake_is_a_link_to_its_decision(stating_run: Path) -> None:
    wrong = [
        (one["p_bluff"], number, one["link"])
        for number, game in games(stating_run).items()
        for one in game["decisions"]
        if one["p_bluff"] is not None and one["answer"] is True and one["truth"] is False
    ]
    game, link = row_of(stating_run, "most confident mistake")
    sure = max(share for share, _, _ in wrong)
    assert f"with {100 * sure:.0f} % confidence, but was wrong" in game
    assert link in {f"games/{number}.html#{place}" for share, number, place in wrong if share == sure}


def test_the_upset_is_a_win_against_stronger_ones(bots_run: Path) -> None:
    text, link = row_of(bots_run, "greatest upset")
    (game,) = Page(bots_run / "report" / link).json
    ranked = [row["player"] for row in data(bots_run / "report", "players")]
    place = {
        name: ranked.index(name.rpartition(" ")[0]) if name not in ranked else ranked.index(name)
        for name in game["names"]
    }
    (winner,) = [game["names"][seat] for seat in game["winners"]]
    assert ranked[place[winner]] in text
    assert min(place.values()) < place[winner]


def test_game_opens_at_first_caught_lie_or_highlight_or_deal() -> None:
    play: dict[str, Any] = {"seat": 0, "panels": {}, "marks": [], "truth": [["really", [0]]]}
    lie, doubt = {**play, "marks": ["bluff"]}, {"seat": 1, "panels": {}, "marks": ["doubt"], "truth": []}

    def opens(*turns: dict[str, Any]) -> tuple[int, str]:
        text = {"names": ["A", "B"], "winners": [], "panels": [], "faces": [[]], "lie": "bluff", "turns": turns}
        return opening(text)

    caught = {**doubt, "caught": True}
    assert opens(lie, play, lie, caught, lie, caught) == (4, "first caught bluff")
    assert opens(lie, play, lie, lie) == (4, "longest run of lies")
    assert opens(play, doubt, play) == (0, "")
    assert opens(lie, {**lie, "marks": ["bluff", "doubt"], "caught": True}) == (2, "first caught bluff")
