"""Results of saved games, in words and in numbers against each player."""

import json
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest

from dubito.game import Ending, Game
from dubito.game.find import find_game
from dubito.game.record import FORMAT
from dubito.games.bs.game import RESULTS as BS
from dubito.games.dubito.engine import RESULTS as DUBITO
from dubito.report import share
from dubito.web import saved as module
from dubito.web.saved import Summaries, Summary, deal_time
from tests.engine.golden import FOLDER
from tests.games.kit import exchange, write_kuhn
from tests.web.kit import BOTS, Browser, WebServer


def _ending(*marks: int, capped: bool = False) -> Ending:
    return Ending(capped, (), list(marks), [() for _ in marks])


@pytest.mark.parametrize(
    ("marks", "capped", "me", "won", "words"),
    [
        ((1, 2, 0, 0), False, 0, True, "you won (hard win) against A, B and C"),
        ((2, 1, 0, 0), False, 0, True, "you won (soft win) against A, B and C"),
        ((0, 2, 1, 0), False, 0, False, "you lost to A and B"),
        ((0, 0, 1, 0), True, 0, None, "unfinished, with A, B and C"),
        ((2, 0, 1, 0), True, 0, True, "you won (soft win) against A, B and C"),
        ((0, 0, 0, 0), True, None, None, "nobody won: X, A, B and C"),
        ((0, 2, 1, 0), False, None, None, "B won against X, A and C"),
    ],
)
def test_game_summary_is_described(
    marks: tuple[int, ...], capped: bool, me: int | None, won: bool | None, words: str
) -> None:
    ending = _ending(*marks, capped=capped)
    came = module._find_winners(DUBITO, ending)
    assert (None if me is None else came[me]) is won
    names = ["X" if me is None else "You", "A", "B", "C"]
    assert module._describe_result(DUBITO, ending, came, names, me) == words


def test_single_kind_of_win_is_called_a_win() -> None:
    ending = _ending(0, 1, 0)
    assert module._find_winners(BS, ending) == [False, True, False]
    assert module._describe_result(BS, ending, [False, True, False], ["A", "You", "B"], 1) == "you won against A and B"


@pytest.mark.parametrize(
    ("acts", "verdict", "summary"),
    [
        ("pass pass", "You won one chip.", "you won one chip against A"),
        ("bet bet", "You won two chips.", "you won two chips against A"),
        ("bet pass", "You lost one chip.", "you lost one chip to A"),
    ],
)
def test_ending_with_a_verb_is_part_of_the_sentence(home: Path, acts: str, verdict: str, summary: str) -> None:
    """The person at seat 1 holds the king."""
    write_kuhn(home)
    game = find_game("kuhn", home)
    state = type(game.deal(game.rules(), 2, Random(0)))((0, 2))
    for act in acts.split():
        state.apply(act)
    ending, results = state.ending(), game.results
    assert game.words.verdict(state, 1) == verdict
    assert module._describe_result(results, ending, module._find_winners(results, ending), ["A", "You"], 1) == summary


def test_person_sees_results_against_each_bot(server: WebServer, browser: Browser) -> None:
    """The end and the lobby show them. A bot with two seats at a table counts once."""
    ends = [browser.to_the_end(browser.sit(["RandomBoi", "RandomBoi", "StefaBot"], seed=seed)) for seed in range(2)]
    won = sum(end["result"] in ("hard_wins", "soft_wins") for end in ends)
    fared = {"RandomBoi": [won, 2 - won], "StefaBot": [won, 2 - won]}
    assert ends[-1]["against"] == fared
    lobby = server.browser()("GET", "/").text
    assert lobby.count(f"you: {won} won, {2 - won} lost") > 2
    for name, text in (("damaged", "{}"), ("bots-alone", (FOLDER / "three_immediate.json").read_text())):
        (server.folder / f"{name}.json").write_text(text)
    assert browser.view()["against"] == fared
    assert {*server.tables.summaries.records_against("dubito")} == {*fared}  # no person has played against others
    assert browser.sit()["against"] == {}


