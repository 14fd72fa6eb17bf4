"""The report's page about lies: its links lead to the right turns."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from dubito.report.site import write_report
from dubito.report.tables import Tiles
from dubito.stats.rates import Rate
from dubito.store.folder import pack, unpack
from tests.report.kit import Page, data, played


def linked(report: Path, address: str) -> tuple[Any, Any]:
    file, _, turn = address.partition("#turn-")
    (game,) = Page(report / file).json
    return game["turns"][int(turn) - 1], [*game["turns"], {"truth": []}][int(turn)]  # nothing follows the last turn


def test_boldest_lie_exists_and_was_not_caught(models_run: Path) -> None:
    report = models_run / "report"
    page = (report / "index.html").read_text()
    found = re.findall(r'<a href="([^"]*)">Boldest bluff</a> (\d) card', page)
    assert found
    for address, cards in found:
        turn, after = linked(report, address)
        assert (turn["marks"], len(played(turn))) == (["bluff"], int(cards))
        assert played(after), "the lie was not doubted"


@pytest.mark.parametrize("which", ["models_run", "stating_run"])
def test_best_lies_and_worst_mistakes_are_correct(which: str, request: pytest.FixtureRequest) -> None:
    """The viewer marks the same decisions as mistakes.

    Letting a lie pass is one only for players that stated a probability.
    """
    report = request.getfixturevalue(which) / "report"
    mistakes = {"let a bluff pass": "let a bluff pass", "false doubt": "doubted an honest play"}
    seen = set()
    for path in sorted(report.glob("data/bot-*-lies-moments.json")):
        rows = json.loads(path.read_text())["rows"]
        links = re.findall(r'<a href="../(games/\d+.html#turn-\d+)">game', bot_page(path).read_text())
        assert len(rows) == len(links)
        for row, address in zip(rows, links, strict=True):
            turn, after = linked(report, address)
            if row["which"] == "mistake" and "As a model player" in bot_page(path).read_text():
                file, _, number = address.partition("#turn-")
                (text,) = [one["wrong"] for one in judged(report / file) if one["turn"] == int(number)]
                assert text == mistakes[row["what"]]
                assert row["what"] == "false doubt" or row["stated"] > 0.5
            elif row["which"] != "mistake":
                assert turn["marks"] == ["bluff"]
                assert bool(played(after)) == (row["which"] == "successful bluff")
            seen.add(row["what"])
    assert "false doubt" in seen
    assert which == "models_run" or "let a bluff pass" in seen


def judged(page: Path) -> list[Any]:
    (game,) = Page(page).json
    return [one for one in game["decisions"] if one.get("mistake")]


def test_viewer_marks_missed_lies_only_if_thought_likely(stating_run: Path) -> None:
    seen = set()
    for page in (stating_run / "report" / "games").glob("*.html"):
        (game,) = Page(page).json
        for one in game["decisions"]:
            if "wrong" in one:
                likely = one["wrong"] == "doubted an honest play" or (one["p_bluff"] or 0) > 0.5
                assert (one["mistake"], one["outcome"].startswith("model")) == (likely, True)
                seen.add((one["wrong"], likely))
    passed = {("let a bluff pass", so) for so in (False, True)}
    assert seen == {("doubted an honest play", True), *passed}


def bot_page(path: Path) -> Path:
    return path.parents[1] / "bots" / f"{path.name.split('-')[1]}.html"


def test_story_parts_are_complete_and_correct(stating_run: Path) -> None:
    report = stating_run / "report"
    found = sorted(report.glob("data/bot-*-lies-against.csv"))
    assert found
    for path in found:
        key = path.name.removesuffix("-lies-against.csv")
        whole = data(report, f"{key}-lies")[0]
        own = whole | {name.replace("_share", ""): value for name, value in whole.items() if "_share" in name}
        against = data(report, f"{key}-lies-against")
        assert sum(row["hits"] * row["met"] for row in against if row["met"]) == pytest.approx(
            own["hits"] * sum(row["met"] for row in against)
        )
        text = bot_page(path).read_text()
        for rate in ("chosen", "forced", "caught", "hits", "alarms"):
            value, low, high = (f"{100 * own[f'{rate}{end}']:.1f}" for end in ("", "_low", "_high"))
            assert f"{value} % [{low}, {high}]" in text
        assert ("It can tell bluffs from honest plays." in text) == (own["hits_low"] > own["alarms_high"])


def test_title_answers_and_names_kinds(bots_run: Path, models_run: Path) -> None:
    title, early = (
        re.search("<title>(.*?) – run", (run / "report/index.html").read_text())  # noqa: RUF001, as on the page
        for run in (bots_run, models_run)
    )
    assert title is not None
    assert early is not None
    assert title[1].startswith("StefaBot beats ")
    assert early[1] == "It is too early to name a winner."


def test_page_of_a_bot_links_its_caught_bluffs_and_false_doubts(bots_run: Path) -> None:
    seen = set()
    for path in bots_run.glob("report/data/bot-*-lies-moments.json"):
        rows = json.loads(path.read_text())["rows"]
        seen |= {row["which"] for row in rows}
        for which in ("caught bluff", "mistake"):
            piles = [row["pile"] for row in rows if row["which"] == which]
            assert piles == sorted(piles, reverse=True), "the most expensive comes first"
        links = re.findall(r'<a href="../(games/\d+.html#turn-\d+)">game', bot_page(path).read_text())
        for row, address in zip(rows, links, strict=True):
            turn, after = linked(bots_run / "report", address)
            assert bool(played(turn)) == (row["which"] != "mistake")
            assert bool(played(after)) == (row["which"] == "successful bluff") or row["which"] == "mistake"
    assert seen == {"successful bluff", "caught bluff", "mistake"}


def test_rates_of_few_cases_are_counts(models_run: Path) -> None:
    """Rates of fewer than ten cases are shown as greyed counts, in tables and cards."""
    page = (models_run / "report/index.html").read_text()
    few = re.findall(r'<td class="n few" data-sort="([\d.]+)">(\d+) of (\d+)</td>', page)
    assert few
    for value, count, cases in few:
        assert int(cases) < 10
        assert float(value) == pytest.approx(int(count) / int(cases))
    rates = {9: ("caught", "9 of 9", None), 10: ("caught", "100.0 %", Rate(1.0, 0.7, 1.0))}
    for cases, bar in rates.items():
        card = Tiles("a model", "model", "bots/0.html", [("caught", Rate(1.0, 0.7, 1.0, cases=cases))])
        assert [*card.bars()] == [bar]


def test_export_has_no_timestamp(bots_run: Path, tmp_path: Path) -> None:
    pack(bots_run, tmp_path / "run.zip")
    with unpack(tmp_path / "run.zip") as folder:
        page = write_report(folder, output=tmp_path / "r", games="0").read_text()
    found = [
        re.search(r'<p class="eyebrow">.* · (.*)60 games</p>', text)
        for text in (page, (bots_run / "report/index.html").read_text())
    ]
    assert [bool(found and found[1]) for found in found] == [False, True]
