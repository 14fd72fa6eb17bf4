"""Every forbidden request gets a clear 4xx with one sentence, and changes nothing."""

import http.client
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.web.kit import Answer, Browser, WebServer, serve

Request = Callable[[Browser, Any], Answer]


def _move(**move: Any) -> Request:
    return lambda browser, view: browser.post("/api/moves", {"turn": view["turn"], "answer": move})


def _raw(body: bytes, **headers: str) -> Request:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda browser, _: browser("POST", "/api/moves", body, named)


def _legal(view: Any, number: int | None = 7) -> dict[str, Any]:
    cards = view["frames"][-1]["question"]["options"][:1]
    return {"turn": view["turn"], "answer": {"cards": cards, "number": number}}


def _from(**headers: str) -> Request:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda browser, view: browser.post("/api/moves", _legal(view), named)


REQUESTS: dict[str, tuple[Request, int, str]] = {
    "no cards": (_move(cards=[], number=1), 400, "0 cards were played; play 1 to 3."),
    "number 99": (
        lambda browser, view: browser.post("/api/moves", _legal(view, 99)),
        400,
        "An opening must declare a number from 1 to 13, not 99.",
    ),
    "doubt of nothing": (_move(doubt=True), 400, "An empty board has no play to doubt."),
    "a bool as a card": (_move(cards=[True], number=1), 400, "The deck has no card of type bool."),
    "a number as a doubt": (_move(doubt=1), 400, "Doubt must be True or False, not of type int."),
    "unknown field": (_move(doubt=True, hand=[1]), 400, "This move cannot be read: give `doubt`, "),
    "no answer": (_raw(b'{"turn": 0}'), 400, "Invalid request: answer: "),
    "an answer of another game": (
        lambda browser, view: browser.post("/api/moves", {"turn": view["turn"], "answer": True}),
        400,
        "This move cannot be read: give `doubt`, ",
    ),
    "an earlier turn": (
        lambda browser, view: browser.post("/api/moves", _legal(view) | {"turn": -1}),
        409,
        "This move is for turn -1, but 0 turns have been played.",
    ),
    "no JSON": (_raw(b"{"), 400, "Invalid request: the body: "),
    "no UTF-8": (_raw(b'{"turn": "\xff"}'), 400, "Invalid request: "),
    "deep nesting": (_raw(b"[" * 4000), 400, "Invalid request: "),
    "a doubled key": (_raw(b'{"turn": 0, "turn": 0, "answer": {}}'), 400, "Invalid request: a key appears twice."),
    "oversized": (_raw(b" " * 5000), 413, "The body is longer than 4,096 bytes."),
    "a form": (_from(Content_Type="application/x-www-form-urlencoded"), 415, "The body must be application/json."),
    "another site's origin": (_from(Origin="http://evil.example"), 403, "Requests from other sites are not allowed."),
    "no origin": (_from(Origin="null"), 403, "Requests from other sites are not allowed."),
    "a broken origin": (_from(Origin="http://["), 403, "Requests from other sites are not allowed."),
    "cross-site": (_from(Sec_Fetch_Site="cross-site"), 403, "Requests from other sites are not allowed."),
    "same-site": (_from(Sec_Fetch_Site="same-site"), 403, "Requests from other sites are not allowed."),
    "wrong Host": (
        _from(Host="evil.example"),
        421,
        "This server does not recognise the host name in the request. If the name is yours, start ",
    ),
    "a foreign address as Host": (_from(Host="192.0.2.1"), 421, "This server does not recognise "),
    "a Host with a user": (_from(Host="evil@127.0.0.1"), 421, "This server does not recognise "),
    "a broken Host": (_from(Host="[::1"), 421, "This server does not recognise "),
}