def test_summary_is_cached_until_the_file_changes(
    server: WebServer, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    end = browser.to_the_end(browser.sit())
    (server.folder / "missing.json").write_text('{"game": "nowhere"}')
    first = Summaries(server.folder)()
    assert first["missing"].fault
    read: list[Path] = []
    real = share.saved_record

    def noted(path: Path) -> tuple[Game, Any]:
        read.append(path)
        return real(path)

    monkeypatch.setattr(module, "saved_record", noted)
    assert Summaries(server.folder)() == first
    assert read == [server.folder / "missing.json"]  # unreadable files are tried again
    path = server.folder / f"{end['record']}.json"
    os.utime(path, ns=(0, 0))
    again = Summaries(server.folder)
    now, before = again()[end["record"]], first[end["record"]]
    assert (now.result, now.changed) == (before.result, 0)
    path.unlink()
    assert [*again()] == ["missing"]
    memory = server.folder / "running" / "summaries"
    assert json.loads(memory.read_text())["games"] == {}
    memory.write_text("damaged")
    assert [*Summaries(server.folder)()] == ["missing"]


def test_failing_game_hides_no_other(home: Path) -> None:
    write_kuhn(home)
    exchange(
        home / "games" / "kuhn" / "game.py",
        ("KuhnState(chance.sample(range(3), seats))", 'KuhnState((0, 1))["no such pot"]'),
    )
    record = {"format": FORMAT, "game": "kuhn", "players": ["Coin"] * 2, "rules": {}, "seed": 1, "deal": 0}
    record |= {"dealt": {}, "outputs": [], "story": []}
    (home / "saved").mkdir()
    (home / "saved" / "mine.json").write_text(json.dumps(record))
    (home / "saved" / "theirs.json").write_text((FOLDER / "three_immediate.json").read_text())
    found = Summaries(home / "saved")()
    assert found["mine"].fault == "The game's code failed: TypeError: 'KuhnState' object is not subscriptable."
    assert found["theirs"].fault is None


@pytest.fixture
def new_york(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Set this machine's time zone to New York."""
    with monkeypatch.context() as changed:
        changed.setenv("TZ", "America/New_York")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("new_york")
def test_date_of_a_game_comes_from_its_name() -> None:
    """A file that was named by hand uses its modification time, and so does one whose name is not a valid time."""
    summary = Summary(changed=1_700_000_000_123_456_789, size=1)
    assert deal_time("2026-11-22-140509-a1b2c3", summary) == datetime(2026, 11, 22, 14, 5, 9, tzinfo=UTC)
    for name in ("mine", "2026-13-22-140509-a1b2c3", "0001-01-01-000000-a1b2c3"):
        assert deal_time(name, summary) == datetime(2023, 11, 14, 22, 13, 20, 123456, tzinfo=UTC)


def test_rematch_has_the_same_table_and_new_cards(server: WebServer, browser: Browser) -> None:
    """The seat is random again unless it was chosen."""
    assert browser.post("/api/rematch", {}).status == 404
    view = browser.sit(seat=2, jokers=1)
    refused = browser.post("/api/rematch", {})
    assert (refused.status, refused.json["error"]) == (409, "Your game is not over yet.")
    end = browser.to_the_end(view)
    answer = browser.post("/api/rematch", {})
    assert answer.status == 201
    again = browser.at_rest()
    assert (again["names"], again["me"], again["rules"]) == (end["names"], 2, end["rules"])
    assert again["table"] > end["table"]
    assert browser.to_the_end(again)["seed"] != end["seed"]
    browser.to_the_end(browser.sit(seed=1))
    seats: set[int] = set()
    while len(seats) < 2:  # the random seats are equal once in four tries
        assert browser.post("/api/rematch", {}).status == 201
        seats.add((view := browser.at_rest())["me"])
        browser.to_the_end(view)
    assert sorted(view["names"]) == sorted([*BOTS, "You"])
