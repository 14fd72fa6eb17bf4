"""The site that plays without Python, in a real browser: whole games, and offline after the first visit.

This needs the package index and the npm registry.
"""

import html
import json
import re
import subprocess
import sys
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Final

import pytest

from dubito.web.in_page import InPage
from tests.chromium import CHROMIUM, Chrome, start_browser
from tests.test_project import REPO

MAX_BYTES: Final = 12_000_000  # of the first visit
PAGE: Final = "document.querySelector('#page').contentWindow"
PAGE_DOCUMENT: Final = f"{PAGE}.document"
RESTS: Final = (
    f"({PAGE_DOCUMENT}.querySelector('#own.asked') || {PAGE_DOCUMENT}.querySelector('#end')?.hidden === false)"
)
STARTED: Final = """
new Promise((done) => {
  const check = () => {
    const fault = document.querySelector('#fault').textContent;
    if (fault || !document.querySelector('#page').hidden) done(fault);
  };
  new MutationObserver(check).observe(document.body, { attributes: true, childList: true, subtree: true });
  check();
})
"""
LOBBY: Final = f"{PAGE}.location.pathname.endsWith('/app/') && {PAGE_DOCUMENT}.querySelector('#scene .seat')"
DEAL: Final = f"""
(() => {{
  localStorage.setItem('dubito speed', '0');
  const form = {PAGE_DOCUMENT}.querySelector('#lobby');
  form.seat.value = '0';
  form.seed.value = '1';
  form.requestSubmit();
}})()
"""
RECORD_MOVES: Final = f"""
(() => {{
  const ask = {PAGE}.fetch;
  window.moves = [];
  {PAGE}.fetch = (path, options) => {{
    if (path === 'api/moves') moves.push(options.body);
    return ask(path, options);
  }};
}})()
"""
A_MOVE: Final = f"""
(() => {{
  const find = (what) => {PAGE_DOCUMENT}.querySelector(what);
  const doubt = find('#answer .other');
  if (doubt && {PAGE_DOCUMENT}.querySelectorAll('#log li').length % 3 === 0) doubt.click();
  else {{ find('#hand button').click(); find('#put').click(); }}
}})()
"""
SHARE: Final = f"""
new Promise((done) => {{
  HTMLAnchorElement.prototype.click = async function () {{
    done([this.download, await (await fetch(this.href)).text()]);
  }};
  {PAGE_DOCUMENT}.querySelector('#share').dispatchEvent(new MouseEvent('click', {{ bubbles: true, cancelable: true }}));
}})
"""


class Files(SimpleHTTPRequestHandler):
    """A plain file server, which compresses nothing."""

    sent = 0

    def copyfile(self, source: Any, outputfile: Any) -> None:
        content = source.read()
        Files.sent += len(content)
        outputfile.write(content)

    def log_message(self, *words: object) -> None:
        """Log nothing."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("root")
    words = (sys.executable, REPO / "scripts" / "play" / "build.py", root / "some" / "where")
    try:
        done = subprocess.run(words, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("needs npm and node")
    if done.returncode:
        pytest.skip(f"needs npm, node and the registries: {done.stderr[-300:]}")
    return root


@contextmanager
def serve_files(root: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Files, directory=str(root))) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/some/where/"
        finally:
            server.shutdown()
            thread.join()


def open_page(chrome: Chrome, address: str, shown: str) -> None:
    chrome.open("about:blank")
    chrome.open(address)
    assert chrome.run(STARTED) == ""
    chrome.until(shown)


def record_of_page(page: str) -> Any:
    return json.loads(b64decode(page.partition("data:application/json;base64,")[2].partition('"')[0]))


@pytest.mark.at_length
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_whole_game_in_the_page_is_the_same_as_here_and_works_offline(site: Path, tmp_path: Path) -> None:
    with start_browser() as chrome:
        with serve_files(site) as address:
            open_page(chrome, address, LOBBY)
            assert Files.sent < MAX_BYTES
            chrome.run(DEAL)
            chrome.until(f"{PAGE}.location.pathname.endsWith('/app/table') && {RESTS}")
            chrome.run(RECORD_MOVES)
            while chrome.run(f"{PAGE_DOCUMENT}.querySelector('#end').hidden"):
                chrome.run(A_MOVE)
                chrome.until(RESTS)
            moves, (name, shared) = chrome.run("moves"), chrome.run(SHARE)
            assert (name, chrome.run("location.hash")) == ("game.html", "#/table")
            assert chrome.errors == []
        record = record_of_page(shared)
        here = InPage(tmp_path, "https://me.example/play/")
        setup = {"bots": record["players"][1:], "seed": 1, "seat": 0}
        here.visit("POST", "/api/table", json.dumps(setup))
        for move in moves:
            document = json.loads(here.visit("POST", "/api/moves", json.dumps({**json.loads(move), "table": None})))
            assert document["status"] == 200
        (kept,) = tmp_path.glob("*.json")
        assert json.loads(kept.read_text()) == record
        # The server is gone.
        (invitation,) = re.findall(rf'href="({re.escape(address)}[?][^"]+)"', shared)
        invited = f"{PAGE_DOCUMENT}.querySelector('#invited')?.hidden === false"
        open_page(chrome, html.unescape(invitation), invited)
        assert (
            chrome.run(f"{PAGE_DOCUMENT}.querySelector('#against').textContent")
            == f"You play against {', '.join(setup['bots'])}."
        )
        chrome.run(f"{PAGE}.location.assign({PAGE_DOCUMENT}.querySelector('nav a[href=games]').href)")
        chrome.until(f"{PAGE_DOCUMENT}.querySelector('.saved li a')")
