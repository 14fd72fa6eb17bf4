"""Progress, summary and `status` show the same three figures. Also tests a stopped demo."""

import json
import re
import sqlite3
import threading
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest

from dubito.cli.summary import build_document, exit_code, print_summary
from dubito.experiment.run import RunResult
from dubito.llm.request import Place, compute_draw
from dubito.store.spend import Caps
from tests.cli.kit import Shell
from tests.conftest import in_gate
from tests.llm.kit import Incoming, NoWait, Response, Server, forget_last_reply, player_at, respond, rows, small
from tests.resume.kit import go, models

FIGURES = r"\d+ games? finished, \d+ of them counted, [\d,]+ replies saved"


@pytest.mark.parametrize("stops", in_gate([[15, 10, 15], [30]], [[30]]))
def test_progress_summary_and_status_agree(
    shell: Shell, tmp_path: Path, capsys: pytest.CaptureFixture[str], stops: list[int]
) -> None:
    for stop in stops:
        watch = NoWait()
        run = go(models(games=6), tmp_path / "run", stop_after=stop, watch=watch, in_flight=6)
        assert exit_code(run) == 130
        (found,) = re.findall(FIGURES, capsys.readouterr().err)
        assert found in shell("status", "run").out
        ((replies,),) = rows(tmp_path / "run", "SELECT count(*) FROM attempts WHERE reply IS NOT NULL")
        assert (run.counts.counted, run.counts.replies) == (run.tally.games, replies)
    end = go(models(games=6), tmp_path / "run")
    assert str(end.counts).startswith("6 games finished, 6 of them counted")


def test_finished_games_behind_an_unfinished_deal_are_not_counted(
    shell: Shell, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first game hangs while others end, so no game is counted and there is no digest."""
    watch, goes = NoWait(), threading.Event()
    first_asks = [compute_draw(0, Place("", 0, 0, seat, 0, 0, ""), 0) for seat in range(3)]

    def answer(asked: Incoming) -> Response:
        if asked.headers["x-dubito-draw"] in first_asks:
            goes.wait(60)
        return respond(asked.protocol)

    def count(outcome: str) -> None:
        NoWait.count_outcome(watch, outcome)
        if sum(watch.outcomes.values()) >= 40:
            goes.set()

    watch.count_outcome = count  # type: ignore[method-assign]
    with Server(answer) as server:
        of = small(player_at(server), games=12, turns=15)
        run = go(of, tmp_path / "run", stop_after=40, watch=watch, in_flight=2, preflight=False)
    finished = run.counts.finished
    assert (finished > 0, run.tally.games) == (True, 0)
    print_summary(run, tables=True, sizes=False)
    assert exit_code(run) == 130
    first, last = capsys.readouterr().err.splitlines()
    why = "but results are counted in deal order and an earlier deal is unfinished."
    assert first == f"No results yet: {finished} games are finished, {why}"
    assert f"{finished} game{'s' * (finished != 1)} finished, 0 of them counted" in last
    nothing = sha256().hexdigest()
    status = shell("status", "run").out
    assert f"{finished} game{'s' * (finished != 1)} finished, 0 of them counted" in status
    assert "results digest: none, since no game is counted yet" in status
    assert nothing not in status + shell("status", "run", "--json").out + (tmp_path / "run" / "run.log").read_text()
    assert build_document(run, None).results_digest is None


class RefusingResults(NoWait):
    """Makes the database refuse results after the first answer, as on a disk that has become full."""

    folder: Path
    has_begun = False

    def count_outcome(self, outcome: str) -> None:
        super().count_outcome(outcome)
        with self._lock:
            if not self.has_begun:
                self.has_begun = True
                refuse = "CREATE TRIGGER full BEFORE INSERT ON chunks BEGIN SELECT RAISE(ABORT, 'disk is full'); END"
                change(self.folder, refuse)


def change(folder: Path, statement: str) -> None:
    with closing(sqlite3.connect(folder / "run.db")) as connection, connection:
        connection.execute(statement)


def stop(how: str, folder: Path) -> RunResult:
    """Play a run of models that stops in this way before its last game."""
    of = models(games=6)
    if how == "Ctrl-C":
        return go(of, folder, stop_after=30, in_flight=4)
    if how == "budget":
        return go(of, folder, caps=Caps(calls=25))
    if how == "first call":
        return go(of, folder, caps=Caps(calls=1))
    if how == "write fault":
        watch = RefusingResults()
        watch.folder = folder
        run = go(of, folder, watch=watch)
        change(folder, "DROP TRIGGER full")
        return run
    assert how == "offline miss"
    whole = go(of, folder.with_name("whole"))
    forget_last_reply(whole.folder, 2, folder.with_name("cache"))
    return go(of, folder, offline=True, in_flight=8)


EXITS = ["Ctrl-C", "budget", "first call", "write fault", "offline miss"]


@pytest.mark.parametrize("how", in_gate(EXITS, {"budget", "write fault"}))
def test_every_line_of_a_stopped_run_gives_the_same_counts(
    shell: Shell, tmp_path: Path, capsys: pytest.CaptureFixture[str], how: str
) -> None:
    """The summary, the exit, the log, `status` and `--json` agree with run.db."""
    folder = tmp_path / "run"
    run = stop(how, folder)
    ((finished, counted),) = rows(folder, "SELECT (SELECT count(*) FROM ended), (SELECT count(*) FROM games)")
    assert (run.counts.finished, run.counts.counted, run.tally.games) == (finished, counted, counted)
    capsys.readouterr()
    print_summary(run, tables=False)
    exit_code(run)
    out, err = capsys.readouterr()
    figures = f"{finished} game{'s' * (finished != 1)} finished, {counted} of them counted, "
    assert figures in err if run.counts.replies else "0 of 6 games are kept" in err
    if counted:
        assert f"\n{counted} games" in out
        assert "No results yet" not in err
    else:
        games = (
            f"{finished} game{'s are' if finished != 1 else ' is'} finished" if finished else "no games are finished"
        )
        assert f"No results yet: {games}" in err
        assert ("an earlier deal is unfinished" in err) == (finished > 0 and how != "write fault")
    assert (how == "write fault" and finished > 0) == ("Resume the run to count them" in err)
    status, as_json = shell("status", "run").out, json.loads(shell("status", "run", "--json").out)
    assert f"games: {counted} of 6 counted" in status
    assert f"so far: {figures}" in status
    assert ("results digest: none" in status) == (counted == 0)
    of = f" of the first {counted} games" if finished > counted else ""
    assert counted == 0 or f"results digest{of}: {run.results_digest}" in status
    document = build_document(run, None)
    for kept, ended in ((as_json["kept"], as_json["finished"]), (document.kept, document.finished)):
        assert (kept, ended) == (counted, finished)
    assert json.loads((folder / "run.log").read_text().splitlines()[-1])["games"] == counted
    end = go(models(games=6), folder)
    assert str(end.counts).startswith("6 games finished, 6 of them counted")
    assert exit_code(end) == 0
