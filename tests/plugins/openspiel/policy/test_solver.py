"""Solved policies are near an equilibrium, reproducible, stored and verified."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dubito.errors import RunStopped, UsageError
from dubito.plugins.openspiel.policy.solver import solution_in, solve
from dubito.plugins.openspiel.policy.tree import uniform
from tests.plugins.openspiel.policy.kit import DICE, KUHN, LEDUC, engines, load, pyspiel, tree_of, versus


@pytest.mark.parametrize(("name", "iterations"), [(KUHN, 1000), (DICE, 150)])
def test_a_solved_table_loses_nothing(name: str, iterations: int) -> None:
    solution = solve(load(name), iterations=iterations)
    assert 0 <= solution.nash_conv < 1e-3
    assert solution.nash_conv == pytest.approx(pyspiel.nash_conv(load(name), engines(solution.table)), abs=1e-9)
    assert solve(load(name), iterations=iterations) == solution


@pytest.mark.at_length
def test_leduc_is_solved() -> None:
    assert solve(load(LEDUC)).nash_conv < 1e-3


def test_the_first_seat_of_kuhn_loses_an_eighteenth() -> None:
    tree, table = tree_of(KUHN), solve(load(KUHN)).table
    assert versus(tree, table, table) == pytest.approx([-1 / 18, 1 / 18], abs=1e-3)
    assert min(versus(tree, table, uniform(tree))) > 0.1


def test_linear_cfr_solves_too() -> None:
    """The result equals that of OpenSpiel's own solver, and differs from that of CFR+."""
    exploitability = pytest.importorskip("open_spiel.python.algorithms.exploitability")
    solution = solve(load(KUHN), "linear cfr", 100)
    solver = pytest.importorskip("open_spiel.python.algorithms.discounted_cfr").LCFRSolver(load(KUHN))
    for _ in range(100):
        solver.evaluate_and_update_policy()
    assert solution.nash_conv == pytest.approx(exploitability.nash_conv(load(KUHN), solver.average_policy()), abs=1e-9)
    assert solution.nash_conv < 0.02
    assert solution.table != solve(load(KUHN), "cfr+", 100).table


def test_unsolvable_game_is_refused() -> None:
    with pytest.raises(UsageError, match=r"unknown algorithm 'cfr\+\+': did you mean 'cfr\+'\?"):
        solve(load(KUHN), "cfr++")
    with pytest.raises(UsageError, match="iterations must be above 0, not 0"):
        solve(load(KUHN), iterations=0)
    with pytest.raises(UsageError, match="has perfect information"):
        solve(load("tic_tac_toe"))


def test_solution_is_stored(tmp_path: Path) -> None:
    """The second call reads the file, as a change in it shows. Another solution has another file."""
    first = solution_in(tmp_path / "solved", load(KUHN), iterations=50)
    (file,) = (tmp_path / "solved").iterdir()
    assert file.name.startswith("kuhn-poker-cfr-50-")
    written = file.stat().st_mtime_ns
    assert solution_in(tmp_path / "solved", load(KUHN), iterations=50) == first == solve(load(KUHN), iterations=50)
    assert file.stat().st_mtime_ns == written
    solution_in(tmp_path / "solved", load(KUHN), iterations=51)
    solution_in(tmp_path / "solved", load(KUHN), "linear cfr", iterations=50)
    solution_in(tmp_path / "solved", load(DICE), iterations=50)
    assert len([*(tmp_path / "solved").iterdir()]) == 4


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda stored: "", "is damaged"),
        (lambda stored: json.dumps([]), "is damaged"),
        (lambda stored: json.dumps({**stored, "table": {"0": 1}}), "is damaged"),
        (lambda stored: json.dumps({**stored, "iterations": 51}), "is for another game or algorithm"),
        (lambda stored: json.dumps({**stored, "table": {}}), "has no probabilities at '0'"),
        (lambda stored: json.dumps({**stored, "nash_conv": 0.0}), "has a worse table than it claims"),
    ],
)
def test_damaged_solution_is_named_and_replaced(
    tmp_path: Path, damage: Callable[[dict[str, Any]], str], reason: str
) -> None:
    first = solution_in(tmp_path, load(KUHN), iterations=50)
    (file,) = tmp_path.iterdir()
    whole = file.read_text()
    file.write_text(damage(json.loads(whole)))
    again = solution_in(tmp_path, load(KUHN), iterations=50)
    assert again.note == f"{file} {reason}, so the solution was recomputed"
    assert again.table == first.table
    assert file.read_text() == whole
    assert solution_in(tmp_path, load(KUHN), iterations=50).note is None


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "solved").write_text("")
    with pytest.raises(RunStopped, match=r"^cannot write .*solved.kuhn-poker-cfr-5-\w+\.json: "):
        solution_in(tmp_path / "solved", load(KUHN), iterations=5)


def test_the_draft_of_another_process_is_left_alone(tmp_path: Path) -> None:
    """Two processes can solve the same game at the same time without deleting each other's file."""
    solution_in(tmp_path, load(KUHN), iterations=2)
    (file,) = tmp_path.iterdir()
    draft = file.rename(tmp_path / f"{file.name}.part")
    solution_in(tmp_path, load(KUHN), iterations=2)
    assert sorted(tmp_path.iterdir()) == [file, draft]
