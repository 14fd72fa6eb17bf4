"""Where chance stands in a run with models, and the proposal of a table at which it can be seen."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from dubito.experiment.chance import find_chance, propose_table
from dubito.experiment.resolved import ResolvedRun
from dubito.experiment.stored import open_recorded_run
from dubito.stats.ranking import contender_ranking
from tests.cli.kit import REPO, Shell
from tests.experiment.kit import experiment, play_all, registry, resolved
from tests.llm.kit import contender

FIELD = ["StefaBot", "UsualBot"]


def _run(*contenders: object, **config: Any) -> ResolvedRun:
    base = {"bots": FIELD, "games": 20 * len(contenders), "table_sizes": [3], "rules": {"max_turns": 200}}
    of = experiment(contenders=list(contenders), **base | config)
    return resolved(of, registry(of.game))


@pytest.mark.parametrize(
    ("game", "bot", "config"),
    [
        ("dubito", "RandomBoi", {}),
        ("dubito", "RandomBoi", {"bots": ["RandomBoi", "ClaudeBot"]}),
        ("openspiel:kuhn_poker", "UniformRandom", {"bots": ["FirstLegal"], "table_sizes": None, "rules": {}}),
    ],
)
def test_chance_is_what_the_random_player_reaches_as_a_contender(
    tmp_path: Path, game: str, bot: str, config: dict[str, Any]
) -> None:
    if game != "dubito":
        pytest.importorskip("pyspiel")
    seats = 1 if game == "dubito" else 2
    settings = {"game": game, "games": 20 * seats, **config}
    line = find_chance(_run(contender("asker"), **settings), 20)
    played = play_all(_run(bot, **settings).experiment, tmp_path / "run")
    (row,) = contender_ranking(played.tally, played.contenders, played.game.results)
    assert line is not None
    assert (line.bot, line.deals, line.rates) == (bot, 20, row.rates)


def test_chance_is_not_measured_where_it_is_a_contender_or_would_need_calls() -> None:
    asker = contender("asker")
    assert find_chance(_run(asker, "RandomBoi"), 20) is None
    assert find_chance(_run("ClaudeBot", "SusBoi"), 20) is None
    assert find_chance(_run("ClaudeBot", bots=[*FIELD, asker]), 20) is None
    assert find_chance(_run(bots=[*FIELD, asker], games=20), 20) is None
    assert find_chance(_run(asker), 0) is None


def test_chance_lies_outside_the_run(tmp_path: Path, shell: Shell) -> None:
    words = ("--bots", "StefaBot,UsualBot", "--contenders", "house:house-random@plain", "--table-sizes", "3")
    result = shell("run", *words, "--games", "12", "--max-turns", "40", "--output", "r")
    (line,) = re.findall(r"^random play \(RandomBoi\) in the same seats: (.*)$", result.out, re.M)
    assert "RandomBoi" not in (shell.folder / "r" / "all_games.yaml").read_text()
    with open_recorded_run(shell.folder / "r") as run:
        assert (run.game_count, run.names) == (12, ["StefaBot", "UsualBot", "house:house-random@plain"])
        assert run.chance is not None
        assert run.chance.deals == 12
    output = json.loads(shell("run", "r", "--json").out)["chance"]
    assert (output["bot"], output["deals"], output["rates"].keys() > {"score"}) == ("RandomBoi", 12, True)
    assert shell("report", "r").code == 0
    page = (shell.folder / "r" / "report" / "index.html").read_text()
    assert f"dashed line: RandomBoi, which decides at random, in the same seats: {line}" in page


def test_table_without_a_scale_is_said_before_the_run_with_one_that_has_it(shell: Shell) -> None:
    words = ["--contenders", "house:house-random@plain", "--games", "10", "--no-report", "--output"]
    result = shell("run", "--bots", "ClaudeBot,StefaBot", "--table-sizes", "3", "--max-turns", "25", *words, "r")
    note = r"note: RandomBoi, .*, has a Score of (.*) % at this table, and (.*) % of its games end unfinished\. .*"
    found = re.search(note + r"; it would have (.*) % with (--.*)", result.err)
    assert found, result.err
    assert float(found[1]) < 5
    assert 20 <= float(found[3]) <= 45
    again = shell("run", "--table-sizes", "3", *shlex.split(found[4]), *words, "s")
    assert "decides at random, has a Score" not in again.err


def test_table_with_a_scale_and_short_runs_get_no_note() -> None:
    asker = contender("asker")
    weak = {"bots": ["RandomBoi"], "rules": {"max_turns": 1000}}
    assert propose_table(_run(asker, **weak)) is None
    strong = {"bots": ["ClaudeBot", "StefaBot"], "rules": {"max_turns": 20}}
    assert propose_table(_run(asker, games=20, **strong)) is not None
    assert propose_table(_run(asker, games=9, **strong)) is None


@pytest.mark.at_length
def test_first_run_is_decided_within_its_deals(shell: Shell) -> None:
    assert shell("run", str(REPO / "examples" / "first-run.yaml"), "--no-report", "--output", "r").code == 0
    with open_recorded_run(shell.folder / "r") as run:
        assert run.is_decided
        assert run.model_log.spent().calls < 700