@pytest.fixture(scope="module")
def seated(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with serve(tmp_path_factory.mktemp("games")) as server:
        browser = server.browser()
        yield server, browser, browser.sit(seat=0)


def test_move_in_an_abandoned_game_is_refused(browser: Browser) -> None:
    first = browser.sit(seat=0, seed=1)
    second = browser.sit(seat=0, seed=2)
    refused = browser.post("/api/moves", _legal(second) | {"table": first["table"]})
    assert (refused.status, refused.json["error"]) == (
        409,
        "This move is for a game that you left.",
    )
    assert browser.view() == second
    assert browser.post("/api/moves", _legal(second) | {"table": second["table"]}).status == 200


def test_invalid_request_is_refused_and_changes_nothing(
    seated: tuple[WebServer, Browser, Any], subtests: pytest.Subtests
) -> None:
    for name in REQUESTS:
        with subtests.test(name=name):
            server, browser, view = seated
            request, status, sentence = REQUESTS[name]
            before = _files(server)
            answer = request(browser, view)
            assert (answer.status, list(answer.json)) == (status, ["error"]), answer
            assert answer.json["error"].startswith(sentence), answer
            assert answer.json["error"].count("\n") == 0
            assert answer.headers["content-type"] == "application/json"
            assert _files(server) == before
            assert browser.view() == view


def _files(server: WebServer) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in server.folder.rglob("*.json")}


def test_legal_move_with_browser_headers_is_accepted(server: WebServer, browser: Browser) -> None:
    for host in (f"127.0.0.1:{server.port}", f"localhost:{server.port}", "localhost:9000", "[::1]:1"):
        headers = {"Host": host, "Origin": f"http://{host}", "Sec-Fetch-Site": "same-origin"}
        assert browser.post("/api/moves", _legal(browser.sit(seat=0)), headers).status == 200


def test_no_move_after_the_end(browser: Browser) -> None:
    end = browser.to_the_end(browser.sit())
    answer = browser.post("/api/moves", {"turn": end["turn"], "answer": {"cards": [1], "number": 1}})
    assert (answer.status, answer.json) == (409, {"error": "The game is over."})


def test_stranger_has_no_game(server: WebServer, browser: Browser) -> None:
    view = browser.sit(seat=0)
    assert browser.cookie is not None
    name = browser.cookie.partition("=")[0]
    for cookie in (None, *(f"{name}={secret}" for secret in ("", "x", "../../games", '"', "ä" * 300))):
        stranger = Browser(server.port, cookie)
        for answer in (stranger("GET", "/api/table"), stranger.post("/api/moves", _legal(view))):
            assert (answer.status, answer.json) == (404, {"error": "You have no game here. Start one first."})
    assert browser.view() == view


IMPOSSIBLE: list[tuple[dict[str, Any], str]] = [
    ({"bots": ["ClaudeBot"]}, "Dubito needs 3 to 8 players, not 2; two players need the `duel` variant."),
    ({"bots": ["ClaudeBot"] * 8}, "Dubito needs 3 to 8 players, not 9."),
    ({"bots": ["ClaudeBot"] * 32}, "Invalid request: bots: "),
    ({"bots": []}, "Invalid request: bots: "),
    ({"game": "chess"}, "Unknown game 'chess'; "),
    ({"bots": ["ClaudeBot", "ClaudBot"]}, "Unknown player 'ClaudBot'; did you mean 'ClaudeBot'?"),
    ({"bots": ["ClaudeBot", "OpenAIBot"]}, "Unknown player 'OpenAIBot'; "),
    ({"rules": {"jokers": 3}}, "Rules: jokers: "),
    ({"rules": {"win_rule": "never"}}, "Rules: win_rule: "),
    ({"rules": {"cards": 3}}, "Rules: cards: "),
    ({"jokers": 2}, "Invalid request: jokers: "),
    ({"seat": 4}, "Seat: 4 is not between 0 and 3."),
    ({"seat": -1}, "Seat: -1 is not between 0 and 3."),
    ({"seed": -1}, "Invalid request: seed: "),
    ({"seed": 2**53}, "Invalid request: seed: "),
    ({"seed": 1.5}, "Invalid request: seed: "),
    ({"hands": []}, "Invalid request: hands: "),
]


