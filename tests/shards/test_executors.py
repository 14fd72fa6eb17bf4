"""Any executor gives the same results as this process, and workers with other files are rejected."""

import json
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dubito.errors import RunStopped
from dubito.experiment import play as chunk
from dubito.experiment import workers
from dubito.experiment.config import parse_config
from dubito.experiment.experiment import Experiment
from dubito.experiment.resolve import resolve
from dubito.experiment.resolved import ResolvedRun
from dubito.experiment.run import RunResult, play
from dubito.experiment.workers import WorkerPool
from dubito.game.find import find_bots, find_game
from dubito.games.dubito.engine import RESULTS
from tests.cli.kit import REPO, Shell
from tests.experiment.kit import experiment, means, registry, resolved
from tests.games.kit import registry_of, write_kuhn
from tests.shards.kit import everything_in, read_result_files

BOTS = ["RandomBoi", "StefaBot"]


def _resolved(of: Experiment) -> ResolvedRun:
    return resolved(of, registry() if of.game == "dubito" else registry_of(of.game))


def played_by(executor: Executor, of: Experiment, folder: Path, **more: Any) -> RunResult:
    return play(_resolved(of), folder, replace(means(folder, **more), pool=WorkerPool(executor, lambda: 2)))


@pytest.mark.parametrize("name", ["bs", "defuse", "dubito"])
def test_any_executor_plays_any_game(name: str, tmp_path: Path, short_chunks: int) -> None:
    game = find_game(name, REPO)
    config = {"game": game.name, "games": 7, "table_sizes": [game.seats[0]]}
    of = resolve(parse_config(config, "test"), registry_of(game.name)).experiment
    with ThreadPoolExecutor(2) as threads:
        played_by(threads, of, tmp_path / "threads")
    play(_resolved(of), tmp_path / "alone", means(tmp_path / "alone"))
    assert everything_in(tmp_path / "threads") == everything_in(tmp_path / "alone")
    assert read_result_files(tmp_path / "threads") == read_result_files(tmp_path / "alone")


def test_a_game_of_the_users_own_is_found_by_workers(tmp_path: Path, short_chunks: int) -> None:
    write_kuhn(tmp_path)
    own = find_bots(tmp_path, "kuhn")
    of = resolve(parse_config({"game": "kuhn", "games": 6}, "test"), own)
    text = workers.encode_job(of)
    every = map(partial(chunk.deals_of_chunk, of.experiment), range(3))
    packed = {deals: workers.play_deals(text, deals) for deals in every}
    rows = [
        row for deals, one in packed.items() for row in workers.decode_result(one, deals, own.game.results).outcomes
    ]
    assert len(rows) == 6
    game = tmp_path / "games" / "kuhn" / "game.py"
    game.write_text(f"{game.read_text()}# edited\n")
    workers._load_player.cache_clear()
    with pytest.raises(RunStopped, match="its package of the game kuhn differs"):
        workers.decode_result(workers.play_deals(text, range(2)), range(2), own.game.results)


@pytest.mark.parametrize("name", ["dubito", "bs"])
def test_a_worker_loads_no_library_to_play(name: str) -> None:
    of = resolve(parse_config({"game": name, "games": 1}, "test"), registry_of(name))
    script = (
        "import sys; from dubito.experiment import workers\n"
        "print(len(workers.play_deals(sys.argv[1], range(1))), *sys.modules)"
    )
    text = workers.encode_job(of)
    completed = subprocess.run([sys.executable, "-c", script, text], capture_output=True, text=True, check=True)
    assert not {"pydantic", "yaml", "sqlite3", "click"} & {*completed.stdout.split()}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda of: of["bots"].update(StefaBot="ff"), "its file of StefaBot, .*stefa_bot.py, differs"),
        (lambda of: of["bots"].update(NoBot="ff"), "no bot is named 'NoBot'"),
        (lambda of: of.update(engine="ff"), "its package of the game dubito differs"),
        (lambda of: of.update(dubito="9.9"), r"this worker has dubito .*, but the run uses 9\.9; install the run"),
    ],
)
def test_worker_with_different_bytes_is_refused_by_name(change: Callable[[Any], None], why: str) -> None:
    content = json.loads(workers.encode_job(resolved(experiment(bots=BOTS, games=4))))
    change(content)
    with pytest.raises(RunStopped, match=rf"worker .*, process \d+, refused the run: {why}"):
        workers.decode_result(workers.play_deals(json.dumps(content), range(4)), range(4), RESULTS)


