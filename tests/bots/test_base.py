"""The base class: the walk through nodes A-E, the play for each answer, and the draws (R13, R24, R25)."""

from collections.abc import Sequence
from typing import Any

import pytest

from bots.base import BotBase
from dubito.errors import IllegalOutput
from dubito.games.dubito.bot import PlayerAI, missing_nodes
from dubito.games.dubito.cards import TurnData, TurnOutput
from dubito.games.dubito.events import CardList
from tests.bots.kit import NODES_A_TO_E, NUMBER, Scripted, in_seat, opening, regular


class Answers(BotBase):
    """Answers each node from `say`, and records the order of the questions."""

    def __init__(self, id: int) -> None:
        super().__init__(id)
        self.say: dict[str, Any] = dict.fromkeys("ABCDE", False)
        self.asked = ""

    def _answer(self, node: str) -> Any:
        self.asked += node
        return self.say[node]

    def bluff_first_hand(self, p: TurnData) -> Any:
        return self._answer("A")

    def maximize_first_hand(self, p: TurnData) -> Any:
        return self._answer("B")

    def should_doubt(self, p: TurnData) -> Any:
        return self._answer("C")

    def bluff_regular(self, p: TurnData) -> Any:
        return self._answer("D")

    def maximize_regular(self, p: TurnData) -> Any:
        return self._answer("E")


def answering(hand: Sequence[int], yes: str = "", *draws: float) -> Answers:
    """Return a bot that answers yes at these nodes, with fixed draws."""
    player = in_seat(Answers, hand, framework=Scripted(*draws))
    assert isinstance(player, Answers)
    player.say.update(dict.fromkeys(yes, True))
    return player


HOLDING = (NUMBER, NUMBER, 1, 2, 3)
LACKING = (0, 4, 1, 2, 3)


@pytest.mark.parametrize(
    ("p", "hand", "yes", "asked"),
    [
        (opening(HOLDING), HOLDING, "B", "AB"),
        (opening(HOLDING), HOLDING, "AB", "AB"),
        (regular(HOLDING), HOLDING, "C", "C"),
        (regular(HOLDING), HOLDING, "E", "CDE"),
        (regular(HOLDING), HOLDING, "DE", "CDE"),
        (regular(LACKING), LACKING, "E", "CE"),
        (regular(HOLDING, can_doubt=False), HOLDING, "CE", "DE"),
        (regular(LACKING, can_doubt=False), LACKING, "CE", "E"),
    ],
)
def test_r24_questions_are_asked_in_order(p: TurnData, hand: Sequence[int], yes: str, asked: str) -> None:
    player = answering(hand, yes, *[0.0] * 9)
    player.play(p)
    assert player.asked == asked


@pytest.mark.parametrize(
    ("yes", "draws", "number", "cards"),
    [
        ("AB", (0, 0, 0, 0.99), 13, [1, 1, 5]),  # three random cards, then a random number
        ("AB", (0.99, 0.99, 0.99, 0), 1, [9, 9, 8]),
        ("A", (0.34, 0, 0, 0.5), 7, [1, 1]),  # a random 1-3, the cards, the number
        ("B", (), 1, [1, 1]),  # the most common; of two, the lowest (R25)
        ("", (0.5,), 8, [8]),  # one random card, honestly declared
    ],
)
def test_opening_follows_the_answers_r24(yes: str, draws: Sequence[float], number: int, cards: list[int]) -> None:
    hand = (1, 1, 5, 8, 9, 9)
    output = answering(hand, yes, *draws).play(opening(hand))
    assert (output.doubt, output.number, output.cards) == (False, number, cards)


@pytest.mark.parametrize(
    ("hand", "yes", "draws", "cards"),
    [
        ((1, 7, 7, 7, 2), "E", (), [7, 7, 7]),  # all matching, at most three
        ((0, 7, 7, 2, 3), "E", (), [7, 7]),  # no joker among them
        ((1, 7, 7, 7, 2), "", (0.34,), [7, 7]),  # a random number of matching cards
        ((1, 7, 7, 7, 2), "", (0.99,), [7, 7, 7]),
        ((1, 7, 7, 2, 3), "", (0.99,), [7, 7]),  # randint(1, min(3, matching))
        ((1, 7, 7, 2, 3), "", (0.49,), [7]),
        ((1, 7, 7, 2, 3), "DE", (0, 0, 0), [1, 7, 7]),  # three random cards
        ((1, 7, 7, 2, 3), "D", (0.67, 0.99, 0.99, 0.99), [3, 2, 7]),  # one to three of them at random
        ((1, 7, 7, 2, 3), "D", (0.33, 0.5), [7]),
        ((1, 2, 3, 4, 5), "E", (0, 0, 0), [1, 2, 3]),  # lacks the number, so the bluff is forced (R25)
        ((0, 2, 3, 4, 5), "", (0, 0), [0]),
    ],
)
def test_later_play_follows_the_answers_r24(
    hand: Sequence[int], yes: str, draws: Sequence[float], cards: list[int]
) -> None:
    output = answering(hand, yes, *draws).play(regular(hand))
    assert (output.doubt, output.number, output.cards) == (False, None, cards)


