"""R24, R25: the walk through the nodes A-E, what each answer plays, and the draws of the framework."""

from collections import Counter
from itertools import combinations

import pytest

from bots.base import BotBase
from dubito.game.table import Entrant, Table, step
from dubito.games.dubito.bot import NODES, PlayerAI
from dubito.games.dubito.cards import NUMBERS, TurnData, TurnOutput
from dubito.games.dubito.engine import State
from tests.conftest import cases
from tests.engine.helpers import cards, hand, position, run, table

DRAWS = 3000  # a share of 1/3 then has a standard error of 0.9 %
NEAR = 0.04


class Asked(BotBase):
    """Answers as it is told, notes which node was asked and what was held then."""

    def __init__(self, id: int, *, true: str = "") -> None:
        super().__init__(id)
        self.true = true
        self.asked: list[tuple[str, int]] = []

    def answer(self, node: str) -> bool:
        self.asked.append((node, len(self.cards)))
        return node in self.true

    def bluff_first_hand(self, p: TurnData) -> bool:
        return self.answer("A")

    def maximize_first_hand(self, p: TurnData) -> bool:
        return self.answer("B")

    def should_doubt(self, p: TurnData) -> bool:
        return self.answer("C")

    def bluff_regular(self, p: TurnData) -> bool:
        return self.answer("D")

    def maximize_regular(self, p: TurnData) -> bool:
        return self.answer("E")


def seat_of(game: State, true: str) -> Table:
    """A table where the seat to move answers True at these nodes."""
    entrants = [Entrant("Asked", Asked, {"true": true})] * len(game.hands)
    return table(game, *entrants)


def bot(at: Table, seat: int) -> Asked:
    """The bot of a seat."""
    player = at.players[seat]
    assert isinstance(player, Asked)
    return player


def ask(game: State, true: str) -> tuple[str, TurnOutput]:
    """The nodes that are asked in this turn, in order, and the output."""
    at, seat, held = seat_of(game, true), game.seat, len(game.hands[game.seat].cards)
    output, _ = step(at)
    asked = bot(at, seat).asked
    assert all(n == held for _, n in asked), "all before the hand changes"
    return "".join(node for node, _ in asked), output


@cases("true", ["", "A", "B", "AB"])
def test_r24_opening_asks_a_then_b(true: str) -> None:
    """R24: both, whatever A said."""
    assert ask(position("A233/45/67"), true)[0] == "AB"


@pytest.mark.parametrize(
    ("held", "true", "asked"),
    [
        ("34", "C", "C"),
        ("34", "", "CDE"),
        ("34", "D", "CDE"),
        ("34", "DE", "CDE"),
        ("45", "", "CE"),
        ("45", "C", "C"),
        ("*5", "", "CE"),
    ],
)
def test_r24_regular_asks_c_then_d_if_the_number_is_held_then_e(held: str, true: str, asked: str) -> None:
    """R24, R25: C first, and nothing after a doubt; without the number D is skipped."""
    game = position(f"A2/{held}/67")
    run(game, "A as 3")
    assert ask(game, true)[0] == asked


def test_r4_c_is_not_asked_when_there_is_nobody_to_doubt() -> None:
    """R4, R9: the last cards are those of one who has left."""
    game = position("A/34/56/78")
    run(game, "A as 3")
    assert ask(game, "C")[0] == "DE"
    game = position("A/45/56/78")
    run(game, "A as 3")
    asked, output = ask(game, "CE")
    assert asked == "E"
    assert sorted(output.cards or ()) == cards("45")