def test_invalid_table_is_refused(server: WebServer, browser: Browser, subtests: pytest.Subtests) -> None:
    for asked, sentence in IMPOSSIBLE:
        with subtests.test(asked=asked, sentence=sentence):
            answer = browser.post("/api/table", {"bots": ["ClaudeBot", "StefaBot", "MrDoubt"]} | asked)
            assert answer.status == 400
            assert answer.json["error"].startswith(sentence)
            assert browser.cookie is None
            assert _files(server) == {}


def test_unrepeatable_bot_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bots" / "manual").mkdir(parents=True)
    source = "import secrets\nfrom bots.base import BotBase\nclass Dicer(BotBase): ...\n"
    (tmp_path / "bots" / "manual" / "dicer.py").write_text(source)
    with serve(tmp_path) as server:
        answer = server.browser().post("/api/table", {"bots": ["Dicer", "StefaBot"]})
        assert (answer.status, answer.json["error"][:46]) == (400, "Dicer uses unseeded randomness, so its games c")
        assert "Dicer" not in server.browser()("GET", "/").text


def test_unknown_page_is_not_found(browser: Browser, subtests: pytest.Subtests) -> None:
    for method, path, status in [
        ("GET", "/nowhere", 404),
        ("GET", "/games/none", 404),
        ("GET", "/games/..%2Frunning%2Fx", 404),
        ("GET", "/static/../app.py", 404),
        ("GET", "/static/%2e%2e/app.py", 404),
        ("GET", "/viewer/nothing.js", 404),
        ("GET", "/viewer/%2e%2e/render.py", 404),
        ("GET", "/static", 404),
        ("GET", "/api/table/", 404),
        ("GET", "/api/moves", 405),
        ("GET", "/api/table?since=x", 400),
        ("GET", "/rules?players=9", 400),
        ("GET", "/rules?jokers=-1", 400),
        ("GET", "/rules?win_rule=%3Cscript%3E", 400),
        ("DELETE", "/api/table", 405),
        ("PUT", "/", 405),
        ("DELETE", "/static/icon.svg", 405),
    ]:
        with subtests.test(method=method, path=path, status=status):
            answer = browser(method, path)
            assert answer.status == status
            assert (status == 405) == ("allow" in answer.headers)
            assert "<script>" not in answer.text
            if path.startswith("/api/"):
                assert list(answer.json) == ["error"]


def test_other_sites_can_link_but_not_post(browser: Browser) -> None:
    browser.sit()
    away = {"Sec-Fetch-Site": "cross-site"}
    assert browser("GET", "/table", headers=away).status == 200
    assert browser("GET", "/api/table", headers=away).status == 403


def test_responses_have_security_headers(browser: Browser) -> None:
    browser.sit()
    pages = ("/", "/table", "/rules", "/games", "/nowhere")
    for path in (*pages, "/static/play.js", "/viewer/viewer.js", "/api/table", "/api/nowhere"):
        headers = browser("GET", path).headers
        assert headers["content-security-policy"].startswith("default-src 'self'; ")
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in headers


def test_cookie_is_same_site_and_http_only(browser: Browser) -> None:
    cookie = browser.post("/api/table", {"bots": ["ClaudeBot", "StefaBot"]}).headers["set-cookie"].casefold()
    assert "; httponly" in cookie
    assert "; samesite=strict" in cookie
    assert len(browser.cookie or "") >= 32


def test_chunked_body_is_limited_as_a_whole(server: WebServer, browser: Browser) -> None:
    browser.sit(seat=0)
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    headers = {"Content-Type": "application/json", "Cookie": str(browser.cookie)}
    connection.request("POST", "/api/moves", (b" " * 1000 for _ in range(9)), headers, encode_chunked=True)
    answer = connection.getresponse()
    assert (answer.status, json.loads(answer.read())) == (413, {"error": "The body is longer than 4,096 bytes."})
    connection.close()
