"""What is told of lies and who tells them: links lead to the turns that they name."""

import re
from html import unescape
from pathlib import Path
from typing import Any

from dubito.report.site import write_report
from dubito.store.folder import pack, unpacked
from tests.report.kit import SCRIPT, Seen


def linked(report: Path, address: str) -> tuple[Any, Any]:
    """The turn that an address leads to, and the one after."""
    file, _, turn = address.partition("#turn-")
    (game,) = Seen(report / file).json
    return game["turns"][int(turn) - 1], game["turns"][int(turn)]


def test_the_boldest_lie_is_there_and_passed(models_run: Path) -> None:
    report = models_run / "report"
    page = (report / "index.html").read_text()
    found = re.findall(r'<a href="([^"]*)">Its boldest bluff</a>: game \d+, turn \d+: (\d) card', page)
    assert found
    for address, cards in found:
        turn, after = linked(report, address)
        assert (turn["marks"], len(turn["cards"])) == (["bluff"], int(cards))
        assert after["cards"], "it was let pass"


def test_the_title_says_who_played_whom_at_what(bots_run: Path, models_run: Path) -> None:
    titles = [re.search("<h1>(.*)</h1>", (run / "report/index.html").read_text()) for run in (bots_run, models_run)]
    against = f"asked again and fails {SCRIPT} against two bots at Dubito"
    assert [title and unescape(title[1]) for title in titles] == ["Four bots at Dubito", against]


def test_an_export_does_not_say_when_its_run_was_written(bots_run: Path, tmp_path: Path) -> None:
    pack(bots_run, tmp_path / "run.zip")
    with unpacked(tmp_path / "run.zip") as folder:
        page = write_report(folder, output=tmp_path / "r", games="0").read_text()
    said = [
        re.search(r'<p class="note">(.*)60 games</p>', text)
        for text in (page, (bots_run / "report/index.html").read_text())
    ]
    assert [bool(found and found[1]) for found in said] == [False, True]
