"""Model players at the table: asked, stored and resumed, with problems shown to the person."""

import json
import re
import threading
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest
import yaml

from dubito.cli.opponents import open_opponents
from dubito.errors import UsageError
from dubito.games.dubito.engine import Rules
from dubito.games.dubito.words import rule_paragraphs
from dubito.llm.request import Place, compute_draw
from tests.engine.golden import RECORDS
from tests.llm.kit import KEY, Incoming, Response, Server, contender, error_body, respond, rows
from tests.web.kit import FIRST, Browser, a_move, hidden_until_over, model_at, table_with


def tries(home: Path) -> int:
    ((count,),) = rows(home / "games", "SELECT count(*) FROM tries WHERE game >= 0")
    return int(count)


class Scripted:
    """Gives the answer that the test has set."""

    def __init__(self, answer: Callable[[Incoming], Response] = lambda request: respond(request.protocol)) -> None:
        self.answer = answer

    def __call__(self, request: Incoming) -> Response:
        return self.answer(request)


def after(thought: threading.Event) -> Callable[[Incoming], Response]:
    """Return a model that answers after this time."""

    def slow(request: Incoming) -> Response:
        thought.wait(20)
        return respond(request.protocol)

    return slow


def down(request: Incoming) -> Response:
    return Response(503, error_body(request.protocol, "overloaded", "try again later"))


def test_game_with_models_of_all_protocols_is_played(home: Path) -> None:
    players = [
        contender("sharp", "house-sharp"),
        contender("honest", "house-honest", "AnthropicBot"),
        contender("chatty", "house-random", api="chat"),
    ]
    with table_with(home, *players) as server:
        browser = server.browser()
        lobby = browser("GET", "/").text
        assert '<option value="sharp"' in lobby
        assert "house-honest with the prompt plain." in lobby
        fake_models, written = re.findall('<optgroup label="(.*?)">(.*?)</optgroup>', lobby, re.DOTALL)[:2]
        assert fake_models[0].startswith("Fake models")
        assert (written[0], "StefaBot" in written[1], "sharp" in written[1]) == ("Hand-written", True, False)
        assert '<dt>sharp <span class="kind fake model">fake model</span></dt>' in lobby
        seen = browser.sit(["sharp", "honest", "chatty"], seed=5, max_turns=40)
        kinds = ["person" if seat == seen["me"] else "fake model" for seat in range(4)]
        assert seen["kinds"] == kinds
        assert kinds.count("person") == 1
        end = browser.to_the_end(seen)
    record = RECORDS.load((home / "games" / f"{end['record']}.json").read_text())
    assert sorted(record.players) == ["Guest", "chatty", "honest", "sharp"]
    assert list(RECORDS.replay(record)) == record.story
    taken = rows(home / "games", "SELECT game, seat, outcome FROM decisions")
    assert {game for game, _, _ in taken} == {record.number}
    assert {seat for _, seat, _ in taken} == {seat for seat, name in enumerate(record.players) if name != "Guest"}
    assert {outcome for _, _, outcome in taken} == {"model"}


def test_model_gets_this_tables_rules_and_cards(home: Path) -> None:
    with Server(lambda request: respond(request.protocol)) as model, table_with(home, model_at(model)) as server:
        server.browser().sit(["asker", "MrDoubt"], seed=9, seat=2, jokers=0, win_rule="contested")
        prompt = model.requests[-1].raw.decode()
        for sentence in rule_paragraphs(Rules(0, "contested"), 3):
            assert json.dumps(sentence)[1:-1] in prompt
    drawn = rows(home / "games", "SELECT seat, decision, attempt, draw FROM attempts WHERE game >= 0")
    assert drawn
    for seat, decision, attempt, draw in drawn:
        assert draw == compute_draw(9, Place("asker", 1, 0, seat, decision, attempt, "A"), 0)


