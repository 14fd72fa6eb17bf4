"""Exact beliefs in a small duel of Dubito."""

from collections import Counter
from pathlib import Path
from random import Random

import pytest

from dubito.experiment.lies import track_game
from dubito.experiment.stored import open_recorded_run
from dubito.games.dubito.game import GAME
from dubito.plugins.deception.reference import ReferenceReplay, find_reference
from dubito.plugins.openspiel.course import CHANCE, TERMINAL
from dubito.plugins.openspiel.policy.posterior import exact_beliefs
from dubito.plugins.openspiel.policy.small import CourseGame
from dubito.plugins.openspiel.policy.tree import Tree, uniform
from tests.cli.kit import Shell

RULES = {"duel": True, "ranks": 2, "copies": 2, "jokers": 0, "win_rule": "contested", "max_turns": 2}
FLAGS = ("--duel", "--ranks", "2", "--copies", "2", "--jokers", "0", "--win-rule", "contested", "--max-turns", "2")


def test_exact_beliefs_are_the_shares_of_lies_in_random_games() -> None:
    engine = CourseGame(GAME, GAME.rules(**RULES))
    tree, chance, met, lies = Tree(engine), Random(1), Counter[str](), Counter[str]()
    beliefs = exact_beliefs(tree, engine, 1, uniform(tree))
    for _ in range(4000):
        course = engine.new_course()
        while course.player != TERMINAL:
            if course.player == 1 and (truth := GAME.truth(course.engine)) is not None:
                met[course.information(1)] += 1
                lies[course.information(1)] += truth
            if course.player == CHANCE:
                course.apply(chance.choices(*zip(*course.outcomes, strict=True))[0])
            else:
                course.apply(chance.choice(course.actions))
    assert met.keys() == beliefs.keys()
    for state, belief in beliefs.items():
        assert lies[state] / met[state] == pytest.approx(belief, abs=4 * (0.25 / met[state]) ** 0.5)
    assert sorted({round(belief, 9) for belief in beliefs.values()}) == [0.333333333, 0.666666667, 1]


def test_the_sheet_of_a_small_duel_uses_exact_beliefs(tmp_path: Path, shell: Shell) -> None:
    """Over a run, they are calibrated: where the mean belief is p, a share p of the plays are lies."""
    ran = shell(
        "run", "--contenders", "StefaBot", "--bots", "RandomBoi", "--games", "300", *FLAGS, "--output", "r", "--quiet"
    )
    assert ran.code == 0, ran.err
    rated = list[tuple[float, bool]]()
    with open_recorded_run(tmp_path / "r") as run:
        reference = find_reference(run)
        assert reference is not None
        for number in run.experiment.game_numbers:
            ((row,),) = run.db.read("SELECT outcome FROM games WHERE game = ?", (number,))
            seats = run.outcome(row).seats
            moves, beliefs = ReferenceReplay(run, number, seats, reference).moves()
            for one in track_game(number, seats, moves).responses:
                rated.append((beliefs[number, one.seat, one.move], one.is_lie))
    unsure = [(belief, lie) for belief, lie in rated if 0 < belief < 1]
    assert len(unsure) > 40
    assert all(lie == bool(belief) for belief, lie in rated if belief in (0, 1))
    mean = sum(belief for belief, _ in unsure) / len(unsure)
    share = sum(lie for _, lie in unsure) / len(unsure)
    assert share == pytest.approx(mean, abs=3 * (mean * (1 - mean) / len(unsure)) ** 0.5)
    result = shell("deception", "r", "--quiet")
    assert "Compared with the exact posterior" in result.out
