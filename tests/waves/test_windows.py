"""Background responses with a window: the games of a run asked at once, each request bought once."""

import json
import re
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dubito.experiment.resolve import checked_models
from dubito.experiment.run import play
from dubito.house.faults import RESPONSE_FAULTS, Faults
from dubito.house.server import House
from dubito.llm.price_list import read_prices
from tests.cli.kit import Shell
from tests.conftest import in_gate
from tests.experiment.kit import means, registry
from tests.llm.kit import Unhurried, config_file, contender, rows, small
from tests.resume.kit import go
from tests.waves.kit import Batch, Provider, ended, killed, waiting

POINTS = [("look", 1), ("response", 2), ("look", 5), ("responded", 3), ("look", 7), ("response", 5), ("responded", 1)]


def test_killed_anywhere_only_what_went_out_just_then_is_bought_twice(tmp_path: Path, at_length: bool) -> None:
    with Provider("default") as server:
        live = ended(waiting(server, "responses", wait=None), tmp_path / "live" / "run")
        of, folder = waiting(server, "responses", wait="2h"), tmp_path / "0" / "run"
        server.kills = POINTS[:] if at_length else [("responded", 3)]
        for number in range(len(server.kills)):
            killed(server, of, folder)
            moved = tmp_path / str(number + 1) / "run"
            shutil.move(folder.parent / "run", moved)  # its cache stays behind
            folder = moved
        run = ended(of, folder)
    assert server.kills == []
    assert run.results_digest == live.results_digest
    ((lost,),) = rows(folder, "SELECT count(*) FROM tries WHERE state = 'failed' AND assumed")
    ((asked,),) = rows(folder, "SELECT count(*) FROM attempts WHERE game >= 0")
    twice = sum(server.bought.values()) - asked
    assert 1 <= twice <= lost <= 4 * len(POINTS)  # four are sent at the same time
    assert max(server.bought.values()) == 2 or at_length
    assert rows(folder, "SELECT count(*) FROM awaited") == [(0,)]


@pytest.mark.parametrize(
    "fault",
    in_gate(
        [*RESPONSE_FAULTS, "cut_off", "truncated_json", "dropped", "unavailable"],
        {"lost_response"},
    ),
)
def test_with_every_fault_the_games_are_those_of_the_live_run(tmp_path: Path, fault: str) -> None:
    content = {"cut_off": 0.3} if fault == "cut_off" else {}  # a reply, though it is none to use
    with House(faults=Faults(**content)) as quiet, House(faults=Faults(**{fault: 0.4})) as house:
        digests = []
        for at, wait in ((quiet, {}), (house, {"wait": "8h"})):
            player = contender("one", "house-sharp", base_url=at.openai_base_url, **wait)
            digests.append(ended(small(player, games=3, turns=6), tmp_path / str(len(wait)) / "run").results_digest)
        bought = [(call.request, call.draw) for call in house.calls if call.status == 200]
    assert digests[0] == digests[1]
    lost = rows(tmp_path / "1" / "run", "SELECT count(*) FROM tries WHERE state != 'open' AND assumed")
    assert (lost[0][0] > 0) == (fault in ("failed_response", "lost_response", "truncated_json", "dropped"))
    if fault in ("late_response", "cut_off", "unavailable"):
        assert len(set(bought)) == len(bought)


def test_what_stays_in_the_queue_long_after_its_window_is_called_off_and_asked_anew(tmp_path: Path) -> None:
    with Provider("default") as server:
        live = ended(waiting(server, "responses", wait=None, turns=4), tmp_path / "live" / "run")
        of, folder = waiting(server, "responses", wait="2h", turns=4), tmp_path / "late" / "run"
        server.stuck, server.kills = {"resp_0"}, [("look", 9)]
        killed(server, of, folder)
        with closing(sqlite3.connect(folder / "run.db")) as db, db:
            db.execute("UPDATE batches SET expires = 1 WHERE id = 'resp_0'")
        run = ended(of, folder)
    assert server.called_off == ["resp_0"]
    assert run.results_digest == live.results_digest
    assert rows(folder, "SELECT error, assumed FROM tries WHERE state = 'failed'") == [("it was not processed", 0)]


PRICE = {"input": 2, "cached_input": 0.1, "cache_write": 2.5, "output": 10}
EACH = 100 * 2_000_000 + 20 * 10_000_000  # picodollars of one of the server's replies, asked at once


@pytest.mark.parametrize(
    ("window", "tenths", "tier", "times"),
    in_gate([(*w, *t) for w in (("8h", 6), ("2h", 7)) for t in (("priority", 2), ("default", 1))], 1),
)
def test_the_windows_price_is_reserved_and_the_replys_own_tier_is_billed(
    tmp_path: Path, window: str, tenths: int, tier: str, times: int
) -> None:
    terms = {"completion_window": {"2h": 0.7, "8h": 0.6}, "service_tier": {"priority": 2}}
    prices = read_prices({"some-model": PRICE | terms}, "here", tmp_path)
    with Provider(tier) as server:
        reserved: list[tuple[int, int]] = []

        def look(event: str) -> None:
            if event == "look" and not reserved:
                reserved.extend(rows(tmp_path / "run", "SELECT picodollars, tokens FROM tries WHERE state = 'open'"))

        server.befalls = look
        run = ended(waiting(server, "responses", wait=window, turns=4), tmp_path / "run", prices=prices)
        replies = sum(server.bought.values())
    assert run.models["by responses"].picodollars == replies * EACH * tenths * times // 10
    usd, tokens = reserved[0]
    assert usd == ((tokens - 8192) * 2_500_000 + 8192 * 10_000_000) * tenths // 10


