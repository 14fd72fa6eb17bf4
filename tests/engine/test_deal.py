"""R1, R2: the deck, the table and the deal, with their variants (R9, R12)."""

from collections import Counter
from collections.abc import MutableSequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from dubito.errors import UsageError
from dubito.games.dubito.cards import COPIES, JOKER, NUMBERS, Hand, TurnOutput
from dubito.games.dubito.engine import RESULTS, Result, Rules, State, check_players, deal_hands
from dubito.games.dubito.rehearsal import bot_at_turn
from tests.engine.helpers import hand, position, run

DECK = [*NUMBERS] * COPIES


class CountingRandom(Random):
    """A generator that counts the shuffles."""

    shuffles = 0

    def shuffle(self, x: MutableSequence[Any]) -> None:
        self.shuffles += 1
        super().shuffle(x)


class NoShuffle(Random):
    """A generator that leaves the first deck unshuffled and then uses the given orders."""

    orders: list[list[int]]

    def shuffle(self, x: MutableSequence[Any]) -> None:
        x[:] = self.orders.pop(0)


def deal_orders(*orders: list[int], players: int) -> list[list[int]]:
    """Deal with these shuffles, all of which must be used, and return the hands."""
    rng = NoShuffle()
    rng.orders = list(orders)
    hands = deal_hands(rng, players, Rules(jokers=0))
    assert rng.orders == []
    return [held.cards for held in hands]


@pytest.mark.parametrize("jokers", [0, 1, 2])
@pytest.mark.parametrize("players", range(3, 9))
def test_r1_every_deal_is_the_whole_deck(players: int, jokers: int) -> None:
    """R1: a deal has four cards of each number and the jokers.

    R2: hands differ by at most one card, and none holds a set.
    """
    for seed in range(20):
        hands = deal_hands(Random(seed), players, Rules(jokers=jokers))
        assert Counter(card for held in hands for card in held.cards) == Counter([*DECK, *[JOKER] * jokers])
        sizes = [len(held.cards) for held in hands]
        assert sizes == sorted(sizes, reverse=True)
        assert sizes[0] - sizes[-1] <= 1
        assert all(held.cards.count(number) < COPIES for held in hands for number in NUMBERS)


def test_r1_two_jokers_are_the_default() -> None:
    assert Rules() == Rules(jokers=2, win_rule="immediate", max_turns=1000)
    assert sum(len(held.cards) for held in deal_hands(Random(0), 3, Rules())) == 54


@pytest.mark.parametrize("players", [0, 1, 2, 9, 30])
def test_r1_other_tables_are_refused(players: int) -> None:
    """R1: a table has three to eight players; other sizes are refused everywhere."""
    variant = "; two players need the `duel` variant" if players == 2 else ""
    message = f"^Dubito needs 3 to 8 players, not {players}{variant}$"
    with pytest.raises(UsageError, match=message):
        check_players(players)
    with pytest.raises(UsageError, match=message):
        deal_hands(Random(0), players, Rules())
    with pytest.raises(UsageError, match=message):
        State(Rules(), [Hand([1]) for _ in range(players)])


@pytest.mark.parametrize("players", range(3, 9))
def test_r1_three_to_eight_players_are_accepted(players: int) -> None:
    game = State(Rules(), [Hand([1]) for _ in range(players)])
    assert game.n_players == players


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"jokers": -1}, "jokers: -1 is not between 0 and 2"),
        ({"jokers": 3}, "jokers: 3 is not between 0 and 2"),
        ({"max_turns": 0}, "max_turns: 0 is less than 1"),
        ({"win_rule": "later"}, "win_rule: 'later' is neither 'immediate' nor 'contested'"),
    ],
)
def test_rules_out_of_range_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=f"^{message}$"):
        Rules(**wrong)


def test_rules_at_the_bounds_are_accepted() -> None:
    assert Rules(jokers=0, max_turns=1).jokers == 0
    assert Rules(jokers=2).jokers == 2


def test_r2_cards_are_dealt_in_turn_from_the_first_seat() -> None:
    order = sorted(DECK)
    assert deal_orders(order, players=8) == [order[seat::8] for seat in range(8)]


def test_r2_deal_with_a_set_is_repeated() -> None:
    """R2: a deal is repeated if any hand has four cards of a number. Nothing of it is kept."""
    good = sorted(DECK)
    last_seat_has_a_set = sorted(DECK, key=lambda card: card == 13)
    last_seat_has_a_set = [card for card in last_seat_has_a_set if card != 13]
    for place in (7, 15, 23, 31):
        last_seat_has_a_set.insert(place, 13)
    assert deal_orders(last_seat_has_a_set, last_seat_has_a_set, good, players=8) == deal_orders(good, players=8)


