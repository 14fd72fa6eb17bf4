"""Perft: count all move sequences exactly, in both engines, and compare with a file.

A sequence consists of `depth` distinct legal outputs. For a failing position, counts below each first move show
where the engines differ.
"""

from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

import pytest

from dubito.games.dubito.engine import State, WinRule
from tests.engine import reference
from tests.engine.helpers import LETTERS, WIN_RULES, cards, legal_outputs, position, twins
from tests.engine.reference import World

FILE = Path(__file__).parent.parent / "data" / "perft.txt"


class Line(NamedTuple):
    """A position with the number of move sequences at each depth."""

    win_rule: WinRule
    hands: str
    ways: tuple[int, ...]  # at depth 1, 2, ...
    ranks: int = 13
    copies: int = 4


def read_lines() -> list[Line]:
    """Return the file's lines without comments."""
    rows = [line.split() for line in FILE.read_text().splitlines() if line and not line.startswith("#")]
    rules = {name: name for name in WIN_RULES}
    found = []
    for text, hands, *ways in rows:
        rule, _, deck = text.partition(":")
        ranks, copies = map(int, (deck or "13x4").split("x"))
        found.append(Line(rules[rule], hands, tuple(map(int, ways)), ranks, copies))  # type: ignore[index]
    return found


def count(game: State, ways: list[int], depth: int = 0) -> list[int]:
    """Add the engine's number of lines at each depth, from this one to the last, to `ways`."""
    outputs = [] if game.over else legal_outputs(game)
    ways[depth] += len(outputs)
    if depth + 1 < len(ways):
        for output, branch in zip(outputs, twins(game, len(outputs)), strict=True):
            branch.apply(output)
            count(branch, ways, depth + 1)
    return ways


def count_in_reference(world: World, ways: list[int], depth: int = 0) -> list[int]:
    """Count the same lines with the reference engine."""
    moves = reference.moves(world)
    ways[depth] += len(moves)
    if depth + 1 < len(ways):
        for move in moves:
            count_in_reference(reference.after(world, move)[0], ways, depth + 1)
    return ways


def divide(game: State, depth: int) -> str:
    """Return the number of lines below each first move."""
    rows = []
    outputs = legal_outputs(game)
    for output, branch in zip(outputs, twins(game, len(outputs)), strict=True):
        branch.apply(output)
        move = "doubt" if output.cards is None else "".join(LETTERS[card] for card in output.cards)
        rows.append(f"{move} {output.number or ''}: {count(branch, [0] * (depth - 1))[-1] if depth > 1 else 1}")
    return "\n".join(rows)


MOST = 2_000  # only depths with fewer lines are counted in the gate


@pytest.fixture
def ways(line: Line, at_length: bool) -> list[int]:
    return [*takewhile(lambda ways: at_length or ways <= MOST, line.ways)]


LINES = read_lines()
IDS = [f"{line.win_rule} {line.ranks}x{line.copies} {line.hands}" for line in LINES]


@pytest.mark.parametrize("line", LINES, ids=IDS)
def test_number_of_legal_outputs_is_exact(line: Line, ways: list[int]) -> None:
    """R3, R4, R6-R11: count the legal outputs and their results exactly."""
    game = position(line.hands, line.win_rule, ranks=line.ranks, copies=line.copies)
    found = count(game, [0] * len(ways))
    for depth, expected in enumerate(ways, start=1):
        assert found[depth - 1] == expected, f"depth {depth}\n{divide(game, depth)}"


@pytest.mark.parametrize(
    "line", [pytest.param(one, marks=pytest.mark.at_length if one.copies == 4 else ()) for one in LINES]
)
def test_reference_engine_has_the_same_counts(line: Line, ways: list[int]) -> None:
    """The reference engine has the same counts. The gate tests only small decks, which random games do not use."""
    hands = tuple(tuple(cards(held)) for held in line.hands.split("/"))
    world = World(line.win_rule == "contested", 1000, hands, ranks=line.ranks, copies=line.copies)
    assert count_in_reference(world, [0] * len(ways)) == ways
