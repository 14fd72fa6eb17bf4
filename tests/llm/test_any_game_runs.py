"""Runs with models at a user's game: played, cached, estimated, explained, recorded."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.kit import Result, Shell
from tests.llm.kit import Server, contender, rows
from tests.llm.test_any_game import HOME, answering


@pytest.fixture
def home(shell: Shell) -> Shell:
    for name in ("games", "bots", "prompts"):
        shutil.copytree(HOME / name, shell.folder / name)
    return shell


def config(*contenders: dict[str, Any], **more: Any) -> str:
    base = {"game": "guess", "games": 4, "bots": ["Dull", "Bold"], "contenders": list(contenders)}
    Path("c.yaml").write_text(yaml.safe_dump(base | more))
    return "c.yaml"


def digest(out: str) -> str:
    (found,) = re.findall(r"results digest: (\w+)", out)
    return str(found)


PAIR = (contender("one"), contender("two", bot="AnthropicBot", sample=1))


@pytest.mark.usefixtures("unhurried")
def test_faults_and_cache_do_not_change_results(home: Shell) -> None:
    calm = home("run", config(*PAIR), "--output", "calm", "--quiet")
    assert (calm.code, calm.err) == (0, "")
    again = home("run", "c.yaml", "--output", "again", "--quiet", "--offline")
    assert digest(again.out) == digest(calm.out)
    one = [dict(each, base_url="house?faults=rate_limit:0.2,reset:0.1") for each in PAIR]
    words = ("--output", "stormy", "--quiet", "--cache", "other", "--patience", "7d")  # pauses of many threads add up
    stormy = home("run", config(*one), *words)
    assert stormy.code == 0
    query = "SELECT * FROM decisions ORDER BY 1, 2, 3"
    assert rows(Path("stormy"), query) == rows(Path("calm"), query)
    assert rows(Path("stormy"), "SELECT count(*) FROM tries WHERE state = 'failed'") > [(0,)]
    assert rows(Path("calm"), "SELECT DISTINCT outcome FROM decisions") == [("model",)]


def test_illegal_answer_is_shown_only_at_its_decision(home: Shell) -> None:
    with Server(answering({"number": 99})) as server:
        asks = contender("asks", base_url=server.base_url("responses"))
        result = home("run", config(asks, contender("plays")), "--output", "r", "--quiet")
    assert "fallback:illegal %" in result.out
    assert "illegal" not in home("run", config(contender("plays"), games=2), "--output", "s", "--quiet").out
    nodes = rows(Path("r"), "SELECT DISTINCT node, outcome FROM decisions WHERE outcome LIKE 'fallback%'")
    assert nodes == [("number", "fallback:illegal")]


def test_positions_come_from_a_run_and_from_a_config(home: Shell) -> None:
    assert home("run", config(PAIR[0]), "--output", "r", "--quiet").code == 0
    result = home("prompts", "record", "r", "--count", "8", "--output", "of-run")
    assert result.out == "written: 8 positions from 2 deals in of-run: hint 2, stake 2, number 2, sure 2\n"
    result = home("prompts", "record", config(), "--count", "3", "--node", "sure", "--output", "of-config")
    assert result.out == "written: 3 positions from 3 deals in of-config: sure 3\n"
    wrong = home("prompts", "record", "r", "--node", "C").err
    assert wrong == "dubito: Invalid value for '--node': 'C' is not one of 'hint', 'stake', 'number', 'sure'.\n"
    asked = home(
        "prompts", "test", "plain", "--game", "guess", "--model", "house:house-random", "--positions", "of-run"
    )
    assert asked.code == 0
    assert "right" not in asked.out


def test_estimate_uses_the_games_own_fake_model(home: Shell) -> None:
    paid = {"bot": "OpenAIBot", "name": "paid", "model": "m"}
    prices = {"m": {"input": 1, "cached_input": 1, "cache_write": 1, "output": 1}}
    result = home("estimate", config(paid, prices=prices))
    assert result.code == 0, result.err
    (row,) = [line.split() for line in result.out.splitlines() if line.startswith("paid ")]
    assert row[1:3] == ["model", "32"], "eight decisions per game in four games"


def test_cache_miss_is_explained(home: Shell) -> None:
    assert home("run", config(PAIR[0], games=2), "--output", "r", "--quiet").code == 0
    user = Path("prompts/guess/plain/user.jinja")
    user.write_text("Now! " + user.read_text())
    missed = home("run", "c.yaml", "--output", "s", "--offline", "--quiet")
    assert missed.code == 3
    assert "node hint" in missed.err
    result = home("cache", "explain", "0.0.0", "--run", "s")
    assert "body.input" in result.out + result.err
    Path("runs").mkdir()
    Path("s").rename("runs/s")
    assert home("cache", "explain", "0.0.0") == Result(0, result.out, "the latest run: runs/s\n")
