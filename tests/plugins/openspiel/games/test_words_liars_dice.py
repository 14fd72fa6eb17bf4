"""Liar's dice's rules, tested against the engine sentence by sentence."""

from itertools import product
from random import Random
from typing import Any

import pytest

from tests.plugins.openspiel.games.kit import Claims, after, legal, load, load_words, tree

says = Claims()
NUMBERS = ["", "one", "two", "three", "four", "five", "six"]


def bid_of(name: str) -> tuple[int, int]:
    number, face = name.split()
    return NUMBERS.index(number), int(face.removesuffix("s"))


def higher(rule: str, bid: tuple[int, int], last: tuple[int, int] | None) -> bool:
    if last is None:
        return True
    if rule == "reset-face":
        return bid[0] > last[0] or (bid[0] == last[0] and bid[1] > last[1])
    return bid[1] > last[1] or (bid[1] == last[1] and bid[0] > last[0])


def check(state: Any, dice: int, sides: int, rule: str) -> None:
    """Compare the state with what the sentences say about its history."""
    names = load_words(state.get_game()).names
    rolled = [outcome + 1 for outcome in state.history()[: 2 * dice]]
    acts = [names[action] for action in state.history()[2 * dice :]]
    assert state.is_terminal() == ("liar" in acts)
    if state.is_terminal():
        number, face = bid_of(acts[-2])
        holds = sum(die in (face, sides) for die in rolled) >= number
        bidder = len(acts) % 2  # seats alternate, so with two acts the bid was seat 0's
        winner = bidder if holds else 1 - bidder
        assert state.returns() == [1 if seat == winner else -1 for seat in (0, 1)]
        return
    assert state.current_player() == len(acts) % 2
    last = bid_of(acts[-1]) if acts else None
    bids = [*product(range(1, 2 * dice + 1), range(1, sides + 1))]
    able = {bid for bid in bids if higher(rule, bid, last)}
    moves = legal(state)
    assert {bid_of(name) for name in moves if name != "liar"} == able
    assert ("liar" in moves) == bool(acts)


CLAIMS = (
    "Seat 0 begins, and they take turns.",
    "On your turn you make a bid, or call the other player's last bid a lie.",
    "A bid claims that at least this many of both players' two dice show a face, for example one 1 or two 6s.",
    "Every 6 is wild: it counts as any face that is bid.",
    "Each bid must be higher than the one before it: more dice of any face, or the same number of dice of a higher "
    "face.",
    "A bid is for at most two dice.",
    "The game begins with a bid, not with a call.",
    "After the highest of all bids, two 6s, the other player must call.",
    "A call (liar) ends the game, and all dice are shown.",
    "If at least as many dice as were bid show the face or are wild, the bidder wins, otherwise the caller.",
    "The winner's result is 1, the loser's -1.",
)


@says(*CLAIMS)
def test_every_game_follows_the_rules() -> None:
    """One roll is followed by all bids and calls (8,192 states), every other roll by each bid and a call."""
    game = load("liars_dice")
    for state in tree(after(game, (0, 5))):
        check(state, 1, 6, "reset-face")
    bids = load_words(game).names[:-1]
    assert len(bids) == 12
    for rolls, bid in product(product(range(6), repeat=2), bids):
        check(after(game, rolls, bid, "liar"), 1, 6, "reset-face")


@pytest.mark.parametrize(
    ("dice", "sides", "rule"), [(1, 3, "reset-quantity"), (2, 2, "reset-face"), (3, 4, "reset-quantity")]
)
def test_other_dice_follow_the_rules(dice: int, sides: int, rule: str) -> None:
    game, chance = load(f"liars_dice(numdice={dice},dice_sides={sides},bidding_rule={rule})"), Random(dice)
    face_first = "any number of dice of a higher face, or more dice of the same face"
    assert (face_first in load_words(game).rules[2]) == (rule == "reset-quantity")
    assert f"Every {sides} is wild" in load_words(game).rules[1]
    for _ in range(200):
        state = after(game, [chance.randrange(sides) for _ in range(2 * dice)])
        while not state.is_terminal():
            check(state, dice, sides, rule)
            state.apply_action(chance.choice(state.legal_actions()[-4:] + state.legal_actions()[:4]))
        check(state, dice, sides, rule)


@says("Two players sit in seats 0 and 1.", "Each rolls one die with the faces 1 to 6, unseen by the other.")
def test_dice_are_rolled_unseen() -> None:
    game = load("liars_dice")
    rolls = [*product(range(6), repeat=2)]
    for seat in (0, 1):
        hands = {(load_words(game).describe_hand(after(game, roll), seat), roll[seat]) for roll in rolls}
        assert hands == {(f"{face + 1}; no bid yet", face) for face in range(6)}


def test_every_sentence_is_played() -> None:
    assert says.left(load_words(load("liars_dice")).rules) == ""


def test_the_history_has_sorted_dice_and_bids() -> None:
    """The engine sorts the dice, so the order of the rolls is unknown."""
    state = after(load("liars_dice(numdice=2)"), (4, 1, 5, 0), "one 5", "three 2s", "liar")
    words = load_words(state.get_game())
    assert words.history(state, 0) == [
        (None, "The dice are rolled. Yours: 2 5."),
        (0, "You bid one 5."),
        (1, "seat 1 bids three 2s."),
        (0, "You call: liar."),
    ]
    assert words.describe_hand(state, 0) == "2 5; last bid: three 2s, by seat 1"
    assert words.describe_hand(state, 1) == "1 6; last bid: three 2s, by you"