def test_r24_a_true_plays_random_cards_under_a_number_of_the_game() -> None:
    """R24: A and B true: three cards; the number is drawn from those not discarded."""
    for output in shots("A2345/67/89", "AB", DRAWS // 30):
        assert output.cards is not None
        assert len(output.cards) == 3
        assert output.number in NUMBERS
        assert not Counter(output.cards) - Counter(cards("A2345"))


def shots(hands: str, true: str, times: int, *moves: str) -> list[TurnOutput]:
    """Asks the seat to move again and again, one stream going on all the time."""
    game = position(hands)
    run(game, *moves)
    player = bot(seat_of(game, true), game.seat)
    return [player.play(game.turn_data()) for _ in range(times)]


def shares(sizes: list[int]) -> dict[int, float]:
    """How often each value came."""
    return {size: times / len(sizes) for size, times in sorted(Counter(sizes).items())}


@cases(
    ("hands", "true", "moves", "expected"),
    [
        # A true, B false: min(randint(1, 3), held)
        ("A2345/67/89", "A", (), {1: 1 / 3, 2: 1 / 3, 3: 1 / 3}),
        ("A2/67/89", "A", (), {1: 1 / 3, 2: 2 / 3}),
        ("A/67/89", "A", (), {1: 1}),
        # A and B true: three, or all
        ("A2345/67/89", "AB", (), {3: 1}),
        ("A2/67/89", "AB", (), {2: 1}),
        # A false: all (at most three) of the most common value, or one random card
        ("2AAA/67/89", "B", (), {3: 1}),
        ("A2233/67/89", "B", (), {2: 1}),
        ("A2233/67/89", "", (), {1: 1}),
        # bluff, forced or by D: three by E, else min(randint(1, 3), held)
        ("A2/34567/89", "E", ("A as 9",), {3: 1}),
        ("A2/34567/89", "", ("A as 9",), {1: 1 / 3, 2: 1 / 3, 3: 1 / 3}),
        ("A2/34/89", "", ("A as 9",), {1: 1 / 3, 2: 2 / 3}),
        ("A2/34567/89", "DE", ("A as 3",), {3: 1}),
        ("A2/34/89", "D", ("A as 3",), {1: 1 / 3, 2: 2 / 3}),
        # honest: all matching (at most three) by E, else randint(1, min(3, matching))
        ("A2/33345/89", "E", ("A as 3",), {3: 1}),
        ("A2/3345/89", "E", ("A as 3",), {2: 1}),
        ("A2/33345/89", "", ("A as 3",), {1: 1 / 3, 2: 1 / 3, 3: 1 / 3}),
        ("A2/3345/89", "", ("A as 3",), {1: 1 / 2, 2: 1 / 2}),
        ("A2/345/89", "", ("A as 3",), {1: 1}),
    ],
)
def test_r24_how_many_cards(hands: str, true: str, moves: tuple[str, ...], expected: dict[int, float]) -> None:
    """R24: the sizes of plays, and how often each comes."""
    sizes = [len(output.cards or ()) for output in shots(hands, true, DRAWS, *moves)]
    assert shares(sizes) == pytest.approx(expected, abs=NEAR)


def test_r24_at_most_three_matching_cards() -> None:
    """R24: at most three of a value are played honestly."""
    outputs = shots("A2/33335/89", "", DRAWS, "A as 3")
    assert shares([len(output.cards or ()) for output in outputs]) == pytest.approx(
        {1: 1 / 3, 2: 1 / 3, 3: 1 / 3}, abs=NEAR
    )


def test_r24_bluffs_are_random_cards() -> None:
    """R24: every two of four cards are as likely as any other two, the first seat of the list included."""
    outputs = shots("A234/67/89", "A", 3 * DRAWS)
    pairs = [tuple(sorted(output.cards or ())) for output in outputs if len(output.cards or ()) == 2]
    expected = dict.fromkeys(combinations((1, 2, 3, 4), 2), 1 / 6)
    found = {pair: times / len(pairs) for pair, times in Counter(pairs).items()}
    assert found == pytest.approx(expected, abs=NEAR)


def test_r24_one_honest_card_is_a_random_one() -> None:
    """R24: A and B false; it declares its value."""
    outputs = shots("A223/67/89", "", DRAWS)
    assert all(output.cards == [output.number] for output in outputs)
    assert shares([output.number or 0 for output in outputs]) == pytest.approx({1: 1 / 4, 2: 1 / 2, 3: 1 / 4}, abs=NEAR)


def test_r24_honest_cards_match() -> None:
    """R24: regular and D false: cards of the number only, no joker among them; declared with None."""
    for output in shots("A2/*3345/89", "", 50, "A as 3"):
        assert set(output.cards or ()) == {3}
        assert (output.doubt, output.number) == (False, None)


def test_r24_c_true_doubts() -> None:
    """R24: the output is a doubt without cards."""
    game = position("A2/34/56")
    run(game, "A as 3")
    assert ask(game, "C")[1] == TurnOutput(True)


def discarded_two_sets() -> State:
    """A game in which the aces and the kings are gone; seat 2 is to open with a joker and a two."""
    game = position("AK4/AAAKKK3/*2/567")
    run(game, "AK as 4", "3", "doubt")
    return game


@cases(("true", "laid"), [("AB", "*2"), ("A", None)])
def test_r24_a_bluff_declares_each_number_of_the_game_alike(true: str, laid: str | None) -> None:
    """R24: never one that is discarded."""
    game = discarded_two_sets()
    player = bot(seat_of(game, true), 2)
    outputs = [player.play(game.turn_data()) for _ in range(DRAWS)]
    expected = dict.fromkeys(range(2, 13), 1 / 11)
    assert shares([output.number or 0 for output in outputs]) == pytest.approx(expected, abs=0.02)
    if laid is not None:
        assert {tuple(sorted(output.cards or ())) for output in outputs} == {tuple(cards(laid))}


def test_r25_an_honest_joker_declares_a_number_of_the_game() -> None:
    """R25: as in a bluff; a card that is no joker declares its value."""
    game = discarded_two_sets()
    player = bot(seat_of(game, ""), 2)
    outputs = [player.play(game.turn_data()) for _ in range(2 * DRAWS)]
    assert {output.number for output in outputs if output.cards == [2]} == {2}
    jokers = [output.number or 0 for output in outputs if output.cards == [0]]
    assert shares(jokers) == pytest.approx(dict.fromkeys(range(2, 13), 1 / 11), abs=0.02)


@cases(
    ("held", "laid", "number"),
    [("3322", "22", 2), ("K22KA", "22", 2), ("32A", "A", 1), ("**7", "7", 7), ("**A2", "A", 1), ("2KKK", "KKK", 13)],
)
def test_r25_the_most_common_value(held: str, laid: str, number: int) -> None:
    """R25: ties go to the lowest value, jokers do not count beside anything else."""
    _, output = ask(position(f"{held}/67/89"), "B")
    assert (sorted(output.cards or ()), output.number) == (cards(laid), number)


@cases(("held", "true"), [("**", "B"), ("*", "B"), ("**", ""), ("*", "")])
def test_r25_a_hand_of_jokers_declares_a_drawn_number(held: str, true: str) -> None:
    """R25: all of them by B, else one; the number is one of the game's."""
    outputs = shots(f"{held}/67/89", true, DRAWS)
    size = len(held) if true else 1
    assert {tuple(output.cards or ()) for output in outputs} == {(0,) * size}
    assert shares([output.number or 0 for output in outputs]) == pytest.approx(dict.fromkeys(NUMBERS, 1 / 13), abs=0.02)


def test_r25_without_the_number_the_bluff_is_forced() -> None:
    """R25: D is not asked; jokers may be among the random cards."""
    outputs = shots("A2/*5/89", "", DRAWS, "A as 3")
    assert all(output.number is None and not output.doubt for output in outputs)
    assert {tuple(sorted(output.cards or ())) for output in outputs} == {(0,), (5,), (0, 5)}


def test_r24_the_nodes_have_the_names_of_the_blueprint() -> None:
    """R24: A-E."""
    assert NODES == {
        "A": "bluff_first_hand",
        "B": "maximize_first_hand",
        "C": "should_doubt",
        "D": "bluff_regular",
        "E": "maximize_regular",
    }
    assert issubclass(BotBase, PlayerAI)


def test_r24_asking_changes_no_hand() -> None:
    """R24, R28: an output is built, and the cards stay where they are until the engine moves them."""
    game = position("A2345/67/89")
    player = bot(seat_of(game, "AB"), 0)
    before = hand(game, 0)
    for _ in range(20):
        player.play(game.turn_data())
    assert (hand(game, 0), len(player.cards)) == (before, 5)
