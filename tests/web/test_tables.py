"""Whole games over HTTP: stored, restarted, expired, with concurrent moves, revealing nothing hidden."""

import json
import os
import re
import socket
import threading
from contextlib import suppress
from copy import copy, deepcopy
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, cast

import pytest

from dubito.game.find import find_bots
from dubito.games.dubito.cards import TurnOutput
from dubito.games.dubito.game import GAME
from dubito.games.dubito.sentences import card_name, card_names, sort_cards
from dubito.show.person import Sitting, seat_person, set_up
from dubito.web.tables import LIFE, UNUSED_LIFE, frame_in_words
from tests.engine.golden import RECORDS
from tests.web.kit import BOTS, Answer, Browser, WebServer, a_move, guests_of, hidden_until_over, serve


def test_a_whole_game_is_played_and_saved(server: WebServer, browser: Browser, subtests: pytest.Subtests) -> None:
    for rule, players in [("immediate", 3), ("contested", 4), ("immediate", 8), ("contested", 8)]:
        with subtests.test(rule=rule, players=players):
            bots = (BOTS * 3)[: players - 1]
            end = browser.to_the_end(browser.sit(bots, seed=5, win_rule=rule, jokers=1))
            record = RECORDS.load((server.folder / f"{end['record']}.json").read_text())
            assert list(RECORDS.replay(record)) == record.story
            assert (record.seed, record.rules["win_rule"], record.rules["jokers"]) == (5, rule, 1)
            assert record.players.index("Guest") == end["me"]
            assert len(record.outputs) == end["turn"]
            assert not end["asked"]


def test_frames_match_the_game(server: WebServer, browser: Browser) -> None:
    end = browser.to_the_end(browser.sit(seed=2, seat=1))
    frames = browser.view()["frames"]
    record = RECORDS.load((server.folder / f"{end['record']}.json").read_text())
    game: Any
    game, outputs = RECORDS.deal_record(record)
    assert len(frames) == len(record.outputs) + 1
    for frame, output in zip(frames, [*outputs, None], strict=True):
        if not game.over:
            assert frame["backs"] == [len(hand.cards) for hand in game.hands]
        assert [name for name, *_ in frame["hand"]] == card_names(sort_cards(game.hands[1].cards))
        assert frame["badges"] == [f"place {place}" if place else "lost" if game.over else "" for place in game.places]
        board = frame["boards"][0]
        assert board["backs"] == len(game.board)
        assert sum(play["count"] for play in board["plays"] if not play["shown"]) >= len(game.board)
        assert (f"This round: {card_name(game.number, plural=True)} " in board["shown"][0]) == (
            bool(game.board) and not game.over
        )
        assert frame["to_move"] == (None if game.over else game.seat)
        if output is not None:
            game.apply(output)
    sentences = [sentence for frame in frames for sentence in frame["said"]]
    assert not any("\0" in sentence for sentence in sentences)
    assert any(sentence.startswith("You play ") for sentence in sentences)


def test_soft_and_hard_wins_are_shown(server: WebServer) -> None:
    outcomes = {}
    for seed in (8, 18, 33):
        browser = server.browser()
        end = browser.to_the_end(browser.sit(["RandomBoi"] * 4, seed=seed))
        me, frames = end["me"], browser.view()["frames"]
        outcomes[end["result"]] = (frames[-1]["badges"][me], end["ended"])
        out = [frame["turn"] for frame in frames if frame["badges"][me].startswith("place ")]
        text = [
            frame["turn"] for frame in frames if any(line.startswith("You are out of cards") for line in frame["said"])
        ]
        assert out[:1] == text
    assert outcomes["hard_wins"] == ("place 1", "You win!")
    assert outcomes["soft_wins"] in (("place 2", "You came second."), ("place 3", "You came third."))
    assert outcomes["losses"] == ("lost", "You lost.")


def test_responses_of_a_running_game_reveal_nothing_hidden(browser: Browser) -> None:
    for seed in range(3):
        browser.answers.clear()
        browser.to_the_end(browser.sit(seed=seed))
        for answer in browser.answers:
            for frame in answer["frames"]:
                assert hidden_until_over(frame)
                assert len(frame["hand"]) == frame["backs"][answer["me"]] or frame["to_move"] is None
            assert answer["over"] or (answer["seed"], answer["errors"], answer["record"]) == (None, [], None)


def test_two_worlds_that_differ_in_hidden_cards_look_the_same(tmp_path: Path) -> None:
    for seed in range(2):
        sitting = seat_person(guests_of(find_bots(tmp_path)), set_up(GAME, BOTS, GAME.rules(), None, seed), 0)
        while not sitting.state.over:
            given = None
            if sitting.is_asked:
                move = a_move(asdict(frame_in_words(sitting, 0, None, [])) | {"turn": sitting.state.turns_played})
                given = TurnOutput(move.get("doubt", False), move.get("number"), move.get("cards"))
            moment, view = sitting.step(given)
            if not sitting.state.over:
                unseen = moment.output if moment.seat == sitting.me else TurnOutput(False, None, [13, 13])
                other = frame_in_words(_another_world(sitting), 1, moment._replace(output=unseen), view)
                assert other == frame_in_words(sitting, 1, moment, view)


