"""Dask workers give the same results as this process, even if some die or join."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dubito.errors import UsageError
from dubito.experiment import play as chunk
from dubito.experiment.run import play
from dubito.plugins.dask.cluster import open_pool
from tests.cli.kit import REPO, Shell
from tests.experiment.kit import experiment, means, resolved
from tests.shards.kit import everything_in

BOTS = ["RandomBoi", "StefaBot"]
HERE = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "worker_dashboard_address": "127.0.0.1:0"}


@pytest.fixture(scope="module")
def distributed() -> Any:
    return pytest.importorskip("distributed", reason="no Dask here: install the extra `dask`", exc_type=ImportError)


@pytest.fixture
def cluster(distributed: Any) -> Iterator[Any]:
    with distributed.LocalCluster(1, threads_per_worker=2, processes=False, protocol="tcp", **HERE) as cluster:
        yield cluster


def test_cluster_gives_the_results_of_one_process(cluster: Any, tmp_path: Path, short_chunks: int) -> None:
    of = experiment(bots=BOTS, games=9, table_sizes=[3])
    with open_pool(cluster.scheduler_address, 1) as pool:
        assert pool.capacity() == 2
        run = play(resolved(of), tmp_path / "dask", replace(means(tmp_path / "dask"), pool=pool))
    assert run.failure is None
    play(resolved(of), tmp_path / "alone", means(tmp_path / "alone"))
    assert everything_in(tmp_path / "dask") == everything_in(tmp_path / "alone")


@pytest.mark.at_length
def test_a_worker_killed_and_one_that_joins_change_nothing(distributed: Any, tmp_path: Path) -> None:
    of = experiment(bots=BOTS, games=6 * chunk.DEALS_PER_CHUNK, table_sizes=[3], rules={"max_turns": 40})
    with distributed.LocalCluster(2, threads_per_worker=1, **HERE) as cluster:

        def disturb(games: int) -> None:
            if games == chunk.DEALS_PER_CHUNK:
                os.kill(next(iter(cluster.workers.values())).pid, signal.SIGKILL)
            elif games == 2 * chunk.DEALS_PER_CHUNK:
                cluster.scale(3)

        with open_pool(cluster.scheduler_address, 1) as pool:
            how = means(tmp_path / "dask", progress=disturb)
            assert play(resolved(of), tmp_path / "dask", replace(how, pool=pool)).failure is None
    play(resolved(of), tmp_path / "alone", means(tmp_path / "alone"))
    assert everything_in(tmp_path / "dask") == everything_in(tmp_path / "alone")


@pytest.mark.at_length
def test_workers_do_not_import_the_script_that_started_them(distributed: Any, tmp_path: Path) -> None:
    settings = "games=1002, bots=['StefaBot', 'UsualBot'], rules={'max_turns': 4}, executor='dask', workers=2"
    (tmp_path / "script.py").write_text(f"import dubito\nprint(dubito.run({settings}).counted)\n")
    words, path = [sys.executable, "script.py"], os.environ | {"PYTHONPATH": str(REPO)}
    done = subprocess.run(words, cwd=tmp_path, env=path, text=True, capture_output=True, check=False)
    assert (done.stdout, done.returncode) == ("1002\n", 0), done.stderr


def test_frozen_program_is_not_started_again(distributed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    with pytest.raises(UsageError, match="its Python is frozen into the program"):
        open_pool(None, 1).__enter__()


def test_no_scheduler_is_reported_in_one_sentence(distributed: Any, shell: Shell) -> None:
    result = shell("run", "--games", "9", "--executor", "dask", "--scheduler", "nonsense://127.0.0.1:9")
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("dubito: --scheduler 'nonsense://127.0.0.1:9': the Dask scheduler does not respond (")
    assert result.err.count("\n") == 1


def test_missing_extra_is_reported_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UsageError, match=r"needs distributed; pip install 'dubito\[dask\]'"):
        open_pool(None, 1).__enter__()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (
            ("--scheduler", "tcp://127.0.0.1:9"),
            "--scheduler: `executor: processes` does not use a scheduler; add `executor: dask`",
        ),
        (("--executor", "spark"), "--executor: unknown executor 'spark': choose processes or dask"),
        (
            ("--executor", "dask", "--bot-deadline", "1"),
            "--executor: dask cannot interrupt a bot; remove bot_deadline",
        ),
        (
            ("--executor", "dask", "--contenders", "house:house-random"),
            "--executor: models and programs run from a single",
        ),
    ],
)
def test_unsupported_run_is_refused_by_executors(words: tuple[str, ...], why: str, shell: Shell) -> None:
    result = shell("run", "--games", "9", *words)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(f"dubito: {why}")
