"""Runs with models, stopped between any two questions and resumed: same result, and nothing is asked twice."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from dubito.experiment.run import RunResult
from tests.conftest import in_gate
from tests.llm.kit import rows
from tests.resume.kit import go, models, read_results


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunResult, bytes, int]:
    folder = tmp_path_factory.mktemp("whole") / "run"
    run = go(models(), folder, in_flight=1)
    return run, read_results(folder), calls(folder)


def calls(folder: Path) -> int:
    return int(rows(folder, "SELECT count(*) FROM tries")[0][0])


@pytest.mark.parametrize(("stops", "in_flight"), in_gate([([15], 6), ([15, 3, 25], 6), ([1], 1), ([15, 3, 25], 1)], 1))
def test_stopped_run_resumes_to_the_same_result(
    whole: tuple[RunResult, bytes, int], tmp_path: Path, stops: list[int], in_flight: int
) -> None:
    folder = tmp_path / "run"
    for number, stop in enumerate(stops):
        cut = go(models(), folder, stop_after=stop, in_flight=in_flight, cache=tmp_path / f"cache{number}")
        assert cut.interrupted
    run = go(models(), folder, in_flight=in_flight, cache=tmp_path / "fresh")
    assert run.results_digest == whole[0].results_digest
    assert read_results(folder) == whole[1]
    assert calls(folder) == whole[2], "the recording answers earlier questions, although each cache is new"
    assert [run.models[name].outcomes for name in run.models] == [log.outcomes for log in whole[0].models.values()]


def test_recorded_answers_are_reused_offline(whole: tuple[RunResult, bytes, int], tmp_path: Path) -> None:
    folder = tmp_path / "run"
    go(models(games=4), folder)
    of = models(games=4)
    with_no_cache = go(of, folder, cache=tmp_path / "empty", offline=True)
    assert with_no_cache.failure is None
    longer = go(models(), folder, cache=tmp_path / "other")
    assert longer.results_digest == whole[0].results_digest


def test_interrupted_call_is_counted(whole: tuple[RunResult, bytes, int], tmp_path: Path) -> None:
    folder = tmp_path / "run"
    go(models(), folder, stop_after=10, in_flight=1)
    ((game, seat, decision),) = rows(
        folder, "SELECT game, seat, decision FROM attempts ORDER BY game DESC, decision DESC LIMIT 1"
    )
    place = (game, seat, decision)
    _as_if_killed(folder, place)
    run = go(models(), folder, in_flight=1, cache=tmp_path / "fresh")
    assert run.results_digest == whole[0].results_digest
    states = rows(
        folder,
        "SELECT try, state, assumed FROM tries WHERE (game, seat, decision) = (?, ?, ?) ORDER BY try",
        place,
    )
    assert states == [(1, "open", 1), (2, "received", 0)]
    assert sum(log.assumed for log in run.models.values()) == 1


def _as_if_killed(folder: Path, place: tuple[int, ...]) -> None:
    """Leave the run as a process does that dies between sending a call and its answer."""
    with closing(sqlite3.connect(folder / "run.db")) as connection, connection:
        connection.execute("DELETE FROM attempts WHERE (game, seat, decision) = (?, ?, ?)", place)
        connection.execute("DELETE FROM decisions WHERE (game, seat, decision) = (?, ?, ?)", place)
        connection.execute(
            "UPDATE tries SET state = 'open', raw = NULL, assumed = 1 WHERE (game, seat, decision) = (?, ?, ?)", place
        )


def test_run_log_describes_the_run(tmp_path: Path) -> None:
    go(models(games=2), tmp_path / "run", stop_after=5)
    run = go(models(games=2), tmp_path / "run")
    lines = [json.loads(line) for line in (tmp_path / "run" / "run.log").read_text().splitlines()]
    text_lines = [line for line in lines if line["event"] in ("begins", "ends")]
    assert [line["event"] for line in text_lines] == ["begins", "ends"] * 2
    assert (text_lines[1]["why"], text_lines[3]["why"], text_lines[3]["digest"]) == (
        "Ctrl-C",
        "finished",
        run.results_digest,
    )