def test_doubting_gives_no_cards() -> None:
    assert answering(HOLDING, "C").play(regular(HOLDING)) == TurnOutput(True)


@pytest.mark.parametrize("draw", [0, 0.34, 0.67])
def test_fewer_cards_than_wanted_means_all_r24(draw: float) -> None:
    """The number of cards is min(randint(1, 3), held), so with two cards held, 2 and 3 both mean all."""
    for p, yes in ((opening((4, 9)), "A"), (regular((4, 9)), "")):
        output = answering((4, 9), yes, draw, 0, 0).play(p)
        assert output.cards == ([4] if draw == 0 else [4, 9])
    assert answering((4, 9), "E").play(regular((4, 9))).cards == [4, 9]


def test_jokers_when_opening_honestly_r25() -> None:
    """Jokers count as the value 0, ties go to the lowest value, and a joker's number is drawn."""
    hand: tuple[int, ...]
    for hand in ((0, 0), (0, 0, 4), (0, 0, 1, 2), (4, 0, 4, 0), (3, 0, 9)):
        output = answering(hand, "B", 0.99).play(opening(hand))
        assert (output.number, output.cards) == (13, [0] * hand.count(0))
    for hand, number in (((0, 4, 4), 4), ((0, 0, 6, 6, 6), 6), ((2, 13, 13, 13), 13), ((13, 2, 2, 13, 1), 2)):
        among = answering(hand, "B").play(opening(hand))
        assert (among.number, among.cards) == (number, [number] * hand.count(number))
    for jokers in ((0,), (0, 0)):
        one = answering(jokers, "", *[0] * (len(jokers) - 1), 0.99).play(opening(jokers))
        assert (one.number, one.cards) == (13, [0])
    drawn = answering((0, 5), "", 0, 0.99).play(opening((0, 5)))
    assert (drawn.number, drawn.cards) == (13, [0])


def test_numbers_are_drawn_from_those_still_in_play_r24() -> None:
    p = opening((1, 2))
    p.playing_cards = CardList([2, 4, 11])
    numbers = [answering((1, 2), "AB", draw).play(p).number for draw in (0, 0.33, 0.34, 0.66, 0.67, 0.99)]
    assert numbers == [2, 2, 4, 4, 11, 11]


@pytest.mark.parametrize("node", "ACD")
def test_missing_node_is_named_r13(node: str) -> None:
    class Half(Answers):
        pass

    setattr(Half, NODES_A_TO_E[node], getattr(BotBase, NODES_A_TO_E[node]))
    p = opening(HOLDING) if node in "AB" else regular(HOLDING)
    with pytest.raises(IllegalOutput, match=rf"Half does not implement node {node} \({NODES_A_TO_E[node]}\) yet"):
        in_seat(Half, HOLDING).play(p)


class Three(BotBase):
    def bluff_first_hand(self, p: TurnData) -> bool:
        return False

    def should_doubt(self, p: TurnData) -> bool:
        return False

    def bluff_regular(self, p: TurnData) -> bool:
        return False


def test_three_nodes_are_enough_and_play_as_many_as_possible() -> None:
    assert in_seat(Three, (1, 1, 5)).play(opening((1, 1, 5))).cards == [1, 1]
    assert in_seat(Three, HOLDING).play(regular(HOLDING)).cards == [NUMBER, NUMBER]


def test_missing_nodes_are_reported_before_a_game() -> None:
    class Whole(BotBase):
        def play(self, p: TurnData) -> TurnOutput:
            return self.doubt(p)

    class Half(Whole):
        def should_doubt(self, p: TurnData) -> bool:
            return True

    assert missing_nodes(BotBase) == ["A (bluff_first_hand)", "C (should_doubt)", "D (bluff_regular)"]
    assert missing_nodes(Half) == ["A (bluff_first_hand)", "D (bluff_regular)"], "its play uses the nodes"
    assert missing_nodes(Three) == missing_nodes(Whole) == missing_nodes(PlayerAI) == []
