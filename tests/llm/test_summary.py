"""The summary of a run with models: decisions, fallbacks by cause, calls, tokens and costs."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from dubito.model_settings import Api
from dubito.store.spend import dollars
from tests.cli.kit import Result as Ended
from tests.cli.kit import Shell
from tests.conftest import in_gate
from tests.llm.kit import (
    PROTOCOLS,
    Incoming,
    Response,
    Server,
    contender,
    outcomes_of,
    player_at,
    respond,
    rows,
    run_cli,
)

PRICE = {"input": 2, "cached_input": 0.1, "cache_write": 2.5, "output": 10}
# Each means: 100 input tokens (60 cached, 5 cache writes) and 20 output tokens.
USAGES: Mapping[Api, dict[str, Any]] = {
    "responses": {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 5},
        "output_tokens": 20,
    },
    "chat": {
        "prompt_tokens": 100,
        "prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 5},
        "completion_tokens": 20,
    },
    "messages": {
        "input_tokens": 35,
        "cache_read_input_tokens": 60,
        "cache_creation_input_tokens": 5,
        "output_tokens": 20,
    },
}
EACH = 35 * 2_000_000 + 60 * 100_000 + 5 * 2_500_000 + 20 * 10_000_000  # picodollars per reply
SAVED = 60 * 1_900_000 - 5 * 500_000


def models(ended: Ended) -> dict[str, dict[str, str]]:
    """Return the table of model players: name -> column -> cell."""
    assert ended.code == 0, ended.err
    lines = ended.out.splitlines()
    start = lines.index("Model players") + 1
    headers = re.split(r"\s{2,}", lines[start])
    found = {}
    for line in lines[start + 1 :]:
        cells = re.split(r"\s{2,}", line)
        if len(cells) != len(headers):
            break
        found[cells[0]] = dict(zip(headers, cells, strict=True))
    return found


def billing(usage: Any = None) -> Callable[[Incoming], Response]:
    return lambda request: respond(request.protocol, usage=USAGES[request.protocol] if usage is None else usage)


def test_summary_counts_decisions_fallbacks_and_tokens(shell: Shell) -> None:
    def answer(request: Incoming) -> Response:
        return respond("responses", finish="refusal") if "node: C" in request.raw.decode() else respond("responses")

    with Server(answer) as server:
        ended = run_cli(shell, player_at(server), flags=["--no-preflight"])
    counts = outcomes_of(Path("r"))
    refused, decisions = counts["fallback:refused"], sum(counts.values())
    assert 0 < refused < decisions
    share, calls = f"{100 * refused / decisions:.1f}", len(server.requests)
    assert models(ended)["asker"] == {
        "model player": "asker",
        "kind (claimed)": "model",
        "decisions": f"{decisions}",
        "fallback %": share,
        "fallback:refused %": share,
        "re-asks": f"{refused}",
        "calls": f"{calls}",
        "cache %": "0.0",
        "tokens in": f"{100 * calls:,}",
        "cached in": "0",
        "tokens out": f"{20 * calls:,}",
        "cost": "-",
        "billed": "-",
        "assumed": "-",
        "cost per game": "-",
        "saved by the provider's cache": "-",
    }
    assert "Assumed" not in ended.out
    assert "Not repeatable" not in ended.out


@pytest.mark.parametrize("protocol", in_gate(PROTOCOLS, ["messages"]))
def test_summary_shows_total_cost_cost_per_game_and_saving(shell: Shell, protocol: Api) -> None:
    """The total includes the cost of the preflight."""
    with Server(billing()) as server:
        ended = run_cli(shell, player_at(server, protocol), prices={"some-model": PRICE})
    row, calls = models(ended)["asker"], len(server.requests)
    assert calls == int(row["calls"]) == int(row["decisions"]) + 1
    assert (row["tokens in"], row["cached in"], row["tokens out"]) == (
        f"{100 * calls:,}",
        f"{60 * calls:,}",
        f"{20 * calls:,}",
    )
    assert row["cost"] == dollars(EACH * calls)
    assert row["cost per game"] == dollars(EACH * calls // 2)
    assert row["saved by the provider's cache"] == dollars(SAVED * calls)
    assert rows(Path("r"), "SELECT sum(picodollars), sum(saved) FROM tries") == [(EACH * calls, SAVED * calls)]


def test_each_player_is_charged_its_own_calls(shell: Shell) -> None:
    """If twins share a call, the first one pays. Players without a price have dashes."""
    with Server(billing()) as server:
        players = [player_at(server, name="one"), player_at(server, name="twin"), contender("free")]
        ended = run_cli(shell, *players, games=3, prices={"some-model": PRICE})
    shown = models(ended)
    calls = {name: int(row["calls"]) for name, row in shown.items()}
    assert calls["one"] + calls["twin"] == len(server.requests)
    for name in ("one", "twin"):
        assert shown[name]["cost"] == dollars(EACH * calls[name])
    assert (shown["free"]["cost"], shown["free"]["cost per game"]) == ("$0.0000", "$0.0000"), (
        "the built-in server is free"
    )


def test_calls_without_usage_count_as_the_worst_case(shell: Shell) -> None:
    with Server(billing(usage={})) as server:
        ended = run_cli(shell, player_at(server, max_output=99), prices={"some-model": PRICE})
    calls = len(server.requests)
    assert (
        f"Assumed: {calls} calls by asker reported no cost; each is counted at its highest possible cost."
        in ended.out.splitlines()
    )
    texts = rows(Path("r"), "SELECT count(*), sum(tokens), sum(picodollars), sum(assumed), sum(saved) FROM tries")
    ((count, tokens, cost, assumed, saved),) = texts
    into = tokens - 99 * calls
    assert (count, assumed, saved) == (calls, calls, 0)
    assert cost == into * 2_500_000 + 99 * calls * 10_000_000
    assert into >= sum(len(request.raw) for request in server.requests), "every sent byte counts"
    row = models(ended)["asker"]
    assert (row["cost"], row["tokens in"], row["tokens out"]) == (dollars(cost), "0", "0")


def test_finished_run_prints_the_same_again(shell: Shell) -> None:
    with Server(billing()) as server:
        first = run_cli(shell, player_at(server), prices={"some-model": PRICE})
        again = run_cli(shell, player_at(server))
    assert models(again) == models(first)
    assert "this run is already finished in" in again.err


def test_reply_above_its_reserve_is_reported_with_numbers(shell: Shell) -> None:
    """No cap can hold if a server reports impossible counts, so the message says that it was exceeded."""

    def answer(request: Incoming) -> Response:
        tokens = 2**24 if len(server.requests) == 5 else 9
        return respond(request.protocol, usage={"input_tokens": tokens, "output_tokens": 2})

    with Server(answer) as server:
        ended = run_cli(shell, player_at(server, max_output=100), prices={"some-model": PRICE})
        stopped = shell("run", "c.yaml", "--output", "r", "--games", "40", "--budget", "tokens=1000000", "--quiet")
    pattern = (
        r"The first: the server reported 16,777,218 tokens, but (\d,\d{3}) were reserved "
        r"\(\$33\.5545 and \$0\.\d{4}\)"
    )
    begins = "1 call by asker used more than the budget reserved, which no budget can prevent. "
    (line,) = (line for line in ended.out.splitlines() if line.startswith(begins))
    assert re.fullmatch(pattern, line.removeprefix(begins).removesuffix("."))
    assert (stopped.code, len(rows(Path("r"), "SELECT 1 FROM tries"))) == (3, len(server.requests))
    assert "of 1,000,000 tokens spent, and the next deal needs up to" in stopped.err
    begins = "  calls that exceeded their budget reservation: 1; "
    (line,) = (line for line in shell("status", "r").out.splitlines() if line.startswith(begins))
    assert re.fullmatch(pattern, f"T{line.removeprefix(begins)[1:]}")


def test_reply_within_its_reserve_is_not_reported(shell: Shell) -> None:
    with Server(billing()) as server:
        assert "reserved" not in run_cli(shell, player_at(server)).out + shell("status", "r").out
