"""Make the pictures for the README and the docs: `python -m tests.pictures`.

It takes a minute of CPU time and needs no key.
"""

import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image

from dubito.cli.opponents import open_opponents
from tests.chromium import start_browser
from tests.web.kit import serve

REPO = Path(__file__).parent.parent
# The run in the README: three hand-written bots in the same seat of 100 deals.
RUN = ("--contenders", "Sherlock,ClaudeBot,AdaptyBoi", "--table-sizes", "4", "--games", "300", "--seed", "5")
CAUGHT = 0, 8  # one of its games, and the turn in which a bluff is caught
STATES = (  # of the doubt, with the milliseconds that each is shown
    ("document.querySelector('#play').textContent.includes('Pause')", 2500),
    ("document.querySelector('.table').dataset.scene === 'call'", 1500),
    ("document.querySelectorAll('.reveal .turned').length === 1", 700),
    ("document.querySelectorAll('.reveal .turned').length === 2", 700),
    ("document.querySelectorAll('.reveal .turned').length === 3", 900),
    ("document.querySelector('.reveal .stamp') !== null", 2500),
    ("document.querySelector('.table').dataset.scene === 'flight'", 900),
    ("document.querySelector('.table').dataset.scene === undefined", 5000),
)
ONLY_THE_TABLE = """
(() => {
  const style = document.createElement('style');
  style.textContent = `.top, h1, #about, .side, .keys, .transport > :not(#said, #thoughts), .thought > :not(q),
    .thought:not(:first-child) { display: none !important } .thought { all: unset !important }
    main, .viewer, .stage { margin: 0 !important; padding: 0 !important } body { background: white !important }
    q { font-size: 1.3rem }`;
  document.head.append(style);
  scrollTo(0, 0);
})()
"""
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
    """Take pictures of a report, two contenders side by side, the viewer, and the table in mid-game."""
    subprocess.run([sys.executable, "-m", "dubito", "run", *RUN, "--output", "real", "--no-report"], check=True)
    subprocess.run([sys.executable, "-m", "dubito", "report", "real", "--output", "report"], check=True)
    games = Path("games")
    with (
        open_opponents(None, None, games, int(time.time() * 1000), lambda: False) as opponents,
        serve(games, opponents=opponents) as server,
        start_browser() as chrome,
    ):
        chrome.screen(1100, 900)
        chrome.open(Path("report/index.html"))
        chrome.screenshot(into / "report.webp")
        chrome.open(Path("report/compare.html"))
        chrome.screenshot(into / "compare.webp")
        chrome.screen(1440, 900)
        game, caught = CAUGHT
        chrome.open(Path("report", "games", f"{game}.html"), f"#turn-{caught}")
        chrome.screenshot(into / "viewer.webp")
        chrome.screen(1440, 740)
        chrome.open(f"http://127.0.0.1:{server.port}/")
        chrome.run(DEAL)
        chrome.until("document.querySelector('#own.asked .card') !== null")
        chrome.screenshot(into / "table.webp")


def moving_picture(file: Path) -> None:
    """Draw a doubt of the report's run as an animated picture, state by state."""
    (game, caught), frames = CAUGHT, list[Image.Image]()
    with start_browser() as chrome:
        chrome.screen(900, 570)
        chrome.open(Path("report", "games", f"{game}.html"), f"#turn-{caught - 1}")
        chrome.run(ONLY_THE_TABLE)
        chrome.run("document.querySelector('#speed').append(new Option('slow', '12000', true, true))")
        chrome.run("document.querySelector('#seats > li:nth-child(2)').click()")  # not the hand of the seat that lies
        chrome.run("document.querySelector('#play').click()")
        for condition, _ in STATES:
            chrome.until(condition)
            chrome.screenshot(shot := Path("shot.png"))
            frames.append(Image.open(shot).convert("RGB"))
    times = [time for _, time in STATES]
    frames[0].save(file, save_all=True, append_images=frames[1:], duration=times, loop=0, quality=80)


if __name__ == "__main__":
    with TemporaryDirectory() as home:
        os.chdir(home)
        pictures(REPO / "docs" / "images")
        moving_picture(REPO / "docs" / "images" / "bluff.webp")
