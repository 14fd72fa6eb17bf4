"""Bills as servers really write them: what is counted is never less, and a cap holds."""

import json
from pathlib import Path
from typing import Any

import pytest

from dubito.llm.budget import Caps
from dubito.llm.prices import PICO, Price
from dubito.llm.request import Api
from tests.cli.kit import Shell
from tests.conftest import in_gate
from tests.llm.kit import (
    PROBE,
    PROTOCOLS,
    Heard,
    Said,
    Server,
    Unhurried,
    asker,
    played,
    ran,
    reply_body,
    rows,
    says,
    small,
)

PRICE = Price(2_000_000, 100_000, 2_500_000, 10_000_000)
EACH = 100 * PRICE.input + 20 * PRICE.output  # picodollars of one of the server's replies
ERROR = {"code": "server_error", "message": "no"}
CHOICE = {"index": 0, "message": {"role": "assistant", "content": "I thi"}, "finish_reason": "error", "error": ERROR}
BEGUN: dict[Api, dict[str, Any]] = {  # an error after a part of an answer
    "responses": {"status": "failed", "error": ERROR},
    "chat": {"choices": [CHOICE]},
}
ALONE = {"error": {"code": 502, "message": "Bad gateway"}}


def tries_after(folder: Path, server_says: Said, protocol: Api) -> tuple[list[Any], str]:
    """The rows of the tries of a run in which the first call is answered so, and what its budget says at the end."""
    calls: list[Heard] = []

    def answer(heard: Heard) -> Said:
        calls.append(heard)
        return server_says if len(calls) == 1 else says(heard.protocol)

    watch = Unhurried()
    with Server(answer) as server:
        players = small(asker(server, protocol), games=1, turns=9)
        how = {"prices": {"some-model": PRICE}, "caps": Caps(usd=PICO), "preflight": False}
        run = ran(players, folder, watch, in_flight=1, **how)
    assert run.failure is None
    query = (
        "SELECT state, kind, error, picodollars, assumed, raw IS NOT NULL FROM tries ORDER BY decision, attempt, try"
    )
    return rows(folder, query), watch.used()


@pytest.mark.parametrize("protocol", BEGUN)
@pytest.mark.parametrize(("usage", "assumed"), [(True, False), (False, True)])
def test_an_error_after_a_part_of_an_answer_is_billed(
    tmp_path: Path, protocol: Api, usage: bool, assumed: bool
) -> None:
    """By its usage, or at its worst; row and budget agree, and the body is kept."""
    body = reply_body(protocol, **BEGUN[protocol])
    said = Said(body=json.dumps(body if usage else {**body, "usage": None}))
    tries, budget = tries_after(tmp_path / "r", said, protocol)
    state, kind, error, cost, was_assumed, kept = tries[0]
    assert (state, kind, bool(was_assumed), kept) == ("failed", "server", assumed, 1)
    assert error.startswith("status 200 with an error in it: ")
    assert (cost == EACH) is usage
    assert cost >= EACH
    total = sum(cost for _, _, _, cost, *_ in tries)
    assert f"usd: ${total / PICO:,.4f} spent, $0.0000 reserved" in budget


@pytest.mark.parametrize("protocol", in_gate(PROTOCOLS, 1))
def test_an_error_alone_costs_nothing(tmp_path: Path, protocol: Api) -> None:
    """As one with a status of its own does not."""
    tries, _ = tries_after(tmp_path / "r", Said(body=json.dumps(ALONE)), protocol)
    state, kind, error, cost, assumed, kept = tries[0]
    assert (state, kind, cost, assumed, kept) == ("failed", "server", 0, 0, 1)
    assert "Bad gateway" in error
    assert tries[1][0] == "received"


@pytest.mark.usefixtures("unhurried")
def test_an_error_with_status_200_is_a_failed_call_to_whoever_asks(shell: Shell) -> None:
    body = json.dumps(reply_body("responses", status="failed", error=ERROR))
    with Server(lambda heard: says("responses") if PROBE in heard.raw else Said(body=body)) as server:
        ended = played(shell, asker(server, tries=1), games=1, rules={"max_turns": 4}, flags=["--no-preflight"])
    assert ended.code == 0
    assert "fallback:unreachable" in ended.out
    status = shell("status", "r").out
    failed = sum(PROBE not in heard.raw for heard in server.heard)
    assert f"failed calls, server: {failed}" in status
    assert "fallback:malformed" not in status


def test_a_cap_holds_where_reasoning_is_reported_apart(tmp_path: Path) -> None:
    """As xAI does: by completion tokens alone, a tenth of the bill would be counted."""
    usage = {
        "prompt_tokens": 300,
        "completion_tokens": 20,
        "total_tokens": 520,
        "completion_tokens_details": {"reasoning_tokens": 200},
    }
    true = 300 * PRICE.input + 220 * PRICE.output
    cap = 25 * true
    with Server(lambda heard: says("chat", usage=usage)) as server:
        players = small(asker(server, "chat", max_output=400), games=40, turns=20)
        how: dict[str, Any] = {"prices": {"some-model": PRICE}, "caps": Caps(usd=cap), "preflight": False}
        run = ran(players, tmp_path / "r", in_flight=16, **how)
    assert run.failure is not None
    assert "the budget is used up" in str(run.failure)
    calls = len(server.heard)
    assert 0 < calls * true <= cap, "the server's own bill"
    assert rows(tmp_path / "r", "SELECT sum(picodollars), max(assumed) FROM tries") == [(calls * true, 0)]


@pytest.mark.parametrize("protocol", in_gate(PROTOCOLS, ["messages"]))
def test_a_cap_holds_where_a_server_says_that_it_took_nothing(tmp_path: Path, protocol: Api) -> None:
    """Each reply is counted at its worst, since nobody knows what it cost."""
    nothing = dict.fromkeys(["input_tokens", "output_tokens", "prompt_tokens", "completion_tokens", "total_tokens"], 0)
    cap = 400 * EACH
    with Server(lambda heard: says(heard.protocol, usage=nothing)) as server:
        players = small(asker(server, protocol, max_output=20), games=40, turns=20)
        how: dict[str, Any] = {"prices": {"some-model": PRICE}, "caps": Caps(usd=cap), "preflight": False}
        run = ran(players, tmp_path / "r", **how)
    assert run.failure is not None
    assert "the budget is used up" in str(run.failure)
    assert 0 < len(server.heard) * EACH <= cap, "the server's own bill"
    ((usd, assumed),) = rows(tmp_path / "r", "SELECT sum(picodollars), sum(assumed) FROM tries")
    assert (usd <= cap, assumed) == (True, len(server.heard))


def test_a_call_of_the_servers_own_tools_is_on_the_bill(tmp_path: Path) -> None:
    usage = {"input_tokens": 100, "output_tokens": 20, "server_tool_use": {"web_search_requests": 2}}
    with Server(lambda heard: says("messages", usage=usage)) as server:
        players = small(asker(server, "messages"), games=1, turns=9)
        ran(players, tmp_path / "r", prices={"some-model": PRICE}, preflight=False)
    query = "SELECT DISTINCT picodollars FROM tries"
    assert rows(tmp_path / "r", query) == [(EACH + 2 * PICO // 40,)]