def test_table_is_visible_but_locked_while_a_model_thinks(home: Path) -> None:
    thought = threading.Event()
    with Server(after(thought)) as model, table_with(home, model_at(model), preflight=False) as server:
        browser = server.browser()
        seen = browser.post("/api/table", {"bots": ["MrDoubt", "asker"], "seed": 1, "seat": 0}).json
        assert seen["asked"]
        card = seen["frames"][0]["question"]["options"][0]
        seen = browser.post("/api/moves", {"turn": 0, "answer": {"cards": [card], "number": 9}}).json
        turn = seen["turn"]
        while not seen["frames"] or seen["frames"][-1]["to_move"] != 2:  # MrDoubt moves first
            seen = browser("GET", f"/api/table?since={turn}").json
        assert (seen["asked"], seen["over"], seen["trouble"]) == (False, False, None)
        refused = browser.post("/api/moves", {"turn": seen["turn"], "answer": {"doubt": True}})
        assert (refused.status, refused.json) == (409, {"error": "It is not your turn."})
        assert browser.post("/api/again", {}).status == 409
        thought.set()
        while not seen["asked"]:
            seen = browser.view()
        assert seen["turn"] > turn


def test_table_abandoned_while_a_model_thinks_is_removed(home: Path) -> None:
    thought = threading.Event()
    with Server(after(thought)) as model, table_with(home, model_at(model), preflight=False) as server:
        browser = server.browser()
        first = browser.post("/api/table", {"bots": ["asker", "MrDoubt"], "seed": 1, "seat": 2}).json
        assert not first["asked"]
        (given_up,) = (home / "games" / "running").iterdir()
        view = browser.sit(["MrDoubt", "MrDoubt"], seed=2, seat=0)
        thought.set()
        server.tables.close()
        (kept,) = (home / "games" / "running").iterdir()
        assert kept != given_up
        assert browser.at_rest()["frames"] == view["frames"]


def test_restart_repeats_no_requests(home: Path) -> None:
    sharp = contender("sharp", "house-sharp")
    with table_with(home, sharp) as server:
        browser = server.browser()
        view = browser.sit(["sharp", "sharp"], seed=5, seat=1)
        before = tries(home)
    assert before
    with table_with(home, sharp, first=FIRST + 1000) as server:
        again = Browser(server.port, browser.cookie, view["turn"])
        assert again.view()["frames"] == view["frames"]
        assert tries(home) == before
        while tries(home) == before:
            view = again.play(a_move(view["frames"][-1]))


def test_outage_is_shown_and_the_game_continues_afterwards(home: Path) -> None:
    script = Scripted(down)
    with Server(script) as model, table_with(home, model_at(model), preflight=False) as server:
        browser = server.browser()
        view = browser.sit(["asker", "MrDoubt"], seed=1, seat=2)
        for _ in range(3):
            assert "which cannot be reached" in view["trouble"]
            assert (view["asked"], view["over"], view["turn"]) == (False, False, 0)
            assert KEY not in view["trouble"]
            view = browser.again()
        assert "cannot be reached" in view["trouble"]
        script.answer = lambda request: respond(request.protocol)
        view = browser.again()
        assert (view["asked"], view["trouble"]) == (True, None)
        browser.to_the_end(view)
    assert {outcome for (outcome,) in rows(home / "games", "SELECT outcome FROM decisions")} == {"model"}


def test_tables_are_separate_games(home: Path) -> None:
    with table_with(home, contender("sharp", "house-sharp")) as server:
        views = [server.browser().sit(["sharp", "sharp"], seed=seed, seat=2) for seed in (5, 6)]
        assert [view["trouble"] for view in views] == [None, None]
        ((games,),) = rows(home / "games", "SELECT count(DISTINCT game) FROM decisions")
        assert games == 2


