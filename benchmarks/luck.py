"""Measure how many games the luck correction saves: five players at three games of OpenSpiel, each against `Solved`.

`python -m benchmarks.luck` takes several minutes. A comparison has 400 games, each deal played in both seats; a line is
the mean of several comparisons. `house` is queried through `dubito policy`.
"""

import math
from pathlib import Path
from random import Random
from statistics import fmean, variance
from tempfile import TemporaryDirectory
from typing import Any, Final

from dubito.cli.call_options import limited_call_options
from dubito.game.find import find_game
from dubito.plugins.openspiel.engine import load
from dubito.plugins.openspiel.policy.command import read_strategy
from dubito.plugins.openspiel.policy.luck import LuckyGame, OwnDecision, corrected_returns
from dubito.plugins.openspiel.policy.small import small_game
from dubito.plugins.openspiel.policy.solver import solve
from dubito.plugins.openspiel.policy.tree import PolicyTable, Tree, seat_tables, uniform
from dubito.plugins.openspiel.policy.values import expected_values
from dubito.stats.rates import student_quantile

GAMES: Final = ("kuhn_poker", "leduc_poker", "liars_dice(numdice=1,dice_sides=3)")
COMPARISONS, DEALS = 20, 200


def players(name: str, tree: Tree, solved: PolicyTable) -> dict[str, PolicyTable]:
    """Return each player's strategy, by name."""
    lots, game = uniform(tree), find_game(f"openspiel:{name}", Path())
    first = {state.string: {a: float(a == state.actions[0]) for a in state.actions} for state in tree.states}
    half = {string: {a: (row[a] + solved[string][a]) / 2 for a in row} for string, row in lots.items()}
    with TemporaryDirectory() as folder:
        calls = limited_call_options({"cache": f"{folder}/cache"})
        house = read_strategy("house:house-random", {}, small_game(game, game.rules()), tree.states, None, calls)
        stated = house.state(tree.states, None, 0, Path(folder, "asked"), calls, True)
    return {"FirstLegal": first, "UniformRandom": lots, "half Solved": half, "Solved": solved, "house": stated.rows}


def play(tree: Tree, deal: int, seat: int, tables: list[PolicyTable], chance: Random) -> LuckyGame:
    """Play a game with these policies."""
    node, decided = tree.nodes[0], list[OwnDecision]()
    while not node.returns:
        if node.state is None:
            weights: Any = node.chances
        else:
            weights = [tables[node.state.seat][node.state.string][action] for action in node.state.actions]
        place = chance.choices(range(len(node.children)), weights)[0]
        if node.state is not None and node.state.seat == seat:
            decided.append((node.state.string, node.state.actions[place]))
        node = tree.nodes[node.children[place]]
    return LuckyGame(deal, seat, (seat, 1 - seat), node.returns[seat], decided)


def describe_cell(tree: Tree, hero: PolicyTable, solved: PolicyTable, chance: Random) -> str:
    """Describe the factor of saved games, the exact and corrected means, and the coverage of the 95 % interval."""
    exact = fmean(expected_values(tree, seat_tables(tree, seat, hero, solved))[seat] for seat in (0, 1))
    spreads, means, held = list[tuple[float, float]](), list[float](), 0
    for _ in range(COMPARISONS):
        games = [
            play(tree, deal, seat, [*seat_tables(tree, seat, hero, solved)], chance)
            for deal in range(DEALS)
            for seat in (0, 1)
        ]
        less = corrected_returns(tree, games, lambda game: solved, uniform(tree))
        raw = [game.came_to for game in games]
        by_deal = [[fmean(pair) for pair in zip(values[::2], values[1::2], strict=True)] for values in (raw, less)]
        spreads.append((variance(by_deal[0]), variance(by_deal[1])))
        means.append(fmean(less))
        held += abs(means[-1] - exact) <= student_quantile(DEALS - 1) * math.sqrt(spreads[-1][1] / DEALS)
    times = fmean(raw for raw, _ in spreads) / fmean(less for _, less in spreads)
    return f"{times:8.1f}  exact {exact:+.4f}  corrected {fmean(means):+.4f}  held {held}/{COMPARISONS}"


def main() -> None:
    for name in GAMES:
        engine = load(name)
        tree, solved = Tree(engine), solve(engine).table
        for player, table in players(name, tree, solved).items():
            print(f"{name:36} {player:14} {describe_cell(tree, table, solved, Random(1))}", flush=True)


if __name__ == "__main__":
    main()
