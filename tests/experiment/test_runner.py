"""Runs have the same bytes with one or two workers, and report their progress correctly."""

from pathlib import Path

from dubito.experiment.run import find_finished_run
from dubito.files import read_yaml
from dubito.games.dubito.engine import RESULTS
from dubito.stats.tally import sum_deals, unpack_outcome
from dubito.store.run_db import RunDb
from tests.experiment.kit import experiment, play_all, resolved

BOTS = ["RandomBoi", "JustPutCards", "AdaptyBoi"]


def test_stored_sums_match_the_stored_games(tmp_path: Path) -> None:
    of = experiment(bots=BOTS, games=60, contenders=["StefaBot", "ClaudeBot"])
    run = play_all(of, tmp_path / "run")
    with RunDb.open(tmp_path / "run" / "run.db") as db:
        rows = [unpack_outcome(row, RESULTS) for row in db.outcomes()]
        assert db.sums_json() == sum_deals([rows[k : k + 2] for k in range(0, 60, 2)], RESULTS).to_json()
    results = read_yaml(tmp_path / "run" / "all_games.yaml")
    assert list(results) == run.experiment.names == [*BOTS, "StefaBot", "ClaudeBot"]
    assert sum(results[name]["total"]["games"] for name in results) == sum(len(row.seats) for row in rows)


def test_a_finished_run_is_found_again_and_its_results_rewritten(tmp_path: Path) -> None:
    of = experiment(bots=BOTS, games=30)
    run = play_all(of, tmp_path / "run")
    written = (tmp_path / "run" / "all_games.yaml").read_bytes()
    (tmp_path / "run" / "all_games.yaml").unlink()
    again = find_finished_run(resolved(of), tmp_path / "run")
    assert again is not None
    assert (again.results_digest, again.tally.to_json()) == (run.results_digest, run.tally.to_json())
    assert (tmp_path / "run" / "all_games.yaml").read_bytes() == written


def test_another_seed_gives_another_digest(tmp_path: Path) -> None:
    digests = {
        play_all(experiment(bots=BOTS, games=30, seed=seed), tmp_path / f"{seed}").results_digest for seed in range(4)
    }
    assert len(digests) == 4
