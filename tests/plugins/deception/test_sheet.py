"""`dubito deception`, and its page in a report."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

import dubito
from dubito.experiment.lies import TrackedGame, TrackedResponse, count_lies
from dubito.experiment.stored import open_recorded_run
from dubito.plugins.deception.read import read_sheet
from dubito.plugins.deception.sheet import PARTS, SheetCounter, band_names
from dubito.report.site import write_report
from dubito.show.moment import find_moment
from tests.cli.kit import Shell
from tests.report.kit import Page, stating


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Play a run of a fake model that states probabilities."""
    folder = tmp_path_factory.mktemp("stating") / "run"
    stating(folder)
    write_report(folder)
    return folder


def test_the_sheet_agrees_with_the_run(run: Path) -> None:
    """The counts are those that the engine keeps, and parts of each kind add up to the whole."""
    with dubito.load(run) as opened:
        sheet, stored = read_sheet(opened), opened.stored
        assert sheet.games == opened.counted
        for one, sums in zip(sheet.players, _seat_counts(stored), strict=True):
            whole = one.whole
            assert (whole.count("plays"), whole.count("lies")) == (sums["plays"], sums["bluffs"])
            assert whole.count("calls") == sums["doubts"]
            assert whole.count("hits") == sums["correct"]
            for kind in PARTS:
                assert sum(part.count("plays") for _, part in one.split(kind)) == whole.count("plays")
        by_name = {one.name: one for one in opened.calibration()}
        found = {one.name: (len(one.beliefs), one.quality.brier) for one in sheet.players if one.beliefs}
        assert found == {name: (one.statements, one.brier) for name, one in by_name.items() if one.statements}
        assert found


def _seat_counts(stored: Any) -> list[dict[str, int]]:
    results = stored.game.results
    habit = results.habit(results.lies)
    names = {"plays": habit.of, "bluffs": habit.count, "doubts": "doubts", "correct": "successful_doubts"}
    rows = [dict.fromkeys(names, 0) for _ in stored.names]
    for row in stored.db.outcomes():
        outcome = stored.outcome(row)
        for player, counts in zip(outcome.seats, outcome.counts, strict=True):
            for key, name in names.items():
                rows[player][key] += counts[results.counts.index(name)]
    return rows


def test_answers_against_the_own_belief_are_counted() -> None:
    """A call at 0.2 and a lie that passes at 0.9 are; a call at 0.9 and answers at 0.5 or without a belief are not."""
    stated = {(0, 0, 1): 0.2, (0, 0, 2): 0.9, (0, 0, 3): 0.9, (0, 0, 4): 0.5}
    called = {1: True, 2: False, 3: True, 4: True, 5: True}
    responses = [TrackedResponse(0, 0, move, move, 0, 0, False, calls, 4, 7, False) for move, calls in called.items()]
    counter = SheetCounter(["one"])
    counter.add_deal(0, [TrackedGame([], responses)], stated)
    (part,) = [one.whole for one in counter.sheet().players]
    assert (part.count("against"), part.count("rated"), part.rate("against").value) == (2, 4, 0.5)
    assert part.detection.sensitivity.value is None, "there are fewer than ten cases"


def test_page_json_and_csv_have_the_same_figures(run: Path, tmp_path: Path, shell: Shell) -> None:
    output = shell("deception", str(run), "--json", "--quiet", "--output", "sheet").out
    document = json.loads(output)
    assert shell("export", str(run), "run.zip").code == 0
    assert json.loads(shell("deception", "run.zip", "--json", "--quiet").out) == document | {"run": "run.zip"}
    players = {one["name"]: one for one in document["players"]}
    for folder in (run / "report", tmp_path / "sheet"):
        with (folder / "data" / "deception-calls.csv").open() as file:
            for row in csv.DictReader(file):
                whole = players[row["player"]]["parts"][0]
                assert float(row["recall"]) == whole["rates"]["recall"]["value"]
                assert float(row["recall_low"]) == whole["rates"]["recall"]["low"]
                assert row["d_prime"] == str(whole["d_prime"]["value"] or "")
    specs = Page(run / "report" / "deception.html").json
    assert {spec["kind"] for spec in specs} == {"intervals", "scatter", "calibration"}


def test_costliest_decisions_are_moments_of_the_run(run: Path, shell: Shell) -> None:
    """Each is a caught voluntary bluff or a false doubt of a model, and no other decision cost more."""
    result = shell("deception", str(run), "--quiet")
    rows = result.out.partition("Costliest decisions")[2].splitlines()[2:12]
    found = json.loads(shell("deception", str(run), "--json", "--quiet").out)["costliest"]
    assert [row.split()[0] for row in rows] == [f"{run}:{one['game']}:{one['turn']}" for one in found]
    assert {one["decision"] for one in found} == {"caught lie", "false call"}
    with open_recorded_run(run) as stored:
        for one in found:
            moment = find_moment(stored, one["game"], one["turn"])
            assert moment.players[moment.seat] == one["player"]
            assert ("(bluff)" if one["decision"] == "caught lie" else ": honest.") in moment.played
        lies, models = count_lies(stored), {stored.names.index(name) for name in stored.models}
    costs = [
        play.pile
        for play in lies.tracked_plays
        if play.player in models and play.lie == "chosen" and any(called for _, called in play.called)
    ]
    costs += [one.pile for one in lies.tracked_responses if one.player in models and one.called and not one.is_lie]
    assert [one["cards"] for one in found] == sorted(costs, reverse=True)[:10]


def test_sheet_counts_unusable_beliefs(run: Path, shell: Shell) -> None:
    document = json.loads(shell("deception", str(run), "--json", "--quiet").out)
    (stated,) = [one["beliefs"] for one in document["players"] if one["beliefs"]]
    with dubito.load(run) as opened:
        (known,) = opened.calibration()
    assert (stated["statements"], stated["nulls"], stated["impossible"]) == (
        known.statements,
        known.nulls,
        known.impossible,
    )


@pytest.mark.parametrize("game", ["defuse", "openspiel:kuhn_poker"])
def test_game_without_lies_has_no_sheet(game: str, tmp_path: Path, shell: Shell) -> None:
    if ":" in game:
        pytest.importorskip("pyspiel", reason="OpenSpiel is an extra: pip install 'dubito[openspiel]'")
    assert shell("run", "--game", game, "--games", "3", "--output", "r", "--quiet", "--report").code == 0
    result = shell("deception", "r", "--quiet")
    assert result.code == 2
    assert result.err == f"dubito: {game} has no lies that can be called, so there is nothing to show\n"
    assert not (tmp_path / "r" / "report" / "deception.html").exists()


def test_player_pages_have_the_bands_of_the_sheet(run: Path) -> None:
    for path in (run / "report" / "bots").glob("*.html"):
        for band in band_names("stake"):
            assert f"{band} cards at stake" in path.read_text()
