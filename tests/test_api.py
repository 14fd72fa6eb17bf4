"""The public Python API plays runs and reads them as typed rows."""

import json
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dubito
from dubito.game.events import AnswerEvent
from dubito.games.dubito.events import HandDealtEvent, OwnCardsEvent
from tests.cli.kit import REPO, Shell

MODEL = {"bot": "OpenAIBot", "name": "sharp", "model": "house-sharp", "base_url": "house", "prompt": "reasoned"}
CONFIG: dict[str, Any] = {
    "games": 6,
    "table_sizes": [3],
    "bots": ["StefaBot", "UsualBot"],
    "contenders": ["ClaudeBot", MODEL],
    "rules": {"max_turns": 12},
}
PAGE = (REPO / "docs" / "python.md").read_text()


@pytest.fixture
def run(shell: Shell) -> Iterator[dubito.Run]:
    with dubito.run(CONFIG, output="r") as run:
        yield run


def test_run_has_the_rows_that_json_prints(run: dubito.Run, shell: Shell) -> None:
    Path("c.yaml").write_text(json.dumps(CONFIG | {"output": "r"}))
    printed = json.loads(shell("run", "c.yaml", "--json").out)
    assert run.results_digest == printed["results_digest"]
    assert (run.game, run.counted, run.is_finished) == ("dubito", 6, True)
    assert run.comparisons().to_dicts() == printed["pairs"]
    ranked = [{**row, "lies": None} for row in printed["ranking"]]
    assert run.ranking().to_dicts() == ranked
    assert [row.name for row in run.calibration()] == ["sharp"]


def test_games_have_events_and_decisions_with_requests(run: dubito.Run) -> None:
    games = [*run.games()]
    assert [game.number for game in games] == [*range(6)]
    (asked,) = {tuple(game.decisions) != () for game in games if "sharp" in game.players}
    assert asked
    game = next(game for game in games if "sharp" in game.players)
    assert len(game.results) == len(game.measures) == len(game.players) == 3
    for decision in game.decisions:
        assert decision.player == game.players[decision.seat] == "sharp"
        assert decision.messages[0][0] in ("system", "developer")
        assert decision.reply is not None
        assert json.loads(decision.reply)["answer"] == decision.answer
        assert decision.outcome == "model"
    stated = [decision.stated for decision in game.decisions if decision.node == "C"]
    assert all(value is not None and 0 <= value <= 1 for value in stated)


def test_events_are_typed_and_include_hidden_ones_and_answers(run: dubito.Run) -> None:
    game = next(game for game in run.games() if game.decisions and any(one.node == "C" for one in game.decisions))
    assert [event.only for event in game.events if isinstance(event, HandDealtEvent)] == [0, 1, 2]
    assert game.text[0].startswith(f"{game.players[0]} plays ")
    seat, lie, truths = game.decisions[0].seat, None, list[object]()
    for event in game.events:
        lie = event.lie if isinstance(event, OwnCardsEvent) else lie
        if isinstance(event, AnswerEvent) and event.only == seat:
            truths.append(lie if event.node == "C" else None)
    assert [one.truth for one in game.decisions] == truths
    known = game.log_of(seat)
    assert {event.only for event in known} == {None, seat}
    answers = [(event.node, event.answer) for event in known if isinstance(event, AnswerEvent)]
    assert answers == [(one.node, one.answer) for one in game.decisions]
    with pytest.raises(dubito.UsageError, match="has no seat -1; its seats are 0 to 2"):
        game.log_of(-1)


def test_events_are_refused_where_a_game_plays_differently(run: dubito.Run) -> None:
    with sqlite3.connect("r/run.db") as connection:
        connection.execute("UPDATE games SET outcome = (SELECT outcome FROM games WHERE game = 1) WHERE game = 0")
    with dubito.load("r") as changed, pytest.raises(dubito.UsageError, match="game 0 of r is played differently now"):
        _ = next(changed.games()).events


def test_replay_raises_where_a_game_differs(run: dubito.Run) -> None:
    assert run.replay(workers=1) == 6
    run.close()
    with sqlite3.connect("r/run.db") as connection:
        connection.execute("UPDATE decisions SET answer = 1 - answer")
    with dubito.load("r") as changed, pytest.raises(dubito.ReplayDiffers):
        changed.replay(workers=1)


def test_an_exported_run_reads_like_its_folder(run: dubito.Run, shell: Shell) -> None:
    assert shell("export", "r", "r.zip").code == 0
    with dubito.load("r.zip") as exported:
        assert exported.ranking() == run.ranking()
        assert exported.replay(workers=1) == 6


def test_the_same_call_returns_the_finished_run_and_resumes_a_longer_one(run: dubito.Run) -> None:
    before = Path("r/run.db").stat().st_mtime_ns
    with dubito.run(CONFIG, output="r") as again:
        assert again.results_digest == run.results_digest
    assert Path("r/run.db").stat().st_mtime_ns == before
    with dubito.run(CONFIG, output="r", games=8) as longer:
        assert longer.counted == 8


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"gmes": 3}, "the config: unknown key 'gmes': did you mean 'games'?"),
        ({"bots": ["Nobody"]}, "no bot is named 'Nobody'"),
        ({"games": "many"}, "games: "),
        (
            {"scheduler": "tcp://127.0.0.1:9"},
            "scheduler: `executor: processes` does not use a scheduler; add `executor: dask`",
        ),
    ],
)
def test_a_wrong_setting_is_a_usage_error(shell: Shell, settings: dict[str, Any], words: str) -> None:
    with pytest.raises(dubito.UsageError, match=re.escape(words)):
        dubito.run(**settings)
    assert not Path("runs").exists()


def test_rows_become_a_table_where_pandas_is_installed(run: dubito.Run) -> None:
    pytest.importorskip("pandas", reason="pandas is not installed")
    assert run.ranking().to_pandas()["rates.score.value"].notna().all()


def test_importing_dubito_loads_nothing_until_a_name_is_used() -> None:
    script = "import sys, dubito; print(sorted(name for name in sys.modules if name.startswith('dubito')))"
    done = subprocess.run([sys.executable, "-c", script], cwd=REPO, text=True, capture_output=True, check=True)
    assert done.stdout == "['dubito']\n"
    assert {*dubito.__all__} <= {*dir(dubito)}
    assert dubito.Bot.__module__ == "bots.base"
    for name in dubito.__all__:
        assert getattr(dubito, name).__doc__, name


def test_examples_of_the_guide_run(shell: Shell) -> None:
    readme = (REPO / "README.md").read_text()
    for block in re.findall(r"^```python\n(.*?)^```$", PAGE + readme, re.MULTILINE | re.DOTALL):
        fewer = block.replace("games=300", "games=20")  # to save time
        exec(compile(fewer, "docs/python.md", "exec"), {})  # noqa: S102, the project's own page


@pytest.mark.at_length
def test_the_notebook_runs_from_its_first_cell_to_its_last(shell: Shell) -> None:
    for package in ("pandas", "matplotlib"):
        pytest.importorskip(package, reason=f"{package} is not installed, so the notebook was not run")
    notebook = json.loads((REPO / "examples" / "notebook.ipynb").read_text())
    names: dict[str, Any] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)  # noqa: S102, the project's own notebook
    assert names["run"].counted