@pytest.mark.parametrize("status", [302, 400, 404, 429, 503])
def test_echoed_request_does_not_reveal_cards(home: Path, status: int) -> None:
    def end_of(request: Incoming) -> str:
        return quote(str(request.conversation[-1]["content"])[-40:].strip())

    def echoes(request: Incoming) -> Response:
        return Response(status, end_of(request), {"location": f"/{end_of(request)}", "retry-after": "0"})

    with Server(echoes) as model, table_with(home, model_at(model), preflight=False, patience="1s") as server:
        trouble = server.browser().sit(["asker", "MrDoubt"], seed=1, seat=2)["trouble"]
        ((error,),) = rows(home / "games", "SELECT error FROM tries LIMIT 1")
        assert end_of(model.requests[0]) in error
        assert end_of(model.requests[0]) not in trouble
        assert f"status {status}" in trouble or "`model` in the entry of 'asker'" in trouble


def test_exhausted_budget_is_shown_and_a_larger_one_continues(home: Path) -> None:
    sharp = contender("sharp", "house-sharp")
    with table_with(home, sharp, preflight=False, budget={"calls": 1}) as server:
        browser = server.browser()
        view = browser.sit(["sharp", "sharp"], seed=5, seat=2)
        assert view["trouble"].startswith("The budget is used up: 1 of 1 calls spent")
        assert tries(home) == 1
    with table_with(home, sharp, preflight=False, first=FIRST + 1000) as server:
        again = Browser(server.port, browser.cookie)
        end = again.to_the_end(again.at_rest())
        assert end["over"]
        record = RECORDS.load((home / "games" / f"{end['record']}.json").read_text())
    ((first,),) = rows(home / "games", "SELECT min(game) FROM decisions")
    assert first == record.number


def test_other_model_with_the_same_name_is_refused(home: Path) -> None:
    with table_with(home, contender("sharp", "house-sharp")) as server:
        browser = server.browser()
        view = browser.sit(["sharp", "sharp"], seed=5, seat=2)
        assert view["turn"] > 0
    with table_with(home, contender("sharp", "house-honest"), first=FIRST + 1000) as server:
        refused = Browser(server.port, browser.cookie)("GET", "/api/table")
        assert refused.status == 410
        assert "this request differs from the one recorded in this run" in refused.json["error"]
    with table_with(home, first=FIRST + 2000) as server:
        refused = Browser(server.port, browser.cookie)("GET", "/api/table")
        assert (refused.status, "unknown player 'sharp'" in refused.json["error"]) == (410, True)


def test_hidden_cards_stay_hidden_from_the_person(home: Path) -> None:
    with table_with(home, contender("sharp", "house-sharp")) as server:
        browser = server.browser()
        browser.to_the_end(browser.sit(["sharp", "sharp"], seed=2))
        for answer in browser.answers:
            assert answer["over"] or (answer["seed"], answer["record"], answer["errors"]) == (None, None, [])
            for frame in answer["frames"]:
                assert hidden_until_over(frame)
                assert len(frame["hand"]) == frame["backs"][answer["me"]] or frame["to_move"] is None


def test_damaged_store_of_a_games_folder_is_refused(home: Path) -> None:
    file = home / "c.yaml"
    file.write_text(yaml.safe_dump({"bots": [contender("sharp", "house-sharp")]}))
    games = home / "games"
    games.mkdir()
    (games / "run.db").write_bytes(b"no database" * 100)
    with (
        pytest.raises(UsageError, match=r"run\.db is damaged or not a run store"),
        open_opponents(file, None, games, FIRST, lambda: False),
    ):
        pass


def test_only_an_empty_body_triggers_a_retry(home: Path) -> None:
    with table_with(home) as server:
        browser = server.browser()
        browser.sit()
        assert browser.post("/api/again", {}).json == {"error": "This game is not paused."}
        assert browser.post("/api/again", {"turn": 1}).status == 400
        assert browser("POST", "/api/again", b"[]").status == 400
        stranger = server.browser()
        assert stranger.post("/api/again", {}).status == 404
        assert json.loads(browser("POST", "/api/again", b"{}", {"origin": "http://evil.example"}).text)["error"]
