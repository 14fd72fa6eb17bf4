"""Runs of hand-written bots that are stopped, resumed and extended equal an undisturbed run."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from dubito.experiment import play as chunk
from dubito.experiment.run import find_finished_run, play
from dubito.store.run_db import RunDb
from tests.experiment.kit import experiment, means, play_all, resolved
from tests.resume.kit import read_results

BOTS = ["StefaBot", "ClaudeBot", "RandomBoi"]
SHORT = {"max_turns": 12}
DEALS = 20  # deals per chunk; there is never more than one chunk to play, so no worker is started
GAMES = DEALS + 6


@pytest.fixture(autouse=True, scope="module")
def short_chunks() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunk, "DEALS_PER_CHUNK", DEALS)
        yield


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, bytes]:
    folder = tmp_path_factory.mktemp("whole") / "run"
    run = play_all(experiment(bots=BOTS, games=GAMES, table_sizes=[3], rules=SHORT), folder)
    return run.results_digest, read_results(folder)


def test_run_stopped_after_a_chunk_resumes_to_the_same_result(whole: tuple[str, bytes], tmp_path: Path) -> None:
    of, folder = experiment(bots=BOTS, games=GAMES, table_sizes=[3], rules=SHORT), tmp_path / "run"
    how = means(folder, progress=lambda games: how.stop.set() if games else None)
    cut = play(resolved(of), folder, how)
    assert cut.interrupted
    assert 0 < cut.tally.games < GAMES
    assert find_finished_run(resolved(of), folder) is None
    progress: list[int] = []
    run = play(resolved(of), folder, means(folder, workers=2, progress=progress.append))
    assert progress[0] == cut.tally.games
    assert (run.results_digest, read_results(folder)) == whole
    again = find_finished_run(resolved(of), folder)
    assert again is not None
    assert again.results_digest == whole[0]


def test_run_can_be_extended_step_by_step(whole: tuple[str, bytes], tmp_path: Path) -> None:
    folder = tmp_path / "run"
    for games in (3, 14, DEALS, DEALS + 1, GAMES):
        of = experiment(bots=BOTS, games=games, table_sizes=[3], rules=SHORT)
        assert find_finished_run(resolved(of), folder) is None
        run = play_all(of, folder, workers=2)
        assert run.tally.games == games
        with RunDb.open(folder / "run.db") as db:
            db.check()
            assert len(list(db.outcomes())) == games
    assert (run.results_digest, read_results(folder)) == whole


def test_complete_chunks_are_not_played_again(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    play_all(experiment(bots=BOTS, games=DEALS, table_sizes=[3], rules=SHORT), folder)
    with RunDb.create(folder / "run.db") as db, db.writing() as connection:
        connection.execute("UPDATE games SET outcome = x'00' WHERE game = 5")
    run = play_all(experiment(bots=BOTS, games=2 * DEALS, table_sizes=[3], rules=SHORT), folder)
    assert run.tally.games == 2 * DEALS
    with RunDb.open(folder / "run.db") as db:
        assert db.read("SELECT outcome FROM games WHERE game = 5") == [(b"\x00",)]


def test_shorter_second_run_removes_nothing(tmp_path: Path) -> None:
    """A chunk that was cut off at 14 deals keeps them if the next run is shorter."""
    folder = tmp_path / "run"
    play_all(experiment(bots=BOTS, games=14, table_sizes=[3], rules=SHORT), folder)
    of = experiment(bots=BOTS, games=GAMES, table_sizes=[3], rules=SHORT)
    how = means(folder)
    how.stop.set()
    cut = play(resolved(of), folder, how)
    assert cut.interrupted
    assert cut.tally.games == 14
    with RunDb.open(folder / "run.db") as db:
        assert (db.game_count(), db.deals_by_chunk()) == (14, [14])
