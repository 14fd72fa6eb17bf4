"""`dubito watch --web`: live games in the browser, and the games of a run."""

import re
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from dubito.cli.opponents import TableOrder, open_game
from dubito.cli.watch import play_live
from dubito.serve import listen, make_server
from dubito.show.opponents import Thought
from dubito.show.run import FollowedRun
from dubito.web.watching import GameSource, RunGames, SavedGame, watching_app
from tests.chromium import Chrome
from tests.cli.kit import run_in, start
from tests.llm.kit import Incoming, Response, Server, respond
from tests.web.kit import Browser, in_events, model_at

HOUSE = ("house:house-sharp@reasoned", "StefaBot", "MrDoubt")
RUN = ("run", "--bots", "StefaBot,UsualBot,ClaudeBot", "--table-sizes", "3", "--output", "runs/r", "--no-report")
SHOWS = "document.querySelector('#turn')?.textContent === {!r}"


def wanted(*names: str, **changes: Any) -> TableOrder:
    """Return a short game of these players."""
    usual: dict[str, Any] = {"game": "dubito", "seed": 0, "deal": 0, "on_bot_error": "stop", "bot_deadline": None}
    rules: Mapping[str, Any] = {"max_turns": 4}
    more: dict[str, Any] = {"save": None, "config": None, "games": Path("games"), "server": {}, "rules": rules}
    return TableOrder(names=names, **usual | more | changes)


class Turns:
    """Blocks each turn until it is released."""

    def __init__(self) -> None:
        self._free = threading.Semaphore(0)

    def __call__(self) -> None:
        self._free.acquire(timeout=60)

    def go(self, turns: int = 1) -> None:
        self._free.release(turns)


@contextmanager
def served(shown: GameSource) -> Iterator[int]:
    """Serve the pages of these games."""
    listener = listen("127.0.0.1", 0)
    server = make_server(watching_app(shown, "127.0.0.1"))
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


def asks_news(page: str) -> str:
    found = re.search(r'"live":\{"game":(\d+),"news":"([^"]+)","mark":"(\w+)"\}', page)
    assert found is not None
    return f"{found[2]}?game={found[1]}&mark={found[3]}"


def test_reasons_appear_before_the_game_ends(chrome: Chrome, home: Path) -> None:
    turns = Turns()
    with play_live(wanted(*HOUSE), turns) as live, served(live) as port:
        chrome.screen(390)
        chrome.open(f"http://127.0.0.1:{port}/")
        chrome.until("document.querySelector('#seats .moved')?.textContent === 'is thinking …'")
        chrome.run("window.stays = true")
        turns.go()
        chrome.until(SHOWS.format("turn 1 of 1 so far"))
        assert chrome.text("#thoughts q").startswith(("I ", "Whoever ", "The "))
        assert chrome.text("h1") == "house:house-sharp@reasoned · StefaBot · MrDoubt"
        assert chrome.run((Path(__file__).parent / "contrast.js").read_text()) == []
        chrome.key("ArrowLeft")
        turns.go()
        chrome.until(SHOWS.format("deal (2 turns follow)"))  # a viewer who has stepped back stays there
        chrome.key("End")
        turns.go(2)
        chrome.until("document.title.includes('The game: nobody wins')")
        chrome.until(SHOWS.format("turn 4 of 4"))
        assert "The game stops after 4 turns" in chrome.text("#said")
        assert chrome.text("#seats").count("did not win") == 3
        assert chrome.run("window.stays && document.documentElement.scrollWidth") <= 390
        chrome.key("h")  # opens all hands
        chrome.key("h")
        assert chrome.run("document.querySelectorAll('#seats .card').length") == 0
        turns.go(9)


