"""The rules of BS, one by one (B1-B7)."""

import pickle
from collections import Counter
from collections.abc import Sequence
from copy import deepcopy
from random import Random
from typing import Any

import pytest

from bots.manual.bs.hoarder import Hoarder
from bots.manual.bs.player1 import Player1
from dubito.errors import BotError, IllegalOutput, UsageError
from dubito.game.streams import DealStreams
from dubito.game.table import Entrant, play_game
from dubito.game.table import Table as SeatedTable
from dubito.games.bs.cards import DECK, Card, DealEvent, PlayEvent, RoundEvent, TurnEvent, WinEvent
from dubito.games.bs.engine import SEAT_COUNTS, State
from dubito.games.bs.table import Table
from tests.games.bs.kit import deal_game, numbers_in_hand, snapshot, turn, with_hands


def small(seed: int = 0, max_rounds: int = 1000) -> State:
    return with_hands([0, 0, 5], [1, 6, 6], [2, 2, 7], [3, 8, 8], max_rounds=max_rounds, seed=seed)


def test_hands_are_blocks_of_thirteen_cards() -> None:
    game = deal_game(seed=7)
    deck = list(DECK)
    Random(7).shuffle(deck)
    assert [hand.cards for hand in game.hands] == [deck[:13], deck[13:26], deck[26:39], deck[39:]]
    assert game.start[0] == DealEvent((13, 13, 13, 13))


def test_bs_is_played_by_four() -> None:
    with pytest.raises(UsageError, match="needs 4 players, not 3"):
        State([[], [], []], 1000, Random(0))


