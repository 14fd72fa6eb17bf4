"""The walk through the nodes A-E and the helpers of a bot: R13, R22, R24, R25, R27, R28."""

from collections.abc import Sequence
from functools import partial
from random import Random
from typing import Any

import pytest

from bots.base import BotBase
from dubito.errors import IllegalOutput
from dubito.game import Seating, make_player
from dubito.game.streams import DealStreams
from dubito.game.table import Entrant
from dubito.games.dubito.bot import PlayerAI, missing_nodes
from dubito.games.dubito.cards import Hand, HandView, TurnData, TurnOutput
from dubito.games.dubito.engine import Rules
from tests.bots.kit import NODES_A_TO_E, NUMBER, Scripted, in_seat, neighbour, opening, regular, told
from tests.conftest import cases


class Answers(BotBase):
    """Answers each node with what `say` holds for it, and keeps the order of the questions."""

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
    """A bot that says yes at these nodes; the framework draws these values."""
    player = in_seat(Answers, hand, framework=Scripted(*draws))
    assert isinstance(player, Answers)
    player.say.update(dict.fromkeys(yes, True))
    return player


HOLDING = (NUMBER, NUMBER, 1, 2, 3)
LACKING = (0, 4, 1, 2, 3)


@cases(
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
def test_order_of_questions_r24(p: TurnData, hand: Sequence[int], yes: str, asked: str) -> None:
    """A, then B; or C if doubting is legal (R4), then D only when the number is held (R25), then E."""
    player = answering(hand, yes, *[0.0] * 9)
    player.play(p)
    assert player.asked == asked


@cases(
    ("yes", "draws", "number", "cards"),
    [
        ("AB", (0, 0, 0, 0.99), 13, [1, 1, 5]),  # three random cards, then a random number
        ("AB", (0.99, 0.99, 0.99, 0), 1, [9, 9, 8]),
        ("A", (0.34, 0, 0, 0.5), 7, [1, 1]),  # a random 1-3, the cards, the number
        ("B", (), 1, [1, 1]),  # the most common; of two, the lowest (R25)
        ("", (0.5,), 8, [8]),  # one random card, honestly declared
    ],
)
def test_opening_r24(yes: str, draws: Sequence[float], number: int, cards: list[int]) -> None:
    hand = (1, 1, 5, 8, 9, 9)
    output = answering(hand, yes, *draws).play(opening(hand))
    assert (output.doubt, output.number, output.cards) == (False, number, cards)


@cases(
    ("hand", "yes", "draws", "cards"),
    [
        ((1, 7, 7, 7, 2), "E", (), [7, 7, 7]),  # all matching, at most three
        ((1, 7, 7, 2, 3), "E", (), [7, 7]),
        ((1, 7, 7, 7, 2), "", (0.34,), [7, 7]),  # a random number of the matching
        ((1, 7, 7, 7, 2), "", (0.99,), [7, 7, 7]),
        ((1, 7, 7, 2, 3), "", (0.99,), [7, 7]),  # randint(1, min(3, matching))
        ((1, 7, 7, 2, 3), "", (0.49,), [7]),
        ((1, 7, 7, 2, 3), "DE", (0, 0, 0), [1, 7, 7]),  # three random cards
        ((1, 7, 7, 2, 3), "D", (0.67, 0.99, 0.99, 0.99), [3, 2, 7]),  # a random 1-3 of them
        ((1, 7, 7, 2, 3), "D", (0.33, 0.5), [7]),
        ((1, 2, 3, 4, 5), "E", (0, 0, 0), [1, 2, 3]),  # without the number: a forced bluff (R25)
        ((1, 2, 3, 4, 5), "", (0, 0.99), [5]),
    ],
)
def test_regular_r24(hand: Sequence[int], yes: str, draws: Sequence[float], cards: list[int]) -> None:
    output = answering(hand, yes, *draws).play(regular(hand))
    assert (output.doubt, output.number, output.cards) == (False, None, cards)


def test_doubting_gives_no_cards() -> None:
    assert answering(HOLDING, "C").play(regular(HOLDING)) == TurnOutput(True)


@cases("draw", [0, 0.34, 0.67])
def test_fewer_cards_than_wanted_means_all_r24(draw: float) -> None:
    """min(randint(1, 3), held): with two cards held, 2 and 3 are both all."""
    for p, yes in ((opening((4, 9)), "A"), (regular((4, 9)), "")):
        output = answering((4, 9), yes, draw, 0, 0).play(p)
        assert output.cards == ([4] if draw == 0 else [4, 9])
    assert answering((4, 9), "E").play(regular((4, 9))).cards == [4, 9]


def test_jokers_when_opening_honestly_r25() -> None:
    """They count only in a hand of nothing else; whatever shows a joker declares a random number in play."""
    only = answering((0, 0), "B", 0.99).play(opening((0, 0)))
    assert (only.number, only.cards) == (13, [0, 0])
    among = answering((0, 0, 4), "B").play(opening((0, 0, 4)))
    assert (among.number, among.cards) == (4, [4])
    drawn = answering((0, 5), "", 0, 0.99).play(opening((0, 5)))
    assert (drawn.number, drawn.cards) == (13, [0])


def test_numbers_are_drawn_from_those_still_in_play_r24() -> None:
    p = opening((1, 2))
    p.playing_cards = (2, 4, 11)
    numbers = [answering((1, 2), "AB", draw).play(p).number for draw in (0, 0.33, 0.34, 0.66, 0.67, 0.99)]
    assert numbers == [2, 2, 4, 4, 11, 11]


@cases("node", NODES_A_TO_E)
@cases(("value", "shown"), [(None, "None"), (1, "type int"), (0, "type int"), ("yes", "type str"), ([], "type list")])
def test_an_answer_that_is_no_bool_is_refused_r13(node: str, value: object, shown: str) -> None:
    player = answering(HOLDING)
    player.say[node] = value
    p = opening(HOLDING) if node in "AB" else regular(HOLDING)
    with pytest.raises(IllegalOutput) as caught:
        player.play(p)
    assert str(caught.value).startswith(f"node {node} ({NODES_A_TO_E[node]}) answered ")
    assert str(caught.value).endswith(f"{shown}, not True or False")


@cases("node", "ACD")
def test_a_node_that_is_not_there_is_named_r13(node: str) -> None:
    class Half(Answers):
        pass

    setattr(Half, NODES_A_TO_E[node], getattr(BotBase, NODES_A_TO_E[node]))
    p = opening(HOLDING) if node in "AB" else regular(HOLDING)
    with pytest.raises(IllegalOutput, match=rf"node {node} \({NODES_A_TO_E[node]}\) of Half is not written yet"):
        in_seat(Half, HOLDING).play(p)


class Three(BotBase):
    """Opens honestly, never doubts, and is honest when it can be."""

    def bluff_first_hand(self, p: TurnData) -> bool:
        return False

    def should_doubt(self, p: TurnData) -> bool:
        return False

    def bluff_regular(self, p: TurnData) -> bool:
        return False


def test_three_nodes_are_enough_and_play_as_many_as_possible() -> None:
    assert in_seat(Three, (1, 1, 5)).play(opening((1, 1, 5))).cards == [1, 1]
    assert in_seat(Three, HOLDING).play(regular(HOLDING)).cards == [NUMBER, NUMBER]


def test_nodes_that_nobody_has_written_are_known_before_a_game() -> None:
    class Whole(BotBase):
        def play(self, p: TurnData) -> TurnOutput:
            return self.doubt(p)

    class Half(Whole):
        def should_doubt(self, p: TurnData) -> bool:
            return True

    assert missing_nodes(BotBase) == ["A (bluff_first_hand)", "C (should_doubt)", "D (bluff_regular)"]
    assert missing_nodes(Half) == ["A (bluff_first_hand)", "D (bluff_regular)"], "its play ends in the nodes"
    assert missing_nodes(Three) == missing_nodes(Whole) == missing_nodes(PlayerAI) == []


def test_the_helpers_read_the_turn_r22() -> None:
    player = in_seat(PlayerAI, (NUMBER, 0, 3))
    assert player.is_first_turn(opening((1,)))
    assert not player.is_first_turn(regular((1,)))
    assert player.can_play_truthfully(regular((1,)))
    assert not player.can_play_truthfully(opening((1,)))
    assert not in_seat(PlayerAI, (0, 3)).can_play_truthfully(regular((1,)))
    assert not in_seat(PlayerAI, (0, 3)).can_play_truthfully(opening((1,))), "a joker is not number 0"
    assert player.uncertainty_value == 0.05


def test_prev_player_started_turn_r22() -> None:
    player = in_seat(PlayerAI, (1, 2))
    assert player.prev_player_started_turn(regular((1, 2), played=2, older=0))
    assert not player.prev_player_started_turn(regular((1, 2), played=2, older=1))
    assert not player.prev_player_started_turn(opening((1, 2)))
    gone = regular((1, 2), played=2, older=0, prev=neighbour(2))
    assert not player.prev_player_started_turn(gone), "seat 0 opened and left; prev is seat 2"


def test_play_truthfully_without_the_number_is_the_bots_error_r28() -> None:
    with pytest.raises(IllegalOutput, match=f"play_truthfully needs a card {NUMBER} in the hand"):
        in_seat(PlayerAI, LACKING).play_truthfully(regular(LACKING), maximize=True)


def test_helpers_build_and_never_touch_the_hand_r28() -> None:
    hand = Hand(HOLDING)
    streams = DealStreams(0, 0).seat(1)
    player = make_player(PlayerAI, Seating(1, 0, 0, streams, partial(HandView, hand)), {})
    built = [
        *(player.bluff(p, maximize=maximize).cards for p in (opening(()), regular(())) for maximize in (True, False)),
        *(player.play_truthfully(regular(()), maximize=maximize).cards for maximize in (True, False)),
        player.play_truthfully(opening(()), maximize=True).cards,
        player.doubt(regular(())).cards,
        player.cards.pick_most(),
        player.cards.pick_all(NUMBER),
        player.cards.pick(NUMBER, 1),
        *(player.cards.pick_random(n) for n in (1, 3, 99)),
    ]
    for cards in built:
        assert cards is None or isinstance(cards, list)
        if cards:
            cards.clear()
    assert tuple(hand.cards) == HOLDING
    assert [hand.counts[number] for number in (0, 1, 2, 3, NUMBER)] == [0, 1, 1, 1, 2]


@cases(
    ("ask", "cards"),
    [
        (("pick", 5, 2), [5, 5]),
        (("pick", 5, 9), [5, 5, 5]),
        (("pick", 4, 1), []),
        (("pick", 99, 1), []),
        (("pick_all", 9), [9, 9]),
        (("pick_all", 0), [0]),
        (("pick_most",), [5, 5, 5]),
        (("pick_random", 99), [5, 9, 0, 5, 9, 5]),
        (("pick_random", 0), []),
    ],
)
def test_picks_give_at_most_what_is_held_r28(ask: Sequence[Any], cards: list[int]) -> None:
    view = in_seat(PlayerAI, (5, 9, 0, 5, 9, 5)).cards
    assert getattr(view, ask[0])(*ask[1:]) == cards


def test_the_hand_is_a_read_only_view_r26() -> None:
    view = in_seat(PlayerAI, (5, 9, 0, 5)).cards
    assert (len(view), list(view)) == (4, [5, 9, 0, 5])
    view.count_all().clear()
    assert view.count_all() == {5: 2, 9: 1, 0: 1}
    assert [view.count(number) for number in (-1, 0, 5, 13, 14)] == [0, 1, 2, 0, 0]
    assert [view.has(number) for number in (-1, 0, 5, 13, 14)] == [False, True, True, False, False]
    assert not view.all_equal()
    for name in ("append", "remove", "clear", "__setitem__", "__delitem__", "__dict__"):
        assert not hasattr(view, name)


class Setting(PlayerAI):
    """Keeps what it found in `__init__`, and changes a setting of its own."""

    def __init__(self, id: int, *, seen: list[int]) -> None:
        assert (self.id, len(self.cards)) == (id, 2)
        self.first = self.rng.random()
        seen.append(id)
        self.seen = seen
        super().__init__(id)


def test_init_has_all_and_settings_are_its_own_r28() -> None:
    given: dict[str, Any] = {"seen": []}
    streams = DealStreams(3, 4).seat(2)
    player = make_player(Setting, Seating(2, 0, 4, streams, partial(HandView, Hand((1, 2)))), given)
    assert isinstance(player, Setting)
    assert player.first == DealStreams(3, 4).seat(2).bot.random()
    assert player.seen == [2]
    assert given == {"seen": []}, "no instance reaches another's settings"


class Steady(Answers):
    """Opens with random cards, never doubts, bluffs: all chance is the framework's."""

    def __init__(self, id: int) -> None:
        super().__init__(id)
        self.say.update(A=True, D=True)


class Wasteful(Steady):
    """The same, but draws from its own stream whenever it is asked."""

    def play(self, p: TurnData) -> TurnOutput:
        self.rng.randbytes(p.board_cards)
        return super().play(p)


def test_own_draws_shift_nobodys_cards_r27() -> None:
    steady, wasteful = (Entrant("one", cls) for cls in (Steady, Wasteful))
    rules = Rules(max_turns=200)
    assert told([wasteful, steady, wasteful], rules, 5, 6) == told([steady] * 3, rules, 5, 6)


def test_a_player_without_play_says_so_r13() -> None:
    with pytest.raises(NotImplementedError, match="PlayerAI has no play"):
        in_seat(PlayerAI, HOLDING, framework=Random(0)).play(opening(HOLDING))