def test_a_server_that_answers_at_once_is_paid_in_full(tmp_path: Path) -> None:
    prices = read_prices({"some-model": PRICE | {"completion_window": {"2h": 0.7}}}, "here", tmp_path)
    with Provider("default") as server:

        def answer(asked: dict[str, Any]) -> tuple[int, bytes]:
            server.live.append(b"")
            return 200, json.dumps({**server.reply("responses", asked), "id": "r", "background": False}).encode()

        server._begun = answer  # type: ignore[method-assign]
        run = ended(waiting(server, "responses", wait="2h", turns=4), tmp_path / "run", prices=prices)
    assert run.models["by responses"].picodollars == len(server.live) * EACH


def test_stopped_while_it_waits_status_says_what_is_awaited(tmp_path: Path, shell: Shell) -> None:
    with Provider("default") as server:
        how = means(Path("r"))

        def stop(event: str) -> None:
            if event == "look":
                how.stop.set()

        server.befalls = stop
        of = checked_models(waiting(server, "responses", wait="8h"), registry(), how.calls)
        assert play(of, Path("r"), replace(how, watch=Unhurried())).interrupted
        said = shell("status", "r").out
        sent = sum(server.bought.values())
        to = f"{sent} requests to {server.base_url('responses')}"
        told = re.search(rf"awaited: {to} since ([-0-9: ]+), expires ([-0-9: ]+) \(UTC; resp_\d and 3 more\)", said)
        assert told, said
        assert told[1][-2:] == told[2][-2:]  # eight hours later
        assert len(json.loads(shell("status", "r", "--json").out)["awaited"]) == sent == 4
        server.befalls = lambda event: None
        ended(of, Path("r"))
        assert set(server.bought.values()) == {1}
    assert "awaited" not in shell("status", "r").out


def test_an_id_that_is_lost_is_asked_again_and_a_wrong_key_is_told(tmp_path: Path) -> None:
    def first_is_lost(response: Batch, body: dict[str, Any]) -> dict[str, Any] | None:
        return None if response.id == "resp_0" or (response.id == "resp_1" and response.looks < 4) else body

    with Provider("default") as server:
        server.ends = first_is_lost
        ended(waiting(server, "responses", wait="2h"), tmp_path / "run")
        assert sorted(server.bought.values())[-2:] == [1, 2], "what was not there at two looks is not bought again"
        how = means(tmp_path / "b" / "run")
        of = checked_models(waiting(server, "responses", wait="2h"), registry(), how.calls)
        server.befalls = lambda event: how.stop.set() if event == "look" else None
        assert play(of, tmp_path / "b" / "run", replace(how, watch=Unhurried())).interrupted
        server.befalls = lambda event: None
        server._looked = lambda name: (404, b"{}")  # type: ignore[method-assign]
        failure = str(go(of, tmp_path / "b" / "run").failure)
    assert re.search(r"does not know resp_\d+: it is seen only with a key of the project that made it", failure)


def test_a_server_without_windows_is_told_and_nothing_is_lost(tmp_path: Path) -> None:
    with Provider("default") as server:
        server._begun = lambda asked: (404, b"{}")  # type: ignore[method-assign]
        run = go(waiting(server, "responses", wait="2h"), tmp_path / "run")
    assert "takes nothing that waits (status 404): take `wait` out of the entry of by responses" in str(run.failure)
    assert rows(tmp_path / "run", "SELECT count(*) FROM tries WHERE assumed") == [(0,)]


def test_who_cannot_wait_so_is_told_in_one_sentence(shell: Shell) -> None:
    file = config_file(contender("one", wait="2h", bot="OpenAIBot", api="chat"))
    said = shell("run", file)
    assert (said.code, said.err) == (
        2,
        "dubito: c.yaml: contenders.0: one: wait: a window of 2h is sold with `api: responses` only: say "
        "`wait: batch`, or take it out\n",
    )
    file = config_file(contender("one", wait="2h", parameters={"service_tier": "flex"}))
    assert shell("run", file).err == (
        "dubito: c.yaml: contenders.0: one: parameters.service_tier: a window of 2h is sold at the usual tier only: "
        "take one of the two out\n"
    )


def test_what_is_sent_is_what_the_provider_takes(tmp_path: Path) -> None:
    with Provider("default") as server:
        ended(waiting(server, "responses", wait="2h", turns=3), tmp_path / "r")
    for response in server.responses:
        body = response.given
        assert body["background"] is body["store"] is True
        assert body["background_options"] == {"completion_window": "2h"}
        assert re.fullmatch(r"[0-9a-f]{16}-[0-9a-f]{16}-[0-9a-f]{16}-1", body["metadata"]["dubito"])
        assert "stream" not in body
