"""Charts in a real browser, with awkward names and numbers."""

import json
from pathlib import Path

from tests.chromium import Chrome
from tests.report.kit import hand_written, report_of


def test_long_name_does_not_stretch_a_chart(tmp_path: Path, chrome: Chrome) -> None:
    """Beside the chart stand three lines of it, in the table all."""
    name = "a bot of " + "many words " * 20 + "x" * 100
    hand_written(tmp_path / "run", games=4, bots=[{"bot": "RandomBoi", "name": name}, "StefaBot"])
    chrome.screen(390)
    chrome.open(report_of(tmp_path / "run") / "index.html")
    assert chrome.run("document.querySelector('.drawing').clientHeight") < 2 * 60 + 80
    assert "…" in chrome.run("document.querySelector('.drawing').textContent")
    assert name in chrome.text("#ranking")
    assert chrome.run("document.documentElement.scrollWidth") <= 390


def test_both_names_of_a_pair_fit_on_a_phone(tmp_path: Path, chrome: Chrome) -> None:
    """However long the first one's name is; else two lines of a chart would be called alike."""
    long = [{"bot": bot, "name": f"{name} of many words"} for bot, name in (("ClaudeBot", "one"), ("MrDoubt", "two"))]
    contenders = [{"bot": "StefaBot", "name": "a first that takes three lines"}, *long]
    hand_written(tmp_path / "run", games=12, bots=["RandomBoi"], contenders=contenders)
    chrome.screen(390)
    chrome.open(report_of(tmp_path / "run") / "index.html")
    drawn = chrome.run("[...document.querySelectorAll('.drawing')][1].textContent").replace(" ", "").replace("\n", "")
    assert drawn.count("against") == 3
    assert drawn.count("againsttwoofmanywords") + drawn.count("againstoneofmanywords") >= 2


def test_points_at_the_end_of_an_axis_are_visible(bots_run: Path, chrome: Chrome) -> None:
    """A symbol at 0 reaches over the axis, and nothing cuts it off."""
    chrome.open(bots_run / "report" / "neighbours.html")
    series = json.loads(chrome.text("figure.chart script"))["series"]
    assert 0 in {point[0] for one in series for point in one["points"]}
    assert chrome.run("document.querySelectorAll('.drawing [clip-path]').length") == 0