def _another_world(sitting: Sitting) -> Sitting:
    """Return the same game with the other hands dealt differently and other cards on the board."""
    game: Any = deepcopy(sitting.state)
    others = [hand for seat, hand in enumerate(game.hands) if seat != sitting.me]
    pool = sorted(card for hand in others for card in hand.cards)
    for hand in others:
        size = len(hand.cards)
        hand.remove(list(hand.cards))
        hand.add(pool[:size])
        pool = pool[size:]
    game.board[:] = [card % 13 + 1 for card in game.board]
    world, teller = copy(sitting), cast(Any, copy(sitting.teller))
    world.state, world.teller, teller._state = game, teller, game
    teller._plays = [
        play if play.shown else replace(play, cards=["king"] * len(play.cards), wrong=[] if play.lie else ["king"])
        for play in teller._plays
    ]
    return world


def test_a_restart_loses_no_game(tmp_path: Path) -> None:
    with serve(tmp_path) as server:
        one = server.browser()
        whole = one.to_the_end(one.sit(seed=9))
        other = server.browser()
        view = other.sit(seed=9)
        for _ in range(3):
            view = other.play(a_move(view["frames"][-1]))
        seen = other.view()
    with serve(tmp_path) as server:
        again = Browser(server.port, other.cookie, other.turn)
        assert again.view() == seen
        end = again.to_the_end(seen)
        assert (end["turn"], end["frames"][-1]) == (whole["turn"], whole["frames"][-1])
        assert Browser(server.port, one.cookie).view()["record"] == whole["record"]


def test_second_server_with_another_folder_loses_no_game(tmp_path: Path) -> None:
    with serve(tmp_path / "one") as one, serve(tmp_path / "two") as two:
        here, there = one.browser(), two.browser()
        view, other = here.sit(seat=0), there.sit(seat=0, seed=2)
        jar = dict(str(browser.cookie).split("=") for browser in (here, there))  # browsers share cookies between ports
        sent = "; ".join(f"{name}={secret}" for name, secret in jar.items())
        assert Browser(one.port, sent).view() == view
        assert Browser(two.port, sent).view() == other


def test_changed_bot_is_named_and_stops_the_game(tmp_path: Path) -> None:
    (tmp_path / "bots" / "manual").mkdir(parents=True)
    bot = tmp_path / "bots" / "manual" / "mine.py"
    node = "    def {}(self, p): return {}\n"
    names = ("bluff_first_hand", "maximize_first_hand", "should_doubt", "bluff_regular", "maximize_regular")
    for answers in ("True", "False"):
        source = "".join(node.format(name, answers) for name in names)
        bot.write_text(f"from bots.base import BotBase\nclass Mine(BotBase):\n{source}")
        with serve(tmp_path, find_bots(tmp_path)) as server:
            browser = server.browser()
            if answers == "True":
                browser.sit(["Mine", "Mine"], seat=2)
                cookie = browser.cookie
                continue
            answer = Browser(server.port, cookie)("GET", "/api/table")
    assert answer.status == 410
    assert answer.json["error"].startswith("This game cannot continue: Mine 0 plays differently now because ")


def test_missing_bot_is_reported(server: WebServer, browser: Browser) -> None:
    browser.sit()
    (path,) = (server.folder / "running").iterdir()
    path.write_text(path.read_text().replace("StefaBot", "StefBot"))
    answer = browser("GET", "/api/table")
    sentence = "This game cannot continue: unknown player 'StefBot'; did you mean 'StefaBot'?"
    assert (answer.status, answer.json) == (410, {"error": sentence})


def test_moves_after_the_end_are_reported(server: WebServer, browser: Browser) -> None:
    browser.to_the_end(browser.sit(seed=2, seat=1))
    (path,) = (server.folder / "running").glob("*.json")
    table = json.loads(path.read_text())
    path.write_text(json.dumps(table | {"outputs": [*table["outputs"], table["outputs"][0]]}))
    answer = browser("GET", "/api/table")
    assert (answer.status, answer.json) == (410, {"error": "This game cannot continue: the game is over."})


def test_damaged_file_is_reported(server: WebServer, browser: Browser) -> None:
    browser.sit()
    (path,) = (server.folder / "running").glob("*.json")
    whole = path.read_bytes()
    no_seat, no_time = whole.replace(b'"seat": ', b'"seat": 1'), re.sub(b'"made": [^,]*', b'"made": 1e300', whole)
    for text in (b"", b"{}", b"\xff", no_seat, no_time):
        path.write_bytes(text)
        answer = browser("GET", "/api/table")
        assert (answer.status, answer.json["error"][:32]) == (410, "The file of this game is damaged")


def test_table_expires(server: WebServer, browser: Browser) -> None:
    browser.sit(seat=0)
    view = browser.at_rest()
    server.clock.now += LIFE
    view = browser.play(a_move(view["frames"][-1]))  # in time, which extends its life
    server.clock.now += LIFE
    assert browser.view()["turn"] == view["turn"]
    server.clock.now += 1
    answer = browser("GET", "/api/table")
    assert (answer.status, answer.json["error"]) == (
        404,
        "Your game expired. Start a new one.",
    )
    assert list((server.folder / "running").iterdir()) == []


