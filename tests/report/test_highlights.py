"""A report's highlights, recomputed from its pages, and their links."""

from pathlib import Path
from typing import Any

from dubito.report.highlights import opening
from tests.report.kit import Page, data


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
    for told in games(bots_run).values():
        held, row = [len(hand) for hand in told["hands"]], [0] * len(told["names"])
        for turn, after in zip(told["turns"], [*told["turns"][1:], None], strict=True):
            for seat, hand in turn["hands"].items():
                most, held[int(seat)] = max(most, len(hand) - held[int(seat)]), len(hand)
            if "honest" in turn:
                told_on = not turn["honest"] and (after is None or "honest" in after)
                row[turn["seat"]] = row[turn["seat"]] + 1 if told_on else 0
                longest = max(longest, row[turn["seat"]])
    assert row_of(bots_run, "most cards picked up")[0].endswith(f" picked up {most} cards")
    assert row_of(bots_run, "longest run of lies")[0].endswith(f"got away with {longest} bluffs in a row")


def test_the_most_confident_mistake_is_a_link_to_its_decision(stating_run: Path) -> None:
    wrong = [
        (one["p_bluff"], number, one["link"])
        for number, told in games(stating_run).items()
        for one in told["decisions"]
        if one["p_bluff"] is not None and one["answer"] is True and one["truth"] is False
    ]
    said, link = row_of(stating_run, "most confident mistake")
    sure = max(share for share, _, _ in wrong)
    assert f"with {100 * sure:.0f} % confidence, but was wrong" in said
    assert link in {f"games/{number}.html#{place}" for share, number, place in wrong if share == sure}


def test_the_upset_is_a_win_against_stronger_ones(bots_run: Path) -> None:
    said, link = row_of(bots_run, "greatest upset")
    (told,) = Page(bots_run / "report" / link).json
    ranked = [row["player"] for row in data(bots_run / "report", "players")]
    place = {
        name: ranked.index(name.rpartition(" ")[0]) if name not in ranked else ranked.index(name)
        for name in told["names"]
    }
    (winner,) = [told["names"][seat] for seat in told["winners"]]
    assert ranked[place[winner]] in said
    assert min(place.values()) < place[winner]


def test_game_opens_at_first_caught_lie_or_highlight_or_deal() -> None:
    play = {"seat": 0, "hands": {}, "marks": [], "honest": True}
    lie, doubt = {**play, "honest": False}, {"seat": 1, "hands": {}, "marks": ["doubt"]}

    def opens(*turns: dict[str, Any]) -> tuple[int, str]:
        told = {"names": ["A", "B"], "winners": [], "hands": ["", ""], "lie": "bluff", "turns": turns}
        return opening(told)

    assert opens(lie, play, lie, doubt, lie, doubt) == (4, "first caught bluff")
    assert opens(lie, play, lie, lie) == (4, "longest run of lies")
    assert opens(play, doubt, play) == (0, "")
    said = {"movers": [0, 1, 2], "marks": ["bluff"], "let_pass": {1: "let it pass", 2: "let it pass"}}
    caught = {**said, "let_pass": {1: "let it pass"}}
    in_words = {"names": ["A"], "winners": [], "lie": "bluff", "turns": [said, caught]}
    assert opening(in_words) == (2, "first caught bluff")
    assert opening({**in_words, "turns": [said]}) == (0, "")