def test_bot_error_is_returned_with_the_earlier_games(shell: Shell) -> None:
    shell.bot("faulty.py", FAULTY)
    own = find_bots(shell.folder)
    for policy in ("stop", "fallback"):
        of = resolve(parse_config({"bots": ["Faulty", "StefaBot"], "games": 9, "on_bot_error": policy}, "test"), own)
        deals = chunk.deals_of_chunk(of.experiment, 0)
        back = workers.decode_result(workers.play_deals(workers.encode_job(of), deals), deals, RESULTS)
        here = chunk.ChunkPlayer(of).play(deals, lambda: False)
        assert (back.deals, back.outcomes, back.tally.to_json()) == (here.deals, here.outcomes, here.tally.to_json())
        assert (str(back.error), str(back.first_fallback)) == (str(here.error), str(here.first_fallback))
        assert back.error or back.first_fallback
        assert (back.error is None) == (policy == "fallback")


FAULTY = '''
from bots.base import BotBase
class Faulty(BotBase):
    """Answers one node with no bool, now and then."""
    def bluff_first_hand(self, p): return False
    def maximize_first_hand(self, p): return True
    def should_doubt(self, p): return 1 if self.rng.random() < 0.02 else False
    def bluff_regular(self, p): return False
    def maximize_regular(self, p): return True
'''


def test_an_error_in_a_chunk_cut_in_parts_keeps_the_deals_before_it(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last chunks are played in four parts each. Here a chunk has four deals, so each part has one."""
    monkeypatch.setattr(chunk, "DEALS_PER_CHUNK", 4)
    shell.bot("fails_at_six.py", FAILS_AT_SIX)
    own = find_bots(shell.folder)
    of = resolve(parse_config({"bots": ["FailsAtSix"], "games": 8, "table_sizes": [3]}, "test"), own)
    with ThreadPoolExecutor(2) as threads:
        how = replace(means(tmp_path), pool=WorkerPool(threads, lambda: 2))
        run = play(of, tmp_path / "threads", how)
    alone = play(of, tmp_path / "alone", means(tmp_path))
    assert (str(run.failure), run.tally.games) == (str(alone.failure), 6)
    assert everything_in(tmp_path / "threads") == everything_in(tmp_path / "alone")


FAILS_AT_SIX = '''
from bots.manual.random_boi import RandomBoi
class FailsAtSix(RandomBoi):
    """Raises in one deal."""
    def bluff_first_hand(self, p):
        assert self._seating.deal != 6, "deal 6"
        return super().bluff_first_hand(p)
'''


def test_a_stop_keeps_the_chunks_before_it(tmp_path: Path, short_chunks: int) -> None:
    of = experiment(bots=BOTS, games=40, table_sizes=[3])
    with ThreadPoolExecutor(1) as threads:
        how = means(tmp_path / "run", progress=lambda games: how.stop.set() if games else None)
        run = play(resolved(of), tmp_path / "run", replace(how, pool=WorkerPool(threads, lambda: 1)))
    assert (run.interrupted, run.failure) == (True, None)
    assert run.tally.games in (2, 4), "the finished chunk, and possibly one that arrived in the meantime"
    assert played_by(ThreadPoolExecutor(1), of, tmp_path / "run").tally.games == 40


class Lost(Executor):
    """An executor that loses every job."""

    def submit(self, *_: Any, **__: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_exception(BrokenExecutor("the node has gone"))
        return future


def test_a_lost_worker_stops_the_run_in_order(tmp_path: Path) -> None:
    run = played_by(Lost(), experiment(bots=BOTS, games=4), tmp_path / "run")
    assert str(run.failure) == "the executor lost a chunk (BrokenExecutor: the node has gone)"
