"""`--json` prints one object as documented, with the same figures as the tables."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from dubito.report import documents
from tests.cli import json_docs
from tests.cli.kit import REPO, Shell
from tests.llm.kit import config_file, contender

MODELS = [
    contender("one", model="house-sharp", base_url="house"),
    contender("two", bot="AnthropicBot", model="house-honest", base_url="house"),
]


def printed(shell: Shell, shape: Any, *words: str) -> Any:
    """Return the object that a command prints, after checking that all keys of its class are present."""
    result = shell(*words, "--json")
    assert result.code == 0, result.err
    content = json.loads(result.out)
    assert json.loads(shape.model_validate_json(result.out, strict=True).model_dump_json()) == content
    return content


def test_json_page_is_current() -> None:
    assert json_docs.FILE.read_text(encoding="utf-8") == json_docs.text(), "python -m tests.cli.json_docs"


def test_schema_of_the_output_describes_each_document() -> None:
    written = subprocess.run(
        [sys.executable, "-m", "dubito.report.documents"], capture_output=True, text=True, check=True, cwd=REPO
    )
    schema = json.loads(written.stdout)
    assert schema == documents.output_schema()
    names = [reference["$ref"].removeprefix("#/$defs/") for reference in schema["anyOf"]]
    assert {"RunObject", "StatusObject", "EstimateObject"} <= set(names)
    formats = [schema["$defs"][name]["properties"]["format"]["const"] for name in names]
    assert all(re.fullmatch(r"dubito [a-z ]+ \d+", one) for one in formats)
    assert len(set(formats)) == len(names)


@pytest.mark.parametrize("low", [float("-inf"), float("nan")])
def test_non_finite_number_becomes_null(low: float) -> None:
    with pytest.raises(ValidationError, match="finite"):
        documents.Interval(value=0, low=low, high=0)


def test_json_of_a_model_run_agrees_with_its_tables(shell: Shell) -> None:
    config = config_file(*MODELS, games=8, bots=["StefaBot"], output="runs/r")
    run = printed(shell, documents.RunObject, "run", config, "--quiet")
    table = shell("run", config, "--quiet").out
    assert (run["state"], run["kept"], run["stopped"], run["report"]) == ("finished", 8, None, None)
    assert f"results digest: {run['results_digest']}" in table
    opponents = [row for row in run["ranking"] if row["rank"] is None]
    for title, rows in (("of the same deals\n", run["contenders"]), ("clustered by deal\n", opponents)):
        _, _, lines = table.partition(title)
        assert [row["name"] for row in rows] == [line.split("  ")[0] for line in lines.splitlines()[1 : 1 + len(rows)]]
    assert [row["name"] for row in opponents] == ["StefaBot"]
    (pair,) = run["pairs"]
    assert {pair["one"], pair["other"]} == {"one", "two"} == {one["name"] for one in run["contenders"]}
    assert all(set(one["outcomes"]) == {"model"} and one["usd"] == 0 for one in run["models"])
    status = printed(shell, documents.StatusObject, "status", "runs/r")
    assert (status["kept"], status["state"], status["results_digest"]) == (8, "finished", run["results_digest"])
    assert sorted(status["models"], key=str) == sorted(run["models"], key=str)
    compared = printed(shell, documents.ComparisonObject, "compare", "runs/r")
    assert (compared["pairs"], compared["contenders"]) == (
        run["pairs"],
        [{**one, "run": "runs/r"} for one in run["contenders"]],
    )
    (listed,) = printed(shell, documents.RunsObject, "status", "runs")["runs"]
    assert (listed["folder"], listed["models"], listed["usd"]) == ("runs/r", ["one", "two"], 0)
    cached = printed(shell, documents.CacheObject, "cache", "stats")
    assert sum(one["replies"] for one in cached["models"]) == cached["replies"] > 0
    estimate = printed(shell, documents.EstimateObject, "estimate", config, "--from", "runs/r")
    assert [one["name"] for one in estimate["players"]] == ["one", "two"]
    assert 0 < estimate["seconds"][0] <= estimate["seconds"][1]


def test_run_stopped_by_a_bot_error(shell: Shell) -> None:
    shell.bot(
        "breaks.py",
        "from bots.base import BotBase\n\nclass Breaks(BotBase):\n    def play(self, p):\n        return 1 / 0\n",
    )
    result = shell("run", "--games", "4", "--bots", "Breaks", "--quiet", "--json")
    run = documents.RunObject.model_validate_json(result.out)
    assert (result.code, run.state, run.kept, run.ranking) == (3, "stopped", 0, [])
    assert run.stopped is not None
    assert "ZeroDivisionError" in run.stopped


@pytest.mark.parametrize("words", [("run", "--bots", "Nobody"), ("status", "nowhere"), ("compare", "nowhere")])
def test_an_error_prints_no_object(shell: Shell, words: tuple[str, ...]) -> None:
    result = shell(*words, "--json")
    assert (result.code, result.out) == (2, "")
    assert result.err.count("\n") == 1


@pytest.mark.parametrize("game", ["dubito", "bs", "defuse"])
def test_json_lists_the_bots_and_games_of_the_tables(shell: Shell, game: str) -> None:
    shell.bot("half.py", "class Half:\n    pass\n")
    found = printed(shell, documents.BotsObject, "bots", "--game", game)
    table = shell("bots", "--game", game).out
    assert found["bots"]
    assert all(f"\n{bot['name']} " in table and Path(bot["file"]).name in table for bot in found["bots"])
    assert [Path(broken["file"]).name for broken in found["broken"]] == (["half.py"] if game == "dubito" else [])
    assert game in [one["name"] for one in printed(shell, documents.GamesObject, "games")["games"]]
