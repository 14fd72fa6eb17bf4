"""`dubito estimate`: ranges that cover the run's usage, without requests or costs."""

import json
import re
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from dubito.experiment.call_options import CallOptions
from dubito.experiment.estimate import (
    NOTHING,
    Estimate,
    Figure,
    _estimate_total,
    describe_reach,
    estimate_duration,
    useful_in_flight,
)
from dubito.experiment.experiment import StopRule
from dubito.experiment.model_players import announced_ends, old_price_warnings
from dubito.llm import prices
from dubito.store.spend import PICO, Caps
from tests.cli.kit import Shell
from tests.experiment.kit import experiment, resolved
from tests.llm.kit import Server, config_file, contender, player_at, respond, rows, small

OPENAI = "https://api.openai.com/v1"

PRICES = {"m": {"input": 1, "cached_input": 0.1, "cache_write": 1.25, "output": 5}}


def figures(line: str) -> list[tuple[float, float]]:
    found = re.findall(r"\$?([\d,.]+) to \$?([\d,.]+)", line)
    return [(float(low.replace(",", "")), float(high.replace(",", ""))) for low, high in found]


def line_of(out: str, player: str) -> str:
    return next(line for line in out.splitlines() if line.startswith(player))


def test_free_estimate_covers_the_runs_usage(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """No key is set, because no request is sent to the model's server."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    one = {"bot": "OpenAIBot", "name": "one", "model": "m", "prompt": "reasoned"}
    file = config_file(one, one | {"name": "decides", "api": "decisions"}, contender("two"), games=3, prices=PRICES)
    result = shell("estimate", file)
    assert result.code == 0, result.err
    calls, tokens_in, tokens_out, cost = figures(line_of(result.out, "one"))
    assert "no price" not in result.out
    assert "These are fake models: a built-in server on this machine answers for two.\n" in result.err
    kinds = {"one": "model", "decides": "model", "two": "fake model"}
    assert {name: re.split(r"  +", line_of(result.out, name))[1] for name in kinds} == kinds
    players = json.loads(shell("estimate", file, "--json").out)["players"]
    assert {player["name"]: player["kind"] for player in players} == kinds
    writes = {player["name"]: player["tokens_out"] for player in players}
    assert writes["decides"] == [0, 0], "decision models have no output and no reasoning"
    assert cost[0] >= (tokens_in[0] * 0.1 + tokens_out[0] * 5) / 1e6
    assert list(shell.folder.iterdir()) == [shell.folder / file], "it creates no files"
    free = contender("one", "house-sharp", prompt="reasoned")
    decides = contender("decides", "house-sharp", prompt="reasoned", api="decisions")
    shell("run", config_file(free, decides, contender("two"), games=3, name="d.yaml"), "--output", "r", "--quiet")
    ((made, sent, got),) = rows(
        Path("r"), "SELECT count(*), sum(input), sum(output) FROM attempts WHERE player = 'one' AND game >= 0"
    )
    assert calls[0] <= made <= calls[1]
    assert tokens_in[0] <= sent <= tokens_in[1]
    assert tokens_out[0] <= got <= tokens_out[1]


def test_estimate_uses_earlier_runs(shell: Shell) -> None:
    one, two = contender("one", "house-sharp"), contender("two", "house-honest", "AnthropicBot")
    shell("run", config_file(one, two, games=6), "--output", "r", "--quiet")
    result = shell("estimate", config_file(one, two, games=60, name="longer.yaml"), "--from", "r")
    assert result.code == 0
    ((made,),) = rows(Path("r"), "SELECT count(*) FROM attempts WHERE player = 'one' AND game >= 0")
    low, high = figures(line_of(result.out, "one"))[0]
    assert low < 10 * made < high
    assert line_of(result.out, "one").endswith("run r")
    assert "total: $0.0000\n" in result.out, "the built-in server is free"
    shorter = figures(shell("estimate", "longer.yaml", "--games", "6", "--from", "r").out.splitlines()[2])[0]
    assert shorter[1] < high


def test_old_list_prices_have_a_warning(shell: Shell) -> None:
    shipped = yaml.safe_load(Path(prices.__file__).with_name("prices.yaml").read_text())["servers"]
    read: date = shipped[OPENAI]["models"]["gpt-6-sol"]["as_of"]
    listed = {"bot": "OpenAIBot", "name": "one", "model": "gpt-6-sol"}
    old = datetime.now(UTC).date() - read > timedelta(days=60)
    result = shell("estimate", config_file(listed))
    assert result.code == 0, result.err
    assert (f"the list prices of {OPENAI} were last checked on {read}, " in result.err) is old
    assert "list prices" not in shell("estimate", config_file(listed, prices={"gpt-6-sol": PRICES["m"]})).err


def test_all_used_prices_are_checked_for_the_given_day(tmp_path: Path) -> None:
    players = [
        {"bot": "OpenAIBot", "name": "one", "model": "gpt-6-sol"},
        {"bot": "OpenAIBot", "name": "two", "model": "gpt-6-luna"},
        {"bot": "AnthropicBot", "name": "three", "model": "claude-opus-5"},
        contender("four", "house-sharp"),
    ]
    calls = CallOptions(1, tmp_path, False)
    claims = old_price_warnings(resolved(small(*players)), calls, date(2099, 1, 1))
    assert [sentence.split()[4] for sentence in claims] == ["https://api.anthropic.com", OPENAI]
    assert old_price_warnings(resolved(small(*players)), calls, date(2026, 11, 25)) == []
    assert announced_ends(resolved(small(*players)), date(2026, 11, 25)) == []
    ending = small(*players[1:], {"bot": "AnthropicBot", "name": "five", "model": "claude-sonnet-4-5"})
    assert [one.split()[2:5] for one in announced_ends(resolved(ending), date(2026, 11, 25))] == [
        ["provider", "retires", "claude-sonnet-4-5"]
    ]


def test_impossible_estimate_is_reported_in_one_sentence(shell: Shell) -> None:
    Path("bots.yaml").write_text("bots: [StefaBot, UsualBot]\n")
    result = shell("estimate", "bots.yaml")
    assert (result.code, result.err) == (2, "dubito: bots.yaml has no model players, so it costs nothing\n")
    result = shell("estimate", config_file(contender("one")), "--from", "nowhere")
    assert (result.code, "nowhere is not a run folder" in result.err) == (2, True)


def test_typical_value_comes_first_and_is_the_runs_own(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody-0123456789")
    prices = {"house-sharp": {"input": 100, "cached_input": 1, "cache_write": 200, "output": 300}}
    with Server(lambda incoming: respond("chat")) as server:
        player = player_at(server, "chat", name="one") | {"model": "house-sharp", "api_key_env": "OPENAI_API_KEY"}
        file = config_file(player, games=6, prices=prices)
        assert shell("run", file, "--output", "r", "--quiet").code == 0
    spent = json.loads(shell("status", "r", "--json").out)["models"][0]
    printed = json.loads(shell("estimate", file, "--from", "r", "--json").out)
    typical = printed["players"][0]["typical"]
    assert typical["calls"] == spent["calls"] - 1, "the estimate does not include the preflight"
    assert typical["usd"] == printed["typical_usd"] == pytest.approx(spent["usd"], rel=0.3)
    output = shell("estimate", file, "--from", "r").out
    assert re.search(r"^one +model +(\d+) \(\d+ to \d+\) ", output, re.MULTILINE)
    assert re.search(r"^total: \$[\d.]+ \(\$[\d.]+ to \$[\d.]+\)$", output, re.MULTILINE)


def test_range_of_a_total_covers_its_own_and_the_samples_variation() -> None:
    assert _estimate_total([3.0] * 10, 50) == (150.0, 150.0, 150.0)
    low, typical, high = _estimate_total([0.0, 6.0] * 10, 100)
    assert typical == 300
    assert typical - low == pytest.approx(high - 300)
    half = 2.093 * (9 * 20 / 19 * (100 + 100**2 / 20)) ** 0.5
    assert high - 300 == pytest.approx(half, rel=1e-3)
    assert _estimate_total([0.0, 1.0], 5).low == 0.0


def test_duration_is_bounded_by_what_one_process_can_call() -> None:
    calls, seconds = Figure(1400, 1400, 1400), Figure(0.1, 0.5, 1)
    estimate = Estimate("one", "model", "", calls, NOTHING, NOTHING, None, seconds, batches=0, is_local=False)
    assert estimate_duration([estimate], 10) == pytest.approx((14, 70, 140))
    assert estimate_duration([estimate], 512) == pytest.approx((10, 10, 10))
    assert useful_in_flight([estimate]) == 70


@pytest.mark.at_length
def test_prompts_of_one_model_are_estimated_separately(shell: Shell) -> None:
    plain, reasoned = contender("plain", "house-sharp"), contender("wordy", "house-sharp", prompt="reasoned")
    shell("run", config_file(plain, reasoned, games=12), "--output", "r", "--quiet")
    output = shell("estimate", "c.yaml", "--from", "r").out
    for name in ("plain", "wordy"):
        ((out,),) = rows(Path("r"), "SELECT sum(output) FROM attempts WHERE player = ? AND game >= 0", (name,))
        low, high = figures(line_of(output, name))[2]
        assert low < out < high
        assert line_of(output, name).endswith("run r")
    renamed = [contender("new name", "house-sharp", prompt="reasoned"), contender("plain", "house-sharp")]
    other = shell("estimate", config_file(*renamed, games=12, name="d.yaml"), "--from", "r").out
    assert line_of(other, "new name").endswith("run r: wordy")
    assert figures(line_of(other, "new name")) == figures(line_of(output, "wordy"))
    lone = shell(
        "run", config_file(plain, contender("x"), games=4, name="e.yaml"), "--output", "s", "--cache", "new", "--quiet"
    )
    assert lone.code == 0
    last = shell("estimate", "c.yaml", "--from", "s").out
    assert line_of(last, "wordy").endswith("run s: plain, which has a different prompt")


def test_batches_take_their_turns_and_local_servers_answer_one_by_one() -> None:
    calls, seconds = Figure(320, 320, 320), Figure(1, 1, 1)
    remote = Estimate("one", "model", "", calls, NOTHING, NOTHING, None, seconds, batches=0, is_local=False)
    assert estimate_duration([remote], 32) == pytest.approx((10, 10, 10))
    assert estimate_duration([replace(remote, is_local=True)], 32) == pytest.approx((320, 320, 320))
    assert estimate_duration([remote, replace(remote, batches=30)], 32) == pytest.approx((1800, 108_000, 2_592_000))


CALLS = Figure(600, 1000, 1400)


@pytest.mark.parametrize(
    ("caps", "stop", "sentence"),
    [
        (Caps(), None, None),
        (Caps(calls=1000), None, "The budget of 1,000 calls probably covers all 50 deals."),
        (Caps(calls=400), None, "The budget of 400 calls buys about 20 of 50 deals (40 games)."),
        (
            Caps(calls=100, usd=9 * PICO),
            None,
            "The budget of 100 calls buys about 5 of 50 deals (10 games). That cannot reach a result: a comparison "
            "needs 10 deals, which use about 200 calls.",
        ),
        (
            Caps(usd=2 * PICO),
            StopRule(20),
            "The budget of $2.0000 buys about 10 of 50 deals (20 games). That cannot reach a result: the first test of "
            "`stop` is after 30 deals, which use about $6.0000.",
        ),
        (Caps(tokens=40_000), StopRule(20), "The budget of 40,000 tokens buys about 40 of 50 deals (80 games)."),
    ],
)
def test_reach_of_budget_is_stated(caps: Caps, stop: StopRule | None, sentence: str | None) -> None:
    of = replace(experiment(games=100, bots=["StefaBot"], contenders=["ClaudeBot", "MrDoubt"]), stop=stop)
    tokens, usd = Figure(20_000, 25_000, 30_000), Figure(0, 10 * PICO, 20 * PICO)
    estimate = Estimate("one", "model", "", CALLS, tokens, tokens, usd, NOTHING, batches=0, is_local=False)
    assert describe_reach([estimate], of, caps) == sentence


def test_run_states_what_the_budget_buys_before_the_first_call(shell: Shell) -> None:
    with Server(lambda request: respond(request.protocol)) as server:
        one, price = player_at(server), {"some-model": PRICES["m"]}
        file = config_file(one, games=40, prices=price, budget={"usd": 0.05}, preflight=False)
        output = shell("run", file, "--output", "r", "--quiet", "--no-report").err
        assert re.search(
            r"^The budget of \$0\.0500 buys about \d of 40 deals \(\d games\)\. That cannot reach", output, re.M
        )
        again = shell("run", file, "--output", "r", "--quiet", "--no-report")
        assert "buys about" not in again.err, "a resumed run has already said so"
