"""Perft: how many ways the next moves can go, exactly, counted in both engines and kept in a file.

A way is a sequence of `depth` distinct legal outputs; where the game is over there is none. Depth 1 of a
failing position is shown move by move, which finds the fault in minutes.
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
    """A line of the file."""

    win_rule: WinRule
    hands: str
    ways: tuple[int, ...]  # at depth 1, 2, ...
    ranks: int = 13
    copies: int = 4


def read_lines() -> list[Line]:
    """The file without its comments."""
    rows = [line.split() for line in FILE.read_text().splitlines() if line and not line.startswith("#")]
    rules = {name: name for name in WIN_RULES}
    found = []
    for said, hands, *ways in rows:
        rule, _, deck = said.partition(":")
        ranks, copies = map(int, (deck or "13x4").split("x"))
        found.append(Line(rules[rule], hands, tuple(map(int, ways)), ranks, copies))  # type: ignore[index]
    return found


def count(game: State, ways: list[int], depth: int = 0) -> list[int]:
    """The ways of the engine, added to `ways` from this depth to its last."""
    outputs = [] if game.over else legal_outputs(game)
    ways[depth] += len(outputs)
    if depth + 1 < len(ways):
        for output, branch in zip(outputs, twins(game, len(outputs)), strict=True):
            branch.apply(output)
            count(branch, ways, depth + 1)
    return ways


def count_in_reference(world: World, ways: list[int], depth: int = 0) -> list[int]:
    """The ways of the reference engine, likewise."""
    moves = reference.moves(world)
    ways[depth] += len(moves)
    if depth + 1 < len(ways):
        for move in moves:
            count_in_reference(reference.after(world, move)[0], ways, depth + 1)
    return ways


def divide(game: State, depth: int) -> str:
    """The ways below each first move."""
    rows = []
    outputs = legal_outputs(game)
    for output, branch in zip(outputs, twins(game, len(outputs)), strict=True):
        branch.apply(output)
        move = "doubt" if output.cards is None else "".join(LETTERS[card] for card in output.cards)
        rows.append(f"{move} {output.number or ''}: {count(branch, [0] * (depth - 1))[-1] if depth > 1 else 1}")
    return "\n".join(rows)


MOST = 12_000  # ways at a depth that are counted in the gate


@pytest.fixture
def ways(line: Line, at_length: bool) -> list[int]:
    """The counts of a line that there is time for."""
    return [*takewhile(lambda ways: at_length or ways <= MOST, line.ways)]


LINES = read_lines()
IDS = [f"{line.win_rule} {line.ranks}x{line.copies} {line.hands}" for line in LINES]


@pytest.mark.parametrize("line", LINES, ids=IDS)
def test_perft(line: Line, ways: list[int]) -> None:
    """R3, R4, R6-R11: the legal outputs and where they lead, counted exactly."""
    game = position(line.hands, line.win_rule, ranks=line.ranks, copies=line.copies)
    found = count(game, [0] * len(ways))
    for depth, expected in enumerate(ways, start=1):
        assert found[depth - 1] == expected, f"depth {depth}\n{divide(game, depth)}"


@pytest.mark.parametrize("line", LINES, ids=IDS)
def test_perft_of_the_reference(line: Line, ways: list[int]) -> None:
    """The numbers of the file are not the engine's alone."""
    hands = tuple(tuple(cards(held)) for held in line.hands.split("/"))
    world = World(line.win_rule == "contested", 1000, hands, ranks=line.ranks, copies=line.copies)
    assert count_in_reference(world, [0] * len(ways)) == ways


def in_file(win_rule: WinRule, hands: str, depth: int) -> tuple[int, ...]:
    """The counts that the file gives for a position, up to a depth."""
    (ways,) = [line.ways for line in LINES if line.win_rule == win_rule and line.hands == hands]
    return ways[:depth]


def test_perft_by_hand_of_single_cards_immediate() -> None:
    """R3, R4, R9, R10, R11, all four seats with one card."""
    opening = 13  # seat 0 puts down its ace under any number and has won (R9)
    second = opening * 1  # seat 1 can only play: nobody may doubt the ace of one who has left (R4)
    third = 0  # seat 1 has won too, two are left, the game is over (R10)
    assert in_file("immediate", "A/2/3/4", 3) == (opening, second, third)


def test_perft_by_hand_of_single_cards_contested() -> None:
    """R3, R4, R6, R7, R9, R10, R11, all four seats with one card."""
    opening = 13  # seat 0 puts down its ace under any number, and is pending (R9)
    second = opening * 2  # seat 1 plays its two or doubts
    # Seat 1 played: seat 0 is placed and seat 1 pending; seat 2 plays or doubts, under any of 13 numbers.
    # Seat 1 doubted rightly (12 numbers): seat 0 takes its ace back; seat 1 opens with its two in 13 ways (R7).
    # Seat 1 doubted wrongly (1 number): it takes the ace, seat 0 is placed, seat 2 opens in 13 ways (R6).
    third = 13 * 2 + 12 * 13 + 1 * 13
    # Played, played: seat 1 is placed too, the game is over: 0 ways.
    # Played, doubted: under number 2 seat 1 was honest and wins: over. Under the 12 others it takes ace and
    # two, and seat 2 opens with its three in 13 ways.
    # Right doubt, opening of seat 1 (12 * 13): it is pending, seat 2 plays or doubts.
    # Wrong doubt, opening of seat 2 (1 * 13): it is pending, seat 3 plays or doubts.
    fourth = 0 + 12 * 13 + (12 * 13) * 2 + (1 * 13) * 2
    assert in_file("contested", "A/2/3/4", 4) == (opening, second, third, fourth)


def test_perft_by_hand_of_a_joker_and_a_set() -> None:
    """R3, R5, R6, R7, R8, R10: a joker that leaves, four aces that are discarded on pick-up."""
    opening = 3 * 13  # seat 0 plays ace, joker or both, under any number
    # Both: it has won, two are left, over. Else seat 1 has six groups (A, 2, AA, A2, AAA, AA2) and the doubt.
    second = 2 * 13 * (6 + 1)
    # The ace, then cards (13 * 6): three groups of seat 2 (3, 4, 34) and the doubt.
    # The ace under A, doubted: honest; seat 1 discards four aces and keeps the two; seat 2 opens: 3 * 13.
    # The ace under one of 12 other numbers, doubted: seat 0 takes it; seat 1 opens with six groups: 6 * 13.
    ace = 13 * 6 * (3 + 1) + 1 * 3 * 13 + 12 * 6 * 13
    # The joker, then cards (13 * 6): as above. The joker doubted is honest under all 13 numbers and leaves
    # the game; seat 1 picks up nothing; seat 2 opens: 3 * 13.
    joker = 13 * 6 * (3 + 1) + 13 * 3 * 13
    assert in_file("immediate", "*A/AAA2/34", 3) == (opening, second, ace + joker)


def test_perft_by_hand_of_a_duel() -> None:
    """R3, R6-R8, with two numbers of two cards each: the first out wins."""
    opening = 2 * 3  # the ace, the two or both, under two numbers
    second = (2 * 2) * (3 + 1)  # both: won, over; else the same three groups of seat 1 and the doubt
    # Seat 1 played both: won. One card (4 * 2): seat 0 puts down its last card or doubts. Doubted, a bluff (2): it
    # takes its card back, and seat 1 opens in six ways; honest (2): seat 1 takes the card and discards a pair, has one
    # card left, and seat 0 opens with its last in two ways.
    third = (4 * 2) * 2 + 2 * 6 + 2 * 2
    assert in_file("immediate", "A2/A2", 3) == (opening, second, third)
