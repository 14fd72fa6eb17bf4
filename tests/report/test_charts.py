"""Charts in a real browser, with awkward names and numbers."""

import json
from pathlib import Path

from tests.chromium import Chrome
from tests.report.kit import hand_written, report_of


def test_long_name_does_not_stretch_a_chart(tmp_path: Path, chrome: Chrome) -> None:
    """Next to a chart the name has at most three lines; the table shows all of it."""
    name = "a bot of " + "many words " * 20 + "x" * 100
    hand_written(tmp_path / "run", games=4, bots=[{"bot": "RandomBoi", "name": name}, "StefaBot"])
    chrome.screen(390)
    chrome.open(report_of(tmp_path / "run") / "strategy.html")
    assert chrome.run("document.querySelector('.drawing').clientHeight") < 2 * 60 + 80
    assert "…" in chrome.run("document.querySelector('.drawing').textContent")
    assert name in chrome.text("#habits")
    for page in ("strategy.html", "index.html"):
        chrome.open(tmp_path / "run" / "report" / page)
        assert chrome.run("document.documentElement.scrollWidth") <= 390


def test_points_at_the_end_of_an_axis_are_visible(bots_run: Path, chrome: Chrome) -> None:
    """A symbol at 0 extends beyond the axis and is not cut off."""
    chrome.open(bots_run / "report" / "neighbours.html")
    series = json.loads(chrome.text("figure.chart script"))["series"]
    assert 0 in {point[0] for one in series for point in one["points"]}
    assert chrome.run("document.querySelectorAll('.drawing [clip-path]').length") == 0