@pytest.mark.parametrize(("players", "share", "tolerance"), [(3, 0.685, 0.02), (8, 0.990, 0.004)])
def test_r2_share_of_deals_that_are_accepted(players: int, share: float, tolerance: float) -> None:
    """R2: 68.5 % with 3 players, 99.0 % with 8. The tolerances are about three standard errors for 5,000 deals."""
    rng, deals = CountingRandom(2), 5000
    for _ in range(deals):
        deal_hands(rng, players, Rules())
    assert deals / rng.shuffles == pytest.approx(share, abs=tolerance)


def test_r2_a_deck_is_shuffled_as_python_does_it() -> None:
    """The draws are those of `Random.shuffle`, so subclasses of `Random` deal the same cards."""
    for seed in range(50):
        ours, own = Random(seed), CountingRandom(seed)
        dealt = [[hand.cards for hand in deal_hands(rng, 3 + seed % 6, Rules())] for rng in (ours, own)]
        assert dealt[0] == dealt[1]
        assert ours.getstate() == own.getstate()


def test_r2_two_jokers_are_not_a_set() -> None:
    hands = [deal_hands(Random(seed), 3, Rules()) for seed in range(30)]
    assert any(held.cards.count(JOKER) == 2 for deal in hands for held in deal)


def test_r2_the_first_seat_opens() -> None:
    game = position("AA/A/A")
    assert (game.seat, game.board, game.number) == (0, [], 0)
    assert (game.turns, game.free_turns, game.over, game.capped) == (0, 0, False, False)
    assert hand(game, 0) == "AA"


def test_small_deck_is_dealt_completely_without_a_set() -> None:
    for rules in (Rules(ranks=3, copies=3, jokers=1), Rules(ranks=2, copies=2, jokers=0), Rules(ranks=6, copies=2)):
        for seats in (2, 3):
            for seed in range(20):
                hands = deal_hands(Random(seed), seats, replace(rules, duel=seats == 2))
                assert Counter(card for held in hands for card in held.cards) == Counter(rules.deck)
                assert all(held.cards.count(number) < rules.copies for held in hands for number in NUMBERS)
                assert not any(held.has_set for held in hands)


def test_two_jokers_are_no_set_of_two_copies() -> None:
    rules = Rules(ranks=6, copies=2)
    deals = [deal_hands(Random(seed), 3, rules) for seed in range(100)]
    assert any(held.cards.count(JOKER) == 2 for hands in deals for held in hands)
    assert not any(held.has_set for hands in deals for held in hands)


@pytest.mark.parametrize(
    ("rules", "players", "message"),
    [
        ({"duel": True}, 3, "a duel needs 2 players, not 3; seat 2, or leave out `duel`"),
        ({"ranks": 2, "copies": 2, "jokers": 1}, 6, "the deck has 5 cards, too few for 6 players; set more `ranks`"),
        ({"ranks": 1}, 3, "ranks: 1 is not between 2 and 13"),
        ({"ranks": 14}, 3, "ranks: 14 is not between 2 and 13"),
        ({"copies": 1}, 3, "copies: 1 is not between 2 and 4"),
        ({"copies": 5}, 3, "copies: 5 is not between 2 and 4"),
    ],
)
def test_impossible_variants_are_refused(rules: dict[str, Any], players: int, message: str) -> None:
    with pytest.raises(UsageError, match=f"^{message}$"):
        deal_hands(Random(0), players, Rules(**rules))


def test_number_can_be_named_with_only_jokers_left() -> None:
    bot, p = bot_at_turn("MrNoDoubt", [[0], [0]], rules=Rules(ranks=2, copies=2, duel=True))
    p.playing_cards = ()
    assert bot.play(p) == TurnOutput(False, 1, [0])


def test_the_first_out_wins_a_duel() -> None:
    """R8-R10: a bluff with the last card is doubted; later an honest last card is not."""
    game = position("A2/A2", "contested", ranks=2, copies=2)
    run(game, "A as A", "A", "2")
    assert (game.over, game.places) == (False, [None, None])
    run(game, "doubt")
    assert (game.over, hand(game, 0), game.playing_cards) == (False, "2", [2])
    run(game, "2 as 2", "2")
    assert (game.over, game.places) == (True, [None, 1])
    assert [game.result(seat) for seat in (0, 1)] == [Result.LOSS, Result.HARD_WIN]


def test_equal_players_of_a_duel_score_half() -> None:
    """R30, R31: the results of two equal players, and the place of the loser."""
    share = RESULTS.chance_level(2)
    assert (share["score"], share["hard_wins"], share["soft_wins"], share["losses"]) == (0.5, 0.5, 0, 0.5)
    assert RESULTS.standing is not None
    assert [RESULTS.standing(place, 2, False) for place in (1, 0)] == [2, 0]
