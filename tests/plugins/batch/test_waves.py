"""Waves of batches: each request is bought once, wherever the run was killed."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from dubito.experiment.model_players import check_models
from dubito.experiment.run import play
from dubito.house.faults import BATCH_FAULTS, Faults
from dubito.house.server import House
from dubito.llm.price_list import read_prices
from dubito.model_settings import Api
from dubito.plugins.batch.batches import OpenAIBatches
from dubito.store.model_log import ModelLog
from dubito.store.run_db import RunDb
from dubito.store.spend import Caps
from tests.cli.kit import Shell
from tests.conftest import in_gate
from tests.experiment.kit import means, resolved
from tests.llm.kit import NoWait, ask, config_file, contender, rows, small
from tests.plugins.batch.kit import Provider, killed, play_to_end, waiting
from tests.resume.kit import go

THREE: tuple[Api, ...] = ("responses", "chat", "messages")
POINTS = [  # kill the run at this occurrence of the event
    ("batched", 1),  # OpenAI has the batch, but the run does not know
    ("batched", 2),  # Anthropic has the batch
    ("content", 1),
    ("batch", 1),  # the file exists, but not the batch
    ("file", 1),
    ("look", 1),
    ("look", 4),
    ("content", 2),
    ("look", 3),
    ("batched", 3),
]


def test_each_request_is_bought_once_after_a_kill(tmp_path: Path, at_length: bool) -> None:
    with Provider() as server:
        turns = 12 if at_length else 6
        live = play_to_end(waiting(server, *THREE, wait=None, turns=turns), tmp_path / "live" / "run")
        of, folder = waiting(server, *THREE, turns=turns), tmp_path / "0" / "run"
        server.kills = POINTS[:] if at_length else POINTS[1:2]
        points = len(server.kills)
        for number in range(points):
            killed(server, of, folder)
            moved = tmp_path / str(number + 1) / "run"
            shutil.move(folder.parent / "run", moved)  # without its cache
            folder = moved
        run = play_to_end(of, folder)
        assert server.kills == []
        assert run.results_digest == live.results_digest
        assert set(server.bought.values()) == {1}
        assert sum(server.bought.values()) == sum(1 for _ in rows(folder, "SELECT 1 FROM attempts WHERE game >= 0"))
    assert rows(folder, "SELECT count(*) FROM awaited") == [(0,)]
    assert rows(folder, "SELECT DISTINCT state FROM tries") == [("received",)]


def test_number_of_waves_is_the_longest_games_requests(tmp_path: Path, at_length: bool) -> None:
    with House() as house:
        players = [
            contender("one", "house-sharp", base_url=house.openai_base_url, wait="batch"),
            contender("two", "house-sharp", "AnthropicBot", base_url=house.anthropic_base_url, wait="batch"),
        ]
        of = small(*players, games=200 if at_length else 6, turns=8)
        play_to_end(of, tmp_path / "run")
    ((longest,),) = rows(tmp_path / "run", "SELECT max(n) FROM (SELECT count(*) n FROM attempts GROUP BY game)")
    assert rows(tmp_path / "run", "SELECT max(wave) FROM batches") == [(longest,)]


@pytest.mark.parametrize("fault", in_gate(BATCH_FAULTS, {"expired_batch", "doubled_entries"}))
def test_games_with_faults_equal_the_live_run(tmp_path: Path, fault: str) -> None:
    share = 0.3 if fault in ("failed_batch", "expired_batch", "missing_entries") else 1.0  # such batches are sent again
    with House() as quiet, House(faults=Faults(**{fault: share})) as house:
        digests = []
        for at, wait in ((quiet, {}), (house, {"wait": "batch"})):
            player = contender("one", "house-sharp", base_url=at.openai_base_url, **wait)
            of = small(player, games=3, turns=6)
            digests.append(play_to_end(of, tmp_path / ("b" if wait else "a") / "run").results_digest)
        bought = [(call.request, call.draw) for call in house.calls if call.status == 200]
    assert digests[0] == digests[1]
    if fault != "missing_entries":  # lost entries were bought, so their cost is assumed
        assert len(set(bought)) == len(bought)
    lost = rows(tmp_path / "b" / "run", "SELECT count(*) FROM tries WHERE state = 'failed' AND assumed")
    assert (lost[0][0] > 0) == (fault == "missing_entries")


PRICE = {"input": 2, "cached_input": 0.1, "cache_write": 2.5, "output": 10}
EACH = 100 * 2_000_000 + 20 * 10_000_000  # picodollars per live reply of the server


@pytest.mark.parametrize("tier", in_gate(["batch", "default"], 1))
def test_a_wave_costs_half_and_is_reserved_at_half(tmp_path: Path, tier: str) -> None:
    prices = read_prices({"some-model": PRICE | {"service_tier": {"batch": 0.5}}}, "here", tmp_path)
    with Provider(tier) as server:
        reserved = []

        def look(event: str) -> None:
            if event == "look" and len(server.batches) == 1:
                reserved.extend(rows(tmp_path / "run", "SELECT picodollars FROM tries WHERE state = 'open'"))

        server.befalls = look
        of = waiting(server, "chat", turns=4)
        run = play_to_end(of, tmp_path / "run", prices=prices)
        replies = sum(server.bought.values())
    log = run.models["by chat"]
    assert log.picodollars == replies * EACH // 2
    assert log.beyond == log.assumed == 0
    sizes = rows(tmp_path / "run", "SELECT min(tokens) FROM tries")
    assert reserved
    assert sizes[0][0] == 120
    ((digest,),) = rows(tmp_path / "run", "SELECT request FROM tries LIMIT 1")
    with RunDb.open(tmp_path / "run" / "run.db") as db:
        into = len(ModelLog(db).text(digest))
    assert reserved[0] == ((into * 2_500_000 + 8192 * 10_000_000) // 2,)


def test_budget_is_kept_and_run_resumes_with_more(tmp_path: Path) -> None:
    with Provider() as server:
        of = waiting(server, "responses")
        run = go(of, tmp_path / "run", caps=Caps(calls=3))
        assert "the budget is used up: 3 of 3 calls spent, and the next call needs up to 1" in str(run.failure)
        assert sum(server.bought.values()) == 3
        went_on = play_to_end(of, tmp_path / "run")
        assert set(server.bought.values()) == {1}
        assert (
            went_on.results_digest
            == play_to_end(waiting(server, "responses", wait=None), tmp_path / "x" / "r").results_digest
        )


def test_status_lists_batches_of_a_stopped_run(tmp_path: Path, shell: Shell) -> None:
    with Provider() as server:
        how = means(Path("r"))
        server.befalls = lambda event: how.stop.set() if event == "look" else None
        of = waiting(server, "messages")
        run = play(check_models(resolved(of), how.calls), Path("r"), replace(how, model_progress=NoWait()))
        assert run.interrupted
        output = shell("status", "r").out
        entries = sum(server.bought.values())
        to = f"{entries} requests to {server.base_url('messages')}"
        assert re.search(rf"pending: {to} \(no key\) since [-0-9: ]+, expires [-0-9: ]+ \(UTC; msgbatch_0\)", output), (
            output
        )
        (found,) = json.loads(shell("status", "r", "--json").out)["awaited"]
        assert (found["id"], found["requests"]) == ("msgbatch_0", entries)
        server.befalls = lambda event: None
        play_to_end(of, Path("r"))
        assert set(server.bought.values()) == {1}
    assert "pending" not in shell("status", "r").out


def test_requests_in_flight_are_found_under_another_key_variable(
    tmp_path: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANOTHER_KEY", "any")
    with Provider() as server:
        how = means(Path("r"))
        server.befalls = lambda event: how.stop.set() if event == "look" else None
        of = check_models(resolved(waiting(server, "responses")), how.calls)
        assert play(of, Path("r"), replace(how, model_progress=NoWait())).interrupted
        server.befalls = lambda event: None
        run = play_to_end(waiting(server, "responses", api_key_env="ANOTHER_KEY"), Path("r"))
        assert set(server.bought.values()) == {1}
    result = shell("replay", "r", "--quiet")
    assert (result.code, run.results_digest in result.out) == (0, True), result.err


def test_server_without_batches_is_refused_early(tmp_path: Path) -> None:
    with Provider() as server:
        server.answer = lambda target, kind, raw: (404, b"{}")  # type: ignore[method-assign]
        run = go(waiting(server, "chat"), tmp_path / "run")
    assert "has no batches (status 404); remove `wait` in the entry of 'by chat'" in str(run.failure)


def test_unsupported_wait_is_reported_in_one_sentence(shell: Shell) -> None:
    file = config_file(contender("one", wait="batch", bot="OpenAIBot", api="decisions"))
    result = shell("run", file)
    assert (result.code, result.err) == (
        2,
        "dubito: c.yaml: contenders.0: one: wait: the Decisions API has no batches; remove it\n",
    )
    file = config_file(contender("one", wait="batch"))
    result = shell("play", "one", "StefaBot", "--config", file)
    assert result.code == 2
    assert result.err.endswith("one: wait: only the games of `dubito run` can wait for a batch; remove it\n")


@pytest.mark.parametrize(
    ("kind", "status", "cause", "tries"),
    in_gate([("server_error", 500, "unreachable", 2), ("context_length_exceeded", 400, "too_long", 1)], 1),
)
def test_repeatedly_failing_request_is_abandoned(
    tmp_path: Path, kind: str, status: int, cause: str, tries: int
) -> None:
    broken: list[str] = []  # draw of the first request

    def lines(all_of: list[str]) -> list[str]:
        entries = [json.loads(line) for line in all_of]
        broken[:] = broken or [entries[0]["custom_id"].split("-")[1]]
        for entry in entries:
            if entry["custom_id"].split("-")[1] == broken[0]:
                error = {"error": {"message": "No.", "type": kind, "code": kind}}
                entry["response"] = {"status_code": status, "request_id": "r", "body": error}
        return [json.dumps(entry) for entry in entries]

    with Provider() as server:
        server.lines = lines
        play_to_end(waiting(server, "chat", tries=2), tmp_path / "run")
    found = "SELECT outcome, count(*) FROM decisions WHERE outcome LIKE 'fallback%' GROUP BY 1"
    assert rows(tmp_path / "run", found) == [(f"fallback:{cause}", 1)]
    assert rows(tmp_path / "run", "SELECT max(try) FROM tries WHERE game >= 0") == [(tries,)]


def test_a_batch_asks_the_same_bytes_as_the_live_run(tmp_path: Path) -> None:
    """In a Messages request, only the cache lifetime of the prefix differs."""
    with Provider() as server:
        live = play_to_end(waiting(server, *THREE, wait=None, turns=3), tmp_path / "live" / "run")
        batched = play_to_end(waiting(server, *THREE, turns=3), tmp_path / "batched" / "run")
        asked, sent = set(server.live), b"".join(server.handed_in).replace(b'"ttl":"1h",', b"")
    assert batched.results_digest == live.results_digest
    assert len(asked) > 6
    assert [body for body in asked if body not in sent] == []


def test_batches_match_the_providers_formats(tmp_path: Path) -> None:
    with Provider() as server:
        play_to_end(waiting(server, *THREE, turns=3), tmp_path / "r")
        entries = [entry for batch in server.batches for entry in batch.entries]
    for entry in entries:
        body = entry.get("params") or entry["body"]
        assert "stream" not in body
        if "params" in entry:
            assert set(re.findall(r'"ttl": "(\w+)"', json.dumps(body))) == {"1h"}
        else:
            assert entry["method"] == "POST"
            assert entry["url"] in ("/v1/responses", "/v1/chat/completions")
            assert "service_tier" not in body
    for batch in server.batches:
        assert len({json.dumps(entry.get("url")) for entry in batch.entries}) == 1
    line = OpenAIBatches.entry_line("name", ask(protocol="chat", service_tier="default", seed=1))
    assert json.loads(line) == {
        "custom_id": "name",
        "method": "POST",
        "url": "/v1/chat/completions",
        "body": {"model": "m", "n": 0, "seed": 1},
    }
