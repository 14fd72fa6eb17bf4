"""The list of legal moves: what it rejects, and the buttons and texts made from it."""

from collections.abc import Sequence
from typing import Any

import pytest

from dubito.game import Node, View, Whole
from dubito.game.legal import describe_legal, read_legal
from dubito.game.table import Entrant
from dubito.game.words import Question
from dubito.show.person import Sitting, set_up
from dubito.web.tables import frame_in_words
from tests.games.kit import GAMES, changed_game, registry_of

ACTS = ["draw", "skip", "bottom", "see"]  # the legal first moves in the deal of `seated`


class Listed(View):
    """A view with this list of legal moves."""

    node = "act"

    def __init__(self, *listed: Any) -> None:
        self.listed = listed

    def legal(self) -> Sequence[Any]:
        return self.listed


class Armed:
    """An output whose code must not run."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("the output was compared")

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        raise RuntimeError("the output was shown")


@pytest.mark.parametrize(
    ("listed", "output", "why"),
    [
        (("pass", "bet"), "bet", None),
        (("pass", "bet"), "raise", "a move here is pass or bet, and not 'raise'"),
        (("pass", "bet"), Armed(), "a move here is pass or bet, and not a value of type Armed"),
        ((0, 1), True, "a move here is 0 or 1, and not True"),
        ((True, False), 1, "a move here is yes or no, and not 1"),
        ((True, False), True, None),
        ((2, 3, 5), 4, "a move here is one of 2, 3, 5, and not 4"),
        ((2, 3, 4), 3.0, "a move here is a whole number from 2 to 4, and not 3.0"),
        ((), "bet", "no move is legal here"),
    ],
)
def test_unlisted_output_is_refused(listed: Sequence[Any], output: Any, why: str | None) -> None:
    assert Listed(*listed).why_illegal(output) == why


def test_long_range_counts_as_a_list() -> None:
    view: Any = Listed()
    view.legal = lambda: range(10**12)
    assert view.why_illegal(10**11) is None
    assert view.why_illegal(True) == "a move here is a whole number from 0 to 999999999999, and not True"


def test_view_without_legal_and_why_illegal_is_an_error() -> None:
    view = View()
    view.__class__.node = "act"
    with pytest.raises(NotImplementedError, match="View lists nothing at act; implement why_illegal for it"):
        view.why_illegal("bet")


def test_long_list_is_cut_in_messages() -> None:
    assert describe_legal([f"n{place}" for place in range(1062)]).endswith("n58, n59, and 1,002 others")
    assert describe_legal(["b\n\x1b[2J"]) == "b \\x1b[2J"


def test_attribute_named_legal_is_not_a_method() -> None:
    assert read_legal(type("Old", (), {"legal": ("a",)})()) is None
    assert read_legal(object()) is None


def seated(**facts: Any) -> Sitting:
    game, bots = changed_game(GAMES["defuse"], **facts), registry_of("defuse")
    setup = set_up(game, ["Medium"], game.rules(), 0, 5)
    return Sitting(setup, game, [Entrant("Medium", bots.find("Medium").cls)], bots.find("Medium").cls)


def current_question(sitting: Sitting) -> Question:
    question = frame_in_words(sitting, 0, None, []).question
    assert question is not None
    return question


@pytest.mark.parametrize(
    ("legal", "options", "bounds", "wanted"),
    [
        (range(24), [*range(24)], None, "a whole number from 0 to 23"),
        (range(25), [], (0, 24), "a whole number from 0 to 24"),
        ([7, 3], [7, 3], None, "7 or 3"),
        (None, [], None, "a whole number"),
    ],
)
def test_numbers_are_buttons_up_to_24(legal: Any, options: list[int], bounds: Any, wanted: str) -> None:
    numbers = (Node("turn", "turn", Whole()), GAMES["defuse"].nodes[1])
    question = current_question(seated(nodes=numbers, legal=lambda view: legal))
    assert question == Question("turn", "whole", wanted, options, question.labels, bounds)
    assert len(question.labels) == len(options)


@pytest.mark.parametrize("legal", [lambda view: view.legal(), lambda view: None])
def test_only_legal_answers_are_buttons(legal: Any) -> None:
    sitting = seated(legal=legal)
    assert current_question(sitting).options == sitting.game.legal_answers(sitting.state) == ACTS


def test_named_answers_are_buttons_if_legal() -> None:
    sitting: Any = seated()
    sitting.words.choices = lambda state: ["fly", "see", "shuffle", "draw"]
    assert current_question(sitting).options == ["see", "draw"]
