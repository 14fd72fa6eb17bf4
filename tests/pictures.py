"""Make the pictures of the README and the docs: `python -m tests.pictures`, a minute of CPU, no key."""

import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from dubito.cli.company import open_opponents
from tests.chromium import start_browser
from tests.web.kit import serve

REPO = Path(__file__).parent.parent
REAL_RUN = REPO / "examples" / "runs" / "smollm2.zip"
DEAL = """
(() => {
  localStorage.setItem('dubito speed', '0');
  const form = document.querySelector('#lobby');
  form.size.value = '5';
  form.size.dispatchEvent(new Event('change'));
  form.seed.value = '11';
  form.seat.value = '2';
  form.requestSubmit();
})()
"""


def pictures(into: Path) -> None:
    """Take pictures of a real model's report, two prompts side by side, the viewer, and the table in mid-game."""
    subprocess.run([sys.executable, "-m", "dubito", "report", REAL_RUN, "--output", "report"], check=True)
    games = Path("games")
    with (
        open_opponents(None, None, games, int(time.time() * 1000), lambda: False) as company,
        serve(games, opponents=company) as server,
        start_browser() as chrome,
    ):
        chrome.screen(1100, 900)
        chrome.open(Path("report/index.html"))
        chrome.screenshot(into / "report.webp")
        chrome.open(Path("report/compare-6.html"))
        chrome.run("[...document.querySelectorAll('h2')].at(-1).scrollIntoView()")
        chrome.screenshot(into / "compare.webp")
        chrome.screen(1440, 900)
        chrome.open(Path("report/index.html"))
        boldest = chrome.run(
            "[...document.links].find(one => one.textContent.includes('Boldest')).getAttribute('href')"
        )
        file, _, turn = boldest.partition("#")
        chrome.open(Path("report") / file, f"#{turn}")
        chrome.screenshot(into / "viewer.webp")
        chrome.screen(1440, 740)
        chrome.open(f"http://127.0.0.1:{server.port}/")
        chrome.run(DEAL)
        chrome.until("document.querySelector('#own.asked .card') !== null")
        chrome.screenshot(into / "table.webp")


if __name__ == "__main__":
    with TemporaryDirectory() as home:
        os.chdir(home)
        pictures(REPO / "docs" / "images")