def test_models_words_appear_before_its_move(home: Path) -> None:
    shown, asked_again = threading.Event(), threading.Event()
    answers = iter([True])

    def slow(request: Incoming) -> Response:
        if not next(answers, False):
            asked_again.set()
            shown.wait(20)
        return respond(request.protocol)

    with Server(slow) as model:
        Path("c.yaml").write_text(yaml.safe_dump({"bots": [model_at(model)], "preflight": False}))
        with play_live(wanted("asker", "StefaBot", "MrDoubt", config=Path("c.yaml")), lambda: None) as live:
            live.on_page_open()
            assert asked_again.wait(20)
            data = live.data(0)
            assert (data["turns"], data["over"], data["to_move"], data["thinks"]) == ([], False, 0, True)
            assert [(one["turn"], one["question"]) for one in data["decisions"]] == [(1, "Open with a bluff?")]
            shown.set()


def test_models_words_appear_as_they_arrive(chrome: Chrome, home: Path) -> None:
    shown, words = threading.Event(), "A <b>queen</b> is"
    with Server(lambda _: in_events({"reasoning": f"{words} not here.", "answer": True}, len(words), shown)) as model:
        Path("c.yaml").write_text(yaml.safe_dump({"bots": [model_at(model, api="chat")], "preflight": False}))
        order = wanted("asker", "StefaBot", "MrDoubt", config=Path("c.yaml"))
        with play_live(order, lambda: None) as live, served(live) as port:
            chrome.open(f"http://127.0.0.1:{port}/")
            chrome.until("document.querySelector('#seats .thought') !== null")
            assert chrome.text("#seats .thought") == words
            assert chrome.text("#seats .moved") == "is thinking …"
            shown.set()
            chrome.until("document.title.includes('The game: nobody wins')")
            assert live.data(0)["decisions"][0]["attempts"][0]["reasoning"] == f"{words} not here."


@pytest.mark.parametrize(("game", "names"), [("bs", ("Player1",) * 4), ("defuse", ("Medium", "Scared"))])
def test_every_game_can_be_shown_at_each_turn(game: str, names: tuple[str, ...], home: Path) -> None:
    turns, seen = Turns(), 0
    with play_live(wanted(*names, game=game, rules={}), turns) as live:
        live.on_page_open()
        data = live.data(0)
        turns.go(1_000_000)
        while not data["over"]:
            data = live.data(0)
            assert len(data["turns"]) >= seen
            assert bool(data["ending"]) == data["over"]
            seen = len(data["turns"])
    assert "win" in data["final"]
    assert data["warnings"] == []


