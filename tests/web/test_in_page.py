"""The pages without a server, as a worker in the visitor's browser asks for them."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dubito.web.in_page import InPage
from tests.web.kit import BOTS, WebServer, a_move

UNUSABLE_THERE = ("resource", "multiprocessing", "ssl", "starlette", "uvicorn", "diskcache", "openai", "anthropic")
LOADS = f"""
import sys
from importlib.abc import MetaPathFinder

class Forbidden(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        assert name.partition(".")[0] not in {UNUSABLE_THERE}, name

sys.meta_path.insert(0, Forbidden())
from pathlib import Path
from dubito.web.in_page import InPage
site = InPage(Path("games"), "")
for page in ("/", "/?game=bs", "/rules", "/games", "/table"):
    assert '"status": 200' in site.visit("GET", page), page
"""


def visit(site: InPage, method: str, address: str, body: Any = None) -> tuple[int, dict[str, str], Any]:
    document = json.loads(site.visit(method, address, "" if body is None else json.dumps(body), "Ada"))
    is_json = document["headers"]["Content-Type"].startswith("application/json")
    return document["status"], document["headers"], json.loads(document["text"]) if is_json else document["text"]


def play(site: InPage, **asked: Any) -> Any:
    _, _, view = visit(site, "POST", "/api/table", {"bots": BOTS, "seed": 1, "seat": 0, **asked})
    while not view["over"]:
        assert view["asked"]
        move = {"turn": view["turn"], "answer": a_move(view["frames"][-1])}
        status, _, view = visit(site, "POST", "/api/moves", move)
        assert status == 200, view
    return view


def test_the_pages_load_nothing_that_a_browser_lacks(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", LOADS], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_game_is_the_same_as_on_a_server(tmp_path: Path, server: WebServer) -> None:
    end = play(InPage(tmp_path, "https://me.example/play/"))
    browser = server.browser()
    served = browser.to_the_end(browser.sit(seat=0))
    mine, theirs = ((folder / f"{one['record']}.json") for folder, one in ((tmp_path, end), (server.folder, served)))
    assert mine.read_text() == theirs.read_text()
    assert end["frames"][-1] == served["frames"][-1]


def test_games_are_kept_shown_and_shared(tmp_path: Path) -> None:
    record = play(InPage(tmp_path, "https://me.example/play/"))["record"]
    site = InPage(tmp_path, "https://me.example/play/")  # the page was loaded again
    assert visit(site, "GET", "/api/table")[2]["record"] == record
    assert f'<a href="games/{record}">' in visit(site, "GET", "/games")[2]
    assert '<a href="../games">Saved games</a>' in visit(site, "GET", f"/games/{record}")[2]
    status, headers, page = visit(site, "GET", f"/games/{record}/share")
    assert (status, headers["Content-Disposition"]) == (200, 'attachment; filename="game.html"')
    assert "Ada" in page


def test_page_serves_static_files_and_refuses_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = InPage(tmp_path, "https://me.example/play/")
    for path, kind in (("/static/play.js", "text/javascript"), ("/viewer/felt.css", "text/css")):
        status, headers, _ = visit(site, "GET", path)
        assert (status, headers["Content-Type"]) == (200, f"{kind}; charset=utf-8")
        assert headers["Content-Security-Policy"].startswith("default-src 'self'; ")
    for path in ("/nowhere", "/static/../site.py", "/static/", "/games/none", "/games/..%2Frunning%2Fsecret"):
        assert visit(site, "GET", path)[0] == 404, path
    assert visit(site, "GET", "/api/table")[::2] == (404, {"error": "You have no game here. Start one first."})
    assert visit(site, "POST", "/api/table", {"bots": ["Nobody"]})[0] == 400
    monkeypatch.setattr("dubito.web.site.PlaySite.answer", lambda *_: 1 / 0)
    broken = {"error": "An internal error occurred; see the browser's console."}
    assert visit(site, "GET", "/api/table")[::2] == (500, broken)
