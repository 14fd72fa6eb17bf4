"""A run with `stop` ends after the same deal, however it is played, killed or resumed."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from dubito.experiment.experiment import Experiment
from dubito.experiment.stop import PairStanding, describe_standing, pair_standings
from dubito.experiment.stored import open_recorded_run
from dubito.stats.stopping import PairTest
from dubito.store.folder import MANIFEST
from tests.cli.kit import Shell
from tests.experiment.kit import experiment, play_all
from tests.llm.kit import contender, rows
from tests.resume.kit import go, read_results

QUICK: dict[str, Any] = {"bots": ["RandomBoi"], "table_sizes": [3], "rules": {"max_turns": 36}}
BOTS: dict[str, Any] = {**QUICK, "contenders": ["MrNoDoubt", "RandomBoi", "MrDoubt"]}


def models(most: int = 60, within: float = 0.25) -> Experiment:
    both = [contender("one"), "UniformRandom"]
    stop = {"within": within, "most": most}
    return experiment(game="openspiel:kuhn_poker", bots=["UniformRandom"], contenders=both, stop=stop)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "run"
    assert go(models(), folder, in_flight=1).failure is None
    return folder


def decided(folder: Path) -> tuple[int, dict[Any, list[int]], str]:
    with open_recorded_run(folder) as run:
        assert run.is_finished
        return run.deals, dict(run.tally.rows("decided")), run.results_digest


@pytest.mark.at_length
def test_hand_written_bots_stop_after_the_same_deal_with_any_number_of_workers(tmp_path: Path) -> None:
    of = experiment(**BOTS, stop={"within": 8, "most": 1500})
    for workers in (1, 2):
        run = play_all(of, tmp_path / f"r{workers}", workers=workers)
        assert (run.failure, run.interrupted) == (None, False)
    one, two = tmp_path / "r1", tmp_path / "r2"
    assert decided(one) == decided(two)
    deals, pairs, _ = decided(one)
    assert deals == max(at for at, _ in pairs.values()) < 1000
    assert deals % 10 == 0
    assert read_results(one) == read_results(two)
    longer = experiment(**BOTS, stop={"within": 8, "most": 2500})
    assert play_all(longer, one).tally.games == 3 * deals, "a decided run does not continue"


def test_models_stop_after_the_deciding_deal(whole: Path) -> None:
    deals, pairs, _ = decided(whole)
    assert 30 < deals == pairs[0, 1][0] < 60
    assert rows(whole, "SELECT max(game) FROM ended") == [(4 * deals - 1,)]


@pytest.mark.parametrize(("stops", "in_flight"), [([60], 7)])
def test_stopped_run_stays_stopped_after_the_same_deal(
    whole: Path, tmp_path: Path, stops: list[int], in_flight: int
) -> None:
    folder = tmp_path / "run"
    for number, stop in enumerate(stops):
        assert go(models(), folder, stop_after=stop, in_flight=in_flight, cache=tmp_path / f"{number}").interrupted
    go(models(), folder, in_flight=in_flight, cache=tmp_path / "fresh")
    assert decided(folder) == decided(whole)
    assert read_results(folder) == read_results(whole)
    counted = "SELECT count(*) FROM attempts"
    assert rows(folder, counted) == rows(whole, counted), "an undisturbed run sends the same requests"


@pytest.mark.at_length
def test_run_at_its_limit_continues_with_a_larger_one(whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    short = go(models(most=30), folder)
    assert (short.tally.games, short.failure) == (120, None)
    with open_recorded_run(folder) as run:
        (pair,) = pair_standings(run)
        assert 0 < pair.test.way < 1
        assert describe_standing(pair, run.planned).startswith("one - UniformRandom: 30 deals, ")
        assert " % of the way to " in describe_standing(pair, run.planned)
    go(models(), folder)
    assert decided(folder) == decided(whole)
    young = PairStanding("a", "b", PairTest(1, 2))
    young.test.add(2)
    assert describe_standing(young, models()) == "a - b: the first test is after 30 deals"
    assert young.test.way == 0


@pytest.mark.at_length
def test_stored_games_remain_while_their_chunk_is_replayed(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    assert go(models(50, within=0.1), folder).tally.games == 200
    ((before,),) = rows(folder, "SELECT count(*) FROM decisions WHERE game < 180")
    cut = go(models(60, within=0.1), folder, stop_after=before, in_flight=1)
    assert (cut.interrupted, cut.tally.games) == (True, 200)


def test_replay_verifies_where_the_run_stopped(shell: Shell, whole: Path) -> None:
    output = shell("replay", str(whole)).out
    assert output.startswith("identical: ")
    manifest = whole / MANIFEST
    text = manifest.read_text()
    assert "within: 0.25" in text
    manifest.write_text(text.replace("within: 0.25", "within: 0.4"))
    found = shell("replay", str(whole))
    manifest.write_text(text)
    assert (found.code, "it continues after every pair was decided" in found.out) == (1, True)


def test_every_view_names_its_intervals_and_progress(shell: Shell) -> None:
    config = {**BOTS, "contenders": ["MrNoDoubt", "RandomBoi"]}
    (shell.folder / "c.yaml").write_text(yaml.safe_dump(config))
    words = ("run", "c.yaml", "--stop", "within=20,most=400", "--output", "r", "--workers", "1")
    output, output = shell(*words).out, shell("compare", "r").out
    for text in (output, output):
        assert "common deals; anytime 95 % confidence intervals" in text
        assert "in the same seat of the same deals; 95 % confidence intervals for a fixed number of deals" in text
    found = json.loads(shell("run", "c.yaml", "--stop", "within=20,most=400", "--output", "r", "--json").out)
    (pair,) = found["pairs"]
    score, other = pair["differences"].values()
    assert (found["state"], score["interval"], other["interval"]) == ("finished", "anytime", "anytime")
    assert other["verdict"] is None, "only the first measure is tested"
    verdict = score["verdict"]
    assert verdict in ("different", "within")
    apart = "yes" if verdict == "different" else "less than 20 apart"
    assert apart in output
    assert shell("report", "r").code == 0
    page = (shell.folder / "r/report/index.html").read_text()
    assert "anytime 95 % confidence interval" in page
    assert "unfinished: " not in page
    status = json.loads(shell("status", "r", "--json").out)
    assert (status["state"], status["pairs"][0]["verdict"], status["pairs"][0]["way"]) == ("finished", verdict, 1.0)
    lines = shell("status", "r").out
    assert "MrNoDoubt - RandomBoi: " in lines
    assert f" after {found['kept'] // 2} deals" in lines
    fixed = shell("run", "c.yaml", "--games", "40", "--output", "f", "--workers", "1").out
    assert "on 20 common deals; 95 % confidence intervals for a fixed number of deals" in fixed


@pytest.mark.parametrize(
    ("config", "flags", "sentence"),
    [
        ({"stop": {"within": 3}}, (), "c.yaml: stop: most is required, as in {within: 3, most: 1200}"),
        ({"stop": {"within": 0, "most": 90}}, (), "c.yaml: stop.within: must be greater than 0"),
        (
            {"stop": {"within": 100, "most": 90}},
            (),
            "stop.within: must be less than 100, the largest difference in Score",
        ),
        ({"stop": {"within": 3, "most": 90, "least": 1}}, (), "c.yaml: unknown key 'least'"),
        (
            {"games": 90, "stop": {"within": 3, "most": 90}},
            (),
            "c.yaml: games: `stop` already sets the maximum number of deals",
        ),
        ({"contenders": ["MrDoubt"]}, ("--stop", "within=3,most=90"), "--stop: `stop` compares contenders"),
        ({}, ("--stop", "3"), "--stop: write it as within=3,most=1200, not '3'"),
        ({"stop": {"within": 3, "most": 90}}, ("--shard", "1/2"), "--shard 1/2: a run with `stop` cannot be split"),
    ],
)
def test_contradictory_stop_settings_are_refused(
    shell: Shell, config: dict[str, Any], flags: tuple[str, ...], sentence: str
) -> None:
    (shell.folder / "c.yaml").write_text(yaml.safe_dump(BOTS | config))
    ended = shell("run", "c.yaml", *flags)
    assert (ended.code, sentence in ended.err) == (2, True), ended.err


def test_flags_override_parts_of_the_config(shell: Shell) -> None:
    (shell.folder / "c.yaml").write_text(yaml.safe_dump({**BOTS, "stop": {"within": 8, "most": 30}}))
    document = json.loads(shell("run", "c.yaml", "--stop", "most=40", "--no-report", "--workers", "1", "--json").out)
    assert document["games"] == 120