def test_reason_for_a_stopped_game_is_shown(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = home / "bots" / "manual"
    folder.mkdir(parents=True)
    (folder / "bad.py").write_text(
        "from bots.base import BotBase\nclass Bad(BotBase):\n    def play(self, p): return 7\n"
    )
    with play_live(wanted("StefaBot", "Bad", "MrDoubt"), lambda: None) as live:
        live.on_page_open()
        data = live.data(0)
        while not data["over"]:
            data = live.data(0)
    assert len(data["turns"]) == 1
    assert data["warnings"][0].startswith("Bad (seat 1) failed in game 0, deal 0, turn 2: ")
    assert capsys.readouterr().err.startswith("dubito: Bad (seat 1) failed")


def test_game_forfeited_at_seating_is_shown_as_over(home: Path) -> None:
    folder = home / "bots" / "manual" / "bs"
    folder.mkdir(parents=True)
    (folder / "bad.py").write_text(
        "from dubito.games.bs.bot import BSBot\nclass Bad(BSBot):\n    def observe(self, event): raise ValueError\n"
        "    def request_cards(self, n, t): return []\n    def bs(self, s, n, c, t): return False\n"
    )
    names = ("Player1", "Bad", "Player3", "Player4")
    with play_live(wanted(*names, game="bs", rules={}, on_bot_error="forfeit"), lambda: None) as live:
        live.on_page_open()
        until = time.monotonic() + 10
        while not (data := live.data(0))["over"] and time.monotonic() < until:
            pass
    assert data["over"]
    assert data["warnings"][0].startswith("Bad (seat 1) failed in game 0, deal 0, turn 1: observe raised ValueError")
    assert data["story"] == ["Bad has failed: the game is over, and nobody wins."]


def test_display_error_is_not_blamed_on_bots(home: Path) -> None:
    def nobody_reads(thought: Thought) -> None:
        raise BrokenPipeError

    with open_game(wanted("house:house-sharp", "StefaBot", "MrDoubt", on_bot_error="fallback")) as game:
        session = game.start(nobody_reads)
        with pytest.raises(BrokenPipeError):
            next(session)
        assert session.outputs == []


def test_newest_game_of_a_run_is_shown_to_this_site_only(home: Path) -> None:
    run_in(home, *RUN, "--games", "2", "--quiet")
    with closing(FollowedRun(Path("runs/r"), home)) as followed, served(RunGames(followed, "runs/r")) as port:
        browser = Browser(port)
        first = browser("GET", "/")
        assert (first.status, first.headers["location"]) == (307, "/games/1#play")
        page = browser("GET", "/games/1").text
        assert "Game 1 of the run r." in page
        news = asks_news(page)
        assert browser("GET", news).json == {"newest": 1, "ended": True}
        run_in(home, *RUN, "--games", "3", "--quiet")
        assert browser("GET", news).json == {"newest": 2, "ended": True}
        assert "Game 2 of the run r." in browser("GET", "/games/2").text
        for game in (7, 10**30):
            refused = browser("GET", f"/games/{game}")
            assert (refused.status, refused.text) == (400, f"Game {game} of the run is not finished.")
        assert browser("GET", "/api/news").status == 400
        assert browser("GET", news, headers={"Origin": "http://evil.example"}).status == 403
        assert browser("GET", "/games/1", headers={"Host": "evil.example"}).status == 421
        Path("runs/r").rename("runs/s")
        assert browser("GET", "/games/1").text.startswith("runs/r is not a run folder")
        Path("runs/s").rename("runs/r")
        assert browser("GET", "/games/1").text == page


def test_saved_game_is_shown_from_the_deal(chrome: Chrome, home: Path) -> None:
    run_in(home, "watch", "Medium", "Scared", "--game", "defuse", "--save", "g.json")
    saved = SavedGame(Path("g.json"))
    with served(saved) as port:
        chrome.open(f"http://127.0.0.1:{port}/")
        turns = len(saved.data(0)["turns"])
        assert chrome.run("location.hash").startswith(("#play", "#turn-"))
        chrome.key("End")
        assert chrome.text("#turn") == f"turn {turns} of {turns}"
        assert chrome.errors == []


def test_game_starts_with_its_own_page(home: Path) -> None:
    with play_live(wanted("StefaBot", "ClaudeBot", "MrDoubt"), lambda: None) as live, served(live) as port:
        browser = Browser(port)
        news = asks_news(browser("GET", "/games/0").text)  # other sites can request the page but not read it
        other = browser("GET", f"{news[:-1]}x")
        assert (other.status, other.json) == (
            400,
            {"error": "This server now shows another game; reload the page."},
        )
        assert not live.followed.is_set()
        assert browser("GET", news).status == 200
        assert live.followed.is_set()


def test_server_answers_to_an_allowed_host_until_ctrl_c(tmp_path: Path) -> None:
    words = ("StefaBot", "ClaudeBot", "MrDoubt", "--web", "--port", "0", "--allow-host", "mine.example")
    with start(tmp_path, "watch", *words) as process:
        assert process.stdout is not None
        address = process.stdout.readline().split()[2]
        port = int(address.removesuffix("/").rpartition(":")[2])
        assert "StefaBot · ClaudeBot · MrDoubt" in Browser(port)("GET", "/games/0").text
        assert Browser(port)("GET", "/games/0", headers={"Host": "mine.example"}).status == 200
        assert Browser(port)("GET", "/games/0", headers={"Host": "evil.example"}).status == 421
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    assert (process.returncode, out, err) == (0, "stopped\n", "")