def test_number_of_tables_is_limited(tmp_path: Path) -> None:
    with serve(tmp_path, most=2) as server:
        one, two, three = (server.browser() for _ in range(3))
        one.sit()
        two.sit()
        full = three.post("/api/table", {"bots": BOTS})
        assert (full.status, full.json["error"]) == (
            503,
            "All 2 tables are in use. Finish a game, or try again later.",
        )
        two.sit()  # replaces this visitor's own table
        assert len(list((tmp_path / "running").iterdir())) == 2
        server.clock.now += LIFE + 1
        three.sit()  # the other visitors have not returned
        assert len(list((tmp_path / "running").iterdir())) == 1


def test_only_one_of_many_simultaneous_moves_is_made(server: WebServer, browser: Browser) -> None:
    view = browser.sit(seat=0)
    move = {"turn": 0, "answer": a_move(view["frames"][-1])}
    start = threading.Barrier(8)
    answers: list[Answer] = []

    def ask() -> None:
        other = Browser(server.port, browser.cookie)
        start.wait()
        answers.append(other.post("/api/moves", move))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answer.status for answer in answers) == [200] + [409] * 7
    (made,) = [answer for answer in answers if answer.status == 200]
    assert browser.view()["frames"][1:] == made.json["frames"]


def test_many_people_play_at_once(server: WebServer) -> None:
    ends: dict[int, Any] = {}

    def play(seed: int) -> None:
        browser = server.browser()
        ends[seed] = browser.to_the_end(browser.sit(BOTS[:2], seed=seed % 2))

    threads = [threading.Thread(target=play, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ends) == 4
    for seed in range(4):
        assert ends[seed]["frames"][-1] == ends[seed % 2]["frames"][-1]
    assert len(list(server.folder.glob("*.json"))) == 4


def _full(*_: object) -> None:
    raise OSError(28, "No space left on device")


def test_game_that_cannot_be_saved_is_not_played(
    server: WebServer, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = browser.sit(seat=0)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", _full)
        answer = browser.post("/api/moves", {"turn": 0, "answer": a_move(view["frames"][-1])})
    assert answer.status == 507
    assert "No space left on device" in answer.json["error"]
    assert browser.view() == view
    browser.play(a_move(view["frames"][-1]))


def test_failed_save_keeps_the_old_table(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    view = browser.sit(seat=0)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", _full)
        assert browser.post("/api/table", {"bots": BOTS}).status == 507
    assert browser.view() == view


def test_failing_bot_is_replaced_and_reported(tmp_path: Path) -> None:
    (tmp_path / "bots" / "manual").mkdir(parents=True)
    source = (
        "from dubito.player import PlayerAI\nclass Bad(PlayerAI):\n    def play(self, p): return list(self.cards)\n"
    )
    (tmp_path / "bots" / "manual" / "bad.py").write_text(source)
    with serve(tmp_path, find_bots(tmp_path)) as server:
        browser = server.browser()
        view = browser.sit(["Bad", "StefaBot"], seat=1)
        assert view["frames"][1]["said"][0] == "Bad failed, so RandomBoi's rules played its turn."
        assert view["errors"] == []
        end = browser.to_the_end(view)
        assert end["errors"][0].startswith("Bad (seat 0) failed in game 0, deal 0, turn 1: ")


def test_table_of_visitor_without_cookie_expires_within_the_hour(tmp_path: Path) -> None:
    """A program that opens many tables can block other visitors for at most an hour."""
    with serve(tmp_path, most=2) as server:
        returns, loses = server.browser(), server.browser()
        returns.sit(seat=0)
        loses.sit(seat=0)
        returns.view()
        refused = server.browser().post("/api/table", {"bots": BOTS})
        assert (refused.status, refused.headers["retry-after"]) == (503, "60")
        server.clock.now += UNUSED_LIFE + 1
        server.browser().sit(seat=0)
        assert returns.view()["frames"]


HEAD_AND_HALF_A_BODY = (
    b"POST /api/table HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"
)


@pytest.mark.parametrize("sent", [b"", b"GET / HTT", HEAD_AND_HALF_A_BODY])
def test_half_open_request_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    monkeypatch.setattr("dubito.serve._REQUEST_SECONDS", 0.05)
    with serve(tmp_path) as server, socket.create_connection(("127.0.0.1", server.port), 30) as visitor:
        visitor.sendall(sent)
        with suppress(ConnectionResetError):
            assert visitor.recv(100) == b""
        assert server.browser()("GET", "/").status == 200


def test_excess_visitor_is_told_when_to_return(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dubito.serve.max_connections", lambda: 1)
    with serve(tmp_path) as server:
        address = ("127.0.0.1", server.port)
        with socket.create_connection(address, 30), socket.create_connection(address, 30) as second:
            assert second.recv(1000).startswith(b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\n")
