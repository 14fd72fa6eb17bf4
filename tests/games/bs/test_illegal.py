"""BS rejects illegal outputs of every kind with one message, and nothing changes (B3)."""

from typing import Any

import pytest

from dubito.errors import IllegalOutput
from dubito.games.bs.cards import DECK, Card
from dubito.games.bs.engine import State
from tests.games.bs.kit import deal_game, snapshot


class Hostile:
    """An object whose use raises an exception."""

    def fail(self, *args: object) -> Any:
        raise AssertionError("the bot's code must not run")

    __eq__ = __ne__ = __lt__ = __hash__ = __iter__ = __len__ = __bool__ = __getitem__ = __index__ = fail
    __repr__ = __str__ = fail


class OwnList(list[Card]):
    """A list subclass."""


class OwnCard(Card):
    """A card subclass."""


def test_illegal_outputs_are_refused_and_change_nothing() -> None:
    game = deal_game(5)
    mine, others = game.hands[0].cards, game.hands[1].cards
    nothing, hostile = "nothing was played", Hostile()
    outputs: list[tuple[Any, str]] = [
        ([], nothing),
        (None, "not None"),
        (mine[0], "not a value of type Card"),
        ({mine[0]}, "not a value of type set"),
        (iter(mine), "not a value of type list_iterator"),
        (OwnList(mine[:1]), "not a value of type OwnList"),
        (hostile, "not a value of type Hostile"),
        ([3], "but it contains a value of type int"),
        ([(mine[0].number, mine[0].copy)], "but it contains a value of type tuple"),
        ([OwnCard(*mine[0])], "but it contains a value of type OwnCard"),
        ([hostile], "but it contains a value of type Hostile"),
        ([tuple.__new__(Card, (1,))], "but it contains a value of type Card"),
        ([Card(13, 0)], "the deck has no such card"),
        ([Card(hostile, hostile)], "no such card"),  # type: ignore[arg-type]
        (others[:1], "is not in the hand"),
        ([mine[0], Card(*others[0])], "is not in the hand"),
        (list(DECK), "is not in the hand"),
    ]
    for output, words in outputs:
        refused(game, output, words)
    game.apply([Card(*mine[0])])  # an equal object counts as the card
    answers: list[tuple[Any, str]] = [
        (None, "not None"),
        (1, "type int"),
        ("yes", "type str"),
    ]
    for answer, words in [*answers, (hostile, "type Hostile")]:
        refused(game, answer, words)
    assert game.seat == 1


def refused(game: State, output: Any, words: str) -> None:
    """Check that the game and the view reject this in the same one-line message, and that nothing has changed."""
    before = snapshot(game)
    with pytest.raises(IllegalOutput) as caught:
        game.apply(output)
    text = str(caught.value)
    assert words in text
    assert "\n" not in text
    assert game.view().why_illegal(output) == text
    assert snapshot(game) == before
