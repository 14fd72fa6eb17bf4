"""Luck correction keeps the mean with any policy, and reduces the variance with a good one."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import cycle, product
from math import prod
from pathlib import Path
from random import Random

import pytest

from dubito.plugins.openspiel.policy.chances import ChancesTest
from dubito.plugins.openspiel.policy.luck import LuckyGame, OwnDecision, SeatLuck, corrected_returns, fitted
from dubito.plugins.openspiel.policy.tree import PolicyTable, Row, Tree, uniform
from dubito.plugins.openspiel.policy.values import expected_values
from tests.cli.kit import Shell
from tests.conftest import in_gate
from tests.plugins.openspiel.policy.kit import DICE, KUHN, KUHN_3, LEDUC, by_chance, tree_of, versus

End = tuple[float, float, tuple[OwnDecision, ...]]  # probability, return of the seat, its decisions


def ends(tree: Tree, seat: int, tables: Sequence[PolicyTable]) -> Iterator[End]:
    """Yield all endings of a game under these policies."""
    left: list[tuple[int, float, tuple[OwnDecision, ...]]] = [(0, 1.0, ())]
    while left:
        number, chance, decided = left.pop()
        node = tree.nodes[number]
        if node.returns:
            yield chance, node.returns[seat], decided
        elif node.state is None:
            left += [(child, chance * p, decided) for child, p in zip(node.children, node.chances, strict=True)]
        else:
            row, own = tables[node.state.seat][node.state.string], node.state.seat == seat
            for action, child in zip(node.state.actions, node.children, strict=True):
                more = (*decided, (node.state.string, action)) if own else decided
                if row[action]:
                    left.append((child, chance * row[action], more))


def spread(found: Sequence[tuple[float, float]]) -> float:
    mean = sum(chance * value for chance, value in found)
    return sum(chance * (value - mean) ** 2 for chance, value in found)


def bad(tree: Tree) -> PolicyTable:
    """Return a policy that always takes one randomly chosen action in each state."""
    chance = Random(7)
    return {
        s.string: {a: float(a == own) for a in s.actions} for s in tree.states for own in [chance.choice(s.actions)]
    }


@pytest.mark.parametrize("name", [KUHN, KUHN_3, DICE, LEDUC])
def test_correction_keeps_the_mean_with_any_table(name: str) -> None:
    """Compute the mean over the whole tree with a random policy, the player's own, another player's, and a bad one."""
    tree = tree_of(name)
    hero, others = by_chance(tree, 1), by_chance(tree, 2)
    for seat, exact in enumerate(versus(tree, hero, others)[:2]):
        tables = [hero if place == seat else others for place in range(tree.players)]
        all_ends = [*ends(tree, seat, tables)]
        assert sum(chance for chance, _, _ in all_ends) == pytest.approx(1)
        spreads = [spread([(chance, got) for chance, got, _ in all_ends])]
        for table in (hero, by_chance(tree, 3), uniform(tree), bad(tree)):
            luck = SeatLuck(tree, seat, table, others)
            less = [(chance, luck.corrected_value(decided)) for chance, _, decided in all_ends]
            assert sum(chance * value for chance, value in less) == pytest.approx(exact, abs=1e-9)
            spreads.append(spread(less))
        assert spreads[1] < min(spreads[0], spreads[4]), "its own policy removes most of the variance"


def test_deterministic_policy_has_no_luck_left() -> None:
    tree = tree_of(KUHN)
    hero, others = bad(tree), uniform(tree)
    luck = SeatLuck(tree, 0, hero, others)
    assert {round(luck.corrected_value(decided), 9) for _, _, decided in ends(tree, 0, [hero, others])} == {
        round(expected_values(tree, [hero, others])[0], 9)
    }


def test_table_is_fitted_to_other_deals() -> None:
    tree = tree_of(KUHN)
    state = tree.states[0]
    done = [(state.string, 1)] * 3
    assert fitted(tree, done, uniform(tree))[state.string] == {0: 0.5 / 4, 1: 3.5 / 4}
    games = [LuckyGame(deal, 0, (0, 1), 1.0, [(state.string, int(deal == 0))]) for deal in range(5)]
    less = corrected_returns(tree, games, lambda game: uniform(tree), uniform(tree))
    assert len({round(value, 9) for value in less[1:]}) == 1, "each of these states saw the other three, and the first"
    folds = [fitted(tree, (d for g in games if g.deal != deal for d in g.decisions), uniform(tree)) for deal in (0, 1)]
    assert less[0] == SeatLuck(tree, 0, folds[0], uniform(tree)).corrected_value(games[0].decisions)
    assert less[1] == SeatLuck(tree, 0, folds[1], uniform(tree)).corrected_value(games[1].decisions)


def test_compare_shows_raw_and_corrected_scores(shell: Shell) -> None:
    words = ("--game", "openspiel:kuhn_poker", "--bots", "UniformRandom", "--games", "240", "--seed", "1", "--quiet")
    assert shell("run", *words, "--contenders", "Solved,FirstLegal", "--output", "r").code == 0
    result = shell("compare", "r")
    assert result.code == 0, result
    title, _, *rows = result.out.partition("Less luck: ")[2].splitlines()
    assert title.startswith("Return per game, raw and corrected for chance")
    assert [re.split("  +", row)[0] for row in rows] == ["Solved", "FirstLegal", "Solved"]
    one, other, both = json.loads(shell("compare", "r", "--json").out)["less_luck"]
    assert (one["name"], other["name"], both["against"]) == ("Solved", "FirstLegal", "FirstLegal")
    for found in (one, other, both):
        widths = [found[kind]["high"] - found[kind]["low"] for kind in ("raw", "corrected")]
        assert (widths[0] / widths[1]) ** 2 == pytest.approx(found["times"])
        assert found["raw"]["low"] < found["corrected"]["value"] < found["raw"]["high"]
    assert other["times"] > 10, "FirstLegal uses no randomness"
    assert both["corrected"]["value"] == pytest.approx(one["corrected"]["value"] - other["corrected"]["value"])


def test_equal_results_have_an_interval_with_a_width(shell: Shell) -> None:
    """FirstLegal against itself loses in one seat what it wins in the other."""
    words = ("--game", "openspiel:kuhn_poker", "--bots", "FirstLegal", "--contenders", "FirstLegal", "--games", "40")
    assert shell("run", *words, "--output", "r", "--quiet").code == 0
    (found,) = json.loads(shell("compare", "r", "--json").out)["less_luck"]
    assert [found["raw"][end] for end in ("value", "low", "high")] == pytest.approx([0, -0.6, 0.6])
    assert found["times"] is None


LIAR = """
from dubito.plugins.openspiel.bot import OpenSpielBot


