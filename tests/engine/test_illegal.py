"""R13: every illegal output is refused with a message and changes nothing.

Objects that resemble a card, a bool, a list or a `TurnOutput` are also refused, and their code never runs.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from dubito.errors import IllegalOutput
from dubito.games.dubito.cards import TurnOutput
from dubito.games.dubito.engine import State, why_illegal
from tests.engine.helpers import position, run, snapshot


def opening() -> State:
    return position("*AA2/A34/56/78")


def regular() -> State:
    game = position("*AA2/A34/56/78")
    run(game, "A as 2")
    return game


def undoubtable() -> State:
    game = position("A/34/56/78")
    run(game, "A as 2")
    return game


class Sub(TurnOutput):
    """A subclass, which could contain any code."""


class Card(int):
    """An int subclass with arbitrary behaviour."""

    def __eq__(self, other: object) -> bool:
        raise AssertionError("the engine must not run the bot's code")

    __hash__ = int.__hash__


class Cards(list[int]):
    """A list subclass with arbitrary behaviour."""

    def __len__(self) -> int:
        raise AssertionError("the engine must not run the bot's code")

    def __iter__(self) -> Iterator[int]:
        raise AssertionError("the engine must not run the bot's code")


class Truth:
    """An object that is neither True nor False."""

    def __bool__(self) -> bool:
        raise AssertionError("the engine must not run the bot's code")

    def __repr__(self) -> str:
        raise AssertionError("the engine must not run the bot's code")


@dataclass
class LookAlike:
    """An object with all fields of an output."""

    doubt: bool = False
    number: int | None = 1
    cards: Any = (1,)


Case = tuple[Callable[[], State], Any, str]


def plays(game: Callable[[], State], number: Any, *cases: tuple[Any, str]) -> list[Case]:
    return [(game, TurnOutput(False, number, laid), reason) for laid, reason in cases]


def numbers(game: Callable[[], State], *cases: tuple[Any, str]) -> list[Case]:
    return [(game, TurnOutput(False, number, [1]), reason) for number, reason in cases]


CASES: list[Case] = [
    # Not an output.
    (opening, None, "the output must be a TurnOutput, not None"),
    (opening, (False, 1, [1]), "the output must be a TurnOutput, not of type tuple"),
    (opening, LookAlike(), "the output must be a TurnOutput, not of type LookAlike"),
    (opening, Sub(False, 1, [1]), "the output must be a TurnOutput, not of type Sub"),
    # The answer is not a bool.
    (regular, TurnOutput(1), "doubt must be True or False, not of type int"),
    (regular, TurnOutput(None, None, [1]), "doubt must be True or False, not None"),
    (regular, TurnOutput(Truth()), "doubt must be True or False, not of type Truth"),
    # doubts
    (opening, TurnOutput(True), "an empty board has no play to doubt"),
    (undoubtable, TurnOutput(True), "the player to doubt has left the game"),
    (regular, TurnOutput(True, None, [1]), "a doubt must not include cards"),
    (regular, TurnOutput(True, None, (1,)), "a doubt must not include cards"),
    (regular, TurnOutput(True, None, ""), "a doubt must not include cards"),
    (regular, TurnOutput(True, None, Cards()), "a doubt must not include cards"),
    # No cards, or more than three.
    *plays(
        opening,
        1,
        (None, "cards must be a list of 1 to 3 cards, not None"),
        ([], "0 cards were played; play 1 to 3"),
        ([1, 1, 2, 0], "4 cards were played; play 1 to 3"),
    ),
    # not a list of cards
    *plays(
        opening,
        1,
        ("1", "cards must be a list of 1 to 3 cards, not of type str"),
        ({1}, "cards must be a list of 1 to 3 cards, not of type set"),
        (iter([1]), "cards must be a list of 1 to 3 cards, not of type list_iterator"),
        (Cards([1]), "cards must be a list of 1 to 3 cards, not of type Cards"),
    ),
    # Not a card.
    *plays(
        opening,
        1,
        ([True], "the deck has no card of type bool"),
        ([None], "the deck has no card None"),
        ([1.0], "the deck has no card of type float"),
        ([14], "the deck has no card 14"),
        ([10**30], "the deck has no card of type int"),
        ([Card(1)], "the deck has no card of type Card"),
    ),
    # not in the hand
    *plays(
        opening,
        1,
        ([3], "the hand holds 0 of card 3, not 1"),
        ([1, 1, 1], "the hand holds 2 of card 1, not 3"),
        ([1, 0, 0], "the hand holds 1 of card 0, not 2"),
        ((2, 2), "the hand holds 1 of card 2, not 2"),
    ),
    *plays(regular, None, ([2], "the hand holds 0 of card 2, not 1"), ([1, 1], "the hand holds 1 of card 1, not 2")),
    # The number is illegal.
    *numbers(
        opening,
        (None, "an opening must declare a number from 1 to 13, not None"),
        (14, "an opening must declare a number from 1 to 13, not 14"),
        (10**30, "an opening must declare a number from 1 to 13, not of type int"),
        (True, "an opening must declare a number from 1 to 13, not of type bool"),
        ("1", "an opening must declare a number from 1 to 13, not of type str"),
        (Card(1), "an opening must declare a number from 1 to 13, not of type Card"),
    ),
    *numbers(
        regular,
        (1, "the number of this round is 2; declare it or None"),
        (False, "the number of this round is 2; declare it or None"),
        ("2", "the number of this round is 2; declare it or None"),
        (Card(2), "the number of this round is 2; declare it or None"),
    ),
]


def test_r13_an_illegal_output_is_refused(subtests: pytest.Subtests) -> None:
    """R13: an illegal output is rejected with a reason. The state is unchanged, and the turn can be played again."""
    for make, wrong, reason in CASES:
        with subtests.test(make=make, wrong=wrong, reason=reason):
            game = make()
            before = snapshot(game)
            with pytest.raises(IllegalOutput) as caught:
                game.apply(wrong)
            assert str(caught.value) == reason
            assert snapshot(game) == before
            number = None if game.number else 13
            game.apply(TurnOutput(False, number, [game.hands[game.seat].cards[0]]))
            assert snapshot(game) != before


LEGAL: list[tuple[Callable[[], State], TurnOutput]] = [
    (opening, TurnOutput(False, 1, [1])),
    (opening, TurnOutput(False, 13, (1, 0, 1))),
    (regular, TurnOutput(True)),
    (regular, TurnOutput(True, 2, [])),
    (regular, TurnOutput(True, None, ())),
    (regular, TurnOutput(False, None, [1, 4, 3])),
    (regular, TurnOutput(False, 2, (3,))),
    (undoubtable, TurnOutput(False, None, [3, 4])),
]


@pytest.mark.parametrize(("make", "right"), LEGAL)
def test_r13_legal_outputs_are_not_refused(make: Callable[[], State], right: TurnOutput) -> None:
    game = make()
    assert why_illegal(right, game.hands[game.seat].counts, game.number, game.can_doubt) is None
    assert game.apply(right) != []


def test_r13_an_output_without_fields_is_refused() -> None:
    """R13: slots can be unset. Whatever this raises, the game is unchanged."""
    game, broken = opening(), TurnOutput.__new__(TurnOutput)
    broken.doubt, broken.number = False, 1
    before = snapshot(game)
    with pytest.raises((IllegalOutput, AttributeError)):
        game.apply(broken)
    assert snapshot(game) == before


def test_r13_changing_the_output_afterwards_changes_nothing() -> None:
    """R13: the engine copies the list of cards in a bot's output."""
    game, laid = opening(), [1, 2]
    output = TurnOutput(False, 1, laid)
    game.apply(output)
    before = snapshot(game)
    laid[:] = [13, 13, 13]
    output.number = 13
    assert snapshot(game) == before


class Clearing:
    """Clears the list that contains it when it is compared with a card."""

    def __init__(self, laid: list[Any]) -> None:
        self.laid = laid

    def __eq__(self, other: object) -> bool:
        self.laid.clear()
        return False

    __hash__ = None  # type: ignore[assignment]


def test_r13_output_cannot_change_during_validation() -> None:
    """R13: a play must have one to three cards when it is made, not only when they are counted."""
    game, laid = opening(), list[Any]([1])
    laid.append(Clearing(laid))
    before = snapshot(game)
    with pytest.raises(IllegalOutput):
        game.apply(TurnOutput(False, 1, laid))
    assert snapshot(game) == before
