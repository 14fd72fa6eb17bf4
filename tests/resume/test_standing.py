"""How far a run is: the same three figures in the progress, at its end and in `status`; and a demo that was stopped."""

import os
import re
import signal
from dataclasses import astuple
from pathlib import Path

import pytest

from dubito.cli.output import GamesProgress
from dubito.cli.run import verdict
from dubito.games.dubito.spec import SPEC
from tests.cli.kit import Shell
from tests.conftest import few
from tests.llm.kit import Unhurried, rows
from tests.resume.kit import go, models

FIGURES = r"\d+ games finished, \d+ of them kept in order, [\d,]+ replies kept"


@pytest.mark.parametrize("stops", few([[20, 15, 25], [30]], 1))
def test_progress_end_and_status_say_the_same(
    shell: Shell, tmp_path: Path, capsys: pytest.CaptureFixture[str], stops: list[int]
) -> None:
    for stop in stops:
        watch = Unhurried()
        run = go(models(games=8), tmp_path / "run", stop_after=stop, watch=watch, in_flight=6)
        assert verdict(run) == 130
        (said,) = re.findall(FIGURES, capsys.readouterr().err)
        assert said in shell("status", "run").out
        assert watch.sentence().endswith(said)
        ((replies,),) = rows(tmp_path / "run", "SELECT count(*) FROM attempts WHERE reply IS NOT NULL")
        assert run.standing is not None
        assert (run.standing.kept, run.standing.replies) == (run.tally.games, replies)
    end = go(models(games=8), tmp_path / "run")
    assert str(end.standing).startswith("8 games finished, 8 of them kept in order")


def test_a_stopped_demo_ends_and_goes_on(tmp_path: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """A demo of fewer and shorter games than ours, in which Ctrl-C is pressed when two have ended."""
    monkeypatch.setitem(SPEC.demo, "games", 8)
    monkeypatch.setitem(SPEC.demo, "rules", {"max_turns": 40})
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
