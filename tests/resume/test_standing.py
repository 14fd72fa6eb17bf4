"""How far a run is: the same three figures in the progress, at its end and in `status`; and a demo that was stopped."""

import os
import re
import signal
import threading
from dataclasses import astuple
from hashlib import sha256
from pathlib import Path

import pytest

from dubito.cli.output import GamesProgress
from dubito.cli.summary import document_of, exit_code, print_summary
from dubito.games.dubito.game import GAME
from dubito.llm.request import Place, draw_of
from tests.cli.kit import Shell
from tests.conftest import few
from tests.llm.kit import Heard, Said, Server, Unhurried, asker, rows, says, small
from tests.resume.kit import go, models

FIGURES = r"\d+ games finished, \d+ of them published, [\d,]+ replies kept"


@pytest.mark.parametrize("stops", few([[15, 10, 15], [30]], [[30]]))
def test_progress_end_and_status_say_the_same(
    shell: Shell, tmp_path: Path, capsys: pytest.CaptureFixture[str], stops: list[int]
) -> None:
    for stop in stops:
        watch = Unhurried()
        run = go(models(games=6), tmp_path / "run", stop_after=stop, watch=watch, in_flight=6)
        assert exit_code(run) == 130
        (said,) = re.findall(FIGURES, capsys.readouterr().err)
        assert said in shell("status", "run").out
        assert watch.sentence().endswith(said)
        ((replies,),) = rows(tmp_path / "run", "SELECT count(*) FROM attempts WHERE reply IS NOT NULL")
        assert run.standing is not None
        assert (run.standing.kept, run.standing.replies) == (run.tally.games, replies)
    end = go(models(games=6), tmp_path / "run")
    assert str(end.standing).startswith("6 games finished, 6 of them published")


def test_what_is_finished_is_told_from_what_is_published(
    shell: Shell, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first game hangs while others end: none of them is published, and nothing has a digest."""
    watch, goes = Unhurried(), threading.Event()
    first_asks = [draw_of(0, Place("", 0, 0, seat, 0, 0, ""), 0) for seat in range(3)]

    def answer(asked: Heard) -> Said:
        if asked.headers["x-dubito-draw"] in first_asks:
            goes.wait(60)
        return says(asked.protocol)

    def count(outcome: str) -> None:
        Unhurried.count(watch, outcome)
        if sum(watch.outcomes.values()) >= 40:
            goes.set()

    watch.count = count  # type: ignore[method-assign]
    with Server(answer) as server:
        of = small(asker(server), games=12, turns=15)
        run = go(of, tmp_path / "run", stop_after=40, watch=watch, in_flight=2, preflight=False)
    assert run.standing is not None
    finished = run.standing.finished
    assert (finished > 0, run.tally.games) == (True, 0)
    print_summary(run, tables=True, sizes=False)
    assert exit_code(run) == 130
    first, last = capsys.readouterr().err.splitlines()
    assert first == f"no game is published: {finished} are finished, all behind a deal that is not"
    assert f"{finished} games finished, 0 of them published" in last
    nothing = sha256().hexdigest()
    status = shell("status", "run").out
    assert f"{finished} games finished, 0 of them published" in status
    assert "results digest: none, since no game is published" in status
    assert nothing not in status + shell("status", "run", "--json").out + (tmp_path / "run" / "run.log").read_text()
    assert document_of(run, None).results_digest is None


@pytest.mark.at_length
def test_a_stopped_demo_ends_and_goes_on(tmp_path: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """A demo of fewer and shorter games than ours, in which Ctrl-C is pressed when two have ended."""
    monkeypatch.setitem(GAME.demo, "games", 6)
    monkeypatch.setitem(GAME.demo, "rules", {"max_turns": 12})
    tell = GamesProgress.__call__

    def press(progress: GamesProgress, games: int) -> None:
        tell(progress, games)
        if games == 2:
            os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as pressing:
        pressing.setattr(GamesProgress, "__call__", press)
        code, out, err = astuple(shell("demo", "--output", "d"))
    assert code == 130
    assert "Then offline" not in out
    assert "Identical" not in out
    (figures,) = re.findall(FIGURES, err.splitlines()[-1])
    assert f"{figures} (none of them will be paid for again) in d/live, and `dubito demo --output d` resumes" in err
    assert figures in shell("status", "d/live").out
    ((tries,),) = rows(Path("d/live"), "SELECT count(*) FROM tries")
    ended = shell("demo", "--output", "d")
    assert ended.code == 0, ended.err
    assert "Identical: both runs have the same results digest." in ended.out
    ((whole,),) = rows(Path("d/live"), "SELECT count(*) FROM tries")
    assert whole > tries
    again = shell("demo", "--output", "d")
    assert (again.code, rows(Path("d/live"), "SELECT count(*) FROM tries")) == (0, [(whole,)])
