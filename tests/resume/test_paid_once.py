"""Paid replies are used once, wherever the process died or the disk was full."""

import fcntl
import os
import resource
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from random import Random

import pytest

from dubito.experiment.experiment import Experiment
from dubito.experiment.model_players import check_models
from dubito.experiment.progress import ModelProgress
from dubito.experiment.run import play
from dubito.house.server import House
from dubito.llm.cache import ReplyCache
from tests.cli.kit import Shell
from tests.experiment.kit import means, resolved
from tests.llm.kit import Server, contender, player_at, respond, rows, run_cli, run_games, small
from tests.resume.kit import go, read_results

IN_FLIGHT = 4
SERVER = get_context("forkserver")
SERVER.set_forkserver_preload(["tests.resume.kit", "openai"])  # slow to import


def played_at(house: House, **config: int) -> Experiment:
    one = contender("one", "house-sharp", base_url=house.openai_base_url, prompt="reasoned")
    two = contender("two", base_url=house.openai_base_url, api="chat")
    return small(one, two, turns=9, **config)


def bought(house: House) -> Counter[tuple[str, str]]:
    return Counter((call.request, call.draw) for call in house.calls if call.status == 200)


def _goes(of: Experiment, folder: Path) -> None:
    go(of, folder, in_flight=IN_FLIGHT)


def process(of: Experiment, folder: Path) -> ForkServerProcess:
    started = SERVER.Process(target=_goes, args=(of, folder))
    started.start()
    return started


@contextmanager
def stuck(cache: Path) -> Iterator[None]:
    """Block writes to the cache in this context, as another process that is writing would."""
    with closing(sqlite3.connect(cache / "cache.db", timeout=60, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


def wait_for_call(house: House, calls: int) -> None:
    """Wait until the server receives another request."""
    for _ in range(600):
        if len(house.calls) > calls:
            return
        time.sleep(0.02)
    raise AssertionError("no call arrived")


def until_stuck(folder: Path) -> None:
    """Wait until each game waits for the cache with a body that it paid for."""
    query = (
        "SELECT sum(state = 'received'), sum(state = 'open') FROM tries UNION ALL "
        "SELECT count(*), 0 FROM attempts WHERE reply IS NOT NULL"
    )
    for _ in range(600):
        (received, under_way), (kept, _) = rows(folder, query)
        if received - kept >= IN_FLIGHT and not under_way:
            return
        time.sleep(0.02)
    raise AssertionError(rows(folder, query))


def test_kill_before_caching_buys_nothing_twice(tmp_path: Path, at_length: bool) -> None:
    folder, cache = tmp_path / "run", tmp_path / "cache"
    with House() as house:
        of = played_at(house, games=24 if at_length else 6)
        go(of, tmp_path / "whole" / "run", in_flight=IN_FLIGHT)
        whole, games = len(house.calls), rows(tmp_path / "whole" / "run", "SELECT * FROM games ORDER BY game")
        go(of, folder, stop_after=1, in_flight=1)  # create the cache and the run
        for _ in range(20 if at_length else 1):
            asked = len(house.calls)
            running = process(of, folder)
            wait_for_call(house, asked)
            with stuck(cache):
                until_stuck(folder)
                assert running.pid is not None
                os.kill(running.pid, signal.SIGKILL)
                running.join()
                assert running.exitcode == -signal.SIGKILL
        run = go(of, folder, in_flight=IN_FLIGHT)
        after = bought(house)
    assert run.failure is None
    assert rows(folder, "SELECT * FROM games ORDER BY game") == games
    assert len(house.calls) == 2 * whole, "both runs send as many calls as undisturbed ones"
    assert set(after.values()) == {2}, "each request was sent once per run"
    assert rows(folder, "SELECT DISTINCT state FROM tries") == [("received",)]
    assert rows(folder, "SELECT count(*) FROM tries") == rows(tmp_path / "whole" / "run", "SELECT count(*) FROM tries")


@contextmanager
def no_file_longer_than(size: int) -> Iterator[None]:
    """Limit the size of files, to simulate a full disk."""
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limit[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)


@pytest.mark.at_length
def test_reply_that_could_not_be_cached_is_not_bought_again(tmp_path: Path) -> None:
    """The replies are so long that the cache needs a file for each; compressed in the run, they fit."""
    padding = "".join(Random(0).choices("0123456789abcdef", k=20_000)) * 100
    with Server(lambda request: respond(request.protocol, padding=padding)) as server:
        of = small(player_at(server), games=3, turns=6)
        with no_file_longer_than(10**6):
            full = run_games(of, tmp_path / "run", in_flight=3)
            assert "cannot write the cache" in str(full.failure)
            assert "is the disk full?" in str(full.failure)
            assert len(server.requests) == 3, "one call for each game in progress"
            assert run_games(of, tmp_path / "run", in_flight=3).failure is not None
            assert len(server.requests) == 3, "the disk is still full, and nothing was bought"
        run = run_games(of, tmp_path / "run", in_flight=3)
    assert run.failure is None
    log = run.models["asker"]
    assert (log.calls, log.decisions, log.cached) == (len(server.requests), len(server.requests), 0)
    assert rows(run.folder, "SELECT DISTINCT origin FROM attempts") == [("live",)]


def test_two_processes_with_one_cache_buy_each_reply_once(tmp_path: Path) -> None:
    with House() as house:
        of = played_at(house, games=6)
        both = [process(of, tmp_path / name) for name in ("one", "two")]
        for running in both:
            running.join()
        assert [running.exitcode for running in both] == [0, 0]
        assert set(bought(house).values()) == {1}
    assert read_results(tmp_path / "one") == read_results(tmp_path / "two")
    tries = [rows(tmp_path / name, "SELECT count(*) FROM tries")[0][0] for name in ("one", "two")]
    assert sum(tries) == len(house.calls)


def _hold_lock(folder: Path, line: Connection) -> None:
    """Lock the whole file of locks until the other end of the line replies."""
    with (folder / "locks").open("ab") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        line.send("held")
        line.recv()


def test_process_waiting_for_another_continues_or_stops(tmp_path: Path) -> None:
    ReplyCache(tmp_path / "cache").close()
    ours, theirs = SERVER.Pipe()
    other = SERVER.Process(target=_hold_lock, args=(tmp_path / "cache", theirs))
    other.start()
    assert ours.recv() == "held"
    how, whys = means(tmp_path / "run"), list[str]()

    class Impatient(ModelProgress):
        def begin_wait(self, why: str) -> None:
            whys.append(why)
            how.stop.set()

    of = small(contender("one"))
    stopped = play(check_models(resolved(of), how.calls), tmp_path / "run", replace(how, model_progress=Impatient()))
    assert stopped.interrupted
    assert set(whys) == {"for another process that is making the same request"}
    assert rows(tmp_path / "run", "SELECT count(*) FROM tries") == [(0,)]
    assert other.pid is not None
    os.kill(other.pid, signal.SIGKILL)
    other.join()
    assert run_games(of, tmp_path / "run").failure is None


def test_missing_lock_support_is_reported(shell: Shell) -> None:
    ReplyCache(Path("cache")).close()
    (Path("cache") / "locks").unlink()
    (Path("cache") / "locks").mkdir()
    ended = run_cli(shell, contender("one"))
    assert ended.code == 0
    assert "the cache cache does not support locks (Is a directory)" in ended.err