class Liar(OpenSpielBot):
    'States uniform play.'

    def act(self, view):
        return %s

    def chances(self, view):
        return {name: 1 / len(view.legal) for name in view.legal}
"""


@pytest.mark.parametrize(
    ("act", "games"),
    in_gate([("view.legal[-1]", 40), ("view.legal[0]", 200), ("view.legal[self.rng.random() < 0.8]", 400)], 1),
)
def test_an_opponent_that_misstates_its_play_is_named(shell: Shell, act: str, games: int) -> None:
    """If an opponent misstates its play, games are not corrected, because the corrected mean would be wrong."""
    shell.bot("liar.py", LIAR % act, "manual/openspiel")
    words = "--game", "openspiel:kuhn_poker", "--bots", "Liar", "--contenders", "Solved,FirstLegal", "--quiet"
    assert shell("run", *words, "--games", str(2 * games), "--output", f"r{games}").code == 0
    found = json.loads(shell("compare", f"r{games}", "--json").out)["less_luck"]
    assert [one["misstated"] for one in found] == [["Liar"]] * 3
    assert [(one["raw"]["value"] is None, one["corrected"]["value"]) for one in found] == [(False, None)] * 3
    output = shell("compare", f"r{games}").out
    assert "Liar does not play as it states, so its results are not corrected." in output


def test_a_truthful_opponent_is_accused_once_in_a_thousand_at_most() -> None:
    """Compute the probability of all action sequences, for one state seen often and for several states seen in turn."""
    for row, states in product(({0: 0.95, 1: 0.05}, {0: 0.8, 1: 0.1, 2: 0.1}), (["a"], ["a", "b"])):
        accused = [
            actions for actions in product(row, repeat=7) if refuted(zip(cycle(states), actions, strict=False), row)
        ]
        assert 0 < sum(prod(row[action] for action in actions) for actions in accused) <= 0.001


def refuted(actions: Iterable[tuple[str, int]], row: Row) -> bool:
    test = ChancesTest()
    for state, action in actions:
        test.add(state, action, row)
    return test.refuted


@pytest.mark.at_length
@pytest.mark.parametrize("name", [KUHN, LEDUC])
def test_no_truthful_opponent_of_thousands_is_accused_more_often(name: str) -> None:
    """In many games, the opponent draws from its stated policy in every state."""
    tree, chance, accused, runs = tree_of(name), Random(1), 0, 2000
    table = by_chance(tree, 3)
    for _ in range(runs):
        states = chance.choices(tree.states, k=150)
        test = ChancesTest()
        for state in states:
            row = table[state.string]
            test.add(state.string, chance.choices([*row], [*row.values()])[0], row)
        accused += test.refuted
    assert accused <= 6, "at most 2 are expected"


def test_correction_needs_opponents_that_state_their_strategy(shell: Shell) -> None:
    bot = Path("bots/manual/openspiel/mine.py")
    bot.parent.mkdir(parents=True)
    bot.write_text(
        "from dubito.plugins.openspiel.bot import OpenSpielBot\n\n\nclass Mine(OpenSpielBot):\n    'Mine.'\n\n"
        "    def act(self, view):\n        return view.legal[0]\n"
    )
    words = ("--game", "openspiel:kuhn_poker", "--bots", "Mine", "--games", "20", "--quiet")
    assert shell("run", *words, "--contenders", "UniformRandom", "--output", "r").code == 0
    result = shell("compare", "r")
    assert result.code == 0
    assert "Less luck" not in result.out