def test_b1_the_numbers_asked_go_from_0_to_12_and_round_again() -> None:
    game = deal_game()
    asked = []
    for _ in range(20):
        asked.append((game.seat, game.view().number, game.view().round))
        turn(game, game.hands[game.seat].cards[:1])
    assert asked == [(turn % 4, turn % 13, turn // 4 + 1) for turn in range(20)]


def test_b2_no_winner_after_the_last_round() -> None:
    game = small(max_rounds=1)
    for seat in range(3):
        turn(game, game.hands[seat].cards[:1])
    assert not game.over
    assert turn(game, game.hands[3].cards[:1])[-1] == RoundEvent(1, 4, 4, (2, 2, 2, 2))
    ending = game.ending()
    assert (game.over, game.winner, ending.capped, ending.marks) == (True, None, True, [0, 0, 0, 0])
    assert ending.game_counts == (4, 1)


def test_b2_empty_hand_in_the_last_turn_still_wins() -> None:
    game = with_hands([0, 5], [1, 6], [2, 7], [3], max_rounds=1)
    for seat in range(4):
        turn(game, game.hands[seat].cards[:1])
    assert (game.winner, game.ending().capped) == (3, False)


def test_b3_a_forfeit_ends_the_game_without_a_winner() -> None:
    game = small()
    game.apply(game.hands[0].cards[:1])
    game.apply(False)
    game.forfeit(2)
    ending = game.ending()
    assert (game.over, game.winner, ending.capped, ending.marks) == (True, None, True, [0, 0, 0, 0])
    assert [counts[-1] for counts in ending.counts] == [0, 0, 1, 0]
    with pytest.raises(IllegalOutput, match="over"):
        game.forfeit(2)


def test_b3_a_card_named_twice_counts_once() -> None:
    game = small()
    first, second, _ = game.hands[0].cards
    (event, *_) = turn(game, [second, first, second])
    assert event == PlayEvent(0, 0, 2)
    assert numbers_in_hand(game, 0) == [5]


def test_b4_pile_has_the_cards_in_played_order() -> None:
    game = small()
    zero, other, five = game.hands[0].cards
    turn(game, [five, zero])
    turn(game, game.hands[1].cards[:1])
    one = Card(1, 0)
    assert game.pile.cards == [five, zero, one]
    turn(game, game.hands[2].cards[:1], 0)  # a wrong accusation: seat 0 adds the pile to the end of its hand
    assert game.hands[0].cards == [other, five, zero, one, Card(2, 0)]


@pytest.mark.parametrize(("mover", "asked"), [(0, [1, 2, 3]), (1, [0, 2, 3]), (2, [0, 1, 3]), (3, [0, 1, 2])])
def test_b5_the_three_others_are_asked_in_seat_order(mover: int, asked: list[int]) -> None:
    game = small()
    for seat in range(mover):
        turn(game, game.hands[seat].cards[:1])
    game.apply(game.hands[mover].cards[:1])
    seen = []
    while game.view().node == "bs":
        assert game.view().mover == mover
        seen.append(game.seat)
        game.apply(True)  # even after a yes
    assert seen == asked


def test_b5_accusers_see_sizes_after_the_play() -> None:
    game = small()
    game.apply(game.hands[0].cards[:2])
    views = []
    for _ in range(3):
        views.append((game.view().pile, game.view().n_cards, game.view().number, game.view().hands))
        game.apply(True)
    assert views == [(2, 2, 0, (1, 3, 3, 3))] * 3


def test_b5_all_three_are_asked_after_the_last_card_too() -> None:
    game = with_hands([0], [1, 6], [2, 7], [3, 8])
    game.apply(game.hands[0].cards[:])
    assert not game.over
    assert [bool(game.apply(False)) for _ in range(3)] == [False, False, True]
    assert game.over


def test_an_honest_mover_gives_the_pile_to_its_accuser() -> None:
    game = small()
    turn(game, game.hands[0].cards[:2], 2)
    assert (numbers_in_hand(game, 0), numbers_in_hand(game, 2), game.pile.cards) == ([5], [2, 2, 7, 0, 0], [])


@pytest.mark.parametrize("lie", [[2], [0, 2]])
def test_a_liar_takes_the_pile_and_its_accuser_loses_a_card(lie: list[int]) -> None:
    game = small()
    events = turn(game, [game.hands[0].cards[place] for place in lie], 3)
    assert sorted(numbers_in_hand(game, 0)) == [0, 0, 5]
    assert len(numbers_in_hand(game, 3)) == 2
    (card,) = game.pile.cards
    assert sorted([*numbers_in_hand(game, 3), card.number]) == [3, 8, 8]
    assert events == [PlayEvent(0, 0, len(lie)), TurnEvent(1, (3, 3, 3, 2))], "events do not name the accusers"


def test_b5_one_of_several_accusers_and_its_card_are_drawn() -> None:
    """One of three accusers is chosen with probability 1/3, and then one of its three cards."""
    drawn: Counter[Card] = Counter()
    for seed in range(1800):
        game = small(seed)
        turn(game, game.hands[0].cards[2:], 1, 2, 3)
        drawn[game.pile.cards[0]] += 1
        assert sum(counts.accusations_drawn for counts in game.counts) == 1
    assert len(drawn) == 9
    assert all(abs(times - 200) < 60 for times in drawn.values()), drawn  # 60 is four and a half standard errors


def test_b5_chance_is_the_stream_that_dealt() -> None:
    one, other = deal_game(seed=3), deal_game(seed=3)
    for _ in range(40):
        for game in (one, other):
            turn(game, game.hands[game.seat].cards[-2:], *(seat for seat in range(4) if seat != game.seat))
        assert snapshot(one) == snapshot(other)


def test_b6_unaccused_lie_with_the_last_cards_wins() -> None:
    game = with_hands([5], [1, 6], [2, 7], [3, 8])
    events = turn(game, game.hands[0].cards[:])
    assert events == [PlayEvent(0, 0, 1), TurnEvent(1, (0, 2, 2, 2)), RoundEvent(1, 1, 1, (0, 2, 2, 2)), WinEvent(0)]
    assert (game.over, game.winner, game.ending().marks, game.ending().game_counts) == (True, 0, [1, 0, 0, 0], (1, 1))


def test_b6_accused_honest_play_of_the_last_cards_wins() -> None:
    game = with_hands([0], [1, 6], [2, 7], [3, 8])
    turn(game, game.hands[0].cards[:], 1)
    assert (game.winner, numbers_in_hand(game, 1)) == (0, [1, 6, 0])


def test_b6_caught_lie_with_the_last_cards_does_not_win() -> None:
    game = with_hands([5], [1, 6], [2, 7], [3, 8])
    turn(game, game.hands[0].cards[:], 1)
    assert (game.over, numbers_in_hand(game, 0)) == (False, [5])


def test_b6_a_right_accuser_wins_with_its_last_card() -> None:
    game = with_hands([5], [1, 6], [2], [3, 8])
    events = turn(game, game.hands[0].cards[:], 2)
    assert (game.winner, numbers_in_hand(game, 0), game.pile.cards) == (2, [5], [Card(2, 0)])
    assert events[-1] == WinEvent(2)


def test_b7_a_round_ends_after_its_fourth_turn() -> None:
    game = small()
    ends = [
        [event for event in turn(game, game.hands[seat].cards[:1]) if type(event) is RoundEvent] for seat in range(4)
    ]
    assert ends == [[], [], [], [RoundEvent(1, 4, 4, (2, 2, 2, 2))]]


def test_finished_game_refuses_moves() -> None:
    game = with_hands([5], [1], [2], [3])
    turn(game, game.hands[0].cards[:])
    for output in ([Card(1, 0)], True):
        with pytest.raises(IllegalOutput, match="the game is over"):
            game.apply(output)


def test_seat_counts_sum_up_the_game() -> None:
    game = small()
    turn(game, game.hands[0].cards[:2], 1)  # an honest play is accused, so seat 1 takes two cards
    turn(game, game.hands[1].cards[1:3], 0)  # a lie is accused, and seat 0 loses its last card
    assert game.winner == 0
    ending = game.ending()
    assert dict(zip(SEAT_COUNTS, zip(*ending.counts, strict=True), strict=True)) == {
        "cards": (0, 5, 3, 3),
        "plays": (1, 1, 0, 0),
        "cards_played": (2, 2, 0, 0),
        "lies": (0, 1, 0, 0),
        "lies_accused": (0, 1, 0, 0),
        "accusations": (1, 1, 0, 0),
        "accusations_drawn": (1, 1, 0, 0),
        "accusations_right": (1, 0, 0, 0),
        "asked": (1, 1, 2, 2),
        "forfeits": (0, 0, 0, 0),
    }


class Mistaken(Player1):
    """Returns nothing in its second turn."""

    def request_cards(self, number: int, table: Table) -> Sequence[Card]:
        return [] if table.round == 2 else super().request_cards(number, table)


def seated(**on_error: Any) -> SeatedTable[State]:
    entrants = [Entrant(bot.__name__, bot) for bot in (Player1, Mistaken, Player1, Player1)]
    return SeatedTable(deal_game(), entrants, DealStreams(0, 0), **on_error)


def test_b3_a_mistake_stops_the_run_and_is_named() -> None:
    with pytest.raises(BotError, match=r"Mistaken \(seat 1\).* turn 6: nothing was played; play at least one card"):
        play_game(seated())


def test_b3_fallback_plays_for_a_failing_bot() -> None:
    table = seated(fallback=Hoarder)
    game = play_game(table)
    assert game.winner is not None
    assert (table.fallback_turns, len(table.errors)) == ([0, 1, 0, 0], 1)


def test_b3_forfeited_game_has_no_winner() -> None:
    game = play_game(seated(forfeits=True))
    assert (game.turns_played, game.winner, game.ending().capped) == (5, None, True)
    assert [counts.forfeits for counts in game.counts] == [0, 1, 0, 0]


def test_copy_of_a_game_continues_the_same() -> None:
    """The copy has equal cards, which are no longer the deck's own objects."""
    game = deal_game(4)
    turn(game, game.hands[0].cards[:3], 2)
    for copy in (deepcopy(game), pickle.loads(pickle.dumps(game))):  # noqa: S301, its own bytes
        original = deepcopy(game)
        for _ in range(40):
            for one in (original, copy):
                turn(one, one.hands[one.seat].cards[-2:], (one.seat + 1) % 4)
            assert snapshot(original) == snapshot(copy)
